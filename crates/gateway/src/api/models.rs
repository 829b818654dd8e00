//! What the API can do, in lists.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Api;
use super::error::{ApiError, ApiResult};
use super::extract::Id;

/// Where things are, by what they are.
const ENDPOINTS: &[(&str, &str, &str)] = &[
    ("health", "GET", "/health"),
    ("health_detailed", "GET", "/health/detailed"),
    ("models", "GET", "/v1/models"),
    ("chat_completions", "POST", "/v1/chat/completions"),
    ("responses", "POST", "/v1/responses"),
    ("runs", "POST", "/v1/runs"),
    ("run_status", "GET", "/v1/runs/{run_id}"),
    ("run_events", "GET", "/v1/runs/{run_id}/events"),
    ("run_approval", "POST", "/v1/runs/{run_id}/approval"),
    ("run_stop", "POST", "/v1/runs/{run_id}/stop"),
    ("skills", "GET", "/v1/skills"),
    ("toolsets", "GET", "/v1/toolsets"),
    ("sessions", "GET", "/api/sessions"),
    ("session_create", "POST", "/api/sessions"),
    ("session", "GET", "/api/sessions/{session_id}"),
    ("session_update", "PATCH", "/api/sessions/{session_id}"),
    ("session_delete", "DELETE", "/api/sessions/{session_id}"),
    (
        "session_messages",
        "GET",
        "/api/sessions/{session_id}/messages",
    ),
    ("session_fork", "POST", "/api/sessions/{session_id}/fork"),
    ("session_chat", "POST", "/api/sessions/{session_id}/chat"),
    (
        "session_chat_stream",
        "POST",
        "/api/sessions/{session_id}/chat/stream",
    ),
    ("jobs", "GET", "/api/jobs"),
    ("job_create", "POST", "/api/jobs"),
    ("job", "GET", "/api/jobs/{job_id}"),
    ("job_update", "PATCH", "/api/jobs/{job_id}"),
    ("job_delete", "DELETE", "/api/jobs/{job_id}"),
    ("job_pause", "POST", "/api/jobs/{job_id}/pause"),
    ("job_resume", "POST", "/api/jobs/{job_id}/resume"),
    ("job_run", "POST", "/api/jobs/{job_id}/run"),
    ("job_runs", "GET", "/api/jobs/{job_id}/runs"),
    ("cron_fire", "POST", "/api/cron/fire"),
    ("metrics", "GET", "/metrics"),
];

fn endpoints() -> Value {
    let described = ENDPOINTS
        .iter()
        .map(|(name, method, path)| ((*name).to_owned(), json!({"method": method, "path": path})));
    Value::Object(described.collect())
}

pub(super) async fn models(State(api): State<Arc<Api>>) -> Json<Value> {
    Json(json!({"object": "list", "data": [described(&api)]}))
}

pub(super) async fn model(State(api): State<Arc<Api>>, Id(name): Id) -> ApiResult<Json<Value>> {
    if name == api.settings.model_name {
        return Ok(Json(described(&api)));
    }
    Err(ApiError::not_found(format!(
        "there is no model `{name}`; `{}` is the one there is",
        api.settings.model_name
    ))
    .code("model_not_found"))
}

fn described(api: &Api) -> Value {
    json!({
        "id": api.settings.model_name,
        "object": "model",
        "created": 0,
        "owned_by": "hermes",
        "permission": [],
        "root": api.settings.model_name,
        "parent": null,
    })
}

pub(super) async fn capabilities(State(api): State<Arc<Api>>) -> Json<Value> {
    Json(json!({
        "object": "hermes.api_server.capabilities",
        "platform": "hermes-agent",
        "model": api.settings.model_name,
        "auth": {"type": "bearer", "required": true},
        "features": {
            "chat_completions": true,
            "chat_completions_streaming": true,
            "responses_api": true,
            "responses_streaming": true,
            "run_submission": true,
            "run_status": true,
            "run_events_sse": true,
            "run_stop": true,
            "run_approval_response": true,
            "tool_progress_events": true,
            "session_continuity_header": "X-Hermes-Session-Id",
            "session_key_header": "X-Hermes-Session-Key",
            "idempotency_header": "Idempotency-Key",
            "session_resources": true,
            "session_chat": true,
            "session_chat_streaming": true,
            "session_fork": true,
            "jobs": true,
            "cors": !api.settings.cors_origins.is_empty(),
            "metrics": true,
        },
        "limits": {
            "body_bytes": super::body::BODY_BYTES_MAX,
            "concurrent_runs": api.settings.runs_max,
            "text_chars": api.settings.text_chars_max,
        },
        "endpoints": endpoints(),
    }))
}
