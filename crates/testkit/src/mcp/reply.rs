//! What is sent for a request, decided before a byte of it is written: every refusal and every
//! fault as data. [`Reply::send`] only writes.

use std::{collections::BTreeMap, io};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{
    bomb,
    fault::{Endless, FOREIGN_ID, Fault, OddId, SessionLoss, WrongId},
    rpc::{RpcError, response},
};
use crate::server::{
    http::{self, Connection},
    play::{self, After, Finale},
};

pub(crate) const EVENT_STREAM: &str = "text/event-stream";

pub(crate) const NO_VALID_SESSION: &str = "Bad Request: No valid session ID provided";

/// Soon, so that tests of resumption are quick, but not at once.
const RETRY_MS: u32 = 50;

/// Unpacked, more than any client should hold.
const BOMB_MEGABYTES: usize = 100;

/// So much of an endless body is written at once.
const ENDLESS_REPEATS: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Body,
    finale: Finale,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    /// Nothing is sent, not even a head.
    Unsent,
    /// A string is sent as plain text, anything else as JSON.
    Whole(Value),
    /// The head promises this body, but only so many bytes of it follow.
    Cut {
        text: String,
        bytes_sent: usize,
    },
    Events(Vec<String>),
    Packed(Vec<u8>),
    /// This, and then that over and over, until the client leaves.
    Endless {
        start: &'static str,
        again: &'static str,
    },
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::new(status, Body::Whole(body))
    }

    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::json(status, text.into())
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::text(status, "")
    }

    pub(crate) fn events(events: Vec<String>) -> Self {
        Self::new(200, Body::Events(events)).header("content-type", EVENT_STREAM)
    }

    pub(crate) fn error(status: u16, id: &Value, error: RpcError) -> Self {
        Self::json(status, response(id, Err(error)))
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    fn new(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: BTreeMap::new(),
            body,
            finale: Finale::End,
        }
    }

    fn unsent(finale: Finale) -> Self {
        Self::new(0, Body::Unsent).then(finale)
    }

    fn cut(text: String, bytes_sent: usize, finale: Finale) -> Self {
        Self::new(200, Body::Cut { text, bytes_sent })
            .header("content-type", "application/json")
            .then(finale)
    }

    fn endless(endless: Endless) -> Self {
        let (content_type, start, again) = match endless {
            Endless::Json => ("application/json", r#"{"jsonrpc":"2.0","result":""#, "x"),
            Endless::Event => (EVENT_STREAM, "data: ", "x"),
            Endless::Comments => (EVENT_STREAM, "", ": still there\n\n"),
        };
        Self::new(200, Body::Endless { start, again }).header("content-type", content_type)
    }

    fn then(mut self, finale: Finale) -> Self {
        self.finale = finale;
        self
    }

    pub(crate) async fn send(self, connection: &mut Connection) -> io::Result<After> {
        let mut headers = self.headers;
        match self.body {
            Body::Unsent => {}
            Body::Whole(body) => {
                http::write_response(connection, self.status, headers, &body).await?;
            }
            Body::Cut { text, bytes_sent } => {
                headers.insert("content-length".into(), text.len().to_string());
                let sent = http::head(self.status, &headers) + &text[..bytes_sent];
                connection.write_all(sent.as_bytes()).await?;
            }
            Body::Events(events) => {
                headers.insert("transfer-encoding".into(), "chunked".into());
                let mut sent = http::head(self.status, &headers).into_bytes();
                for event in events {
                    play::push_http_chunk(&mut sent, event.as_bytes());
                }
                if self.finale == Finale::End {
                    sent.extend_from_slice(play::LAST_CHUNK);
                }
                connection.write_all(&sent).await?;
            }
            Body::Packed(bytes) => {
                headers.insert("content-length".into(), bytes.len().to_string());
                let head = http::head(self.status, &headers);
                connection.write_all(head.as_bytes()).await?;
                connection.write_all(&bytes).await?;
            }
            Body::Endless { start, again } => {
                headers.insert("transfer-encoding".into(), "chunked".into());
                let mut sent = http::head(self.status, &headers).into_bytes();
                play::push_http_chunk(&mut sent, start.as_bytes());
                connection.write_all(&sent).await?;
                let mut more = Vec::new();
                play::push_http_chunk(&mut more, again.repeat(ENDLESS_REPEATS).as_bytes());
                loop {
                    connection.write_all(&more).await?;
                }
            }
        }
        play::finish(connection, self.finale).await
    }
}

/// Returns the event that carries a message.
pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Returns what a server of this kind says to a request of a session it does not know.
pub(crate) fn session_lost(loss: SessionLoss, request: &Value) -> Reply {
    const TEXT: &str = "Session not found";
    let own = &request["id"];
    let null = &Value::Null;
    let rpc = |status, id: &Value, code, message: &str| {
        Reply::error(status, id, RpcError::new(code, message))
    };
    match loss {
        SessionLoss::NotFound => rpc(404, null, -32001, TEXT),
        SessionLoss::NotFoundEmpty => Reply::empty(404),
        SessionLoss::NotFoundInvalidRequest => rpc(404, null, -32600, TEXT),
        SessionLoss::NotFoundServerError => rpc(404, &"server-error".into(), -32600, TEXT),
        SessionLoss::BadRequest => rpc(400, null, -32000, NO_VALID_SESSION),
        SessionLoss::BadRequestNoId => Reply::json(
            400,
            without_id(response(null, Err(RpcError::new(-32000, NO_VALID_SESSION)))),
        ),
        SessionLoss::BadRequestText => Reply::text(400, NO_VALID_SESSION),
        SessionLoss::Unauthorized => Reply::text(401, TEXT),
        SessionLoss::Conflict => rpc(409, null, -32000, "Conflict: session expired"),
        SessionLoss::Gone => Reply::text(410, "Session expired"),
        SessionLoss::Unavailable => Reply::text(503, "Unknown session on this instance"),
        SessionLoss::InvalidParams => {
            let text = "Invalid params: Invalid or expired session";
            rpc(200, own, -32602, text)
        }
        SessionLoss::InternalError => rpc(200, own, -32603, TEXT),
        SessionLoss::ToolError if request["method"] == "tools/call" => {
            let result = json!({"content": [{"type": "text", "text": TEXT}], "isError": true});
            Reply::json(200, response(own, Ok(result)))
        }
        SessionLoss::ToolError => rpc(200, own, -32603, TEXT),
    }
}

/// What a fault needs to know of the request it strikes.
pub(crate) struct Struck<'a> {
    pub(crate) request: &'a Value,
    /// The right answer; `Null` if the request was not executed.
    pub(crate) answer: Value,
    pub(crate) port: u16,
    /// The id under which the answer can be had later.
    pub(crate) event_id: &'a str,
}

/// Returns what is sent instead of, or around, the right answer.
pub(crate) fn faulty(fault: &Fault, struck: Struck<'_>) -> Reply {
    let Struck {
        request,
        answer,
        port,
        event_id,
    } = struck;
    match fault {
        Fault::SessionLost(loss) => session_lost(*loss, request),
        Fault::Unauthorized => Reply::text(401, "Unauthorized").header(
            "www-authenticate",
            r#"Bearer error="invalid_token", error_description="the token expired""#,
        ),
        Fault::InsufficientScope => Reply::text(403, "Forbidden").header(
            "www-authenticate",
            r#"Bearer error="insufficient_scope", scope="write""#,
        ),
        Fault::Status {
            status,
            retry_after,
        } => {
            let reply = Reply::text(*status, &format!("refused with {status}"));
            match retry_after {
                Some(when) => reply.header("retry-after", when),
                None => reply,
            }
        }
        Fault::Refusal {
            status,
            code,
            message,
        } => Reply::error(*status, &request["id"], RpcError::new(*code, message)),
        Fault::ErrorWithId { status, id } => Reply::json(*status, error_with(*id)),
        Fault::RedirectSameOrigin => Reply::empty(307).header("location", "/mcp/"),
        Fault::RedirectCrossOrigin => {
            Reply::empty(307).header("location", format!("http://localhost:{port}/mcp"))
        }
        Fault::ForeignEndpoint => Reply::events(vec![format!(
            "event: endpoint\ndata: http://localhost:{port}/messages?session=x\n\n"
        )])
        .then(Finale::Stall),
        Fault::Html => Reply::text(200, "<!doctype html><title>Sign in</title>")
            .header("content-type", "text/html; charset=utf-8"),
        Fault::CaptivePortal => Reply::text(302, "<!doctype html><title>Sign in</title>")
            .header("content-type", "text/html")
            .header("location", "http://portal.example/login"),
        Fault::Endless(endless) => Reply::endless(*endless),
        Fault::DecompressionBomb => Reply::new(200, Body::Packed(bomb::gzip(BOMB_MEGABYTES)))
            .header("content-type", "application/json")
            .header("content-encoding", "gzip"),
        Fault::Reset => Reply::unsent(Finale::Reset),
        Fault::Hang => Reply::unsent(Finale::Stall),
        Fault::HangAfterHeaders => Reply::cut(some_answer(&answer), 0, Finale::Stall),
        Fault::Truncated => Reply::cut(some_answer(&answer), 10, Finale::Truncate),
        Fault::SseEmpty => Reply::events(Vec::new()),
        Fault::SseSilent => Reply::events(Vec::new()).then(Finale::Stall),
        Fault::SseResumable => Reply::events(vec![format!(
            "id: {event_id}\nretry: {RETRY_MS}\ndata:\n\n"
        )]),
        Fault::HugeBodyMb(megabytes) => Reply::json(200, padded(answer, *megabytes)),
        Fault::DuplicateResponse => Reply::events(vec![event(&answer); 2]),
        Fault::StrayResponse => Reply::events(vec![
            event(&OddId::Foreign.put_into(answer.clone())),
            event(&answer),
        ]),
        Fault::AnswerWithId(id) => Reply::json(200, id.put_into(answer)),
        Fault::WrongContentType => {
            Reply::json(200, answer).header("content-type", "text/plain; charset=utf-8")
        }
        Fault::Result(result) => {
            let mut answer = answer;
            answer["result"] = result.clone();
            Reply::json(200, answer)
        }
        Fault::DelayMs(_) => Reply::json(200, answer),
    }
}

/// Returns a body to break off, which has to look like an answer even if there is none.
fn some_answer(answer: &Value) -> String {
    match answer {
        Value::Null => r#"{"jsonrpc":"2.0","result":{}}"#.to_owned(),
        answer => answer.to_string(),
    }
}

fn error_with(id: WrongId) -> Value {
    let error = |id: Value| response(&id, Err(RpcError::new(-32603, "Internal error")));
    match id {
        WrongId::Null => error(Value::Null),
        WrongId::Foreign => error(FOREIGN_ID.into()),
        WrongId::Missing => without_id(error(Value::Null)),
    }
}

fn without_id(mut message: Value) -> Value {
    if let Some(members) = message.as_object_mut() {
        members.shift_remove("id");
    }
    message
}

/// Adds so many megabytes to the result where every client may ignore them.
pub(crate) fn padded(mut answer: Value, megabytes: usize) -> Value {
    answer["result"]["_meta"] = json!({"padding": "x".repeat(megabytes << 20)});
    answer
}
