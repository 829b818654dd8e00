//! What people do on the server, and what they see.

use serde_json::{Value, json};

use super::server::TelegramServer;
use super::world::{BOT_ID, World};

/// Somebody who writes.
pub const ALICE: i64 = 1001;
/// An ordinary group, a forum, and a channel.
pub const GROUP: i64 = -2001;
pub const FORUM: i64 = -1_003_001;
pub const CHANNEL: i64 = -1_004_001;
/// A topic of the forum.
pub const TOPIC: i64 = 77;

pub fn alice() -> Value {
    json!({"id": ALICE, "is_bot": false, "first_name": "Alice", "last_name": "Example", "username": "alice"})
}

impl TelegramServer {
    /// Fills the world with one chat of each kind.
    pub fn with_chats(self) -> Self {
        self.with_world(|world| {
            world.add_chat(
                ALICE,
                json!({"type": "private", "first_name": "Alice", "username": "alice"}),
            );
            world.add_chat(GROUP, json!({"type": "group", "title": "Friends"}));
            world.add_chat(
                FORUM,
                json!({"type": "supergroup", "title": "Club", "is_forum": true}),
            );
            world.add_chat(CHANNEL, json!({"type": "channel", "title": "News"}));
            if let Some(forum) = world.chats.get_mut(&FORUM) {
                forum.topics.insert(TOPIC, "Plans".to_owned());
            }
        });
        self
    }

    /// Alice sends a message with this content: its fields are those of the Bot API. Returns its number.
    pub fn say(&self, chat: i64, content: Value) -> i64 {
        self.with_world(|world| world.say(chat, &alice(), &content))
    }

    /// Somebody else writes to us alone.
    pub fn say_as(&self, user: i64, name: &str, text: &str) -> i64 {
        self.with_world(|world| {
            if !world.chats.contains_key(&user) {
                world.add_chat(user, json!({"type": "private", "first_name": name}));
            }
            let from = json!({"id": user, "is_bot": false, "first_name": name});
            world.say(user, &from, &json!({"text": text}))
        })
    }

    /// Alice puts other words in place of hers.
    pub fn edit(&self, chat: i64, id: i64, text: &str) {
        self.with_world(|world| {
            let date = world.now();
            let message = world
                .chats
                .get_mut(&chat)
                .and_then(|state| state.messages.get_mut(&id));
            if let Some(message) = message {
                message["text"] = text.into();
                message["edit_date"] = date.into();
                let edited = message.clone();
                world.tell("edited_message", edited);
            }
        });
    }

    /// Alice presses a button; returns the number of the press.
    pub fn press(&self, chat: i64, message: i64, data: &str) -> String {
        self.with_world(|world| {
            let id = format!("press-{}", world.next_update + 1);
            let message = world.chats.get(&chat).and_then(|state| state.messages.get(&message)).cloned();
            world.presses.push(id.clone());
            world.tell("callback_query", json!({"id": id, "from": alice(), "message": message, "chat_instance": "1", "data": data}));
            id
        })
    }

    /// Any update at all, with a number of its own.
    pub fn tell(&self, kind: &str, content: Value) {
        self.with_world(|world| world.tell(kind, content));
    }

    /// Something in the list of updates that is none.
    pub fn tell_nonsense(&self, update: Value) {
        self.with_world(|world| world.updates.push(update));
    }

    /// The next update has this number, as after a quiet week or on another server.
    pub fn number_from(&self, first: i64) {
        self.with_world(|world| world.next_update = first - 1);
    }

    /// The updates that wait come in another order.
    pub fn reverse_updates(&self) {
        self.with_world(|world| world.updates.reverse());
    }

    /// Updates that nobody confirmed yet.
    pub fn pending_count(&self) -> usize {
        self.with_world(|world| world.updates.len())
    }

    /// Up to which number updates were confirmed.
    pub fn confirmed(&self) -> i64 {
        self.with_world(|world| world.confirmed)
    }

    pub fn add_file(&self, bytes: &[u8]) -> String {
        self.with_world(|world| world.add_file(bytes.to_vec()))
    }

    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.with_world(|world| world.files.get(id).cloned())
    }

    pub fn block(&self, chat: i64) {
        self.change_chat(chat, |state| state.has_blocked_us = true);
    }

    pub fn unblock(&self, chat: i64) {
        self.change_chat(chat, |state| state.has_blocked_us = false);
    }

    /// A group becomes another one, with another number.
    pub fn move_chat(&self, from: i64, to: i64) {
        self.with_world(|world| {
            world.add_chat(to, json!({"type": "supergroup", "title": "Moved"}));
        });
        self.change_chat(from, |state| state.moved_to = Some(to));
    }

    fn change_chat(&self, chat: i64, change: impl FnOnce(&mut super::world::ChatState)) {
        self.with_world(|world| {
            if let Some(state) = world.chats.get_mut(&chat) {
                change(state);
            }
        });
    }

    /// What the bot has in a chat, in the order it came.
    pub fn ours(&self, chat: i64) -> Vec<Value> {
        let is_ours = |message: &&Value| message["from"]["id"] == BOT_ID;
        self.with_world(|world: &mut World| {
            let state = world.chats.get(&chat);
            let messages =
                state.map(|state| state.messages.values().filter(is_ours).cloned().collect());
            messages.unwrap_or_default()
        })
    }

    pub fn chat_numbers(&self) -> Vec<i64> {
        self.with_world(|world| world.chats.keys().copied().collect())
    }

    pub fn reactions(&self, chat: i64, message: i64) -> Vec<String> {
        self.with_world(|world| {
            let state = world.chats.get(&chat);
            state
                .and_then(|state| state.reactions.get(&message).cloned())
                .unwrap_or_default()
        })
    }

    pub fn typing(&self) -> Vec<(i64, Option<i64>)> {
        self.with_world(|world| world.typing.clone())
    }

    pub fn acknowledged(&self) -> Vec<(String, Option<String>)> {
        self.with_world(|world| world.acknowledged.clone())
    }

    /// The names in a menu.
    pub fn menu(&self, scope: &str) -> Vec<String> {
        self.with_world(|world| world.menus.get(scope).cloned().unwrap_or_default())
    }

    /// Sets a webhook as another program would.
    pub fn set_webhook(&self, url: &str, secret: &str) {
        self.with_world(|world| world.webhook = Some((url.to_owned(), secret.to_owned())));
    }

    /// The next update as Telegram would post it to the webhook: its secret, and its body. It waits until it is confirmed.
    pub fn next_post(&self) -> Option<(String, Vec<u8>)> {
        self.with_world(|world| {
            let (_, secret) = world.webhook.clone()?;
            let update = world.updates.first()?;
            Some((secret, update.to_string().into_bytes()))
        })
    }

    /// The webhook took the first update.
    pub fn confirm_post(&self) {
        self.with_world(|world| {
            if !world.updates.is_empty() {
                world.updates.remove(0);
            }
        });
    }

    /// The update that was told last comes once more, with the same number.
    pub fn repeat_last(&self) {
        self.with_world(|world| {
            if let Some(last) = world.updates.last().cloned() {
                world.updates.push(last);
            }
        });
    }
}
