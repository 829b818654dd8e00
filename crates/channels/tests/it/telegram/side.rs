//! The strict server as the other side of the contract.

use std::sync::Arc;

use hermes_core::{Address, AttachmentKind, Button, Channel, MessageId, WebRequest, WebResponse};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen};
use hermes_testkit::telegram::people::{ALICE, FORUM, GROUP, TOPIC};
use hermes_testkit::telegram::{BOT_NAME, CallFault, TOKEN, TelegramServer, WAITING};
use serde_json::{Value, json};

/// How updates come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Poll,
    Webhook,
}

pub(super) struct FakeTelegram {
    pub(super) server: TelegramServer,
    way: Way,
}

impl FakeTelegram {
    pub(super) async fn new(way: Way) -> Self {
        let server = TelegramServer::start().await.with_chats();
        Self { server, way }
    }

    fn chat(place: Place) -> i64 {
        match place {
            Place::Direct => ALICE,
            Place::Group => GROUP,
            Place::Thread => FORUM,
        }
    }

    fn content(&self, place: Place, said: &Said) -> Value {
        let words = if said.mentions_us {
            format!("@{BOT_NAME} {}", said.text)
        } else {
            said.text.clone()
        };
        let mut content = json!({});
        if place == Place::Thread {
            content["message_thread_id"] = TOPIC.into();
            content["is_topic_message"] = true.into();
            content["reply_to_message"] = json!({"message_id": TOPIC, "chat": {"id": FORUM}, "forum_topic_created": {"name": "Plans"}});
        }
        if let Some(id) = said.replies_to.as_ref().and_then(number) {
            let ours = self.server.ours(Self::chat(place));
            let original = ours.into_iter().find(|message| message["message_id"] == id);
            content["reply_to_message"] = original.unwrap_or_else(
                || json!({"message_id": id, "chat": {"id": ALICE}, "text": "the first"}),
            );
        }
        if let Some(album) = &said.album {
            content["media_group_id"] = album.clone().into();
        }
        let Some(file) = &said.file else {
            content["text"] = words.into();
            return content;
        };
        let id = self.server.add_file(&file.bytes);
        let about = json!({"file_id": id, "file_name": file.name, "file_size": file.bytes.len(), "width": 9, "height": 9});
        let small = json!({"file_id": "small", "file_size": 1, "width": 1, "height": 1});
        match file.kind {
            AttachmentKind::Picture => content["photo"] = json!([small, about, small]),
            AttachmentKind::Voice => content["voice"] = about,
            AttachmentKind::Audio => content["audio"] = about,
            AttachmentKind::Video => content["video"] = about,
            AttachmentKind::Sticker => content["sticker"] = about,
            AttachmentKind::Document => content["document"] = about,
        }
        if !words.is_empty() {
            content["caption"] = words.into();
        }
        content
    }

    fn seen_message(&self, message: &Value) -> Seen {
        let text = message["text"].as_str().or(message["caption"].as_str());
        let buttons = message["reply_markup"]["inline_keyboard"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let button = |button: &Value| Button {
            label: text_of(&button["text"]),
            data: text_of(&button["callback_data"]),
        };
        let row = |row: &Value| row.as_array().into_iter().flatten().map(button).collect();
        let file = [
            "document",
            "voice",
            "audio",
            "video",
            "animation",
            "sticker",
        ]
        .iter()
        .find_map(|kind| message.get(*kind));
        let file = file.or_else(|| message["photo"].get(0));
        Seen {
            id: message["message_id"].to_string(),
            text: text.unwrap_or_default().to_owned(),
            buttons: buttons.iter().map(row).collect(),
            file: file.and_then(|file| {
                let bytes = self.server.file(file["file_id"].as_str()?)?;
                Some((text_of(&file["file_name"]), bytes))
            }),
            replies_to: message["reply_to_message"]
                .get("message_id")
                .map(ToString::to_string),
            is_silent: message["is_silent"] == true,
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(id: &MessageId) -> Option<i64> {
    id.as_str().parse().ok()
}

impl PlatformSide for FakeTelegram {
    fn open(&self) -> Arc<dyn Channel> {
        let more = match self.way {
            Way::Poll => json!({}),
            Way::Webhook => {
                json!({"webhook_url": "https://bot.example.org/telegram", "webhook_secret": "s3cret_word"})
            }
        };
        super::open_at(&self.server.url(), TOKEN, &more)
    }

    fn place(&self, place: Place) -> Option<Address> {
        let thread = (place == Place::Thread).then(|| format!(":{TOPIC}"));
        let address = format!(
            "telegram:{}{}",
            Self::chat(place),
            thread.unwrap_or_default()
        );
        Address::parse(&address)
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        let id = self
            .server
            .say(Self::chat(place), self.content(place, &said));
        Some(MessageId::from(id.to_string()))
    }

    async fn edit(&self, place: Place, id: &MessageId, text: &str) -> bool {
        self.server
            .edit(Self::chat(place), number(id).expect("a number"), text);
        true
    }

    async fn press(&self, place: Place, message: &MessageId, data: &str) -> bool {
        self.server
            .press(Self::chat(place), number(message).expect("a number"), data);
        true
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let is_there =
            |message: &&Value| place != Place::Thread || message["message_thread_id"] == TOPIC;
        let ours = self.server.ours(Self::chat(place));
        ours.iter()
            .filter(is_there)
            .map(|message| self.seen_message(message))
            .collect()
    }

    async fn marks(&self, place: Place, id: &MessageId) -> Option<usize> {
        Some(self.server.reactions(Self::chat(place), number(id)?).len())
    }

    async fn typing(&self, place: Place) -> Option<usize> {
        let thread = (place == Place::Thread).then_some(TOPIC);
        let shown = self.server.typing();
        Some(
            shown
                .iter()
                .filter(|typing| **typing == (Self::chat(place), thread))
                .count(),
        )
    }

    async fn waiting(&self) -> Option<usize> {
        Some(self.server.pending_count())
    }

    async fn fault(&self, fault: Fault) -> bool {
        let is_poll = self.way == Way::Poll;
        match fault {
            Fault::Duplicate => self.server.repeat_last(),
            Fault::Reorder => self.server.reverse_updates(),
            Fault::Disconnect if is_poll => self.server.fail(WAITING, CallFault::DropBefore),
            Fault::Conflict if is_poll => {
                let words = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
                self.server
                    .fail(WAITING, CallFault::Refuse(409, words.to_owned()));
            }
            // A look at the webhook comes too seldom for a test.
            Fault::Disconnect | Fault::Conflict => return false,
            Fault::Malformed => {
                self.server
                    .tell("message", json!({"message_id": "not a number"}));
                self.server.tell("message", json!("not a message"));
                self.server.tell("callback_query", json!([]));
            }
            Fault::UnknownKind => {
                self.server.tell("telepathy", json!({"thought": "hello"}));
                self.server.say(ALICE, json!({"pinned_message": {}}));
            }
            Fault::WrongPassword => self.server.rotate_token(),
            Fault::Throttle(wait) => self
                .server
                .fail("send", CallFault::Throttle(wait.as_secs())),
            Fault::LoseAnswer => self.server.fail("send", CallFault::DropAfter),
            Fault::LoseCall => self.server.fail("send", CallFault::DropBefore),
            Fault::Garbage => self.server.fail("send", CallFault::Garbage),
            Fault::BadFormat => {
                let words = "Bad Request: can't parse entities: Character '.' is reserved";
                self.server
                    .fail("send", CallFault::Refuse(400, words.to_owned()));
            }
            Fault::Block => self.server.block(ALICE),
        }
        true
    }

    fn secret(&self) -> String {
        TOKEN.to_owned()
    }

    async fn next_request(&self) -> Option<WebRequest> {
        let (secret, body) = self.server.next_post()?;
        Some(WebRequest {
            method: "POST".to_owned(),
            query: String::new(),
            headers: vec![("x-telegram-bot-api-secret-token".to_owned(), secret)],
            body,
        })
    }

    async fn answered(&self, response: &WebResponse) {
        if response.status == 200 {
            self.server.confirm_post();
        }
    }
}
