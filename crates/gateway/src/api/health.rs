//! Whether it works, for whoever watches over it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Api;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn health(State(api): State<Arc<Api>>) -> Json<Value> {
    Json(json!({
        "status": status(&api),
        "platform": "hermes-agent",
        "version": VERSION,
    }))
}

pub(super) async fn detailed(State(api): State<Arc<Api>>) -> Json<Value> {
    let open = api.parts.sessions.list_open();
    let busy = open.iter().filter(|session| session.idle.is_none()).count();
    let report = (api.parts.report)().await;
    let mut platforms = json!({"api_server": {"state": "connected"}});
    for platform in &report.platforms {
        platforms[&platform.platform] = json!(platform);
    }
    Json(json!({
        "status": status(&api),
        "platform": "hermes-agent",
        "version": VERSION,
        "pid": std::process::id(),
        "started": report.started,
        "open_sessions": open.len(),
        "active_agents": busy,
        "platforms": platforms,
        "inbox": report.inbox,
        "outbox": report.outbox,
    }))
}

fn status(api: &Api) -> &'static str {
    if api.shutdown.is_draining() {
        "draining"
    } else {
        "ok"
    }
}
