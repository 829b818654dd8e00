//! The settings of webhooks.

use std::path::PathBuf;

use hermes_core::{Secret, SessionOptions};
use hermes_gateway::webhooks::{Route, Routes, WebhookSettings};
use serde_json::Value;

use super::Platform;
use crate::base::Base;
use crate::failure::Outcome;

const SOURCE: &str = "webhook";
const FILE: &str = "webhook_subscriptions.json";

/// Webhooks as the settings want them.
pub(crate) struct WebhookServer {
    /// Every address of this machine without one.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    pub(crate) settings: WebhookSettings,
    /// What cannot be used of the routes in the settings, and why. The others serve.
    pub(crate) left_out: Vec<LeftOut>,
}

/// A route that cannot be used.
pub(crate) struct LeftOut {
    pub(crate) name: String,
    why: String,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, why } = self;
        write!(
            f,
            "the webhook route `{name}` is left out: {why}; correct `platforms.webhook.routes` with `hermes config edit`"
        )
    }
}

fn platform(base: &Base) -> Platform<'_> {
    Platform {
        base,
        name: SOURCE,
        variables: "WEBHOOK",
    }
}

/// Reads the settings of webhooks; `None` when they are not wanted.
pub(crate) fn read(base: &Base) -> Outcome<Option<WebhookServer>> {
    if !platform(base).is_enabled().unwrap_or(false) {
        return Ok(None);
    }
    Ok(Some(wanted(base)?))
}

/// The same, also when they are switched off.
pub(crate) fn wanted(base: &Base) -> Outcome<WebhookServer> {
    let platform = platform(base);
    let per_minute = platform.number("rate_limit", 30)?;
    let (routes, left_out) = routes(platform);
    let settings = WebhookSettings {
        routes: Routes::new(routes, file(base)),
        secret: secret(base),
        per_minute: u32::try_from(per_minute).unwrap_or(u32::MAX).max(1),
        options: SessionOptions {
            source: SOURCE.to_owned(),
            surface: Some(SOURCE.to_owned()),
            ..SessionOptions::default()
        },
    };
    Ok(WebhookServer {
        host: platform.text("HOST", "host"),
        port: platform.port(8644)?,
        settings,
        left_out,
    })
}

/// The secret of all routes without one.
pub(crate) fn secret(base: &Base) -> Option<Secret> {
    platform(base).text("SECRET", "secret").map(Secret::new)
}

/// Where subscriptions are kept.
pub(crate) fn file(base: &Base) -> PathBuf {
    base.home.directory().join(FILE)
}

/// Those that can be used, and those that cannot.
fn routes(platform: Platform<'_>) -> (Vec<Route>, Vec<LeftOut>) {
    let (mut routes, mut left_out) = (Vec::new(), Vec::new());
    let written = match platform.get("routes") {
        None => return (routes, left_out),
        Some(Value::Object(written)) => written,
        Some(_) => {
            let why = "`routes` must be a section with a section for each route".to_owned();
            left_out.push(LeftOut {
                name: "*".to_owned(),
                why,
            });
            return (routes, left_out);
        }
    };
    for (name, route) in written {
        match Route::read(name, route) {
            Ok(route) => routes.push(route),
            Err(why) => left_out.push(LeftOut {
                name: name.clone(),
                why,
            }),
        }
    }
    (routes, left_out)
}
