//! The server as it should be: answers every message rightly, over whichever transport it came.
//! Knows nothing of faults. Start at [`Peer::answer`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    ask::Asking,
    catalogue,
    ledger::Ledger,
    rpc::{
        self, INVALID_PARAMS, LEGACY_VERSIONS, MODERN_VERSION, Outcome, RpcError, modern_version,
        notification, response,
    },
    settings::Settings,
};

/// Where notifications about a request go, before its answer.
pub(crate) type Outbox = mpsc::UnboundedSender<Value>;

/// Progress is told this often while `slow` works.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// A call in progress: its session and its id.
type CallKey = (Option<String>, String);

#[derive(Default)]
pub(crate) struct Peer {
    state: Mutex<State>,
    asking: Asking,
}

#[derive(Default)]
struct State {
    settings: Settings,
    ledger: Ledger,
    cancelled: Vec<Value>,
    /// What stops each call of `slow`.
    slow_calls: HashMap<CallKey, oneshot::Sender<()>>,
}

impl Peer {
    pub(crate) fn new(settings: Settings, ledger: Ledger) -> Self {
        let state = State {
            settings,
            ledger,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            asking: Asking::default(),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state().settings);
    }

    pub(crate) fn executions(&self, word: &str) -> usize {
        self.state().ledger.count(word)
    }

    pub(crate) fn executed_words(&self) -> Vec<String> {
        self.state().ledger.words().to_vec()
    }

    pub(crate) fn cancelled(&self) -> Vec<Value> {
        self.state().cancelled.clone()
    }

    /// Takes a notification or a response. Of notifications, only a cancellation means anything.
    pub(crate) fn note(&self, session: Option<&str>, message: &Value) {
        if message.get("method").is_none() {
            return self.asking.note(message);
        }
        if message["method"] != "notifications/cancelled" {
            return;
        }
        let id = &message["params"]["requestId"];
        let mut state = self.state();
        state.cancelled.push(id.clone());
        if let Some(stop) = state.slow_calls.remove(&call_key(session, id)) {
            // The call may have ended in between.
            stop.send(()).ok();
        }
    }

    /// Returns the response to a request; `None` if it was cancelled.
    pub(crate) async fn answer(
        &self,
        session: Option<&str>,
        message: &Value,
        outbox: &Outbox,
    ) -> Option<Value> {
        let settings = self.settings();
        let is_modern = settings.era.is_modern() && modern_version(message).is_some();
        let is_slow = message["method"] == "tools/call" && message["params"]["name"] == "slow";
        let is_asking = settings.has_asking_tools && Asking::has(message);
        let outcome = if is_asking {
            self.asking.call(message, is_modern, outbox).await?
        } else if is_slow && !catalogue::is_removed(&settings, "slow") {
            self.slow(session, message, outbox).await?
        } else {
            self.answer_at_once(&settings, is_modern, message)
        };
        let outcome = match outcome {
            Ok(result) if is_modern => Ok(modernised(result)),
            outcome => outcome,
        };
        Some(response(&message["id"], outcome))
    }

    fn answer_at_once(&self, settings: &Settings, is_modern: bool, message: &Value) -> Outcome {
        let method = rpc::method(message);
        let params = &message["params"];
        match method {
            "initialize" if settings.era.is_legacy() => Ok(initialize(settings, params)),
            "initialize" => Err(RpcError::unsupported_version(&params["protocolVersion"])),
            "server/discover" if is_modern => Ok(discover()),
            "logging/setLevel" if !is_modern => Ok(json!({})),
            "ping" if settings.has_ping && !is_modern => Ok(json!({})),
            "tools/list" => catalogue::tools_page(settings, &params["cursor"]),
            "tools/call" => self.call(settings, params),
            "resources/list" => Ok(catalogue::resources()),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "resources/read" => catalogue::read_resource(&params["uri"]),
            "prompts/list" => Ok(catalogue::prompts()),
            "prompts/get" => catalogue::get_prompt(params),
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    fn call(&self, settings: &Settings, params: &Value) -> Outcome {
        let name = params["name"].as_str().unwrap_or_default();
        let unknown = || RpcError::new(INVALID_PARAMS, format!("Unknown tool: {name}"));
        if catalogue::is_removed(settings, name) {
            return Err(unknown());
        }
        let arguments = &params["arguments"];
        match name {
            "add" => {
                let sum = number(arguments, "a")? + number(arguments, "b")?;
                let mut result = text_result(&sum.to_string());
                result["structuredContent"] = json!({"sum": sum});
                Ok(result)
            }
            "append" => self.append(text(arguments, "word")?),
            "fail" => {
                let mut result = text_result("this tool always fails");
                result["isError"] = true.into();
                Ok(result)
            }
            "app_error" => self.app_error(arguments),
            _ if name == "echo" || name.starts_with("extra_") => {
                Ok(text_result(text(arguments, "text")?))
            }
            _ => Err(unknown()),
        }
    }

    /// Does what it is told, and fails all the same: with this error, or without a code with a result that is one.
    fn app_error(&self, arguments: &Value) -> Outcome {
        let message = text(arguments, "message")?;
        if let Some(word) = arguments["word"].as_str() {
            self.append(word)?;
        }
        if let Some(code) = arguments["code"].as_i64() {
            return Err(RpcError::new(code, message));
        }
        let mut result = text_result(message);
        result["isError"] = true.into();
        Ok(result)
    }

    fn append(&self, word: &str) -> Outcome {
        if word.contains('\n') {
            return Err(RpcError::new(INVALID_PARAMS, "`word` must be one line"));
        }
        let mut state = self.state();
        state.ledger.append(word).map_err(|error| {
            RpcError::new(-32603, format!("cannot write to the ledger: {error}"))
        })?;
        let count = state.ledger.count(word);
        Ok(text_result(&format!("appended `{word}` ({count})")))
    }

    /// Works for some time, with progress if it was asked for; `None` once it is cancelled.
    async fn slow(
        &self,
        session: Option<&str>,
        message: &Value,
        outbox: &Outbox,
    ) -> Option<Outcome> {
        let Some(ms) = message["params"]["arguments"]["ms"].as_u64() else {
            return Some(Err(missing("ms")));
        };
        let key = call_key(session, &message["id"]);
        let (stop, mut stopped) = oneshot::channel();
        self.state().slow_calls.insert(key.clone(), stop);
        let started = Instant::now();
        let end = started + Duration::from_millis(ms);
        let mut tick = started;
        while tick < end {
            tick = end.min(tick + PROGRESS_EVERY);
            tokio::select! {
                () = sleep_until(tick) => {}
                _ = &mut stopped => return None,
            }
            tell_progress(message, (tick - started).as_millis(), ms, outbox);
        }
        self.state().slow_calls.remove(&key);
        Some(Ok(text_result(&format!("took {ms} ms"))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn call_key(session: Option<&str>, id: &Value) -> CallKey {
    (session.map(str::to_owned), id.to_string())
}

fn tell_progress(request: &Value, done_ms: u128, total_ms: u64, outbox: &Outbox) {
    let token = &request["params"]["_meta"]["progressToken"];
    if token.is_null() {
        return;
    }
    let done_ms = u64::try_from(done_ms).unwrap_or(total_ms);
    let params = json!({"progressToken": token, "progress": done_ms, "total": total_ms});
    // Nobody listens if the client has left; the work goes on all the same.
    outbox
        .send(notification("notifications/progress", &params))
        .ok();
}

fn initialize(settings: &Settings, params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let known = LEGACY_VERSIONS.into_iter().find(|known| *known == asked);
    let version = settings.version.as_deref().or(known);
    let mut result = introduction();
    result["protocolVersion"] = version.unwrap_or(LEGACY_VERSIONS[0]).into();
    result["serverInfo"] = server_info();
    result
}

fn discover() -> Value {
    let mut result = introduction();
    result["supportedVersions"] = json!([MODERN_VERSION]);
    result
}

fn introduction() -> Value {
    json!({
        "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}, "logging": {}},
        "instructions": "A server that fails on command.",
    })
}

fn server_info() -> Value {
    json!({"name": "hermes-faulty-mcp", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds what every result of the modern era has, and what those have that may be cached.
fn modernised(mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
    }
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server_info()});
    if result.get("content").is_none() && result.get("messages").is_none() {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    result
}

pub(super) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(super) fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, RpcError> {
    arguments[name].as_str().ok_or_else(|| missing(name))
}

fn number(arguments: &Value, name: &str) -> Result<f64, RpcError> {
    arguments[name].as_f64().ok_or_else(|| missing(name))
}

pub(super) fn missing(name: &str) -> RpcError {
    let message = format!("Invalid params: `{name}` is missing or of the wrong type");
    RpcError::new(INVALID_PARAMS, message)
}
