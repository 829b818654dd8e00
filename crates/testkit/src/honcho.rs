//! Stands in for a Honcho server: version 3 of its HTTP API over a real socket, as its own clients speak it.
//!
//! It keeps workspaces, peers, sessions, messages, cards and conclusions, and refuses what the real one refuses. It does not
//! think: a representation lists the conclusions of the asker about the asked and what these said, and a question is answered
//! with the lines of it that share a word.

#![expect(clippy::expect_used, reason = "a failed helper is a failed test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// What callers must show, where the server wants a key.
pub const KEY: &str = "honcho-test-key";

const CREATED: &str = "2026-11-18T09:00:00Z";

/// Messages in one request, and characters in one.
const MESSAGES_MAX: usize = 100;
const MESSAGE_CHARS_MAX: usize = 25_000;

/// What the server does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Says nothing, for ever.
    Silence,
    /// Answers with this status.
    Status(u16),
    /// Takes messages, and never says so.
    LostAnswer,
}

/// The service. It serves until the program ends.
#[derive(Debug, Clone)]
pub struct HonchoServer {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    key: Option<String>,
    fault: Option<Fault>,
    workspaces: BTreeMap<String, Workspace>,
    requests: Vec<(String, String, Value)>,
    made: u64,
}

#[derive(Debug, Default)]
struct Workspace {
    peers: BTreeMap<String, Value>,
    sessions: BTreeMap<String, Value>,
    /// In the order they came.
    messages: Vec<Value>,
    /// By who looks at whom.
    cards: BTreeMap<(String, String), Value>,
    conclusions: Vec<Value>,
}

type Answered = (u16, Value);

impl HonchoServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self {
            address: format!("http://127.0.0.1:{port}"),
            state: Arc::default(),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Wants [`KEY`] from now on.
    pub fn want_key(&self) {
        self.lock().key = Some(KEY.to_owned());
    }

    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// Every request so far: method, path and body.
    pub fn requests(&self) -> Vec<(String, String, Value)> {
        self.lock().requests.clone()
    }

    /// The messages of a workspace: session, peer and words.
    pub fn messages(&self, workspace: &str) -> Vec<(String, String, String)> {
        let state = self.lock();
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let of_workspace = state.workspaces.get(workspace);
        let messages = of_workspace.into_iter().flat_map(|one| &one.messages);
        messages
            .map(|one| {
                (
                    text(one, "session_id"),
                    text(one, "peer_id"),
                    text(one, "content"),
                )
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic before")
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            let fault = self.lock().fault;
            let (status, body) = match fault {
                Some(Fault::Silence) => return sleep_for_ever(),
                Some(Fault::Status(status)) => (status, json!({"detail": "out of order"})),
                Some(Fault::LostAnswer) | None => self.lock().answer(&request),
            };
            if fault == Some(Fault::LostAnswer) && request.path.ends_with("/messages") {
                return sleep_for_ever();
            }
            let (kind, body) = match &body {
                Value::String(events) => ("text/event-stream", events.clone()),
                Value::Null => ("application/json", String::new()),
                body => ("application/json", body.to_string()),
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let stream = reader.get_mut();
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// The thread ends with the program.
fn sleep_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Answered {
        self.requests.push((
            request.method.clone(),
            request.path.clone(),
            request.body.clone(),
        ));
        if self.key.as_ref().is_some_and(|key| *key != request.key) {
            return (401, json!({"detail": "Invalid API key"}));
        }
        let Some(path) = request.path.strip_prefix("/v3/workspaces") else {
            return not_found("route");
        };
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some((name, rest)) = parts.split_first() else {
            return self.workspace(&request.body);
        };
        self.made += 1;
        let made = self.made;
        match self.workspaces.get_mut(*name) {
            Some(workspace) => workspace.answer(name, rest, request, made),
            None => not_found("Workspace"),
        }
    }

    fn workspace(&mut self, body: &Value) -> Answered {
        let Some(id) = id(body) else {
            return unprocessable("id");
        };
        self.workspaces.entry(id.clone()).or_default();
        let told = json!({"id": id, "metadata": {}, "configuration": {}, "created_at": CREATED});
        (201, told)
    }
}

impl Workspace {
    fn answer(&mut self, name: &str, path: &[&str], request: &Request, made: u64) -> Answered {
        let body = &request.body;
        match (request.method.as_str(), path) {
            ("POST", ["peers"]) => match id(body) {
                Some(id) => (201, self.peer(name, &id)),
                None => unprocessable("id"),
            },
            ("POST", ["peers", "list"]) => {
                (200, page(self.peers.values().cloned().collect(), request))
            }
            ("POST", ["sessions"]) => self.session(name, body),
            ("POST", ["sessions", session, "peers"]) => {
                let wanted = json!({"id": session, "peers": body});
                self.session(name, &wanted)
            }
            ("POST", ["sessions", session, "messages"]) => {
                self.add_messages(name, session, body, made)
            }
            ("POST", ["sessions", session, "messages", "list"]) => {
                let mut messages = self.messages.clone();
                messages.retain(|one| one["session_id"] == *session);
                (200, page(messages, request))
            }
            ("GET", ["sessions", session, "context"]) => self.session_context(session, request),
            ("POST", ["peers", peer, what @ ("chat" | "representation" | "search")]) => {
                if !self.peers.contains_key(*peer) {
                    return not_found("Peer");
                }
                match *what {
                    "chat" => self.chat(peer, body),
                    "search" => self.search(peer, body),
                    _ => {
                        let target = body["target"].as_str().unwrap_or(peer);
                        let known = self.representation(peer, target);
                        (200, json!({"representation": known}))
                    }
                }
            }
            ("GET", ["peers", peer, "context"]) => {
                if !self.peers.contains_key(*peer) {
                    return not_found("Peer");
                }
                let target = request
                    .query("target")
                    .unwrap_or_else(|| (*peer).to_owned());
                (
                    200,
                    json!({"peer_id": peer, "target_id": target, "representation": self.representation(peer, &target),
                           "peer_card": self.card(peer, &target)}),
                )
            }
            (method @ ("GET" | "PUT"), ["peers", peer, "card"]) => {
                let target = request
                    .query("target")
                    .unwrap_or_else(|| (*peer).to_owned());
                if method == "PUT" {
                    let key = ((*peer).to_owned(), target.clone());
                    self.cards.insert(key, body["peer_card"].clone());
                }
                (200, json!({"peer_card": self.card(peer, &target)}))
            }
            ("POST", ["conclusions"]) => self.conclude(body, made),
            ("POST", ["conclusions", "list"]) => {
                let of = self.conclusions_of(&body["filters"]);
                (200, page(of, request))
            }
            ("POST", ["conclusions", "query"]) => {
                let mut of = self.conclusions_of(&body["filters"]);
                let query = body["query"].as_str().unwrap_or_default();
                of.retain(|one| shares_word(one["content"].as_str().unwrap_or_default(), query));
                (200, json!(of))
            }
            ("DELETE", ["conclusions", id]) => {
                let before = self.conclusions.len();
                self.conclusions.retain(|one| one["id"] != *id);
                if before == self.conclusions.len() {
                    not_found("Conclusion")
                } else {
                    (204, Value::Null)
                }
            }
            ("GET", ["queue", "status"]) => (
                200,
                json!({"total_work_units": 0, "completed_work_units": 0, "in_progress_work_units": 0,
                       "pending_work_units": 0}),
            ),
            _ => not_found("route"),
        }
    }

    fn peer(&mut self, workspace: &str, id: &str) -> Value {
        let told = json!({"id": id, "workspace_id": workspace, "created_at": CREATED, "metadata": {},
                          "configuration": {}});
        self.peers.entry(id.to_owned()).or_insert(told).clone()
    }

    fn session(&mut self, workspace: &str, body: &Value) -> Answered {
        let Some(id) = id(body) else {
            return unprocessable("id");
        };
        let peers = body["peers"].as_object().cloned().unwrap_or_default();
        for peer in peers.keys() {
            self.peer(workspace, peer);
        }
        let told = json!({"id": id, "is_active": true, "workspace_id": workspace, "metadata": {},
                          "configuration": {}, "created_at": CREATED});
        (201, self.sessions.entry(id).or_insert(told).clone())
    }

    fn add_messages(
        &mut self,
        workspace: &str,
        session: &str,
        body: &Value,
        made: u64,
    ) -> Answered {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let fits = |one: &Value| {
            let content = one["content"].as_str();
            content.is_some_and(|words| words.chars().count() <= MESSAGE_CHARS_MAX)
                && one["peer_id"].is_string()
        };
        if messages.is_empty() || messages.len() > MESSAGES_MAX || !messages.iter().all(fits) {
            return unprocessable("messages");
        }
        if !self.sessions.contains_key(session) {
            return not_found("Session");
        }
        let told: Vec<Value> = messages
            .iter()
            .enumerate()
            .map(|(number, one)| {
                let at = one["created_at"].as_str().unwrap_or(CREATED);
                let metadata = one["metadata"].as_object().cloned().unwrap_or_default();
                json!({"id": format!("m{made}-{number}"), "content": one["content"], "peer_id": one["peer_id"],
                       "session_id": session, "workspace_id": workspace, "metadata": metadata, "created_at": at,
                       "token_count": 1})
            })
            .collect();
        for one in &told {
            self.peer(workspace, one["peer_id"].as_str().unwrap_or_default());
        }
        self.messages.extend(told.iter().cloned());
        (201, json!(told))
    }

    fn session_context(&self, session: &str, request: &Request) -> Answered {
        let mut messages = self.messages.clone();
        messages.retain(|one| one["session_id"] == *session);
        let target = request.query("peer_target");
        let representation = target.map(|target| {
            let perspective = request.query("peer_perspective");
            self.representation(perspective.as_deref().unwrap_or(&target), &target)
        });
        (
            200,
            json!({"id": session, "messages": messages, "summary": null, "peer_representation": representation,
                   "peer_card": null}),
        )
    }

    fn card(&self, observer: &str, observed: &str) -> Value {
        let key = (observer.to_owned(), observed.to_owned());
        self.cards.get(&key).cloned().unwrap_or(Value::Null)
    }

    fn representation(&self, observer: &str, observed: &str) -> String {
        let concluded = self
            .conclusions
            .iter()
            .filter(|one| one["observer_id"] == observer && one["observed_id"] == observed);
        let said = self
            .messages
            .iter()
            .filter(|one| one["peer_id"] == observed);
        let words = |one: &Value| one["content"].as_str().unwrap_or_default().to_owned();
        let lines: Vec<String> = concluded
            .map(words)
            .chain(said.map(|one| format!("{observed} said: {}", words(one))))
            .collect();
        lines.join("\n")
    }

    fn chat(&self, peer: &str, body: &Value) -> Answered {
        const LEVELS: [&str; 5] = ["minimal", "low", "medium", "high", "max"];
        let query = body["query"].as_str().unwrap_or_default();
        let level = body["reasoning_level"].as_str().unwrap_or("low");
        if query.is_empty() || !LEVELS.contains(&level) {
            return unprocessable("query");
        }
        let target = body["target"].as_str().unwrap_or(peer);
        let known = self.representation(peer, target);
        let lines: Vec<&str> = known
            .lines()
            .filter(|line| shares_word(line, query))
            .collect();
        let content = lines.join("; ");
        if body["stream"] == true {
            let delta = json!({"delta": {"content": content}, "done": false});
            return (
                200,
                json!(format!("data: {delta}\n\ndata: {{\"done\": true}}\n\n")),
            );
        }
        let content = Some(content).filter(|content| !content.is_empty());
        (200, json!({"content": content}))
    }

    fn search(&self, peer: &str, body: &Value) -> Answered {
        let query = body["query"].as_str().unwrap_or_default();
        let limit = body["limit"].as_u64().unwrap_or(10) as usize;
        let found: Vec<&Value> = self
            .messages
            .iter()
            .filter(|one| one["peer_id"] == peer)
            .filter(|one| shares_word(one["content"].as_str().unwrap_or_default(), query))
            .take(limit)
            .collect();
        (200, json!(found))
    }

    fn conclude(&mut self, body: &Value, made: u64) -> Answered {
        let wanted = body["conclusions"].as_array().cloned().unwrap_or_default();
        let is_known = |one: &Value, key: &str| {
            let peer = one[key].as_str().unwrap_or_default();
            self.peers.contains_key(peer)
        };
        if wanted.is_empty() {
            return unprocessable("conclusions");
        }
        if !wanted
            .iter()
            .all(|one| is_known(one, "observer_id") && is_known(one, "observed_id"))
        {
            return not_found("Peer");
        }
        let told: Vec<Value> = wanted
            .iter()
            .enumerate()
            .map(|(number, one)| {
                json!({"id": format!("c{made}-{number}"), "content": one["content"], "observer_id": one["observer_id"],
                       "observed_id": one["observed_id"], "session_id": one["session_id"], "level": "explicit",
                       "created_at": CREATED})
            })
            .collect();
        self.conclusions.extend(told.iter().cloned());
        (201, json!(told))
    }

    fn conclusions_of(&self, filters: &Value) -> Vec<Value> {
        let fits = |one: &&Value| {
            ["observer_id", "observed_id"]
                .iter()
                .all(|key| filters[key].is_null() || filters[key] == one[key])
        };
        self.conclusions.iter().filter(fits).cloned().collect()
    }
}

fn not_found(what: &str) -> Answered {
    (404, json!({"detail": format!("{what} not found")}))
}

fn unprocessable(what: &str) -> Answered {
    (
        422,
        json!({"detail": [{"loc": ["body", what], "msg": "invalid"}]}),
    )
}

/// The name that a body gives.
fn id(body: &Value) -> Option<String> {
    let id = body["id"].as_str()?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = !id.is_empty() && id.len() <= 512 && id.chars().all(is_allowed);
    is_name.then(|| id.to_owned())
}

fn page(mut items: Vec<Value>, request: &Request) -> Value {
    let number = |name: &str, default: usize| {
        let said = request.query(name).and_then(|text| text.parse().ok());
        said.unwrap_or(default).max(1)
    };
    if request.query("reverse").as_deref() == Some("true") {
        items.reverse();
    }
    let (page, size, total) = (number("page", 1), number("size", 50), items.len());
    let shown: Vec<Value> = items
        .into_iter()
        .skip((page - 1) * size)
        .take(size)
        .collect();
    json!({"items": shown, "page": page, "size": size, "total": total, "pages": total.div_ceil(size)})
}

fn shares_word(text: &str, query: &str) -> bool {
    let text = text.to_lowercase();
    let words = query.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| word.len() > 3)
        .any(|word| text.contains(&word.to_lowercase()))
}

struct Request {
    method: String,
    /// Without the query.
    path: String,
    query: Vec<(String, String)>,
    key: String,
    body: Value,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path.to_owned(), query),
            None => (target.clone(), ""),
        };
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let query = query.split('&').filter_map(pair).collect();
        let (mut key, mut body_bytes) = (String::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => body_bytes = value.parse().ok()?,
                "authorization" => key = value.trim_start_matches("Bearer ").to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; body_bytes];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Some(Self {
            method,
            path,
            query,
            key,
            body,
        })
    }

    fn query(&self, name: &str) -> Option<String> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }
}
