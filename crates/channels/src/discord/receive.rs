//! Receiving: a session on a socket, which goes on where it was after the socket, or we, were gone for a while.
//!
//! What is kept and how far it was read are one commit, so that a session is resumed exactly behind what is kept. Where the
//! session is lost, [`super::missed`] asks for what was said meanwhile.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::tool::BoxFuture;
use hermes_core::{ChannelError, Identity, Inlet, Trouble, Update, Updates};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::Discord;
use super::cursor::{Cursor, Session, id_at};
use super::missed::Missed;
use super::places::{Kind, Place};
use super::refusal::{Cause, wrong_token};
use super::socket::{Frame, Received, Socket};
use super::update::{self, Said, Us};

/// Servers and their channels, messages in them and in private chats, and what those say.
const INTENTS: u64 = 1 | (1 << 9) | (1 << 12) | (1 << 15);
const HELLO_MAX: Duration = Duration::from_secs(20);
/// After a session is begun or resumed, Discord says so at once.
const BEGIN_MAX: Duration = Duration::from_secs(30);
/// Heartbeats come every 41 seconds; two may be missed.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Heartbeats are not sent more often than this, whatever the other side wants.
const HEARTBEAT_MIN: Duration = Duration::from_millis(50);
const HEARTBEAT: Duration = Duration::from_secs(41);
/// Events that are kept in one go.
const BATCH_COUNT_MAX: usize = 100;
/// Before a session is begun anew, as Discord wants it.
const ANEW_MILLIS: (u64, u64) = (1000, 4000);
/// Sockets in a row on which no session came about.
const TRIES_MAX: usize = 5;
/// How often a session is tried to be resumed: where it was, and then where Discord says its gateway is. What cannot be
/// resumed there is begun anew.
const RESUMES_MAX: usize = 3;

mod op {
    pub(super) const DISPATCH: u64 = 0;
    pub(super) const HEARTBEAT: u64 = 1;
    pub(super) const IDENTIFY: u64 = 2;
    pub(super) const RESUME: u64 = 6;
    pub(super) const RECONNECT: u64 = 7;
    pub(super) const INVALID_SESSION: u64 = 9;
    pub(super) const HELLO: u64 = 10;
    pub(super) const HEARTBEAT_ACK: u64 = 11;
}

/// How a socket ended that another one follows at once.
enum Ended {
    /// The session goes on.
    Resume,
    /// The session is lost.
    Anew,
}

/// What runs beside the socket.
type Errands<'a> = FuturesUnordered<BoxFuture<'a, Missed>>;

/// One session while its socket is open.
struct Connection<'a> {
    socket: Socket,
    inlet: &'a dyn Inlet,
    identity: &'a Identity,
    /// As it was last kept.
    cursor: &'a mut Cursor,
    /// The last event that was heard, kept or not.
    seq: Option<u64>,
    heartbeat: Heartbeat,
    errands: Errands<'a>,
    /// Servers that are still to be asked for what was missed.
    missed: BTreeSet<String>,
    is_begun: bool,
}

struct Heartbeat {
    interval: Duration,
    next: Instant,
    is_answered: bool,
}

impl Heartbeat {
    /// Discord asks for one, and so is there.
    fn is_wanted_now(&mut self) {
        self.is_answered = true;
        self.next = Instant::now();
    }
}

impl Discord {
    pub(super) async fn run(&self, inlet: &dyn Inlet) -> ChannelError {
        match self.listen(inlet).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn listen(&self, inlet: &dyn Inlet) -> Result<Infallible, ChannelError> {
        self.api.renew();
        let identity = self.who_are_we().await?;
        let mut cursor = Cursor::read(inlet.cursor());
        let mut tries = 0;
        // How often the session was not resumed.
        let mut lost = 0;
        loop {
            // What was missed is asked for when a session begins: one that ended in the midst of that is begun anew.
            if cursor.missed_since.is_some() {
                cursor.session = None;
            }
            let session = cursor.session.as_ref();
            let is_resumed = session.is_some();
            let address = self.gateway_address(session.filter(|_| lost == 0)).await?;
            let mut has_begun = false;
            let held = self
                .hold_session(&address, &identity, inlet, &mut cursor, &mut has_begun)
                .await;
            tries = if has_begun { 1 } else { tries + 1 };
            lost = if has_begun {
                0
            } else {
                lost + usize::from(is_resumed)
            };
            let ended = match held {
                // Discord is there, as it just said: it is this session, or the place that it was on, that may be gone.
                Err(error) if lost > 0 && error.trouble == Trouble::Passing => {
                    tracing::info!(%error, lost, "a session of Discord is not resumed");
                    if lost < RESUMES_MAX {
                        Ended::Resume
                    } else {
                        Ended::Anew
                    }
                }
                held => held?,
            };
            if tries > TRIES_MAX {
                let words = "Discord ends every session before it begins";
                return Err(ChannelError::new(Trouble::Passing, words));
            }
            if let Ended::Anew = ended {
                cursor.session = None;
                lost = 0;
                let (least, more) = ANEW_MILLIS;
                let wait = least + self.random.below(more);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
        }
    }

    /// Asks who we are: the proof that the token is right.
    pub(super) async fn who_are_we(&self) -> Result<Identity, ChannelError> {
        let me = self.api.get("/users/@me").await;
        let me = me.map_err(|failure| failure.error)?;
        let text = |name: &str| me[name].as_str().unwrap_or_default().to_owned();
        let us = Us {
            id: text("id"),
            name: text("username"),
        };
        self.set_us(us.clone());
        Ok(Identity {
            id: us.id,
            name: us.name,
        })
    }

    async fn hold_session(
        &self,
        address: &str,
        identity: &Identity,
        inlet: &dyn Inlet,
        cursor: &mut Cursor,
        has_begun: &mut bool,
    ) -> Result<Ended, ChannelError> {
        let mut socket = Socket::connect(&self.api, address, &self.random).await?;
        let interval = match hello(&mut socket).await? {
            Hello::Every(interval) => interval,
            Hello::Closed(code, words) => return closed(code, &words),
        };
        let jitter = self.random.below(1000) as f64 / 1000.0;
        let mut connection = Connection {
            socket,
            inlet,
            identity,
            seq: cursor.session.as_ref().map(|session| session.seq),
            cursor,
            heartbeat: Heartbeat {
                interval,
                next: Instant::now() + interval.mul_f64(jitter),
                is_answered: true,
            },
            errands: FuturesUnordered::new(),
            missed: BTreeSet::new(),
            is_begun: false,
        };
        self.begin(&mut connection).await?;
        let ended = self.hold(&mut connection).await;
        *has_begun = connection.is_begun;
        connection.socket.leave().await;
        ended
    }

    async fn gateway_address(&self, session: Option<&Session>) -> Result<String, ChannelError> {
        let found = match (&self.settings.server.gateway, session) {
            (Some(given), _) => given.clone(),
            (None, Some(session)) => session.url.clone(),
            (None, None) => self.found_gateway().await?,
        };
        let base = found.trim_end_matches('/');
        let separator = if base.contains('?') {
            "&"
        } else if base.splitn(4, '/').nth(3).is_some() {
            "?"
        } else {
            "/?"
        };
        Ok(format!("{base}{separator}v=10&encoding=json"))
    }

    async fn found_gateway(&self) -> Result<String, ChannelError> {
        let found = self.api.get("/gateway/bot").await;
        let found = found.map_err(|failure| failure.error)?;
        let limit = &found["session_start_limit"];
        // Whoever begins more sessions than Discord allows loses the token.
        if limit["remaining"] == 0 {
            let wait = Duration::from_millis(limit["reset_after"].as_u64().unwrap_or(60_000));
            let words =
                "Discord allows no more sessions today: something begins one after the other";
            return Err(ChannelError::new(Trouble::Throttled { wait }, words));
        }
        let url = found["url"].as_str().map(ToOwned::to_owned);
        url.ok_or_else(|| {
            ChannelError::new(
                Trouble::Passing,
                "Discord does not say where its gateway is",
            )
        })
    }

    async fn begin(&self, connection: &mut Connection<'_>) -> Result<(), ChannelError> {
        let token = self.api.token().expose();
        let (op, data) = match &connection.cursor.session {
            Some(session) => (
                op::RESUME,
                json!({"token": token, "session_id": session.id, "seq": session.seq}),
            ),
            None => (
                op::IDENTIFY,
                json!({
                    "token": token,
                    "intents": INTENTS,
                    "properties": {"os": std::env::consts::OS, "browser": "hermes", "device": "hermes"},
                }),
            ),
        };
        connection.socket.send(op, data).await
    }

    /// Reads until the socket ends.
    async fn hold<'a>(&'a self, connection: &mut Connection<'a>) -> Result<Ended, ChannelError> {
        let begun_by = Instant::now() + BEGIN_MAX;
        loop {
            let beat_at = connection.heartbeat.next;
            let deadline = if connection.is_begun {
                beat_at
            } else {
                beat_at.min(begun_by)
            };
            tokio::select! {
                received = connection.socket.receive() => {
                    if let Some(ended) = self.take(connection, received?).await? {
                        return Ok(ended);
                    }
                }
                Some(missed) = connection.errands.next(), if !connection.errands.is_empty() => {
                    self.take_missed(connection, missed?).await?;
                }
                () = sleep_until(deadline) => {
                    if !connection.is_begun && Instant::now() >= begun_by {
                        let words = "Discord does not begin the session";
                        return Err(ChannelError::new(Trouble::Passing, words));
                    }
                    if Instant::now() >= beat_at {
                        connection.beat().await?;
                    }
                }
            }
        }
    }

    /// Takes a frame, and what came with it.
    async fn take<'a>(
        &'a self,
        connection: &mut Connection<'a>,
        received: Received,
    ) -> Result<Option<Ended>, ChannelError> {
        connection.inlet.heard();
        let mut updates = Vec::new();
        let mut next = Some(received);
        let mut count = 0;
        let mut ended = Ok(None);
        while let Some(received) = next.take() {
            ended = self.take_one(connection, received, &mut updates).await;
            count += 1;
            if !matches!(ended, Ok(None)) || count >= BATCH_COUNT_MAX {
                break;
            }
            next = connection.socket.received()?;
        }
        // What came before the end is kept even so.
        if !updates.is_empty() {
            connection.keep(updates).await?;
        }
        ended
    }

    async fn take_one<'a>(
        &'a self,
        connection: &mut Connection<'a>,
        received: Received,
        updates: &mut Vec<Update>,
    ) -> Result<Option<Ended>, ChannelError> {
        let frame = match received {
            Received::Frame(frame) => frame,
            Received::Closed(code, words) => return closed(code, &words).map(Some),
        };
        match frame.op {
            op::DISPATCH => {
                let seq = frame.seq;
                self.dispatch(connection, frame, updates).await?;
                // Not before: what could not be read now comes again.
                connection.seq = seq.or(connection.seq);
            }
            op::HEARTBEAT => connection.heartbeat.is_wanted_now(),
            op::HEARTBEAT_ACK => connection.heartbeat.is_answered = true,
            op::RECONNECT => return Ok(Some(Ended::Resume)),
            op::INVALID_SESSION if frame.data == true => return Ok(Some(Ended::Resume)),
            op::INVALID_SESSION => return Ok(Some(Ended::Anew)),
            _ => {}
        }
        Ok(None)
    }

    async fn dispatch<'a>(
        &'a self,
        connection: &mut Connection<'a>,
        frame: Frame,
        updates: &mut Vec<Update>,
    ) -> Result<(), ChannelError> {
        let data = frame.data;
        let guild = data["guild_id"].as_str().map(ToOwned::to_owned);
        match frame.event.as_str() {
            "READY" => {
                connection.seq = frame.seq;
                self.is_ready(connection, &data).await?;
            }
            "RESUMED" => connection.is_now_begun(),
            "GUILD_CREATE" => self.meet_guild(connection, &data),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                self.places.learn(&data, guild.as_deref());
            }
            "THREAD_LIST_SYNC" => {
                for thread in data["threads"].as_array().into_iter().flatten() {
                    self.places.learn(thread, guild.as_deref());
                }
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => self.places.forget(&data),
            "MESSAGE_CREATE" => updates.extend(self.read_message(connection.cursor, data).await?),
            "MESSAGE_UPDATE" => {
                let said = self.said(&data).await?;
                let listening = &self.settings.listening;
                updates.extend(
                    said.and_then(|said| update::read_edit(data, said, &self.us(), listening)),
                );
            }
            "INTERACTION_CREATE" => updates.extend(self.read_interaction(data).await),
            other => tracing::trace!(event = other, "an event of Discord that is not for us"),
        }
        Ok(())
    }

    /// A session has begun: it is kept, so that it can be resumed from here on.
    async fn is_ready<'a>(
        &'a self,
        connection: &mut Connection<'a>,
        ready: &Value,
    ) -> Result<(), ChannelError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(id) = ready["application"]["id"].as_str() {
            self.set_application(id);
        }
        connection.cursor.session = Some(Session {
            id: text(&ready["session_id"]),
            url: text(&ready["resume_gateway_url"]),
            seq: connection.seq.unwrap_or(0),
        });
        if connection.cursor.last == 0 {
            connection.cursor.last = id_at(self.clock.now().as_millis());
        } else if self.settings.catches_up {
            let since = connection
                .cursor
                .missed_since
                .unwrap_or(connection.cursor.last);
            connection.cursor.missed_since = Some(since);
            let guilds = ready["guilds"].as_array().into_iter().flatten();
            connection.missed = guilds.map(|guild| text(&guild["id"])).collect();
            let directs = connection.cursor.directs.clone();
            let errand = self.missed_in_directs(directs, since);
            connection.errands.push(Box::pin(errand));
        }
        connection.keep(Vec::new()).await?;
        connection.is_now_begun();
        Ok(())
    }

    fn meet_guild<'a>(&'a self, connection: &mut Connection<'a>, guild: &Value) {
        let id = guild["id"].as_str().unwrap_or_default();
        let channels = ["channels", "threads"].map(|kind| guild[kind].as_array());
        let channels: Vec<&Value> = channels.into_iter().flatten().flatten().collect();
        for channel in &channels {
            self.places.learn(channel, Some(id));
        }
        let since = connection.cursor.missed_since;
        if let Some(since) = since.filter(|_| connection.missed.remove(id)) {
            let errand = self.missed_in_guild(id.to_owned(), &channels, since);
            connection.errands.push(Box::pin(errand));
        }
    }

    /// What was said while the session was lost; each in its own order, by when it was said.
    async fn take_missed(
        &self,
        connection: &mut Connection<'_>,
        messages: Vec<Value>,
    ) -> Result<(), ChannelError> {
        let mut updates = Vec::new();
        for message in messages {
            updates.extend(self.read_message(connection.cursor, message).await?);
        }
        if connection.errands.is_empty() && connection.missed.is_empty() {
            connection.cursor.missed_since = None;
        } else if updates.is_empty() {
            return Ok(());
        }
        connection.keep(updates).await
    }

    async fn read_message(
        &self,
        cursor: &mut Cursor,
        data: Value,
    ) -> Result<Option<Update>, ChannelError> {
        if let Some(id) = data["id"].as_str() {
            cursor.saw(id);
        }
        let Some(said) = self.said(&data).await? else {
            return Ok(None);
        };
        if said.chat.scope.is_none() {
            cursor.saw_direct(&said.chat.id);
        }
        let read = update::read_message(data, said, &self.us(), &self.settings.listening);
        Ok(read)
    }

    async fn read_interaction(&self, data: Value) -> Option<Update> {
        let channel = match &data["channel"] {
            Value::Object(_) => data["channel"].clone(),
            _ => {
                json!({"id": data["channel_id"], "type": if data["guild_id"].is_string() { 0 } else { 1 }})
            }
        };
        let id = channel["id"]
            .as_str()
            .or(data["channel_id"].as_str())?
            .to_owned();
        let guild = data["guild_id"].as_str().map(ToOwned::to_owned);
        let place = match self.places.get(&id) {
            Some(place) => place,
            None => Place::read(&channel, guild.as_deref()),
        };
        let chat = place.chat(&id);
        self.notice(&data, &id).await;
        update::read_interaction(data, chat)
    }

    /// Where a message was said; `None` if it does not say.
    async fn said(&self, message: &Value) -> Result<Option<Said>, ChannelError> {
        let Some(id) = message["channel_id"].as_str() else {
            return Ok(None);
        };
        let guild = message["guild_id"].as_str();
        let place = match guild {
            // Discord names the server wherever there is one.
            None => Place::read(&json!({"type": 1}), None),
            Some(_) => self.place(id, guild).await?,
        };
        Ok(Some(Said {
            is_in_our_thread: place.kind == Kind::Thread && place.is_joined,
            chat: place.chat(id),
        }))
    }

    /// What is known of a channel; asked for if nothing is.
    pub(super) async fn place(&self, id: &str, guild: Option<&str>) -> Result<Place, ChannelError> {
        if let Some(place) = self.places.get(id) {
            return Ok(place);
        }
        let place = match self.api.get(&format!("/channels/{id}")).await {
            Ok(channel) => Place::read(&channel, guild),
            // One that we may not look at, or that is gone, is still one.
            Err(failure) if is_hidden(&failure) => Place::read(&json!({}), guild),
            Err(failure) => return Err(failure.error),
        };
        self.places.put(id, place.clone());
        Ok(place)
    }
}

fn is_hidden(failure: &super::refusal::Failure) -> bool {
    failure.is(Cause::NoChannel)
        || matches!(
            failure.error.trouble,
            Trouble::Forbidden | Trouble::NotFound
        )
}

impl Connection<'_> {
    /// Keeps updates, and how far was read, in one go.
    async fn keep(&mut self, updates: Vec<Update>) -> Result<(), ChannelError> {
        if let (Some(session), Some(seq)) = (&mut self.cursor.session, self.seq) {
            session.seq = seq;
        }
        let kept = self.inlet.accept(Updates {
            updates,
            cursor: Some(self.cursor.write()),
        });
        kept.await
            .map_err(|error| ChannelError::new(Trouble::Passing, error.to_string()))
    }

    fn is_now_begun(&mut self) {
        self.is_begun = true;
        self.inlet.connected(self.identity.clone());
    }

    /// Shows that we are there, and how far what we heard is kept. A socket that did not answer the last time is dead.
    async fn beat(&mut self) -> Result<(), ChannelError> {
        if !self.heartbeat.is_answered {
            let words = "Discord does not answer heartbeats any more";
            return Err(ChannelError::new(Trouble::Passing, words));
        }
        let kept = self.cursor.session.as_ref().map(|session| session.seq);
        if self.is_begun && kept.is_some() && self.seq > kept {
            self.keep(Vec::new()).await?;
        }
        let seq = self.cursor.session.as_ref().map(|session| session.seq);
        self.socket.send(op::HEARTBEAT, json!(seq)).await?;
        self.heartbeat.is_answered = false;
        self.heartbeat.next = Instant::now() + self.heartbeat.interval;
        Ok(())
    }
}

enum Hello {
    Every(Duration),
    Closed(Option<u16>, String),
}

async fn hello(socket: &mut Socket) -> Result<Hello, ChannelError> {
    let silent = || ChannelError::new(Trouble::Passing, "Discord's gateway says nothing");
    let first = timeout(HELLO_MAX, socket.receive()).await;
    match first.map_err(|_| silent())?? {
        Received::Frame(frame) if frame.op == op::HELLO => {
            let millis = frame.data["heartbeat_interval"].as_u64();
            let interval = millis.map_or(HEARTBEAT, Duration::from_millis);
            Ok(Hello::Every(interval.max(HEARTBEAT_MIN)))
        }
        Received::Frame(_) => Err(ChannelError::new(
            Trouble::Passing,
            "Discord's gateway does not begin with a greeting",
        )),
        Received::Closed(code, words) => Ok(Hello::Closed(code, words)),
    }
}

/// What it means that Discord hung up.
fn closed(code: Option<u16>, words: &str) -> Result<Ended, ChannelError> {
    let said = match code {
        Some(code) if words.is_empty() => format!("Discord ended the session ({code})"),
        Some(code) => format!("Discord ended the session ({code}): {words}"),
        None => "the socket to Discord was closed".to_owned(),
    };
    let (trouble, hint) = match code {
        // It does not know the place in the session, or the session, any more.
        Some(4007 | 4009) => return Ok(Ended::Anew),
        Some(4004) => (Trouble::NotAuthorised, Some(wrong_token())),
        Some(4013 | 4014) => (Trouble::NotAuthorised, Some(INTENTS_HINT.to_owned())),
        Some(4010..=4012) => (Trouble::NotAuthorised, Some(SHARDING_HINT.to_owned())),
        _ => (Trouble::Passing, None),
    };
    let error = ChannelError::new(trouble, said);
    Err(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

const INTENTS_HINT: &str = "switch on `Message Content Intent`: https://discord.com/developers/applications, your application, Bot, Privileged Gateway Intents; save, and start the gateway again";
const SHARDING_HINT: &str = "the bot is in too many servers for one connection, or this version of Hermes is too old for Discord: leave some servers, or update";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_a_person_has_to_do_something() {
        let of = |code| closed(Some(code), "words").err();
        for code in [4004, 4010, 4013, 4014] {
            let error = of(code).expect("an error");
            assert_eq!(error.trouble, Trouble::NotAuthorised, "{code}");
            assert!(error.hint.is_some());
        }
        let intents = of(4014).and_then(|error| error.hint).expect("a hint");
        assert!(intents.contains("Message Content Intent"), "{intents}");
        for code in [1000, 1006, 4000, 4001, 4008] {
            assert_eq!(of(code).map(|error| error.trouble), Some(Trouble::Passing));
        }
        for code in [4007, 4009] {
            assert!(matches!(closed(Some(code), ""), Ok(Ended::Anew)));
        }
    }
}
