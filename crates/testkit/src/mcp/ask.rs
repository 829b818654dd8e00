//! Tools that make the server ask its client for something, in the way of either era.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::PIXEL_BASE64;

use super::{
    peer::{Outbox, missing, text, text_result},
    rpc::{Outcome, RpcError, notification},
};

/// The key under which a result of the modern era asks, and its state.
const KEY: &str = "wanted";
const STATE: &str = "the server's own business";

const VISIT_WANTED: i64 = -32042;

/// The requests to the client that have no answer yet.
#[derive(Default)]
pub(crate) struct Asking(Mutex<State>);

#[derive(Default)]
struct State {
    count: usize,
    waiting: HashMap<String, oneshot::Sender<Value>>,
    /// The addresses that were asked for once.
    visits: Vec<String>,
}

/// The tools as they are listed.
pub(super) fn tools(tool: impl Fn(&str, &str, &Value, &[&str]) -> Value) -> Vec<Value> {
    let string = json!({"type": "string"});
    let object = json!({"type": "object"});
    vec![
        tool(
            "ask",
            "Sends this request to the client, and returns what it answers.",
            &json!({"method": string, "params": object}),
            &["method"],
        ),
        tool(
            "tell",
            "Sends this notification to the client.",
            &json!({"method": string, "params": object}),
            &["method"],
        ),
        tool(
            "visit",
            "Works after somebody has opened this address.",
            &json!({"url": string}),
            &["url"],
        ),
        tool(
            "draw",
            "Returns a picture, a sound and other things.",
            &json!({}),
            &[],
        ),
    ]
}

impl Asking {
    /// Tells whether a message calls one of the tools.
    pub(crate) fn has(message: &Value) -> bool {
        let name = message["params"]["name"].as_str().unwrap_or_default();
        message["method"] == "tools/call" && ["ask", "tell", "visit", "draw"].contains(&name)
    }

    /// Runs one of the tools; `None` if nobody waits for it any more.
    pub(crate) async fn call(
        &self,
        message: &Value,
        is_modern: bool,
        outbox: &Outbox,
    ) -> Option<Outcome> {
        let arguments = &message["params"]["arguments"];
        match message["params"]["name"].as_str()? {
            "ask" => self.ask(message, is_modern, outbox).await,
            "tell" => Some(tell(arguments, outbox)),
            "visit" => Some(self.visit(arguments)),
            _ => Some(Ok(drawing())),
        }
    }

    /// Takes a client's answer to one of our requests.
    pub(crate) fn note(&self, message: &Value) {
        let waiting = self.lock().waiting.remove(&message["id"].to_string());
        if let Some(waiting) = waiting {
            // The call may have been cancelled in between.
            waiting.send(message.clone()).ok();
        }
    }

    async fn ask(&self, message: &Value, is_modern: bool, outbox: &Outbox) -> Option<Outcome> {
        let arguments = &message["params"]["arguments"];
        let Some(method) = arguments["method"].as_str() else {
            return Some(Err(missing("method")));
        };
        if is_modern {
            return Some(ask_in_result(&message["params"], method));
        }
        let (sender, answered) = oneshot::channel();
        let id = {
            let mut state = self.lock();
            state.count += 1;
            let id = json!(format!("ask-{}", state.count));
            state.waiting.insert(id.to_string(), sender);
            id
        };
        let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let Some(params) = arguments.get("params") {
            request["params"] = params.clone();
        }
        outbox.send(request).ok()?;
        let answer = answered.await.ok()?;
        let known = answer.get("result").or_else(|| answer.get("error"));
        Some(Ok(text_result(&known.unwrap_or(&answer).to_string())))
    }

    /// Fails the first time, and asks for a visit.
    fn visit(&self, arguments: &Value) -> Outcome {
        let url = text(arguments, "url")?;
        let mut state = self.lock();
        if state.visits.iter().any(|visited| visited == url) {
            return Ok(text_result("thank you for your visit"));
        }
        state.visits.push(url.to_owned());
        let visit =
            json!({"mode": "url", "url": url, "elicitationId": url, "message": "Please sign in."});
        let error = RpcError::new(VISIT_WANTED, "Somebody has to sign in first");
        Err(error.with_data(json!({"elicitations": [visit]})))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks by means of a result; the client sends the call again with its answer and our state.
fn ask_in_result(params: &Value, method: &str) -> Outcome {
    let Some(responses) = params.get("inputResponses") else {
        let mut request = json!({"method": method});
        if let Some(params) = params["arguments"].get("params") {
            request["params"] = params.clone();
        }
        return Ok(json!({"resultType": "input_required",
            "inputRequests": {KEY: request}, "requestState": STATE}));
    };
    if params["requestState"] == STATE {
        Ok(text_result(&responses[KEY].to_string()))
    } else {
        Err(missing("requestState"))
    }
}

fn tell(arguments: &Value, outbox: &Outbox) -> Outcome {
    let note = notification(text(arguments, "method")?, &arguments["params"]);
    // A client that has left does not mind.
    outbox.send(note).ok();
    Ok(text_result("told"))
}

fn drawing() -> Value {
    json!({"content": [
        {"type": "text", "text": "here:"},
        {"type": "image", "data": PIXEL_BASE64, "mimeType": "image/png"},
        {"type": "audio", "data": "T2dnUw==", "mimeType": "audio/ogg"},
        {"type": "resource", "resource": {"uri": "test://a", "mimeType": "application/pdf", "blob": "JVBERi0="}},
        {"type": "resource", "resource": {"uri": "test://b", "text": "words inside"}},
        {"type": "resource_link", "uri": "test://greeting", "name": "greeting"},
    ]})
}
