//! `/v1/responses`: OpenAI's newer dialect, with answers that are kept and can be gone on from.

mod request;
mod wording;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{Claimed, Message, Record, RecordKey, Role, SessionId, StoreError, TurnId};
use http::HeaderMap;
use http::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Api;
use super::body::{self, BODY_BYTES_MAX};
use super::error::{ApiError, ApiResult};
use super::extract::Id;
use super::idempotency::{self, Found};
use super::ids;
use super::outcome::Outcome;
use super::pool::Which;
use super::run::{self, Ask, AtEnd, Client};
use super::settings::OnDisconnect;
use super::{content, sse};
use request::{Before, ResponseRequest};
use wording::ResponseEvents;

const ROUTE: &str = "/v1/responses";
const SCOPE: &str = "api.response";
/// Which answer is the newest of a conversation: going on from another one is a branch.
const NEWEST: &str = "api.response.newest";
/// As long as OpenAI keeps them.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// An answer that can be asked for again.
#[derive(Serialize, Deserialize)]
struct KeptResponse {
    session: SessionId,
    turn: Option<TurnId>,
    response: Value,
}

/// What an answer is told with.
#[derive(Clone)]
struct Answering {
    api: Arc<Api>,
    request: Arc<ResponseRequest>,
    id: String,
    created: i64,
    /// The conversation, as a header of the client names it.
    named: Option<String>,
}

pub(super) async fn create(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let headers = request.headers().clone();
    let bytes = body::bytes(request, BODY_BYTES_MAX).await?;
    idempotency::until_settled(|| answer(&api, &headers, &bytes)).await
}

async fn answer(api: &Arc<Api>, headers: &HeaderMap, bytes: &[u8]) -> ApiResult<Response> {
    let named = ids::header(headers, &ids::SESSION_ID)?;
    let request = ResponseRequest::read(bytes, named.as_deref())?;
    content::check_texts(&request.message, api.settings.text_chars_max, "input")?;
    let person = ids::header(headers, &ids::SESSION_KEY)?;
    let which = which(api, &request).await?;
    let mut answering = Answering {
        id: idempotency::name_of_answer(api, headers, "resp_", 28, bytes)?,
        created: api.parts.clock.now().as_millis() / 1000,
        named,
        request: Arc::new(request),
        api: Arc::clone(api),
    };
    let message = answering.request.message.clone();
    let found = idempotency::find(api, headers, ROUTE, bytes, which, message).await?;
    let (reservation, which, say) = match found {
        Found::UnderWay(_, run) => return answering.joined(Client::join(api, &run)).await,
        Found::Answered(_, outcome) => {
            answering.keep_again(&outcome).await?;
            return Ok(answering.again(&outcome));
        }
        Found::New {
            reservation,
            which,
            say,
            ..
        } => (reservation, which, *say),
    };
    let mut options = api.settings.options.clone();
    options.notes = answering.request.instructions.iter().cloned().collect();
    options.person = person;
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
    let client = run::start(api, ask, answering.keeping()).await?;
    answering.joined(client).await
}

pub(super) async fn get(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    Ok(Json(kept(&api, &id).await?.response))
}

pub(super) async fn delete(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    let key = RecordKey::new(SCOPE, id.clone());
    if !api.parts.records.remove_record(key).await? {
        return Err(unknown(&id));
    }
    Ok(Json(
        json!({"id": id, "object": "response.deleted", "deleted": true}),
    ))
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no response `{id}`, or no longer"))
        .code("response_not_found")
}

async fn kept(api: &Api, id: &str) -> ApiResult<KeptResponse> {
    let now = api.parts.clock.now();
    let record = api
        .parts
        .records
        .record_at(RecordKey::new(SCOPE, id), now)
        .await?;
    let value = record
        .and_then(|record| record.value)
        .ok_or_else(|| unknown(id))?;
    serde_json::from_str(&value)
        .map_err(|error| ApiError::internal(format!("what was kept cannot be read: {error}")))
}

/// The conversation that an answer goes on with.
async fn which(api: &Api, request: &ResponseRequest) -> ApiResult<Which> {
    let new = |said: Vec<Message>| {
        let system = request.instructions.as_deref().unwrap_or_default();
        let text = Message::from(request.message.clone()).text();
        let first = said.first().map_or(text, Message::text);
        Which::New {
            id: ids::new_session(system, &first, &api.parts.random),
            said,
        }
    };
    match &request.before {
        Before::Nothing => Ok(new(request.history.clone())),
        Before::Conversation(name) => Ok(Which::Named(ids::session(name))),
        Before::Response(id) => {
            let kept = kept(api, id).await?;
            let newest = RecordKey::new(NEWEST, kept.session.as_str());
            let newest = api
                .parts
                .records
                .record_at(newest, api.parts.clock.now())
                .await?;
            if newest.and_then(|record| record.value).as_deref() == Some(id) {
                return Ok(Which::Existing(kept.session));
            }
            let said = said_until(api, &kept).await?;
            Ok(new(said))
        }
    }
}

/// What users and the assistant said up to an answer.
async fn said_until(api: &Api, kept: &KeptResponse) -> ApiResult<Vec<Message>> {
    let lines = api.parts.archive.transcript(&kept.session).await?;
    let is_it = |turn: &Option<TurnId>| kept.turn.is_some() && *turn == kept.turn;
    let last = lines.iter().rposition(|line| is_it(&line.turn));
    let lines = lines.into_iter().take(last.map_or(usize::MAX, |at| at + 1));
    let spoken = lines.map(|line| line.message);
    let spoken = spoken.filter(|message| message.begins_turn() || message.role == Role::Assistant);
    let plain = spoken.map(|message| match message.role {
        Role::User => Message::user(message.said()),
        _ => Message::assistant(message.text()),
    });
    Ok(plain.filter(|message| !message.text().is_empty()).collect())
}

impl Answering {
    /// Keeps the answer before anybody is told that it is complete.
    fn keeping(&self) -> AtEnd {
        let answering = self.clone();
        Box::new(move |outcome| {
            Box::pin(async move {
                if !answering.request.store {
                    return;
                }
                if let Err(error) = answering.keep(&outcome).await {
                    tracing::error!("a response was not kept: {error}");
                }
            })
        })
    }

    async fn keep(&self, outcome: &Outcome) -> Result<(), StoreError> {
        let records = &self.api.parts.records;
        let value = self.record(self.kept(outcome));
        records.put_record(self.key(), value).await?;
        let newest = RecordKey::new(NEWEST, outcome.session.as_str());
        let id = self.record(Some(self.id.clone()));
        records.put_record(newest, id).await
    }

    /// Tells what was answered before as it was kept then. One that was finished after a crash was not: its name was not
    /// known there, and others may have come after it since.
    async fn keep_again(&mut self, outcome: &Outcome) -> Result<(), StoreError> {
        if !self.request.store {
            return Ok(());
        }
        let value = self.record(self.kept(outcome));
        let claim = self.api.parts.records.claim_record(self.key(), value);
        if let Claimed::Held(record) = claim.await?
            && let Some(kept) = record.value
            && let Ok(kept) = serde_json::from_str::<KeptResponse>(&kept)
        {
            self.created = kept.response["created_at"].as_i64().unwrap_or(self.created);
        }
        Ok(())
    }

    fn key(&self) -> RecordKey {
        RecordKey::new(SCOPE, self.id.clone())
    }

    fn kept(&self, outcome: &Outcome) -> Option<String> {
        let kept = KeptResponse {
            session: outcome.session.clone(),
            turn: outcome.turn.clone(),
            response: self.body(outcome),
        };
        serde_json::to_string(&kept).ok()
    }

    fn record(&self, value: Option<String>) -> Record {
        let created = self.api.parts.clock.now();
        Record {
            fingerprint: String::new(),
            value,
            created,
            expires: created.plus(KEPT),
        }
    }

    fn body(&self, outcome: &Outcome) -> Value {
        wording::whole(&self.request, &self.id, self.created, outcome)
    }

    async fn joined(self, client: Client) -> ApiResult<Response> {
        if self.request.stream {
            let events = client.run().events();
            let keepalive = self.api.settings.keepalive;
            let session = client.run().session.clone();
            let response = sse::live(client, events, self.events(), keepalive);
            return Ok(self.named(response, &session));
        }
        let outcome = client.run().outcome().await;
        Ok(self.whole(&outcome))
    }

    fn again(&self, outcome: &Outcome) -> Response {
        if self.request.stream {
            let response = sse::again(outcome, self.events());
            return self.named(response, &outcome.session);
        }
        self.whole(outcome)
    }

    fn whole(&self, outcome: &Outcome) -> Response {
        let response = match outcome.problem() {
            Some(problem) if outcome.is_failure() => ApiError::incomplete(problem).into_response(),
            _ => Json(self.body(outcome)).into_response(),
        };
        self.named(response, &outcome.session)
    }

    fn events(&self) -> ResponseEvents {
        ResponseEvents::new(Arc::clone(&self.request), self.id.clone(), self.created)
    }

    /// Tells the client the name that it gave, or that the conversation has.
    fn named(&self, mut response: Response, session: &SessionId) -> Response {
        let name = self.named.as_deref().unwrap_or(session.as_str());
        if let Ok(value) = name.parse() {
            response.headers_mut().insert(ids::SESSION_ID, value);
        }
        response
    }
}
