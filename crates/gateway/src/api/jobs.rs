//! `/api/jobs`: what runs by itself at set times, as things to list, make, change, hold and run. What a job may be is the
//! desk's to say ([`hermes_core::JobDesk`]); the shapes are those of the known program, and read leniently.

mod request;
mod wording;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{JobError, JobId, JobReading, JobState, Run};
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::Api;
use super::body;
use super::error::{ApiError, ApiResult};
use super::extract::{Asked, Id};
use request::Wish;

/// Runs that are looked at for what jobs came to last: two for each job that there may be.
const RUNS_SEEN_MAX: usize = 1_000;
const HISTORY: usize = 20;
const HISTORY_MAX: usize = 200;

pub(super) async fn list(State(api): State<Arc<Api>>, asked: Asked) -> ApiResult<Json<Value>> {
    // Those that are paused or over come along.
    let wants_all = asked.text("include_disabled")?;
    let wants_all = wants_all.is_some_and(|word| matches!(word, "true" | "1" | "yes" | "on"));
    let jobs = api.parts.jobs.list().await.map_err(refused)?;
    let runs = api.parts.jobs.history(None, RUNS_SEEN_MAX).await;
    let mut last: HashMap<JobId, Run> = HashMap::new();
    for run in runs.map_err(refused)? {
        last.entry(run.job.clone()).or_insert(run);
    }
    let is_shown = |job: &&JobReading| wants_all || job.job.state == JobState::Active;
    let jobs = jobs.iter().filter(is_shown);
    let jobs: Vec<Value> = jobs
        .map(|job| wording::job(job, last.get(&job.job.id)))
        .collect();
    Ok(Json(json!({"object": "list", "jobs": jobs})))
}

pub(super) async fn create(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let wish = Wish::read(&body::json(request).await?)?;
    if wish.draft.schedule.is_none() {
        return Err(ApiError::invalid("a job needs a `schedule`").param("schedule"));
    }
    let mut job = api.parts.jobs.add(wish.draft).await.map_err(refused)?;
    if wish.enabled == Some(false) {
        job = api
            .parts
            .jobs
            .pause(job.job.id.as_str())
            .await
            .map_err(refused)?;
    }
    let told = told_with(&api, &job, &wish.unread).await?;
    Ok((StatusCode::CREATED, told).into_response())
}

pub(super) async fn get(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    told(&api, &job).await
}

pub(super) async fn change(
    State(api): State<Arc<Api>>,
    Id(name): Id,
    request: Request<Body>,
) -> ApiResult<Json<Value>> {
    let wish = Wish::read(&body::json(request).await?)?;
    let mut job = found(&api, &name).await?;
    let (id, desk) = (job.job.id.clone(), &api.parts.jobs);
    if wish.draft != Default::default() {
        job = desk.edit(id.as_str(), wish.draft).await.map_err(refused)?;
    } else if wish.enabled.is_none() {
        return Err(ApiError::invalid("nothing that a job has is to be changed"));
    }
    job = match wish.enabled {
        Some(false) => desk.pause(id.as_str()).await.map_err(refused)?,
        Some(true) if job.job.state != JobState::Active => {
            desk.resume(id.as_str()).await.map_err(refused)?
        }
        _ => job,
    };
    told_with(&api, &job, &wish.unread).await
}

pub(super) async fn delete(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    let removed = api.parts.jobs.remove(job.job.id.as_str()).await;
    let removed = removed.map_err(refused)?;
    Ok(Json(
        json!({"ok": true, "object": "hermes.job.deleted", "id": removed.id, "deleted": true}),
    ))
}

pub(super) async fn pause(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    let job = api.parts.jobs.pause(job.job.id.as_str()).await;
    told(&api, &job.map_err(refused)?).await
}

pub(super) async fn resume(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    let job = api.parts.jobs.resume(job.job.id.as_str()).await;
    told(&api, &job.map_err(refused)?).await
}

/// It runs as soon as may be, beside its schedule. What came of it is its last run.
pub(super) async fn run(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    let job = api.parts.jobs.run(job.job.id.as_str()).await;
    told(&api, &job.map_err(refused)?).await
}

pub(super) async fn history(
    State(api): State<Arc<Api>>,
    Id(name): Id,
    asked: Asked,
) -> ApiResult<Json<Value>> {
    let job = found(&api, &name).await?;
    let limit = asked
        .count("limit")?
        .unwrap_or(HISTORY)
        .clamp(1, HISTORY_MAX);
    let runs = api.parts.jobs.history(Some(job.job.id.as_str()), limit);
    let runs = runs.await.map_err(refused)?;
    let runs: Vec<Value> = runs.iter().map(wording::run).collect();
    Ok(Json(json!({"object": "list", "runs": runs})))
}

/// `POST /api/cron/fire`: a scheduler outside of this machine says that the time of a job has come.
pub(super) async fn fire(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let body: Value = body::json(request).await?;
    let named = ["job_id", "id", "job", "name"];
    let named = named.iter().find_map(|field| body[field].as_str());
    let named = named.ok_or_else(|| {
        ApiError::invalid("`job_id` says which job is to run; those that are due run by themselves")
            .param("job_id")
    })?;
    let job = found(&api, named).await?;
    let id = job.job.id;
    api.parts.jobs.run(id.as_str()).await.map_err(refused)?;
    let told = json!({"status": "accepted", "job_id": id});
    Ok((StatusCode::ACCEPTED, Json(told)).into_response())
}

async fn found(api: &Api, name: &str) -> ApiResult<JobReading> {
    let found = api.parts.jobs.find(name).await;
    found.map_err(|error| match error {
        JobError::Asked { message, hint } => {
            ApiError::not_found(format!("{message}; {hint}")).code("job_not_found")
        }
        JobError::Store(error) => error.into(),
    })
}

/// A job, with what it came to last.
async fn told(api: &Api, job: &JobReading) -> ApiResult<Json<Value>> {
    told_with(api, job, &[]).await
}

/// The same for whoever wrote it, with those of their fields that mean nothing. What was told of a job may be sent back.
async fn told_with(api: &Api, job: &JobReading, unread: &[String]) -> ApiResult<Json<Value>> {
    let runs = api.parts.jobs.history(Some(job.job.id.as_str()), 1).await;
    let runs = runs.map_err(refused)?;
    let mut told = wording::job(job, runs.first());
    let unknown = unread
        .iter()
        .filter(|name| told.get(name.as_str()).is_none());
    let notes: Vec<String> = job
        .notes
        .iter()
        .cloned()
        .chain(unknown.map(unknown_field))
        .collect();
    told["notes"] = notes.into();
    Ok(Json(json!({"job": told})))
}

fn unknown_field(name: &String) -> String {
    format!("`{name}` is no field of a job, and was not looked at")
}

fn refused(error: JobError) -> ApiError {
    match error {
        JobError::Asked { message, hint } => {
            ApiError::invalid(format!("{message}; {hint}")).code("job_refused")
        }
        JobError::Store(error) => error.into(),
    }
}
