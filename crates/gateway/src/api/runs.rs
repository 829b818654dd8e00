//! `/v1/runs`: turns that nobody waits for on one connection. They are watched, answered and stopped by their names.
//!
//! Those of this process are in `known`; what all of them came to is in the store for an hour (`kept`).

mod kept;
mod known;
mod request;
mod wording;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{Timestamp, TurnEnd, Verdict, wording as words};
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};

use super::Api;
use super::body::{self, BODY_BYTES_MAX};
use super::error::{ApiError, ApiResult};
use super::extract::Id;
use super::idempotency::{self, Found};
use super::outcome::Outcome;
use super::run::{self, Ask, Client, Run, RunState};
use super::settings::OnDisconnect;
use super::{chat, content, ids, sse};
pub(crate) use kept::{KeptRun, keeping, under_way};
pub(crate) use known::Runs;
use request::RunRequest;
use wording::RunEvents;

const ROUTE: &str = "/v1/runs";

/// A run by its name: one of this process, or what is kept of one.
enum Known {
    Live(Arc<Run>, String),
    Kept(Box<KeptRun>),
}

async fn known(api: &Api, id: &str) -> ApiResult<Known> {
    if let Some((run, session)) = api.runs.get(id) {
        return Ok(Known::Live(run, session));
    }
    let kept = kept::find(api, id).await?;
    let kept = kept.ok_or_else(|| unknown(id))?;
    Ok(Known::Kept(Box::new(kept)))
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no run `{id}`, or no longer")).code("run_not_found")
}

pub(super) async fn create(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    api.runs.tidy(api.parts.clock.now());
    let headers = request.headers().clone();
    let bytes = body::bytes(request, BODY_BYTES_MAX).await?;
    idempotency::until_settled(|| begin(&api, &headers, &bytes)).await
}

async fn begin(api: &Arc<Api>, headers: &HeaderMap, bytes: &[u8]) -> ApiResult<Response> {
    let request = RunRequest::read(headers, bytes)?;
    content::check_texts(&request.message, api.settings.text_chars_max, "input")?;
    let (which, message) = (request.which(api), request.message.clone());
    let found = idempotency::find(api, headers, ROUTE, bytes, which, message).await?;
    let named = request.named.as_deref();
    let (id, run) = match found {
        Found::UnderWay(key, run) => (run_of(&key), run),
        Found::Answered(key, outcome) => {
            let id = run_of(&key);
            let kept = kept::keep_answer(api, &id, named, *outcome).await?;
            return Ok(begun(&id, &kept.name, kept_status(&kept)));
        }
        Found::New {
            key,
            reservation,
            which,
            say,
        } => {
            let id = match key.as_deref().map(run_of) {
                None => ids::new("run_", 32, &api.parts.random),
                Some(id) => {
                    kept::forget(api, &id).await?;
                    id
                }
            };
            let ask = Ask {
                which,
                options: request.options(api),
                say: *say,
                on_disconnect: OnDisconnect::Detach,
                reservation,
            };
            let at_end = keeping(api, &id, named, api.parts.clock.now());
            let client = run::start(api, ask, at_end).await?;
            (id, Arc::clone(client.run()))
        }
    };
    let session = named.map_or_else(|| run.session.to_string(), str::to_owned);
    api.runs.add(&id, &run, &session);
    kept::note_begun(api, &id, &session, &run).await?;
    Ok(begun(&id, &session, "started"))
}

/// The name of the run that a request with a key begins: always the same.
fn run_of(key: &str) -> String {
    let digest = ids::sha256(&["run\n", key]);
    format!("run_{}", ids::hex(digest.as_ref(), 16))
}

fn begun(id: &str, session: &str, status: &str) -> Response {
    let told =
        json!({"run_id": id, "object": "hermes.run", "status": status, "session_id": session});
    (StatusCode::ACCEPTED, Json(told)).into_response()
}

/// Lets a turn that goes on after a restart be known by the name of its run.
pub(crate) fn take_up(api: &Api, id: &str, kept: &KeptRun, run: &Arc<Run>) {
    api.runs.add(id, run, &kept.name);
}

pub(super) async fn get(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    match known(&api, &id).await? {
        Known::Kept(kept) => {
            let mut told = described(&api, &id, &kept.name, kept.began, kept_status(&kept));
            if let Some(outcome) = &kept.outcome {
                tell_end(&mut told, outcome);
            }
            Ok(Json(told))
        }
        Known::Live(run, session) => {
            let state = run.state();
            let mut told = described(&api, &id, &session, run.began, status(&state));
            told["approvals"] = run.approvals().iter().map(wording::approval).collect();
            if let RunState::Ended(outcome) = state {
                tell_end(&mut told, &outcome);
            }
            Ok(Json(told))
        }
    }
}

fn described(api: &Api, id: &str, session: &str, began: Timestamp, status: &str) -> Value {
    json!({
        "object": "hermes.run",
        "run_id": id,
        "session_id": session,
        "status": status,
        "model": api.settings.model_name,
        "created_at": began.as_millis() / 1000,
        "approvals": [],
    })
}

fn tell_end(told: &mut Value, outcome: &Outcome) {
    told["output"] = outcome.text.clone().into();
    told["usage"] = chat::usage(&outcome.usage);
    told["error"] = outcome.problem().into();
}

fn status(state: &RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::WaitingForApproval => "waiting_for_approval",
        RunState::Stopping => "stopping",
        RunState::Ended(outcome) => ended(outcome),
    }
}

fn kept_status(kept: &KeptRun) -> &'static str {
    match &kept.outcome {
        Some(outcome) => ended(outcome),
        // Another process has it, or is about to.
        None => "running",
    }
}

fn ended(outcome: &Outcome) -> &'static str {
    match outcome.end {
        TurnEnd::Finished => "completed",
        TurnEnd::Interrupted => "cancelled",
        _ => "failed",
    }
}

pub(super) async fn events(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Response> {
    let wording = RunEvents::new(id.clone(), Arc::clone(&api.parts.clock));
    if let Some((run, events)) = api.runs.take_events(&id)? {
        let client = Client::join(&api, &run);
        return Ok(sse::live(client, events, wording, api.settings.keepalive));
    }
    let kept = kept::find(&api, &id).await?;
    match kept.ok_or_else(|| unknown(&id))?.outcome {
        Some(outcome) => Ok(sse::again(&outcome, wording)),
        None => Err(elsewhere()),
    }
}

fn elsewhere() -> ApiError {
    ApiError::conflict("this run is being taken up after a restart; try again in a moment")
        .code("run_elsewhere")
        .retry_after(1)
}

pub(super) async fn approve(
    State(api): State<Arc<Api>>,
    Id(id): Id,
    request: Request<Body>,
) -> ApiResult<Json<Value>> {
    let nothing_waits =
        || ApiError::conflict("nothing waits for consent in this run").code("no_pending_approval");
    let run = match known(&api, &id).await? {
        Known::Live(run, _) => run,
        Known::Kept(kept) if kept.outcome.is_some() => return Err(nothing_waits()),
        Known::Kept(_) => return Err(elsewhere()),
    };
    let body: Value = body::json(request).await?;
    let verdict = verdict(&body["choice"])?;
    let mut waiting = run.approvals();
    if let Some(wanted) = body["approval_id"].as_str() {
        waiting.retain(|request| request.approval.as_str() == wanted);
    } else if body["all"] != true {
        waiting.truncate(1);
    }
    if waiting.is_empty() {
        return Err(nothing_waits());
    }
    let mut resolved = Vec::new();
    for request in waiting {
        if !request.choices.contains(&verdict) {
            let message = format!("this cannot be answered with `{}`", words::verdict(verdict));
            return Err(ApiError::invalid(message).param("choice"));
        }
        run.handle.answer(request.approval.clone(), verdict).await;
        resolved.push(request.approval);
    }
    Ok(Json(
        json!({"run_id": id, "resolved": resolved.len(), "approvals": resolved, "choice": body["choice"]}),
    ))
}

fn verdict(choice: &Value) -> ApiResult<Verdict> {
    let choice = choice.as_str().unwrap_or_default().to_lowercase();
    Ok(match choice.as_str() {
        "once" | "approve" | "allow" | "yes" => Verdict::Once,
        "session" => Verdict::Session,
        "always" => Verdict::Always,
        "deny" | "reject" | "no" => Verdict::Deny,
        _ => {
            let message = "`choice` must be one of `once`, `session`, `always`, `deny`";
            return Err(ApiError::invalid(message).param("choice"));
        }
    })
}

pub(super) async fn stop(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    let status = match known(&api, &id).await? {
        Known::Live(run, _) => {
            run.stop().await;
            status(&run.state())
        }
        Known::Kept(kept) if kept.outcome.is_some() => kept_status(&kept),
        Known::Kept(_) => return Err(elsewhere()),
    };
    Ok(Json(json!({"run_id": id, "status": status})))
}
