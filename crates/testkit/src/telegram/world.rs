//! What Telegram knows: chats with their messages, updates that wait, files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The bot of these tests.
pub const BOT_ID: i64 = 42;
pub const BOT_NAME: &str = "hermes_test_bot";

/// As in telegram-bot-api's queue of updates.
const AHEAD_MAX: i64 = 10;

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) chats: BTreeMap<i64, ChatState>,
    pub(super) updates: Vec<Value>,
    pub(super) next_update: i64,
    pub(super) next_message: i64,
    /// Everything before it is confirmed.
    pub(super) confirmed: i64,
    pub(super) webhook: Option<(String, String)>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Presses that were not acknowledged yet.
    pub(super) presses: Vec<String>,
    /// What presses were acknowledged with.
    pub(super) acknowledged: Vec<(String, Option<String>)>,
    pub(super) menus: BTreeMap<String, Vec<String>>,
    /// Chats and threads in which typing was shown.
    pub(super) typing: Vec<(i64, Option<i64>)>,
}

#[derive(Debug, Default)]
pub(super) struct ChatState {
    pub(super) about: Value,
    pub(super) messages: BTreeMap<i64, Value>,
    pub(super) topics: BTreeMap<i64, String>,
    pub(super) reactions: BTreeMap<i64, Vec<String>>,
    pub(super) has_blocked_us: bool,
    pub(super) moved_to: Option<i64>,
}

impl World {
    pub(super) fn add_chat(&mut self, id: i64, about: Value) {
        let mut about = about;
        about["id"] = id.into();
        self.chats.insert(
            id,
            ChatState {
                about,
                ..ChatState::default()
            },
        );
    }

    /// The platform's own clock: that of the machine, since others compare it with theirs.
    #[expect(clippy::disallowed_methods, reason = "a platform has its own clock")]
    pub(super) fn now(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs() as i64)
    }

    pub(super) fn new_message_id(&mut self) -> i64 {
        self.next_message += 1;
        self.next_message
    }

    /// Puts a message of a person into a chat, and tells the bot.
    pub(super) fn say(&mut self, chat: i64, from: &Value, content: &Value) -> i64 {
        let id = self.new_message_id();
        let message = self.put(chat, id, from, content);
        let is_channel = message["chat"]["type"] == "channel";
        self.tell(
            if is_channel {
                "channel_post"
            } else {
                "message"
            },
            message,
        );
        id
    }

    pub(super) fn put(&mut self, chat: i64, id: i64, from: &Value, content: &Value) -> Value {
        let date = self.now();
        let state = self.chats.entry(chat).or_default();
        let mut message = json!({"message_id": id, "date": date, "chat": state.about});
        if state.about["type"] == "channel" {
            message["sender_chat"] = state.about.clone();
        } else {
            message["from"] = from.clone();
        }
        for (key, value) in content.as_object().into_iter().flatten() {
            message[key] = value.clone();
        }
        if let Some(text) = message["text"].as_str().map(ToOwned::to_owned)
            && message.get("entities").is_none()
        {
            message["entities"] = found_in(&text);
        }
        state.messages.insert(id, message.clone());
        message
    }

    /// Forgets what is before a number. One that lies well ahead of all there are is not one of this numbering: Telegram then
    /// answers from the beginning of what waits, and forgets nothing.
    pub(super) fn confirm(&mut self, offset: i64) {
        if offset > self.next_update + 1 + AHEAD_MAX {
            return;
        }
        let is_left = |update: &Value| update["update_id"].as_i64().is_none_or(|id| id >= offset);
        self.updates.retain(is_left);
        self.confirmed = offset;
    }

    pub(super) fn tell(&mut self, kind: &str, content: Value) {
        self.next_update += 1;
        let update = json!({"update_id": self.next_update, kind: content});
        self.updates.push(update);
    }
}

/// Finds what Telegram finds by itself: mentions and commands.
fn found_in(text: &str) -> Value {
    let mut entities = Vec::new();
    let mut units = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end().trim_end_matches([',', ':', '!', '?', '.']);
        let kind = match bare.chars().next() {
            Some('@') if bare.len() > 1 => Some("mention"),
            Some('/') if bare.len() > 1 && !bare[1..].contains('/') => Some("bot_command"),
            _ => None,
        };
        if let Some(kind) = kind {
            let length = bare.encode_utf16().count();
            entities.push(json!({"type": kind, "offset": units, "length": length}));
        }
        units += word.encode_utf16().count();
    }
    Value::Array(entities)
}
