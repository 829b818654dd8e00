//! `/api/sessions`: conversations as things to list, read, name, copy and talk in.

mod ending;
mod talk;
mod wording;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{Record, RecordKey, SessionFilter, SessionId, SessionRecord, StoreError};
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::Api;
use super::error::{ApiError, ApiResult};
use super::extract::{Asked, Id};
use super::{body, ids};
pub(super) use talk::{chat, chat_stream};

const LISTED: usize = 50;
const LISTED_MAX: usize = 200;
/// A title is one line of a list.
const TITLE_CHARS_MAX: usize = 400;
/// Sessions that were made and in which nothing was said: they are written down with their first message.
const SCOPE: &str = "api.session";
const UNUSED_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) async fn list(State(api): State<Arc<Api>>, asked: Asked) -> ApiResult<Json<Value>> {
    let limit = asked.count("limit")?.unwrap_or(LISTED).clamp(1, LISTED_MAX);
    let offset = asked.count("offset")?.unwrap_or(0);
    let filter = SessionFilter {
        source: asked.text("source")?.map(str::to_owned),
        limit: offset.saturating_add(limit).saturating_add(1),
        ..SessionFilter::default()
    };
    let found = api.parts.archive.list(filter).await?;
    let has_more = found.len() > offset.saturating_add(limit);
    let data = found.iter().skip(offset).take(limit).map(described);
    let data: Vec<Value> = data.collect();
    Ok(Json(
        json!({"object": "list", "data": data, "limit": limit, "offset": offset, "has_more": has_more}),
    ))
}

fn described(record: &SessionRecord) -> Value {
    json!({
        "id": record.id,
        "object": "hermes.session",
        "title": record.title,
        "preview": record.preview,
        "source": record.source,
        "model": record.model.to_string(),
        "parent_session_id": record.parent,
        "started_at": record.created.as_millis() / 1000,
        "last_active": record.updated.as_millis() / 1000,
        "message_count": record.messages,
        "tool_call_count": record.calls,
        "input_tokens": record.usage.total() - record.usage.output,
        "output_tokens": record.usage.output,
        "estimated_cost_usd": record.cost_micro_usd.map(|cost| cost as f64 / 1e6),
        "is_active": record.has_open_turn,
    })
}

/// What is known of a session in which nothing was said yet.
fn unused(id: &SessionId, title: Option<&str>, created: i64) -> Value {
    json!({"id": id, "object": "hermes.session", "title": title, "source": "api_server", "started_at": created, "message_count": 0})
}

fn name(text: &str) -> ApiResult<SessionId> {
    ids::check_name(text)
        .map_err(|what| ApiError::invalid(format!("the id {what}")).param("id"))?;
    Ok(ids::session(text))
}

pub(super) async fn create(
    State(api): State<Arc<Api>>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let body: Value = body::json(request).await?;
    if !body.is_object() {
        return Err(ApiError::invalid("a session is an object with fields"));
    }
    let wanted = match text_of(&body, "id")? {
        None => text_of(&body, "session_id")?,
        wanted => wanted,
    };
    let id = match wanted {
        Some(text) => name(text)?,
        None => SessionId::generate(api.parts.clock.now(), &api.parts.random),
    };
    let title = title_of(&body)?;
    let exists =
        || ApiError::conflict(format!("there is a session `{id}` already")).code("session_exists");
    match api.parts.archive.record(&id).await {
        Ok(_) => return Err(exists()),
        Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let now = api.parts.clock.now();
    let record = Record {
        fingerprint: String::new(),
        value: title.map(str::to_owned),
        created: now,
        expires: now.plus(UNUSED_KEPT),
    };
    let key = RecordKey::new(SCOPE, id.as_str());
    if api.parts.records.claim_record(key, record).await? != hermes_core::Claimed::New {
        return Err(exists());
    }
    let made = unused(&id, title, now.as_millis() / 1000);
    Ok((
        StatusCode::CREATED,
        Json(json!({"object": "hermes.session", "session": made})),
    )
        .into_response())
}

fn text_of<'a>(body: &'a Value, field: &str) -> ApiResult<Option<&'a str>> {
    match &body[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(ApiError::invalid(format!("`{field}` must be a text")).param(field)),
    }
}

fn title_of(body: &Value) -> ApiResult<Option<&str>> {
    let title = text_of(body, "title")?.map(str::trim);
    if title.is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX) {
        let message = format!("`title` may have {TITLE_CHARS_MAX} characters");
        return Err(ApiError::invalid(message).param("title"));
    }
    Ok(title.filter(|title| !title.is_empty()))
}

/// A session that was made here and is still empty.
async fn made(api: &Api, id: &SessionId) -> ApiResult<Option<Record>> {
    let key = RecordKey::new(SCOPE, id.as_str());
    Ok(api
        .parts
        .records
        .record_at(key, api.parts.clock.now())
        .await?)
}

pub(super) async fn get(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    let id = name(&id)?;
    let session = match api.parts.archive.record(&id).await {
        Ok(record) => ending::told(&api, &record).await?,
        Err(error) => match made(&api, &id).await? {
            Some(made) => unused(&id, made.value.as_deref(), made.created.as_millis() / 1000),
            None => return Err(error.into()),
        },
    };
    Ok(Json(
        json!({"object": "hermes.session", "session": session}),
    ))
}

pub(super) async fn change(
    State(api): State<Arc<Api>>,
    Id(id): Id,
    request: Request<Body>,
) -> ApiResult<Json<Value>> {
    let id = name(&id)?;
    let body: Value = body::json(request).await?;
    let (title, reason) = (title_of(&body)?, text_of(&body, "end_reason")?);
    if title.is_none() && reason.is_none() {
        let message = "`title` and `end_reason` are what can be changed";
        return Err(ApiError::invalid(message).param("title"));
    }
    if let Some(title) = title {
        api.parts.archive.rename(&id, title).await?;
    }
    if let Some(reason) = reason {
        ending::end(&api, &id, reason).await?;
    }
    let record = api.parts.archive.record(&id).await?;
    let session = ending::told(&api, &record).await?;
    Ok(Json(
        json!({"object": "hermes.session", "session": session}),
    ))
}

pub(super) async fn delete(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    let id = name(&id)?;
    let was_made = api
        .parts
        .records
        .remove_record(RecordKey::new(SCOPE, id.as_str()))
        .await?;
    let lane = api.pool.close_for_good(&id).await;
    let deleted = api.parts.archive.delete(&id).await;
    drop(lane);
    match deleted {
        Err(StoreError::NotFound { .. }) if was_made => {}
        deleted => deleted?,
    }
    Ok(Json(
        json!({"id": id, "object": "hermes.session.deleted", "deleted": true}),
    ))
}

pub(super) async fn messages(State(api): State<Arc<Api>>, Id(id): Id) -> ApiResult<Json<Value>> {
    let id = name(&id)?;
    api.parts.archive.record(&id).await?;
    let lines = api.parts.archive.transcript(&id).await?;
    let data: Vec<Value> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| wording::message(at, line))
        .collect();
    Ok(Json(
        json!({"object": "list", "session_id": id, "data": data}),
    ))
}

pub(super) async fn fork(
    State(api): State<Arc<Api>>,
    Id(id): Id,
    request: Request<Body>,
) -> ApiResult<Response> {
    let id = name(&id)?;
    api.parts.archive.record(&id).await?;
    let body: Value = match body::bytes(request, body::BODY_BYTES_MAX).await? {
        bytes if bytes.is_empty() => Value::Null,
        bytes => serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::invalid(format!("the body is not JSON: {error}")))?,
    };
    let mut options = api.settings.options.clone();
    options.title = body["title"].as_str().map(str::to_owned);
    let branch = api.parts.sessions.branch(id, options).await?;
    let branch = branch.handle.id().clone();
    let record = api.parts.archive.record(&branch).await?;
    api.pool.rest(branch).await;
    Ok((
        StatusCode::CREATED,
        Json(json!({"object": "hermes.session", "session": described(&record)})),
    )
        .into_response())
}
