//! What Discord knows: channels with their messages, sessions with their events, interactions, files.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

/// The bot of these tests, and its application.
pub const BOT_ID: &str = "1000000000000000042";
pub const BOT_NAME: &str = "hermes-test";
pub(super) const APPLICATION_ID: &str = "1000000000000000043";
pub(super) const GUILD: &str = "1000000000000000900";
pub(super) const BOT_ROLE: &str = "1000000000000000901";

/// The beginning of 2015, which ids count from.
const EPOCH_MILLIS: u64 = 1_420_070_400_000;

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) channels: BTreeMap<String, ChannelState>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) interactions: BTreeMap<String, InteractionState>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Messages by the channel and the nonce that they were sent under.
    pub(super) nonces: BTreeMap<(String, String), String>,
    pub(super) commands: Vec<Value>,
    /// How often commands were put.
    pub(super) commands_put: usize,
    pub(super) typing: Vec<String>,
    /// Where files are served from.
    pub(super) url: String,
    pub(super) last_id: u64,
}

#[derive(Debug, Default)]
pub(super) struct ChannelState {
    pub(super) about: Value,
    pub(super) messages: BTreeMap<u64, Value>,
    /// Marks of ours, by message.
    pub(super) reactions: BTreeMap<u64, Vec<String>>,
    pub(super) has_blocked_us: bool,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) seq: u64,
    pub(super) events: Vec<Told>,
    /// The last event that the bot says it has.
    pub(super) acknowledged: u64,
    /// Which socket it is on: the last one to take it.
    pub(super) socket: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) seq: u64,
    pub(super) event: String,
    pub(super) data: Value,
    /// Somebody did it, who waits for an answer.
    pub(super) is_said: bool,
}

#[derive(Debug)]
pub(super) struct InteractionState {
    pub(super) id: String,
    pub(super) channel: String,
    pub(super) made: Instant,
    /// How it was answered.
    pub(super) answered: Option<u64>,
    /// The message that is the answer.
    pub(super) answer: Option<String>,
    /// What was said for the eyes of one person only.
    pub(super) whispers: Vec<String>,
}

impl World {
    /// The platform's own clock: that of the machine, since others compare it with theirs.
    #[expect(clippy::disallowed_methods, reason = "a platform has its own clock")]
    fn now_millis() -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    }

    pub(super) fn new_id(&mut self) -> String {
        let now = (Self::now_millis() - EPOCH_MILLIS) << 22;
        self.last_id = now.max(self.last_id + 1);
        self.last_id.to_string()
    }

    pub(super) fn timestamp() -> String {
        let millis = i64::try_from(Self::now_millis()).unwrap_or(0);
        let time = hermes_core::Timestamp::from_millis(millis).to_iso();
        format!(
            "{}.{:06}+00:00",
            time.trim_end_matches('Z')
                .split('.')
                .next()
                .unwrap_or_default(),
            (millis % 1000) * 1000
        )
    }

    pub(super) fn add_channel(&mut self, id: &str, about: Value) {
        let mut about = about;
        about["id"] = id.into();
        let state = ChannelState {
            about,
            ..ChannelState::default()
        };
        self.channels.insert(id.to_owned(), state);
    }

    pub(super) fn is_direct(&self, channel: &str) -> bool {
        let state = self.channels.get(channel);
        state.is_some_and(|state| state.about["type"] == 1)
    }

    pub(super) fn message(&self, channel: &str, id: &str) -> Option<&Value> {
        let id: u64 = id.parse().ok()?;
        self.channels.get(channel)?.messages.get(&id)
    }

    pub(super) fn message_mut(&mut self, channel: &str, id: &str) -> Option<&mut Value> {
        let id: u64 = id.parse().ok()?;
        self.channels.get_mut(channel)?.messages.get_mut(&id)
    }

    /// A message that is in no channel.
    pub(super) fn unseen(&mut self, channel: &str, author: &Value, content: &Value) -> Value {
        let id = self.new_id();
        let mut message = json!({
            "id": id, "channel_id": channel, "author": author, "content": "", "timestamp": Self::timestamp(),
            "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
            "attachments": [], "embeds": [], "components": [], "pinned": false, "type": 0, "flags": 0,
        });
        for (key, value) in content.as_object().into_iter().flatten() {
            message[key] = value.clone();
        }
        message
    }

    /// Puts a message into a channel, and tells the bot.
    pub(super) fn put(&mut self, channel: &str, author: &Value, content: &Value) -> Value {
        let message = self.unseen(channel, author, content);
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let number: u64 = id.parse().unwrap_or(0);
        if let Some(state) = self.channels.get_mut(channel) {
            state.messages.insert(number, message.clone());
            state.about["last_message_id"] = id.into();
        }
        let told = self.as_told(channel, message.clone());
        self.tell("MESSAGE_CREATE", told, author["id"] != BOT_ID);
        message
    }

    /// A message as the gateway tells it: with what is known of its server.
    pub(super) fn as_told(&self, channel: &str, mut message: Value) -> Value {
        if !self.is_direct(channel) {
            message["guild_id"] = GUILD.into();
            message["member"] = json!({"roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false, "mute": false, "flags": 0, "nick": null});
        }
        message
    }

    /// Tells every session; those without a socket hear it when they are resumed.
    pub(super) fn tell(&mut self, event: &str, data: Value, is_said: bool) {
        for session in self.sessions.values_mut() {
            session.tell(event, data.clone(), is_said);
        }
    }

    pub(super) fn add_file(&mut self, name: &str, mime: &str, bytes: Vec<u8>) -> Value {
        let id = self.new_id();
        let about = json!({
            "id": id, "filename": name, "size": bytes.len(), "content_type": mime,
            "url": format!("{}/attachments/{id}/{}", self.url, name.replace(' ', "_")),
            "proxy_url": format!("{}/attachments/{id}/{}", self.url, name.replace(' ', "_")),
        });
        self.files.insert(id, bytes);
        about
    }
}

impl Session {
    pub(super) fn tell(&mut self, event: &str, data: Value, is_said: bool) -> u64 {
        self.seq += 1;
        self.events.push(Told {
            seq: self.seq,
            event: event.to_owned(),
            data,
            is_said,
        });
        self.seq
    }
}

/// The bot, as Discord tells of it.
pub(super) fn bot() -> Value {
    json!({"id": BOT_ID, "username": BOT_NAME, "global_name": null, "discriminator": "0", "avatar": null, "bot": true, "public_flags": 0})
}
