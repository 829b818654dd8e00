//! The server: HTTP, long polls, and faults.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::form::{self, Form};
use super::methods::{Answered, Refusal, refused};
use super::world::{BOT_ID, World};
use crate::server::Request;
use crate::server::http::{self, Connection};

/// What calls must show.
pub const TOKEN: &str = "42:AAF-test_token";

/// A question for updates that waits for some already.
pub const WAITING: &str = "getUpdates (waiting)";

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallFault {
    /// It is refused, with this code and these words.
    Refuse(u16, String),
    Throttle(u64),
    /// It is not done, and the connection ends.
    DropBefore,
    /// It is done, and the connection ends without an answer.
    DropAfter,
    /// Something between Telegram and us answers in its place.
    Garbage,
    /// Nothing comes, ever.
    Hang,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub struct Called {
    pub method: String,
    pub fields: Value,
    /// Names and sizes of uploaded files.
    pub files: Vec<(String, usize)>,
}

/// A Bot API server of tests. It is gone when this is dropped.
pub struct TelegramServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct State {
    world: World,
    faults: Vec<(String, CallFault)>,
    calls: Vec<Called>,
    /// Which question for updates is the last one: it ends the others.
    poll: u64,
    token: String,
}

struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl TelegramServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            token: TOKEN.to_owned(),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _serving: serving,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the next call of a method go wrong; `send` means every method that sends something, [`WAITING`] a poll that waits.
    pub fn fail(&self, method: &str, fault: CallFault) {
        self.shared.lock().faults.push((method.to_owned(), fault));
        self.shared.wake();
    }

    /// The token is another one from now on.
    pub fn rotate_token(&self) {
        self.shared.lock().token = format!("{BOT_ID}:another");
    }

    pub fn calls(&self) -> Vec<Called> {
        self.shared.lock().calls.clone()
    }

    pub fn calls_of(&self, method: &str) -> Vec<Called> {
        let calls = self.calls();
        calls
            .into_iter()
            .filter(|call| call.method == method)
            .collect()
    }

    pub(super) fn with_world<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.shared.lock().world);
        self.shared.wake();
        changed
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
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
    // Some clients write the colon of the token so.
    let route = request.route().replace("%3A", ":");
    if let Some(rest) = route.strip_prefix("/file/bot") {
        return give_file(shared, connection, rest).await;
    }
    let called = route
        .strip_prefix("/bot")
        .and_then(|rest| rest.split_once('/'));
    let Some((token, method)) = called else {
        return write(connection, Err(refused(404, "Not Found"))).await;
    };
    if token != shared.lock().token {
        return write(connection, Err(refused(401, "Unauthorized"))).await;
    }
    let form = match form::read(request) {
        Ok(form) => form,
        Err(words) => return write(connection, Err(refused(400, words))).await,
    };
    let fault = begin(shared, method, &form);
    match fault {
        Some(CallFault::Refuse(code, words)) => {
            let refusal = Refusal {
                code,
                words,
                parameters: Value::Null,
            };
            return write(connection, Err(refusal)).await;
        }
        Some(CallFault::Throttle(secs)) => return write(connection, Err(throttled(secs))).await,
        Some(CallFault::DropBefore) => return Ok(false),
        Some(CallFault::Hang) => std::future::pending().await,
        Some(CallFault::Garbage) => {
            let page = json!("<html>502 Bad Gateway</html>");
            http::write_response(connection, 502, BTreeMap::new(), &page).await?;
            return Ok(true);
        }
        Some(CallFault::DropAfter) | None => {}
    }
    let answered = if method == "getUpdates" {
        poll(shared, &form).await
    } else {
        let answered = shared.lock().world.call(method, &form);
        shared.wake();
        answered
    };
    if fault == Some(CallFault::DropAfter) {
        return Ok(false);
    }
    write(connection, answered).await
}

/// Remembers a call, and returns what shall go wrong with it.
fn begin(shared: &Shared, method: &str, form: &Form) -> Option<CallFault> {
    let mut state = shared.lock();
    let files = form
        .files
        .values()
        .map(|file| (file.name.clone(), file.bytes.len()));
    state.calls.push(Called {
        method: method.to_owned(),
        fields: Value::Object(form.fields.clone()),
        files: files.collect(),
    });
    take_fault(&mut state, method)
}

fn take_fault(state: &mut State, method: &str) -> Option<CallFault> {
    let sends = method.starts_with("send") && method != "sendChatAction";
    let is_meant = |(name, _): &(String, CallFault)| name == method || (name == "send" && sends);
    let at = state.faults.iter().position(is_meant)?;
    Some(state.faults.remove(at).1)
}

fn throttled(secs: u64) -> Refusal {
    Refusal {
        parameters: json!({"retry_after": secs}),
        ..refused(429, format!("Too Many Requests: retry after {secs}"))
    }
}

/// Waits for updates as long as it was asked to. A second question ends the first.
async fn poll(shared: &Shared, form: &Form) -> Answered {
    let number = |name: &str| {
        let value = form.fields.get(name)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let mut changed = shared.changed.subscribe();
    let mine = {
        let mut state = shared.lock();
        state.world.call("getUpdates", form)?;
        state.poll += 1;
        if let Some(offset) = number("offset") {
            state.world.confirm(offset);
        }
        state.poll
    };
    shared.wake();
    let limit = usize::try_from(number("limit").unwrap_or(100)).unwrap_or(100);
    let timeout = Duration::from_secs(number("timeout").unwrap_or(0).try_into().unwrap_or(0));
    let deadline = tokio::time::Instant::now() + timeout;
    loop {
        changed.borrow_and_update();
        {
            let mut state = shared.lock();
            if state.world.webhook.is_some() {
                return Err(refused(
                    409,
                    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
                ));
            }
            if state.poll != mine {
                return Err(refused(
                    409,
                    "terminated by other getUpdates request; make sure that only one bot instance is running",
                ));
            }
            match take_fault(&mut state, WAITING) {
                Some(CallFault::Refuse(code, words)) => {
                    return Err(Refusal {
                        code,
                        words,
                        parameters: Value::Null,
                    });
                }
                Some(_) => return Err(gone()),
                None => {}
            }
            if !state.world.updates.is_empty() {
                let updates: Vec<Value> = state.world.updates.iter().take(limit).cloned().collect();
                return Ok(updates.into());
            }
        }
        if tokio::time::timeout_at(deadline, changed.changed())
            .await
            .is_err()
        {
            return Ok(json!([]));
        }
    }
}

/// No answer at all: the connection ends.
fn gone() -> Refusal {
    refused(0, "")
}

async fn write(connection: &mut Connection, answered: Answered) -> io::Result<bool> {
    let (status, body) = match answered {
        Err(refusal) if refusal.code == 0 => return Ok(false),
        Ok(result) => (200, json!({"ok": true, "result": result})),
        Err(refusal) => {
            let mut body =
                json!({"ok": false, "error_code": refusal.code, "description": refusal.words});
            if !refusal.parameters.is_null() {
                body["parameters"] = refusal.parameters;
            }
            (refusal.code, body)
        }
    };
    http::write_response(connection, status, BTreeMap::new(), &body).await?;
    Ok(true)
}

async fn give_file(shared: &Shared, connection: &mut Connection, rest: &str) -> io::Result<bool> {
    let bytes = {
        let state = shared.lock();
        let named = rest
            .split_once('/')
            .filter(|(token, _)| *token == state.token);
        let id = named.and_then(|(_, path)| path.strip_prefix("files/"));
        id.and_then(|id| state.world.files.get(id).cloned())
    };
    let (status, bytes) = bytes.map_or((404, Vec::new()), |bytes| (200, bytes));
    let headers = BTreeMap::from([("content-length".to_owned(), bytes.len().to_string())]);
    connection
        .write_all(http::head(status, &headers).as_bytes())
        .await?;
    connection.write_all(&bytes).await?;
    Ok(true)
}
