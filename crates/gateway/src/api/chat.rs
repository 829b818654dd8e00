//! `POST /v1/chat/completions`.

mod request;
mod wording;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{Message, SessionId, TurnEnd};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::{Value, json};

use super::Api;
use super::body::{self, BODY_BYTES_MAX};
use super::error::{ApiError, ApiResult};
use super::idempotency::{self, Found};
use super::ids::{self, SESSION_ID, SESSION_KEY};
use super::outcome::Outcome;
use super::pool::Which;
use super::run::{self, Ask, AtEnd, Client};
use super::settings::OnDisconnect;
use super::{content, sse};
use request::ChatRequest;
use wording::Chunks;
pub(super) use wording::usage;

const ROUTE: &str = "/v1/chat/completions";
const COMPLETED: HeaderName = HeaderName::from_static("x-hermes-completed");
const PARTIAL: HeaderName = HeaderName::from_static("x-hermes-partial");
const ERROR: HeaderName = HeaderName::from_static("x-hermes-error");

/// What an answer is told with.
struct Answering {
    api: Arc<Api>,
    request: ChatRequest,
    /// The conversation, as the client named it.
    name: Option<String>,
    /// The one that was found by what was said.
    found: Option<SessionId>,
    /// Of the answer.
    id: String,
}

pub(super) async fn complete(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let headers = request.headers().clone();
    let bytes = body::bytes(request, BODY_BYTES_MAX).await?;
    idempotency::until_settled(|| answer(&api, &headers, &bytes)).await
}

async fn answer(api: &Arc<Api>, headers: &HeaderMap, bytes: &[u8]) -> ApiResult<Response> {
    let request = ChatRequest::read(bytes)?;
    content::check_texts(&request.message, api.settings.text_chars_max, "messages")?;
    let named = ids::header(headers, &SESSION_ID)?;
    let person = ids::header(headers, &SESSION_KEY)?;
    let id = idempotency::name_of_answer(api, headers, "chatcmpl-", 29, bytes)?;
    let which = which(api, &request, named.as_deref());
    let answering = Answering {
        found: match &which {
            Which::Existing(session) => Some(session.clone()),
            _ => None,
        },
        name: named,
        api: Arc::clone(api),
        id,
        request,
    };
    match answering.find(headers, bytes, which, person).await {
        Ok(Answered::New(client)) => answering.joined(client).await,
        Ok(Answered::UnderWay(client)) => {
            answering.put_back();
            answering.joined(client).await
        }
        Ok(Answered::Before(outcome)) => {
            answering.put_back();
            Ok(answering.again(&outcome))
        }
        // One that is gone is not to be found again.
        Err(error) if error.is_not_found() => Err(error),
        Err(error) => {
            answering.put_back();
            Err(error)
        }
    }
}

/// What answers a request.
enum Answered {
    /// A turn that began for it.
    New(Client),
    /// One that was under way.
    UnderWay(Client),
    Before(Box<Outcome>),
}

/// The conversation that is meant: the one that is named, or the one in which just this was said.
fn which(api: &Api, request: &ChatRequest, named: Option<&str>) -> Which {
    if let Some(name) = named {
        return Which::Named(ids::session(name));
    }
    let system = request.system.as_deref().unwrap_or_default();
    if let Some(session) = api.continuations.take(system, &request.history) {
        return Which::Existing(session);
    }
    let first = request.history.iter().find(|message| message.begins_turn());
    let first = first.map_or_else(|| request.said().text(), Message::text);
    Which::New {
        id: ids::new_session(system, &first, &api.parts.random),
        said: request.history.clone(),
    }
}

impl Answering {
    /// Finds what the request was answered with, or begins the turn that answers it.
    async fn find(
        &self,
        headers: &HeaderMap,
        bytes: &[u8],
        which: Which,
        person: Option<String>,
    ) -> ApiResult<Answered> {
        let api = &self.api;
        let message = self.request.message.clone();
        let found = idempotency::find(api, headers, ROUTE, bytes, which, message).await?;
        let (reservation, which, say) = match found {
            Found::UnderWay(_, run) => return Ok(Answered::UnderWay(Client::join(api, &run))),
            Found::Answered(_, outcome) => return Ok(Answered::Before(outcome)),
            Found::New {
                reservation,
                which,
                say,
                ..
            } => (reservation, which, *say),
        };
        let session = which.id().clone();
        let mut options = api.settings.options.clone();
        options.notes = self.request.system.iter().cloned().collect();
        options.person = person;
        let ask = Ask {
            which,
            options,
            say,
            on_disconnect: match reservation {
                // Who sends a key means to come back.
                Some(_) => OnDisconnect::Detach,
                None => api.settings.on_disconnect,
            },
            reservation,
        };
        let client = run::start(api, ask, self.noting(&session)).await?;
        Ok(Answered::New(client))
    }

    /// Nothing is said in the conversation that was found: it stays to be found.
    fn put_back(&self) {
        if let Some(session) = &self.found {
            let system = self.request.system.as_deref().unwrap_or_default();
            let said = &self.request.history;
            self.api.continuations.note(system, said, session);
        }
    }

    /// Notes what was said, so that a client finds the conversation by it: as a stream shows it, and as an answer.
    fn noting(&self, session: &SessionId) -> AtEnd {
        let (api, session) = (Arc::clone(&self.api), session.clone());
        let system = self.request.system.clone().unwrap_or_default();
        let mut said = self.request.history.clone();
        said.push(self.request.said());
        Box::new(move |outcome| {
            Box::pin(async move {
                if outcome.end != TurnEnd::Finished {
                    return;
                }
                said.push(Message::assistant(outcome.text.clone()));
                api.continuations.note(&system, &said, &session);
                let shown = outcome.shown();
                if shown != outcome.text {
                    said.pop();
                    said.push(Message::assistant(shown));
                    api.continuations.note(&system, &said, &session);
                }
            })
        })
    }

    async fn joined(self, client: Client) -> ApiResult<Response> {
        if self.request.stream {
            let events = client.run().events();
            let session = client.run().session.clone();
            let (wording, keepalive) = (self.chunks(&session), self.api.settings.keepalive);
            let response = sse::live(client, events, wording, keepalive);
            return Ok(self.named(response, &session));
        }
        let outcome = client.run().outcome().await;
        Ok(self.whole(&outcome))
    }

    /// An answer that was given before.
    fn again(&self, outcome: &Outcome) -> Response {
        if self.request.stream {
            let response = sse::again(outcome, self.chunks(&outcome.session));
            return self.named(response, &outcome.session);
        }
        self.whole(outcome)
    }

    /// What the client knows a conversation by: the name that it gave, or that it gets.
    fn name_of(&self, session: &SessionId) -> String {
        self.name.clone().unwrap_or_else(|| session.to_string())
    }

    fn chunks(&self, session: &SessionId) -> Chunks {
        let (id, name) = (self.id.clone(), self.name_of(session));
        Chunks::new(id, self.created(), &self.request, name)
    }

    fn created(&self) -> i64 {
        self.api.parts.clock.now().as_millis() / 1000
    }

    fn whole(&self, outcome: &Outcome) -> Response {
        let problem = outcome.problem();
        let mut response = match &problem {
            Some(problem) if outcome.is_failure() => ApiError::incomplete(problem).into_response(),
            _ => Json(self.completion(outcome)).into_response(),
        };
        let headers = response.headers_mut();
        let word = |is: bool| HeaderValue::from_static(if is { "true" } else { "false" });
        headers.insert(COMPLETED, word(problem.is_none()));
        headers.insert(PARTIAL, word(problem.is_some() && !outcome.is_failure()));
        if let Some(problem) = problem {
            insert_text(headers, ERROR, &problem);
        }
        self.named(response, &outcome.session)
    }

    fn completion(&self, outcome: &Outcome) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created(),
            "model": self.request.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": outcome.text, "refusal": null},
                "logprobs": null,
                "finish_reason": wording::finish_reason(&outcome.end),
            }],
            "usage": wording::usage(&outcome.usage),
            "hermes": wording::about(outcome, &self.name_of(&outcome.session)),
        })
    }

    fn named(&self, mut response: Response, session: &SessionId) -> Response {
        insert_text(response.headers_mut(), SESSION_ID, &self.name_of(session));
        response
    }
}

/// Headers hold one line of ASCII.
fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    const CHARS_MAX: usize = 400;
    let plain = text
        .chars()
        .map(|c| if (' '..='~').contains(&c) { c } else { '?' });
    let plain: String = plain.take(CHARS_MAX).collect();
    if let Ok(value) = HeaderValue::from_str(&plain) {
        headers.insert(name, value);
    }
}
