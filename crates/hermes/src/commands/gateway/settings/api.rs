//! The settings of the HTTP API.

use std::time::Duration;

use hermes_core::{Secret, SessionOptions};
use hermes_gateway::api::{ApiKey, ApiSettings, OnDisconnect, WeakKey};
use serde_json::Value;

use super::Platform;
use crate::base::Base;
use crate::failure::{Failure, Outcome, code};

/// Where conversations come from that the API opens.
pub(in crate::commands::gateway) const SOURCE: &str = "api_server";

const NEW_KEY: &str = "put `API_SERVER_KEY=` with a random key into `.env` of the home; `openssl rand -hex 32` makes one";

/// The HTTP API as the settings want it.
pub(in crate::commands::gateway) struct ApiServer {
    pub(in crate::commands::gateway) host: String,
    pub(in crate::commands::gateway) port: u16,
    pub(in crate::commands::gateway) settings: ApiSettings,
}

/// Reads the settings of the API; `None` when it is not wanted. A key alone wants it too, unless it is switched off.
pub(in crate::commands::gateway) fn read(base: &Base) -> Outcome<Option<ApiServer>> {
    let platform = Platform {
        base,
        name: SOURCE,
        variables: "API_SERVER",
    };
    let key = platform.text("KEY", "key").map(Secret::new);
    if !platform.is_enabled().unwrap_or(key.is_some()) {
        return Ok(None);
    }
    let key = ApiKey::new(&key.unwrap_or_else(|| Secret::new(""))).map_err(|error| weak(&error))?;
    let runs_max = platform.number("max_concurrent_runs", 10)?;
    let settings = ApiSettings {
        key,
        cors_origins: platform.list("CORS_ORIGINS", "cors_origins"),
        model_name: model_name(platform),
        runs_max: runs_max.clamp(1, 10_000) as usize,
        text_chars_max: text_chars_max(platform)?,
        on_disconnect: on_disconnect(platform)?,
        keepalive: Duration::from_secs(platform.number("keepalive_seconds", 30)?.max(1)),
        options: SessionOptions {
            source: SOURCE.to_owned(),
            surface: Some(SOURCE.to_owned()),
            ..SessionOptions::default()
        },
    };
    let host = platform.text("HOST", "host");
    Ok(Some(ApiServer {
        host: host.unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: platform.port(8642)?,
        settings,
    }))
}

/// As many as the known program takes; 0 leaves it to the limit of bodies.
fn text_chars_max(platform: Platform<'_>) -> Outcome<usize> {
    let max = platform.number("max_text_chars", 65_536)?;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    Ok(if max == 0 { usize::MAX } else { max })
}

fn weak(error: &WeakKey) -> Failure {
    Failure {
        code: code::SETTINGS,
        ..Failure::new(error.to_string())
    }
    .hint(NEW_KEY)
}

fn model_name(platform: Platform<'_>) -> String {
    let named = platform.text("MODEL_NAME", "model_name");
    let profile = || platform.base.home.profile().map(str::to_owned);
    named
        .or_else(profile)
        .unwrap_or_else(|| "hermes-agent".to_owned())
}

fn on_disconnect(platform: Platform<'_>) -> Outcome<OnDisconnect> {
    match platform.get("on_disconnect").and_then(Value::as_str) {
        None | Some("interrupt") => Ok(OnDisconnect::Interrupt),
        Some("detach") => Ok(OnDisconnect::Detach),
        Some(word) => Err(platform.wrong(
            "on_disconnect",
            word,
            "`interrupt` (the turn is stopped) or `detach` (it goes on)",
        )),
    }
}
