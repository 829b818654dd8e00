//! The server: HTTP, the way to the gateway, limits, and faults.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::gateway;
use super::rest::{self, Answered, Call, Refusal};
use super::world::World;
use crate::server::Request;
use crate::server::http::{self, Connection};

/// What calls must show: its first part is the bot's id.
pub const TOKEN: &str = "MTAwMDAwMDAwMDAwMDAwMDA0Mg.Gtests.a_signature-of_tests";

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallFault {
    /// It is refused, with this status, number and words.
    Refuse(u16, u64, String),
    /// It is too much, for so many seconds: for its route, or for all.
    Throttle(f64),
    ThrottleAll(f64),
    /// It is not done, and the connection ends.
    DropBefore,
    /// It is done, and the connection ends without an answer.
    DropAfter,
    /// Something between Discord and us answers in its place.
    Garbage,
    /// Nothing comes, ever.
    Hang,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub struct Called {
    /// `POST /channels/1/messages`
    pub route: String,
    pub body: Value,
    /// Names and sizes of uploaded files.
    pub files: Vec<(String, usize)>,
}

/// What happens to all sockets at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shake {
    /// They end without a word.
    Drop,
    Close(u16),
    /// A frame is sent as it is.
    Send(String),
    /// Heartbeats are not answered any more.
    Deafen,
}

/// A Discord of tests. It is gone when this is dropped.
pub struct DiscordServer {
    address: SocketAddr,
    pub(super) shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

pub(super) struct State {
    pub(super) world: World,
    faults: Vec<(String, CallFault)>,
    calls: Vec<Called>,
    pub(super) token: String,
    pub(super) has_message_content: bool,
    pub(super) sockets: u64,
    pub(super) shakes: Vec<(u64, Shake)>,
    /// How many sends a channel takes in a time, where that counts.
    bucket: Option<(u64, Duration)>,
    spent: BTreeMap<String, Vec<Instant>>,
    pub(super) sessions_left: u64,
    /// Where sessions are to be resumed, if not here.
    pub(super) resume_url: Option<String>,
    pub(super) hangs_up_on_resume: bool,
}

pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) changed: watch::Sender<u64>,
    pub(super) address: SocketAddr,
}

impl DiscordServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let world = World {
            url: format!("http://{address}"),
            ..World::default()
        };
        let state = State {
            world,
            faults: Vec::new(),
            calls: Vec::new(),
            token: TOKEN.to_owned(),
            has_message_content: true,
            sockets: 0,
            shakes: Vec::new(),
            bucket: None,
            spent: BTreeMap::new(),
            sessions_left: 1000,
            resume_url: None,
            hangs_up_on_resume: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            address,
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _serving: serving,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn gateway_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Lets the next call of a route go wrong: `POST /channels/1/messages`, or `send` for every new message.
    pub fn fail(&self, route: &str, fault: CallFault) {
        self.shared.lock().faults.push((route.to_owned(), fault));
    }

    /// The token is another one from now on.
    pub fn rotate_token(&self) {
        self.shared.lock().token = "MTAwMDAwMDAwMDAwMDAwMDA0Mg.Gnewer.another".to_owned();
    }

    /// The bot may not read what messages say: nobody switched that on.
    pub fn withhold_message_content(&self) {
        self.shared.lock().has_message_content = false;
    }

    /// Each channel takes so many messages in such a time from now on.
    pub fn limit_sends(&self, count: u64, per: Duration) {
        self.shared.lock().bucket = Some((count, per));
    }

    /// No sessions can be begun any more today.
    pub fn use_up_sessions(&self) {
        self.shared.lock().sessions_left = 0;
    }

    /// Sessions that begin from now on are to be resumed at another address.
    pub fn resume_at(&self, url: &str) {
        self.shared.lock().resume_url = Some(url.to_owned());
    }

    /// Whoever wants to resume a session is left without a word of why.
    pub fn hang_up_on_resume(&self) {
        self.shared.lock().hangs_up_on_resume = true;
    }

    pub fn calls(&self) -> Vec<Called> {
        self.shared.lock().calls.clone()
    }

    pub fn calls_of(&self, route: &str) -> Vec<Called> {
        let mut calls = self.calls();
        calls.retain(|call| call.route.contains(route));
        calls
    }

    pub(super) fn with_world<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.shared.lock().world);
        self.shared.wake();
        changed
    }

    pub(super) fn shake(&self, shake: Shake) {
        let mut state = self.shared.lock();
        let sockets = state.sockets;
        state.shakes.push((sockets, shake));
        drop(state);
        self.shared.wake();
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let mut connection = BufReader::new(stream);
            // A client that leaves early ends the connection, and nothing else.
            while let Ok(Some(request)) = http::read_request(&mut connection).await {
                if request.header("upgrade").is_some() {
                    return gateway::serve(&shared, connection, &request).await;
                }
                match respond(&shared, &mut connection, &request).await {
                    Ok(true) if !request.wants_close() => {}
                    _ => return,
                }
            }
        });
    }
}

/// Answers; returns whether the connection goes on.
async fn respond(
    shared: &Shared,
    connection: &mut Connection,
    request: &Request,
) -> io::Result<bool> {
    if let Some(rest) = request.route().strip_prefix("/attachments/") {
        return give_file(shared, connection, rest).await;
    }
    let call = match rest::read(request) {
        Ok(call) => call,
        Err(refusal) => return write(connection, Err(refusal), BTreeMap::new()).await,
    };
    if !rest::may(&call, request, &shared.lock().token) {
        let refusal = Refusal::new(401, 0, "401: Unauthorized");
        return write(connection, Err(refusal), BTreeMap::new()).await;
    }
    let (fault, limits) = begin(shared, &call);
    match fault {
        Some(CallFault::Refuse(status, code, words)) => {
            let refusal = Refusal::new(status, code, &words);
            return write(connection, Err(refusal), limits).await;
        }
        Some(CallFault::Throttle(secs)) => {
            return write(connection, Err(throttled(secs, false)), limits).await;
        }
        Some(CallFault::ThrottleAll(secs)) => {
            return write(connection, Err(throttled(secs, true)), limits).await;
        }
        Some(CallFault::DropBefore) => return Ok(false),
        Some(CallFault::Hang) => std::future::pending().await,
        Some(CallFault::Garbage) => {
            let page = json!("<html>502 Bad Gateway</html>");
            http::write_response(connection, 502, BTreeMap::new(), &page).await?;
            return Ok(true);
        }
        Some(CallFault::DropAfter) | None => {}
    }
    let answered = rest::answer(&mut shared.lock(), &call, shared.address);
    shared.wake();
    if fault == Some(CallFault::DropAfter) {
        return Ok(false);
    }
    write(connection, answered, limits).await
}

/// Remembers a call, and returns what shall go wrong with it, and what it is told about limits.
fn begin(shared: &Shared, call: &Call) -> (Option<CallFault>, BTreeMap<String, String>) {
    let mut state = shared.lock();
    state.calls.push(Called {
        route: call.route(),
        body: call.body.clone(),
        files: call
            .files
            .iter()
            .map(|file| (file.name.clone(), file.bytes.len()))
            .collect(),
    });
    let route = call.route();
    let is_meant =
        |(name, _): &(String, CallFault)| *name == route || (name == "send" && call.is_send());
    let fault = state.faults.iter().position(is_meant);
    let fault = fault.map(|at| state.faults.remove(at).1);
    let (limits, wait) = spend(&mut state, call);
    (fault.or(wait.map(CallFault::Throttle)), limits)
}

/// Takes one from the bucket of a channel; the wait if there is none left.
fn spend(state: &mut State, call: &Call) -> (BTreeMap<String, String>, Option<f64>) {
    let mut limits = BTreeMap::from([("via".to_owned(), "1.1 google".to_owned())]);
    let Some((count, per)) = state.bucket.filter(|_| call.is_send()) else {
        return (limits, None);
    };
    let now = Instant::now();
    let spent = state.spent.entry(call.route()).or_default();
    spent.retain(|at| now - *at < per);
    let oldest = spent.first().copied().unwrap_or(now);
    let reset = (per - (now - oldest)).as_secs_f64();
    let is_over = spent.len() as u64 >= count;
    if !is_over {
        spent.push(now);
    }
    let remaining = count.saturating_sub(spent.len() as u64);
    for (name, value) in [
        ("x-ratelimit-limit", count.to_string()),
        ("x-ratelimit-remaining", remaining.to_string()),
        ("x-ratelimit-reset-after", format!("{reset:.3}")),
        ("x-ratelimit-bucket", "sends".to_owned()),
    ] {
        limits.insert(name.to_owned(), value);
    }
    (limits, is_over.then_some(reset))
}

fn throttled(secs: f64, is_global: bool) -> Refusal {
    Refusal {
        more: json!({"retry_after": secs, "global": is_global}),
        ..Refusal::new(429, 0, "You are being rate limited.")
    }
}

async fn write(
    connection: &mut Connection,
    answered: Answered,
    headers: BTreeMap<String, String>,
) -> io::Result<bool> {
    let (status, body) = match answered {
        Ok(Value::Null) => {
            let mut headers = headers;
            headers.insert("content-length".to_owned(), "0".to_owned());
            connection
                .write_all(http::head(204, &headers).as_bytes())
                .await?;
            return Ok(true);
        }
        Ok(result) => (200, result),
        Err(refusal) => (refusal.status, refusal.body()),
    };
    http::write_response(connection, status, headers, &body).await?;
    Ok(true)
}

async fn give_file(shared: &Shared, connection: &mut Connection, rest: &str) -> io::Result<bool> {
    let id = rest.split('/').next().unwrap_or_default();
    let bytes = shared.lock().world.files.get(id).cloned();
    let (status, bytes) = bytes.map_or((404, Vec::new()), |bytes| (200, bytes));
    let headers = BTreeMap::from([("content-length".to_owned(), bytes.len().to_string())]);
    connection
        .write_all(http::head(status, &headers).as_bytes())
        .await?;
    connection.write_all(&bytes).await?;
    Ok(true)
}
