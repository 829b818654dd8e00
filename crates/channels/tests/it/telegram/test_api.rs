//! `telegram-test-api`, which people test their bots with: buttons and edits, and hardly any rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hermes_core::{Address, Button, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen, channel_contract};
use hermes_testkit::peers;
use hermes_testkit::telegram::markup;
use serde_json::{Value, json};

use super::open_at;
use crate::peer::Peer;

const PERSON: i64 = 7;
const GROUP: i64 = -70;
/// Who every bot is there.
const BOT_NAME: &str = "TestNameBot";

struct TestApi {
    peer: Arc<Peer>,
    /// A bot of this case only.
    token: String,
}

impl TestApi {
    fn chat(place: Place) -> i64 {
        if place == Place::Group { GROUP } else { PERSON }
    }

    async fn history(&self) -> Vec<Value> {
        let answer = self
            .peer
            .ask("/getUpdatesHistory", &[], &json!({"token": self.token}))
            .await;
        answer["result"].as_array().cloned().unwrap_or_default()
    }

    fn from(&self, place: Place) -> Value {
        let kind = if place == Place::Group {
            "group"
        } else {
            "private"
        };
        json!({
            "botToken": self.token,
            "date": 1_790_000_000,
            "from": {"id": PERSON, "first_name": "Alice", "username": "alice", "is_bot": false},
            "chat": {"id": Self::chat(place), "type": kind, "title": "Friends", "first_name": "Alice"},
        })
    }
}

fn shown(message: &Value) -> String {
    let text = message["text"].as_str().unwrap_or_default();
    match message["parse_mode"].as_str() {
        Some(_) => markup::parse(text).unwrap().text,
        None => text.to_owned(),
    }
}

impl PlatformSide for TestApi {
    fn open(&self) -> Arc<dyn Channel> {
        open_at(&self.peer.url, &self.token, &json!({}))
    }

    fn place(&self, place: Place) -> Option<Address> {
        let address = format!("telegram:{}", Self::chat(place));
        (place != Place::Thread).then(|| Address::parse(&address).unwrap())
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        if said.file.is_some() {
            return None;
        }
        let mut message = self.from(place);
        message["text"] = said.text.clone().into();
        if said.mentions_us {
            message["text"] = format!("@{BOT_NAME} {}", said.text).into();
            message["entities"] =
                json!([{"type": "mention", "offset": 0, "length": BOT_NAME.len() + 1}]);
        }
        if let Some(id) = &said.replies_to {
            let id: i64 = id.as_str().parse().unwrap();
            let ours = self.history().await.iter().any(|update| {
                update["messageId"] == id && update["message"].get("chat_id").is_some()
            });
            let from = if ours {
                json!({"id": 666, "is_bot": true})
            } else {
                json!({"id": PERSON})
            };
            message["reply_to_message"] = json!({"message_id": id, "chat": {"id": PERSON}, "from": from, "text": "the first"});
        }
        self.peer.ask("/sendMessage", &[], &message).await;
        let history = self.history().await;
        let mut ids: Vec<i64> = history
            .iter()
            .filter(|update| update["message"].get("chat").is_some())
            .filter_map(|update| update["messageId"].as_i64())
            .collect();
        ids.sort_unstable();
        ids.last().map(|id| MessageId::from(id.to_string()))
    }

    async fn edit(&self, _place: Place, _id: &MessageId, _text: &str) -> bool {
        false
    }

    async fn press(&self, place: Place, message: &MessageId, data: &str) -> bool {
        let mut press = self.from(place);
        let id: i64 = message.as_str().parse().unwrap();
        press["message"] = json!({"message_id": id, "chat": press["chat"], "date": 1});
        press["data"] = data.into();
        self.peer.ask("/sendCallback", &[], &press).await;
        true
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let chat = Self::chat(place);
        let button = |button: &Value| Button {
            label: button["text"].as_str().unwrap_or_default().to_owned(),
            data: button["callback_data"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let row = |row: &Value| row.as_array().into_iter().flatten().map(button).collect();
        let mut history = self.history().await;
        history.sort_by_key(|update| update["messageId"].as_i64());
        let ours = history
            .iter()
            .filter(|update| update["message"]["chat_id"] == chat);
        ours.map(|update| {
            let message = &update["message"];
            let rows = message["reply_markup"]["inline_keyboard"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            Seen {
                id: update["messageId"].to_string(),
                text: shown(message),
                buttons: rows.iter().map(row).collect(),
                file: None,
                replies_to: message["reply_parameters"]
                    .get("message_id")
                    .map(ToString::to_string),
                is_silent: message["disable_notification"] == true,
            }
        })
        .collect()
    }

    async fn marks(&self, _place: Place, _id: &MessageId) -> Option<usize> {
        None
    }

    async fn typing(&self, _place: Place) -> Option<usize> {
        None
    }

    async fn waiting(&self) -> Option<usize> {
        None
    }

    async fn fault(&self, _fault: Fault) -> bool {
        false
    }

    fn lacks(&self) -> &'static [&'static str] {
        &[
            // It knows neither menus nor typing nor marks.
            "facts::commands_are_taken",
            "sending::typing_is_seen",
            "sending::a_mark_is_seen_and_taken_away",
            // It takes no files.
            "files::a_file_of_ours_is_seen",
            "files::a_picture_of_ours_is_seen",
            "files::a_picture_that_is_none_is_still_sent",
            "files::a_caption_is_seen",
            // It gives every update once, whatever was confirmed.
            "answers::what_was_not_taken_comes_again",
            "answers::what_is_not_taken_is_not_acknowledged",
            // It keeps buttons that an edit does not name, edits what is not there, and deletes nothing twice.
            "edits::an_edit_takes_buttons_away",
            "edits::an_edit_of_what_is_not_there_is_said",
            "edits::deleting_twice_is_no_error",
        ]
    }

    fn secret(&self) -> String {
        self.token.clone()
    }
}

#[tokio::test]
async fn telegram_keeps_the_contract_with_telegram_test_api() {
    let peer = Peer::start("telegram-test-api", |folder, port| {
        let module = folder.join("node_modules/telegram-test-api");
        let script = format!(
            "const TelegramServer = require({module:?}); new TelegramServer({{port: {port}, host: '127.0.0.1'}}).start();",
            module = module.display().to_string()
        );
        let mut command = peers::program("node");
        command.args(["-e", &script]);
        command
    });
    let Some(peer) = peer.await.map(Arc::new) else {
        return;
    };
    let next = AtomicI64::new(666);
    let report = channel_contract(async || TestApi {
        peer: Arc::clone(&peer),
        token: format!("666:case{}", next.fetch_add(1, Ordering::Relaxed)),
    })
    .await;
    println!(
        "played {}, left out {:#?}",
        report.played.len(),
        report.left_out
    );
    assert!(report.played.len() >= 40, "{}", report.played.len());
}
