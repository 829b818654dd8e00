//! Answers requests: routes them, records them, and has the chosen answer played.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use super::{
    answer::Answer,
    choose::Chooser,
    conversation::Conversation,
    http::{self, Connection, Request},
    ledger::Ledger,
    models,
    play::{self, After, Finale},
    script::Script,
    wire::{Ask, Wire},
};

/// How to serve a script.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port on loopback; 0 takes a free one.
    pub port: u16,
    /// A file that gets one JSON line per model request.
    pub log: Option<PathBuf>,
    /// Forgets requests once they are answered, so that a long run does not fill the memory.
    pub forget_requests: bool,
}

pub(super) struct Host {
    models: Vec<String>,
    context_length: Option<u64>,
    absent: Vec<String>,
    only_v1: bool,
    forget_requests: bool,
    state: Mutex<State>,
}

struct State {
    chooser: Chooser,
    ledger: Option<Ledger>,
    requests: Vec<Request>,
    request_count: usize,
}

impl Host {
    pub(super) fn new(script: Script, options: &Options) -> io::Result<Self> {
        let ledger = options.log.as_deref().map(Ledger::open).transpose()?;
        let models = match script.models.as_slice() {
            [] => vec!["scripted".to_owned()],
            models => models.to_vec(),
        };
        Ok(Self {
            models,
            context_length: script.context_length,
            absent: script.absent.clone(),
            only_v1: script.only_v1,
            forget_requests: options.forget_requests,
            state: Mutex::new(State {
                chooser: Chooser::new(script),
                ledger,
                requests: Vec::new(),
                request_count: 0,
            }),
        })
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Answers requests until the client or the script ends the connection.
    pub(super) async fn converse(&self, connection: &mut Connection) -> io::Result<After> {
        while let Some(request) = http::read_request(connection).await? {
            let wants_close = request.wants_close();
            match self.respond(connection, request).await? {
                After::KeepAlive if !wants_close => {}
                After::Reset => return Ok(After::Reset),
                After::KeepAlive | After::Close => break,
            }
        }
        Ok(After::Close)
    }

    async fn respond(&self, connection: &mut Connection, request: Request) -> io::Result<After> {
        let route = request.route().to_owned();
        let is_absent = self.is_absent(&route);
        if let Some(wire) = Wire::of_path(&route)
            && request.method == "POST"
            && !is_absent
        {
            let (answer, ask) = self.answer(wire, &route, request)?;
            return give(connection, wire, &answer, &ask).await;
        }
        let (status, body) = self.page(&route, &request);
        self.remember(&mut self.state(), request);
        http::write_response(connection, status, BTreeMap::new(), &body).await?;
        Ok(After::KeepAlive)
    }

    /// Chooses the answer and records the request, in one step.
    fn answer(&self, wire: Wire, route: &str, request: Request) -> io::Result<(Answer, Ask)> {
        let conversation = Conversation::read(wire, &request.json);
        let mut state = self.state();
        let answer = if request.json.is_null() {
            refusal("the body is not JSON")
        } else {
            let chosen = state.chooser.choose(&conversation);
            chosen.unwrap_or_else(|| refusal("the script has no answer (left) for this request"))
        };
        if let Some(ledger) = &mut state.ledger {
            ledger.record(&request, &conversation)?;
        }
        let ask = wire.ask(route, &request.json, state.request_count + 1);
        self.remember(&mut state, request);
        Ok((answer, ask))
    }

    fn remember(&self, state: &mut State, request: Request) {
        state.request_count += 1;
        if !self.forget_requests {
            state.requests.push(request);
        }
    }

    fn is_absent(&self, route: &str) -> bool {
        let is_elsewhere = self.only_v1 && !route.starts_with("/v1/");
        is_elsewhere || self.absent.iter().any(|end| route.ends_with(end.as_str()))
    }

    /// Returns the page at a route that is not a model's.
    fn page(&self, route: &str, request: &Request) -> (u16, Value) {
        let is_list = route.ends_with("/models");
        let is_absent = self.is_absent(route);
        let page = match request.method.as_str() {
            method if is_absent => {
                return (404, error_body(&format!("no such route: {method} {route}")));
            }
            "GET" if route.ends_with("/health") => json!({"status": "ok"}),
            "GET" if route.ends_with("/api/tags") => models::ollama(&self.models),
            "GET" if is_list && is_gemini(request) => models::gemini(&self.models),
            "GET" if is_list => models::openai(&self.models, self.context_length),
            method => {
                return (404, error_body(&format!("no such route: {method} {route}")));
            }
        };
        (200, page)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends an answer, faults and all.
async fn give(
    connection: &mut Connection,
    wire: Wire,
    answer: &Answer,
    ask: &Ask,
) -> io::Result<After> {
    let faults = &answer.faults;
    // Even a timer of zero takes a millisecond.
    if !faults.headers_delay().is_zero() {
        tokio::time::sleep(faults.headers_delay()).await;
    }
    if let Some(how) = faults.ending_before_headers() {
        return play::end_before_headers(connection, how).await;
    }
    let mut headers = answer.headers.clone();
    if let Some(content_type) = &faults.content_type {
        headers.insert("content-type".into(), content_type.clone());
    }
    if let Some(refusal) = &answer.refusal {
        http::write_response(connection, refusal.status, headers, &refusal.body).await?;
        return Ok(After::KeepAlive);
    }
    let plan = play::plan(wire, wire.render(answer, ask), faults);
    let content_type = headers.entry("content-type".into());
    content_type.or_insert_with(|| wire.content_type(ask).into());
    headers.insert("transfer-encoding".into(), "chunked".into());
    if plan.finale == Finale::EndAndClose {
        headers.insert("connection".into(), "close".into());
    }
    play::play(connection, http::head(200, &headers), &plan, faults).await
}

/// A refusal that clients do not retry, so that a wrong script fails a test at once.
fn refusal(message: &str) -> Answer {
    Answer::status(400, error_body(message))
}

fn error_body(message: &str) -> Value {
    json!({"error": {"message": message, "type": "scripted_server", "code": null}})
}

/// Gemini shares `/models` with the others, but neither its version nor its key header.
fn is_gemini(request: &Request) -> bool {
    request.route().contains("/v1beta/") || request.header("x-goog-api-key").is_some()
}
