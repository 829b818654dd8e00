//! The HTTP side: sessions, the streams of notifications, and the faults on the way.
//! What is answered when nothing fails is the [`Peer`]'s business.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

use super::{
    fault::Fault,
    peer::{Outbox, Peer},
    reply::{self, Reply, Struck},
    rpc::{self, METHOD_NOT_FOUND, RpcError},
    rule::{Rule, Rules},
    seen::Seen,
    settings::Answers,
    stream,
};
use crate::oauth::{Admission, Shared};
use crate::server::{
    http::{Connection, Request},
    play::After,
};

pub(super) const SESSION: &str = "mcp-session-id";

pub(crate) struct Host {
    pub(super) peer: Peer,
    port: u16,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    rules: Rules<Fault>,
    /// The open streams of each session.
    sessions: HashMap<String, Vec<Outbox>>,
    session_count: usize,
    /// The subscriptions of the modern era: the id of each request, and its stream.
    pub(super) subscriptions: Vec<(Value, Outbox)>,
    seen: Vec<Seen>,
    /// Who decides which tokens are good, if any are needed.
    gate: Option<Arc<Shared>>,
    /// Answers that wait for a client to resume, by event id.
    resumable: HashMap<String, Value>,
}

/// The answer to a request, before it is known how it is sent.
struct Answered {
    message: Value,
    /// The session that the request opened.
    opened: Option<String>,
}

impl Host {
    pub(crate) fn new(peer: Peer, port: u16) -> Self {
        Self {
            peer,
            port,
            state: Mutex::default(),
        }
    }

    pub(crate) fn fail(&self, rule: Rule<Fault>) {
        self.state().rules.add(rule);
    }

    pub(crate) fn clear(&self) {
        self.state().rules.clear();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.state().sessions.len()
    }

    pub(super) fn has_session(&self, session: &str) -> bool {
        self.state().sessions.contains_key(session)
    }

    /// Forgets every session, which ends its streams.
    pub(crate) fn drop_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Tells every open stream so many times that the tools have changed; returns how many streams.
    pub(crate) fn notify_list_changed(&self, times: usize) -> usize {
        let note = rpc::notification("notifications/tools/list_changed", &json!({}));
        self.notify(&note, times)
    }

    /// Sends a notification so many times on every open stream; returns how many streams.
    pub(crate) fn notify(&self, note: &Value, times: usize) -> usize {
        let mut state = self.state();
        let tell = |stream: &Outbox| (0..times).all(|_| stream.send(note.clone()).is_ok());
        for streams in state.sessions.values_mut() {
            streams.retain(tell);
        }
        let streams: usize = state.sessions.values().map(Vec::len).sum();
        drop(state);
        streams + self.notify_subscribers(times)
    }

    /// Says something on the streams of a session; nobody hears it once the session is forgotten.
    pub(super) fn tell(&self, session: &str, message: &Value) {
        if let Some(streams) = self.state().sessions.get_mut(session) {
            streams.retain(|stream| stream.send(message.clone()).is_ok());
        }
    }

    pub(super) fn set_gate(&self, gate: Arc<Shared>) {
        self.state().gate = Some(gate);
    }

    /// Returns the refusal of a request whose token is not good enough.
    pub(super) fn refusal(&self, request: &Request) -> Option<Reply> {
        let gate = self.state().gate.clone()?;
        let is_call = rpc::method(&request.json) == "tools/call";
        match gate.admit(request.header("authorization"), is_call) {
            Admission::Welcome => None,
            Admission::Unknown(challenge) => {
                Some(Reply::text(401, "Unauthorized").header("www-authenticate", &challenge))
            }
            Admission::NotAllowed(challenge) => {
                Some(Reply::text(403, "Forbidden").header("www-authenticate", &challenge))
            }
        }
    }

    pub(super) fn record(&self, seen: Seen) {
        self.state().seen.push(seen);
    }

    /// Takes a message, or has a fault strike it.
    pub(super) async fn post(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> io::Result<After> {
        match self.rule_for(rpc::method(&request.json)) {
            Some(rule) => {
                let reply = self.strike(request, &rule).await;
                reply.send(connection).await
            }
            None => match self.admit(request) {
                Ok(session) => self.take(connection, request, session.as_deref()).await,
                Err(refusal) => refusal.send(connection).await,
            },
        }
    }

    /// Opens the stream of notifications, or continues one that was cut off.
    pub(super) async fn get(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> io::Result<After> {
        if let Some(rule) = self.rule_for("GET") {
            return self.strike(request, &rule).await.send(connection).await;
        }
        let session = match self.admit_reader(request) {
            Ok(session) => session,
            Err(refusal) => return refusal.send(connection).await,
        };
        let event_id = request.header("last-event-id");
        let waiting = event_id.and_then(|id| self.state().resumable.remove(id));
        if let Some(answer) = waiting {
            let rest = Reply::events(vec![reply::event(&answer)]);
            return rest.send(connection).await;
        }
        let (outbox, notes) = mpsc::unbounded_channel();
        if let Some(streams) = self.state().sessions.get_mut(&session) {
            streams.push(outbox);
        }
        stream::send_notes(connection, notes).await
    }

    /// Ends a session, as its client asks.
    pub(super) async fn delete(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> io::Result<After> {
        let reply = match self.rule_for("DELETE") {
            Some(rule) => self.strike(request, &rule).await,
            None => match self.known_session(request) {
                Ok(session) => {
                    self.state().sessions.remove(&session);
                    Reply::empty(200)
                }
                Err(refusal) => refusal,
            },
        };
        reply.send(connection).await
    }

    /// Answers a message of an admitted client.
    async fn take(
        &self,
        connection: &mut Connection,
        request: &Request,
        session: Option<&str>,
    ) -> io::Result<After> {
        let message = &request.json;
        if !rpc::is_request(message) {
            self.peer.note(session, message);
            return Reply::empty(202).send(connection).await;
        }
        if self.is_subscription(message) {
            return self.subscribe(connection, message).await;
        }
        let is_handshake = rpc::method(message) == "initialize";
        let wants_progress = !message["params"]["_meta"]["progressToken"].is_null();
        let is_stream = wants_progress || self.peer.settings().answers == Answers::Sse;
        let (outbox, notes) = mpsc::unbounded_channel();
        if is_stream && !is_handshake {
            let answer = self.peer.answer(session, message, &outbox);
            return stream::send_answer(connection, answer, notes).await;
        }
        let Some(answered) = self.answer(session, message, &outbox).await else {
            return Ok(After::Close);
        };
        let reply = if is_stream {
            Reply::events(vec![reply::event(&answered.message)])
        } else {
            Reply::json(status(message, &answered.message), answered.message)
        };
        with_session(reply, answered.opened).send(connection).await
    }

    /// Returns the right answer, and opens a session if it was asked for; `None` if cancelled.
    async fn answer(
        &self,
        session: Option<&str>,
        message: &Value,
        outbox: &Outbox,
    ) -> Option<Answered> {
        let answer = self.peer.answer(session, message, outbox).await?;
        let opens = rpc::method(message) == "initialize"
            && answer.get("result").is_some()
            && self.peer.settings().has_sessions;
        Some(Answered {
            message: answer,
            opened: opens.then(|| self.open_session(Vec::new())),
        })
    }

    pub(super) fn open_session(&self, streams: Vec<Outbox>) -> String {
        let mut state = self.state();
        state.session_count += 1;
        let session = format!("session-{}", state.session_count);
        state.sessions.insert(session.clone(), streams);
        session
    }

    /// Returns what a fault makes of a request.
    pub(super) async fn strike(&self, request: &Request, rule: &Rule<Fault>) -> Reply {
        let message = &request.json;
        if let Fault::SessionLost(loss) = rule.fault {
            self.peer.change(|settings| settings.lost_session = loss);
            if let Some(session) = request.header(SESSION) {
                self.state().sessions.remove(session);
            }
            return reply::session_lost(loss, message);
        }
        if let Fault::DelayMs(ms) = rule.fault {
            sleep(Duration::from_millis(ms)).await;
        }
        let mut answered = Answered {
            message: Value::Null,
            opened: None,
        };
        if rule.executes || rule.fault.needs_answer() {
            answered = match self.execute(request).await {
                Ok(answered) => answered,
                Err(refusal) => return refusal,
            };
        }
        let event_id = format!("answer-to-{}", message["id"]);
        if rule.fault == Fault::SseResumable {
            let waiting = answered.message.clone();
            self.state().resumable.insert(event_id.clone(), waiting);
        }
        let struck = Struck {
            request: message,
            answer: answered.message,
            port: self.port,
            event_id: &event_id,
        };
        with_session(reply::faulty(&rule.fault, struck), answered.opened)
    }

    /// Does what a request asks for, on behalf of a fault that spoils the answer.
    async fn execute(&self, request: &Request) -> Result<Answered, Reply> {
        let session = self.admit(request)?;
        let message = &request.json;
        if !rpc::is_request(message) {
            self.peer.note(session.as_deref(), message);
            return Err(Reply::empty(202));
        }
        let (outbox, _nobody) = mpsc::unbounded_channel();
        let answered = self.answer(session.as_deref(), message, &outbox).await;
        answered.ok_or_else(|| {
            Reply::error(
                200,
                &message["id"],
                RpcError::new(-32000, "Request cancelled"),
            )
        })
    }

    pub(super) fn rule_for(&self, method: &str) -> Option<Rule<Fault>> {
        self.state().rules.take(method)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_session(reply: Reply, opened: Option<String>) -> Reply {
    match opened {
        Some(session) => reply.header(SESSION, session),
        None => reply,
    }
}

/// Returns the status of a right answer: the modern era has one for methods it does not know.
fn status(request: &Value, answer: &Value) -> u16 {
    let is_modern = rpc::modern_version(request).is_some();
    let is_unknown = answer["error"]["code"] == METHOD_NOT_FOUND;
    if is_modern && is_unknown { 404 } else { 200 }
}
