//! The strict server as the other side of the contract.

use std::sync::Arc;

use hermes_core::{Address, AttachmentKind, Button, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen};
use hermes_testkit::discord::people::{DIRECT, GENERAL, THREAD};
use hermes_testkit::discord::{BOT_ID, CallFault, DiscordServer, TOKEN};
use serde_json::{Value, json};

pub(super) struct FakeDiscord {
    pub(super) server: DiscordServer,
}

impl FakeDiscord {
    pub(super) async fn new() -> Self {
        let server = DiscordServer::start().await.with_channels();
        Self { server }
    }

    fn content(&self, said: &Said) -> Value {
        let words = if said.mentions_us {
            format!("<@{BOT_ID}> {}", said.text)
        } else {
            said.text.clone()
        };
        let mut content = json!({"content": words});
        if let Some(id) = &said.replies_to {
            content["replies_to"] = id.as_str().into();
        }
        let Some(file) = &said.file else {
            return content;
        };
        let mime = match file.kind {
            AttachmentKind::Picture | AttachmentKind::Sticker => "image/png",
            AttachmentKind::Voice | AttachmentKind::Audio => "audio/ogg",
            AttachmentKind::Video => "video/mp4",
            AttachmentKind::Document => "application/octet-stream",
        };
        let about = self.server.add_file(&file.name, mime, &file.bytes);
        content["attachments"] = json!([about]);
        if file.kind == AttachmentKind::Voice {
            content["flags"] = (1u64 << 13).into();
        }
        content
    }

    fn seen_message(&self, message: &Value) -> Seen {
        let file = message["attachments"].get(0);
        Seen {
            id: text_of(&message["id"]),
            text: super::shown(message["content"].as_str().unwrap_or_default()),
            buttons: buttons(message),
            file: file.and_then(|file| {
                let bytes = self.server.file(file["id"].as_str()?)?;
                Some((text_of(&file["filename"]), bytes))
            }),
            replies_to: message["message_reference"]["message_id"]
                .as_str()
                .map(ToOwned::to_owned),
            is_silent: message["flags"].as_u64().unwrap_or(0) & (1 << 12) != 0,
        }
    }
}

pub(super) fn buttons(message: &Value) -> Vec<Vec<Button>> {
    let button = |button: &Value| Button {
        label: text_of(&button["label"]),
        data: text_of(&button["custom_id"]),
    };
    let row = |row: &Value| {
        row["components"]
            .as_array()
            .into_iter()
            .flatten()
            .map(button)
            .collect()
    };
    message["components"]
        .as_array()
        .into_iter()
        .flatten()
        .map(row)
        .collect()
}

fn channel(place: Place) -> &'static str {
    match place {
        Place::Direct => DIRECT,
        Place::Group => GENERAL,
        Place::Thread => THREAD,
    }
}

pub(super) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl PlatformSide for FakeDiscord {
    fn open(&self) -> Arc<dyn Channel> {
        super::open_at(&self.server.url(), TOKEN, &json!({}))
    }

    fn place(&self, place: Place) -> Option<Address> {
        Address::parse(&format!("discord:{}", channel(place)))
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        // A message has all its files at once.
        if said.album.is_some() {
            return None;
        }
        let id = self.server.say(channel(place), self.content(&said));
        Some(MessageId::from(id))
    }

    async fn edit(&self, place: Place, id: &MessageId, text: &str) -> bool {
        self.server.edit(channel(place), id.as_str(), text);
        true
    }

    async fn press(&self, place: Place, message: &MessageId, data: &str) -> bool {
        self.server.press(channel(place), message.as_str(), data);
        true
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let ours = self.server.ours(channel(place));
        ours.iter()
            .map(|message| self.seen_message(message))
            .collect()
    }

    async fn marks(&self, place: Place, id: &MessageId) -> Option<usize> {
        Some(self.server.reactions(channel(place), id.as_str()).len())
    }

    async fn typing(&self, place: Place) -> Option<usize> {
        Some(self.server.typing(channel(place)))
    }

    async fn waiting(&self) -> Option<usize> {
        Some(self.server.pending_count())
    }

    async fn fault(&self, fault: Fault) -> bool {
        match fault {
            Fault::Duplicate => self.server.repeat_last(),
            Fault::Reorder => self.server.reverse_events(),
            Fault::Disconnect => self.server.drop_sockets(),
            Fault::Malformed => {
                self.server
                    .tell("MESSAGE_CREATE", json!({"id": 7, "channel_id": []}));
                self.server.tell("MESSAGE_CREATE", json!("not a message"));
                self.server.tell("INTERACTION_CREATE", json!([]));
                self.server.send_frame("{\"op\": \"nonsense\"");
            }
            Fault::UnknownKind => {
                self.server
                    .tell("TELEPATHY_CREATE", json!({"thought": "hello"}));
                self.server.say(DIRECT, json!({"content": "", "type": 6}));
                self.server.send_frame("{\"op\": 99, \"d\": null}");
            }
            // Several may receive with one token.
            Fault::Conflict => return false,
            Fault::WrongPassword => self.server.rotate_token(),
            Fault::Throttle(wait) => self
                .server
                .fail("send", CallFault::Throttle(wait.as_secs_f64())),
            Fault::LoseAnswer => self.server.fail("send", CallFault::DropAfter),
            Fault::LoseCall => self.server.fail("send", CallFault::DropBefore),
            Fault::Garbage => self.server.fail("send", CallFault::Garbage),
            // There is no markup that it refuses.
            Fault::BadFormat => return false,
            Fault::Block => self.server.block(DIRECT),
        }
        true
    }

    fn secret(&self) -> String {
        TOKEN.to_owned()
    }
}
