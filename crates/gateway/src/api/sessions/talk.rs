//! What is said in a session, and its answer: whole, or as it comes.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use hermes_core::{Message, SessionId, UserMessage};
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use super::wording::SessionEvents;
use super::{made, name};
use crate::api::error::{ApiError, ApiResult};
use crate::api::extract::Id;
use crate::api::idempotency::{self, Found};
use crate::api::outcome::Outcome;
use crate::api::pool::Which;
use crate::api::run::{self, Ask, Client};
use crate::api::settings::OnDisconnect;
use crate::api::{Api, body, chat as completions, content, ids, sse};

/// Says something in a session and waits for the answer.
pub(in crate::api) async fn chat(
    State(api): State<Arc<Api>>,
    Id(id): Id,
    request: Request<Body>,
) -> ApiResult<Response> {
    let request = ChatRequest::read(id, "chat", request).await?;
    let outcome = match idempotency::until_settled(|| say(&api, &request)).await? {
        Said::Now(client) => client.run().outcome().await,
        Said::Before(outcome) => Arc::from(outcome),
    };
    if let Some(problem) = outcome.problem().filter(|_| outcome.is_failure()) {
        return Err(ApiError::incomplete(problem));
    }
    Ok(Json(json!({
        "object": "hermes.session.chat.completion",
        "session_id": request.id,
        "message": {"role": "assistant", "content": outcome.text},
        "usage": completions::usage(&outcome.usage),
        "error": outcome.problem(),
    }))
    .into_response())
}

/// The same, as it comes.
pub(in crate::api) async fn chat_stream(
    State(api): State<Arc<Api>>,
    Id(id): Id,
    request: Request<Body>,
) -> ApiResult<Response> {
    let request = ChatRequest::read(id, "chat/stream", request).await?;
    let said = idempotency::until_settled(|| say(&api, &request)).await?;
    let run = ids::new("run_", 32, &api.parts.random);
    let wording = SessionEvents::new(request.id, run, Arc::clone(&api.parts.clock));
    Ok(match said {
        Said::Now(client) => {
            let events = client.run().events();
            sse::live(client, events, wording, api.settings.keepalive)
        }
        Said::Before(outcome) => sse::again(&outcome, wording),
    })
}

/// What is to be said in a session.
struct ChatRequest {
    /// The session, as the client names it.
    id: String,
    session: SessionId,
    route: String,
    headers: HeaderMap,
    bytes: Bytes,
}

/// What comes of it.
enum Said {
    Now(Client),
    /// It was answered before.
    Before(Box<Outcome>),
}

impl ChatRequest {
    async fn read(id: String, verb: &str, request: Request<Body>) -> ApiResult<Self> {
        let session = name(&id)?;
        let headers = request.headers().clone();
        let bytes = body::bytes(request, body::BODY_BYTES_MAX).await?;
        Ok(Self {
            route: format!("/api/sessions/{session}/{verb}"),
            id,
            session,
            headers,
            bytes,
        })
    }
}

/// The message, and what the program that it is sent through wants.
fn message(bytes: &[u8]) -> ApiResult<(UserMessage, Option<String>)> {
    let body: Value = body::parsed(bytes)?;
    let (said, place) = match &body["message"] {
        Value::Null => (&body["input"], "input"),
        message => (message, "message"),
    };
    let message = UserMessage::of(content::parts(said, place)?);
    if Message::from(message.clone()).text().trim().is_empty() && message.parts.is_empty() {
        return Err(ApiError::invalid("`message` is empty").param("message"));
    }
    let system = body["system_message"].as_str();
    let system = system.or_else(|| body["instructions"].as_str());
    Ok((message, system.map(str::to_owned)))
}

async fn say(api: &Arc<Api>, request: &ChatRequest) -> ApiResult<Said> {
    let (headers, session) = (&request.headers, &request.session);
    let person = ids::header(headers, &ids::SESSION_KEY)?;
    let (message, system) = message(&request.bytes)?;
    content::check_texts(&message, api.settings.text_chars_max, "message")?;
    let made = match api.parts.archive.record(session).await {
        Ok(_) => None,
        Err(error) => Some(made(api, session).await?.ok_or(error)?),
    };
    let which = Which::Named(session.clone());
    let found = idempotency::find(api, headers, &request.route, &request.bytes, which, message);
    let (reservation, which, say) = match found.await? {
        Found::UnderWay(_, run) => return Ok(Said::Now(Client::join(api, &run))),
        Found::Answered(_, outcome) => return Ok(Said::Before(outcome)),
        Found::New {
            reservation,
            which,
            say,
            ..
        } => (reservation, which, *say),
    };
    let mut options = api.settings.options.clone();
    options.notes = system.into_iter().collect();
    options.person = person;
    options.title = made.and_then(|made| made.value);
    let ask = Ask {
        which,
        options,
        say,
        on_disconnect: match reservation {
            Some(_) => OnDisconnect::Detach,
            None => api.settings.on_disconnect,
        },
        reservation,
    };
    Ok(Said::Now(run::start(api, ask, run::nothing()).await?))
}
