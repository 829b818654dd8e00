//! What people do on the server, and what they see.

use std::time::Instant;

use serde_json::{Value, json};

use super::server::{DiscordServer, Shake};
use super::world::{APPLICATION_ID, BOT_ID, GUILD, InteractionState, World, bot};

/// Somebody who writes, and the chat with her alone.
pub const ALICE: &str = "1000000000000001001";
pub const DIRECT: &str = "1000000000000002001";
/// A channel of the server, a thread in it, and a forum.
pub const GENERAL: &str = "1000000000000003001";
pub const THREAD: &str = "1000000000000003077";
pub const FORUM: &str = "1000000000000003501";

pub fn alice() -> Value {
    json!({"id": ALICE, "username": "alice", "global_name": "Alice", "discriminator": "0", "avatar": null, "bot": false, "public_flags": 0})
}

impl DiscordServer {
    /// Fills the world with one channel of each kind.
    pub fn with_channels(self) -> Self {
        self.with_world(|world| {
            world.add_channel(DIRECT, json!({"type": 1, "recipients": [alice()], "last_message_id": null, "flags": 0}));
            let channel = |kind: u64, name: &str| {
                json!({"type": kind, "guild_id": GUILD, "name": name, "position": 0, "permission_overwrites": [], "parent_id": null, "topic": null, "nsfw": false, "last_message_id": null, "rate_limit_per_user": 0, "flags": 0, "available_tags": []})
            };
            world.add_channel(GENERAL, channel(0, "general"));
            world.add_channel(FORUM, channel(15, "help"));
            let metadata = json!({"archived": false, "auto_archive_duration": 1440, "archive_timestamp": World::timestamp(), "locked": false});
            world.add_channel(THREAD, json!({"type": 11, "guild_id": GUILD, "parent_id": GENERAL, "name": "Plans", "owner_id": ALICE, "last_message_id": null, "message_count": 0, "member_count": 1, "rate_limit_per_user": 0, "flags": 0, "thread_metadata": metadata}));
        });
        self
    }

    /// Alice sends a message with this content: its fields are those of Discord. Returns its number.
    pub fn say(&self, channel: &str, content: Value) -> String {
        self.say_as(channel, &alice(), content)
    }

    pub fn say_as(&self, channel: &str, author: &Value, content: Value) -> String {
        self.with_world(|world| {
            let mut content = content;
            let text = content["content"].as_str().unwrap_or_default();
            if text.contains(&format!("<@{BOT_ID}>")) && content.get("mentions").is_none() {
                content["mentions"] = json!([bot()]);
            }
            if let Some(id) = content["replies_to"].as_str().map(ToOwned::to_owned) {
                content["type"] = 19.into();
                content["message_reference"] =
                    json!({"type": 0, "message_id": id, "channel_id": channel});
                content["referenced_message"] =
                    world.message(channel, &id).cloned().unwrap_or_default();
            }
            let message = world.put(channel, author, &content);
            message["id"].as_str().unwrap_or_default().to_owned()
        })
    }

    /// Alice puts other words in place of hers.
    pub fn edit(&self, channel: &str, id: &str, text: &str) {
        self.with_world(|world| {
            let edited = world.message_mut(channel, id).map(|message| {
                message["content"] = text.into();
                message["edited_timestamp"] = World::timestamp().into();
                message.clone()
            });
            if let Some(edited) = edited {
                let told = world.as_told(channel, edited);
                world.tell("MESSAGE_UPDATE", told, true);
            }
        });
    }

    /// Alice presses a button; returns the token of the press.
    pub fn press(&self, channel: &str, message: &str, data: &str) -> String {
        let about = self.with_world(|world| world.message(channel, message).cloned());
        let more =
            json!({"type": 3, "message": about, "data": {"component_type": 2, "custom_id": data}});
        self.interact(channel, more)
    }

    /// Alice uses a command; returns the token of it.
    pub fn command(&self, channel: &str, name: &str, arguments: &str) -> String {
        let options = match arguments {
            "" => json!([]),
            given => json!([{"type": 3, "name": "args", "value": given}]),
        };
        let data = json!({"id": "1", "type": 1, "name": name, "options": options});
        self.interact(channel, json!({"type": 2, "data": data}))
    }

    fn interact(&self, channel: &str, more: Value) -> String {
        self.with_world(|world| {
            let id = world.new_id();
            let token = format!("token-of-{id}");
            let about = world.channels.get(channel).map(|state| state.about.clone());
            let mut interaction = json!({"id": id, "application_id": APPLICATION_ID, "token": token, "version": 1, "channel_id": channel, "channel": about, "entitlements": [], "authorizing_integration_owners": {}, "attachment_size_limit": 10_485_760});
            if world.is_direct(channel) {
                interaction["user"] = alice();
            } else {
                interaction["guild_id"] = GUILD.into();
                interaction["member"] = json!({"user": alice(), "roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false, "mute": false, "flags": 0, "permissions": "8"});
            }
            for (key, value) in more.as_object().into_iter().flatten() {
                interaction[key] = value.clone();
            }
            let state = InteractionState {
                id,
                channel: channel.to_owned(),
                made: Instant::now(),
                answered: None,
                answer: None,
                whispers: Vec::new(),
            };
            world.interactions.insert(token.clone(), state);
            world.tell("INTERACTION_CREATE", interaction, true);
            token
        })
    }

    /// How an interaction was noticed, and what was whispered to who made it.
    pub fn noticed(&self, token: &str) -> Option<(u64, Vec<String>)> {
        self.with_world(|world| {
            let state = world.interactions.get(token)?;
            Some((state.answered?, state.whispers.clone()))
        })
    }

    /// The message that became the answer to an interaction.
    pub fn answer_of(&self, token: &str) -> Option<Value> {
        self.with_world(|world| {
            let state = world.interactions.get(token)?;
            world
                .message(&state.channel, state.answer.as_ref()?)
                .cloned()
        })
    }

    /// Any event at all.
    pub fn tell(&self, event: &str, data: Value) {
        self.with_world(|world| world.tell(event, data, false));
    }

    /// The last event that somebody did comes once more.
    pub fn repeat_last(&self) {
        self.with_world(|world| {
            for session in world.sessions.values_mut() {
                let last = session
                    .events
                    .iter()
                    .rev()
                    .find(|told| told.is_said)
                    .cloned();
                if let Some(last) = last {
                    session.tell(&last.event, last.data, true);
                }
            }
        });
    }

    /// What the bot has not acknowledged comes in another order.
    pub fn reverse_events(&self) {
        self.with_world(|world| {
            for session in world.sessions.values_mut() {
                let acknowledged = session.acknowledged;
                let waiting = session
                    .events
                    .iter_mut()
                    .filter(|told| told.is_said && told.seq > acknowledged);
                let mut waiting: Vec<_> = waiting.collect();
                let reversed: Vec<Value> =
                    waiting.iter().rev().map(|told| told.data.clone()).collect();
                for (told, data) in waiting.iter_mut().zip(reversed) {
                    told.data = data;
                }
            }
        });
    }

    /// What people did and the bot has not acknowledged, in the session that was begun last.
    pub fn pending_count(&self) -> usize {
        self.with_world(|world| {
            let Some(session) = world.sessions.values().next_back() else {
                return 0;
            };
            let is_pending =
                |told: &&super::world::Told| told.is_said && told.seq > session.acknowledged;
            session.events.iter().filter(is_pending).count()
        })
    }

    pub fn sessions_count(&self) -> usize {
        self.with_world(|world| world.sessions.len())
    }

    /// Sockets that were opened so far.
    pub fn sockets_count(&self) -> u64 {
        self.shared.lock().sockets
    }

    /// Sessions are forgotten, as after some minutes without a socket.
    pub fn forget_sessions(&self) {
        self.with_world(|world| world.sessions.clear());
    }

    /// All sockets end without a word.
    pub fn drop_sockets(&self) {
        self.shake(Shake::Drop);
    }

    pub fn close_sockets(&self, code: u16) {
        self.shake(Shake::Close(code));
    }

    /// Heartbeats are not answered any more.
    pub fn deafen_sockets(&self) {
        self.shake(Shake::Deafen);
    }

    /// A frame is sent as it is.
    pub fn send_frame(&self, frame: &str) {
        self.shake(Shake::Send(frame.to_owned()));
    }

    pub fn block(&self, channel: &str) {
        self.with_world(|world| {
            if let Some(state) = world.channels.get_mut(channel) {
                state.has_blocked_us = true;
            }
        });
    }

    pub fn add_file(&self, name: &str, mime: &str, bytes: &[u8]) -> Value {
        self.with_world(|world| world.add_file(name, mime, bytes.to_vec()))
    }

    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.with_world(|world| world.files.get(id).cloned())
    }

    /// What the bot has in a channel, in the order it came.
    pub fn ours(&self, channel: &str) -> Vec<Value> {
        let is_ours = |message: &&Value| message["author"]["id"] == BOT_ID;
        self.with_world(|world| {
            let state = world.channels.get(channel);
            let messages =
                state.map(|state| state.messages.values().filter(is_ours).cloned().collect());
            messages.unwrap_or_default()
        })
    }

    /// Threads and posts below a channel: their numbers and names.
    pub fn threads(&self, parent: &str) -> Vec<(String, String)> {
        self.with_world(|world| {
            let threads = world
                .guild_threads()
                .into_iter()
                .filter(|about| about["parent_id"] == parent);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            threads
                .map(|about| (text(&about["id"]), text(&about["name"])))
                .collect()
        })
    }

    pub fn reactions(&self, channel: &str, message: &str) -> Vec<String> {
        self.with_world(|world| {
            let number: u64 = message.parse().unwrap_or(0);
            let state = world.channels.get(channel);
            state
                .and_then(|state| state.reactions.get(&number).cloned())
                .unwrap_or_default()
        })
    }

    pub fn typing(&self, channel: &str) -> usize {
        self.with_world(|world| {
            world
                .typing
                .iter()
                .filter(|shown| *shown == channel)
                .count()
        })
    }

    /// Names of commands, and how often they were put.
    pub fn commands(&self) -> (Vec<String>, usize) {
        self.with_world(|world| {
            let name = |command: &Value| command["name"].as_str().unwrap_or_default().to_owned();
            (
                world.commands.iter().map(name).collect(),
                world.commands_put,
            )
        })
    }
}
