//! The gateway: sockets with sessions that can be resumed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use futures_util::sink::SinkExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_websockets::{CloseCode, Message, ServerBuilder, WebSocketStream};

use super::server::{Shake, Shared, State};
use super::world::{APPLICATION_ID, BOT_ID, BOT_ROLE, GUILD, Session, World, bot};
use crate::server::Request;
use crate::server::http::Connection;

/// Often enough for tests to see that it is kept up.
const HEARTBEAT: Duration = Duration::from_millis(2000);
const MESSAGE_CONTENT: u64 = 1 << 15;

type Stream = WebSocketStream<Connection>;

/// A socket, and the session that is on it.
struct Socket {
    number: u64,
    session: Option<String>,
    /// The last event that was sent on it.
    sent: u64,
    shakes: usize,
    is_deaf: bool,
}

pub(super) async fn serve(shared: &Shared, mut connection: Connection, request: &Request) {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes(),
    );
    let accept = STANDARD.encode(digest);
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    if connection.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let mut stream = ServerBuilder::new().serve(connection);
    let is_right = request.path.contains("v=10") && request.path.contains("encoding=json");
    let code = match is_right {
        true => talk(shared, &mut stream).await,
        false => Some(4012),
    };
    if let Some(code) = code.and_then(|code| CloseCode::try_from(code).ok()) {
        let _ = stream.send(Message::close(Some(code), "")).await;
        // Whoever hangs up at once takes its last words along.
        let _ = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
    }
}

/// Talks until the socket ends; the code that it is closed with, if any.
async fn talk(shared: &Shared, stream: &mut Stream) -> Option<u16> {
    let mut socket = {
        let mut state = shared.lock();
        state.sockets += 1;
        Socket {
            number: state.sockets,
            session: None,
            sent: 0,
            shakes: state.shakes.len(),
            is_deaf: false,
        }
    };
    let hello = json!({"op": 10, "s": null, "t": null, "d": {"heartbeat_interval": HEARTBEAT.as_millis() as u64}});
    stream.send(Message::text(hello.to_string())).await.ok()?;
    let mut changed = shared.changed.subscribe();
    loop {
        let shakes = socket.shaken(&shared.lock());
        for shake in shakes {
            match shake {
                Shake::Drop => return None,
                Shake::Close(code) => return Some(code),
                Shake::Send(frame) => stream.send(Message::text(frame)).await.ok()?,
                Shake::Deafen => socket.is_deaf = true,
            }
        }
        let news = match socket.news(&shared.lock()) {
            Some(news) => news,
            // Another socket has the session now.
            None => return Some(4000),
        };
        for frame in news {
            stream.send(Message::text(frame)).await.ok()?;
        }
        tokio::select! {
            message = stream.next() => {
                let message = message?.ok()?;
                if message.is_close() {
                    return None;
                }
                let Some(text) = message.as_text() else { continue };
                let answers = match socket.take(&mut shared.lock(), text, shared.address) {
                    Ok(answers) => answers,
                    Err(code) => return Some(code),
                };
                shared.wake();
                for answer in answers {
                    stream.send(Message::text(answer.to_string())).await.ok()?;
                }
            }
            _ = changed.changed() => {}
        }
    }
}

impl Socket {
    /// What happens to this socket, of what happens to all.
    fn shaken(&mut self, state: &State) -> Vec<Shake> {
        let new = state.shakes.iter().skip(self.shakes);
        let mine: Vec<Shake> = new
            .filter(|(sockets, _)| self.number <= *sockets)
            .map(|(_, shake)| shake.clone())
            .collect();
        self.shakes = state.shakes.len();
        mine
    }

    /// Events that were not sent yet; `None` if the session is on another socket.
    fn news(&mut self, state: &State) -> Option<Vec<String>> {
        let Some(id) = &self.session else {
            return Some(Vec::new());
        };
        let session = state
            .world
            .sessions
            .get(id)
            .filter(|session| session.socket == self.number)?;
        let new = session.events.iter().filter(|told| told.seq > self.sent);
        let frames = new
            .map(|told| {
                json!({"op": 0, "s": told.seq, "t": told.event, "d": told.data}).to_string()
            })
            .collect();
        self.sent = session.seq;
        Some(frames)
    }

    /// Takes a frame of the bot's; its answers, or the code that the socket is closed with.
    fn take(
        &mut self,
        state: &mut State,
        text: &str,
        address: std::net::SocketAddr,
    ) -> Result<Vec<Value>, u16> {
        let frame: Value = serde_json::from_str(text).map_err(|_| 4002u16)?;
        match frame["op"].as_u64() {
            Some(1) => {
                let seq = frame["d"].as_u64().unwrap_or(0);
                let session = self
                    .session
                    .as_ref()
                    .and_then(|id| state.world.sessions.get_mut(id));
                if let Some(session) = session {
                    session.acknowledged = session.acknowledged.max(seq);
                }
                let answer = json!({"op": 11, "s": null, "t": null, "d": null});
                Ok(if self.is_deaf {
                    Vec::new()
                } else {
                    vec![answer]
                })
            }
            Some(2) => self.identify(state, &frame["d"], address),
            Some(6) => self.resume(state, &frame["d"]),
            // Presence, and what else real clients say.
            Some(3 | 4 | 8) if self.session.is_some() => Ok(Vec::new()),
            Some(3 | 4 | 8) => Err(4003),
            _ => Err(4001),
        }
    }

    fn identify(
        &mut self,
        state: &mut State,
        data: &Value,
        address: std::net::SocketAddr,
    ) -> Result<Vec<Value>, u16> {
        if self.session.is_some() {
            return Err(4005);
        }
        if data["token"] != state.token.as_str() {
            return Err(4004);
        }
        let intents = data["intents"].as_u64().ok_or(4013u16)?;
        let has_properties = ["os", "browser", "device"]
            .iter()
            .all(|name| data["properties"][name].is_string());
        if !has_properties {
            return Err(4002);
        }
        if intents & MESSAGE_CONTENT != 0 && !state.has_message_content {
            return Err(4014);
        }
        state.sessions_left = state.sessions_left.saturating_sub(1);
        let id = format!("session-{}", state.world.new_id());
        let mut session = Session {
            socket: self.number,
            ..Session::default()
        };
        let here = || format!("ws://{address}");
        let resume_url = state.resume_url.clone().unwrap_or_else(here);
        let ready = json!({
            "v": 10, "user": bot(), "session_id": id, "resume_gateway_url": resume_url, "session_type": "normal",
            "guilds": [{"id": GUILD, "unavailable": true}], "application": {"id": APPLICATION_ID, "flags": 0},
            "private_channels": [], "relationships": [], "shard": [0, 1],
        });
        session.tell("READY", ready, false);
        session.tell("GUILD_CREATE", guild(&state.world), false);
        state.world.sessions.insert(id.clone(), session);
        self.session = Some(id);
        Ok(Vec::new())
    }

    fn resume(&mut self, state: &mut State, data: &Value) -> Result<Vec<Value>, u16> {
        if data["token"] != state.token.as_str() {
            return Err(4004);
        }
        if state.hangs_up_on_resume {
            return Err(4000);
        }
        let id = data["session_id"].as_str().unwrap_or_default().to_owned();
        let seq = data["seq"].as_u64().ok_or(4002u16)?;
        let Some(session) = state.world.sessions.get_mut(&id) else {
            return Ok(vec![json!({"op": 9, "s": null, "t": null, "d": false})]);
        };
        if seq > session.seq {
            return Err(4007);
        }
        session.socket = self.number;
        session.acknowledged = session.acknowledged.max(seq);
        session.tell("RESUMED", json!({"_trace": []}), false);
        self.sent = seq;
        self.session = Some(id);
        Ok(Vec::new())
    }
}

fn guild(world: &World) -> Value {
    let role = |id: &str, name: &str, tags: Value| {
        let mut role = json!({"id": id, "name": name, "color": 0, "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null}, "hoist": false, "position": 0, "permissions": "8", "managed": false, "mentionable": false, "flags": 0});
        if tags.is_object() {
            role["tags"] = tags;
        }
        role
    };
    json!({
        "id": GUILD, "name": "Friends", "icon": null, "owner_id": "1000000000000000001", "member_count": 2, "large": false,
        "unavailable": false, "joined_at": "2026-01-01T00:00:00+00:00", "verification_level": 0, "features": [], "emojis": [],
        "stickers": [], "voice_states": [], "presences": [], "stage_instances": [], "guild_scheduled_events": [],
        "soundboard_sounds": [], "afk_timeout": 300, "afk_channel_id": null, "default_message_notifications": 0, "explicit_content_filter": 0,
        "mfa_level": 0, "system_channel_id": null, "system_channel_flags": 0, "premium_tier": 0, "nsfw_level": 0, "preferred_locale": "en-US",
        "premium_progress_bar_enabled": false,
        "roles": [role(GUILD, "@everyone", Value::Null), role(BOT_ROLE, "hermes-test", json!({"bot_id": BOT_ID}))],
        "members": [{"user": bot(), "roles": [BOT_ROLE], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false, "mute": false, "flags": 0}],
        "channels": world.guild_channels(), "threads": world.guild_threads(),
    })
}
