//! Events of other programs: which of them came before, and what comes again when nobody remembers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::{Archive as _, Random, Secret, SessionFilter, SessionOptions};
use hermes_gateway::Shutdown;
use hermes_gateway::http_server::HttpServer;
use hermes_gateway::webhooks::{
    self, Route, Routes, ScriptParts, WebhookParts, WebhookSettings, signed,
};
use ring::hmac;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{House, Process};

const SECRET: &str = "a-webhook-secret";

/// A home that takes events.
struct Hooks {
    house: House,
    process: Process,
    url: String,
    _running: JoinSet<()>,
}

impl Hooks {
    async fn start() -> Self {
        let house = House::saying("noted").await;
        let process = house.process().await;
        let server = HttpServer::bind("127.0.0.1", 0).await.unwrap();
        let url = server.url();
        let options = SessionOptions {
            source: "webhook".to_owned(),
            cwd: Some(house.folder.path().to_owned()),
            ..SessionOptions::default()
        };
        let route = |name: &str, written: Value| Route::read(name, &written).unwrap();
        let routes = vec![
            route("plain", json!({"prompt": "It says {text}"})),
            route(
                "notify",
                json!({"prompt": "{text}", "deliver_only": true, "deliver": "chat"}),
            ),
        ];
        let settings = WebhookSettings {
            routes: Routes::new(routes, house.home().join("none.json")),
            secret: Some(Secret::new(SECRET.to_owned())),
            per_minute: 1_000,
            options,
        };
        let parts = WebhookParts {
            sessions: process.runtime.clone(),
            archive: process.runtime.store().clone(),
            records: process.runtime.store().clone(),
            deliver: house.chat.clone(),
            clock: house.clock.clone(),
            random: Arc::new(Random::seeded(7)),
            scripts: ScriptParts {
                terminal: Arc::clone(&process.parts.terminal),
                folder: house.home().join("scripts"),
                cwd: house.folder.path().to_owned(),
            },
        };
        let mut running = JoinSet::new();
        running.spawn(webhooks::run(server, parts, settings, Shutdown::default()));
        Self {
            house,
            process,
            url,
            _running: running,
        }
    }

    /// What a sender is told, and the status.
    async fn send(&self, route: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let told = self.try_send(route, headers, body, Duration::from_secs(20));
        told.await.unwrap()
    }

    /// The same by somebody who hangs up after a while.
    async fn try_send(
        &self,
        route: &str,
        headers: &[(&str, &str)],
        body: &str,
        patience: Duration,
    ) -> Option<(u16, String)> {
        let client = hermes_os::http::client().timeout(patience).build().unwrap();
        let mut request = client.post(format!("{}/webhooks/{route}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await.ok()?;
        let status = answer.status().as_u16();
        let told: Value = serde_json::from_str(&answer.text().await.ok()?).unwrap();
        let word = told["status"].as_str().or(told["error"]["code"].as_str());
        Some((status, word.unwrap_or_default().to_owned()))
    }

    fn seconds(&self) -> i64 {
        self.house.now().as_millis() / 1000
    }

    async fn sessions(&self) -> HashSet<String> {
        let store = self.process.runtime.store();
        let listed = store.list(SessionFilter::default()).await.unwrap();
        let ids = listed.iter().map(|record| record.id.to_string());
        ids.filter(|id| id.starts_with("webhook-plain-")).collect()
    }
}

fn accepted() -> (u16, String) {
    (202, "accepted".to_owned())
}

fn duplicate() -> (u16, String) {
    (200, "duplicate".to_owned())
}

#[tokio::test]
async fn the_same_event_begins_another_conversation_once_it_is_forgotten() {
    let hooks = Hooks::start().await;
    let token = ("x-gitlab-token", SECRET);
    let named = [token, ("x-request-id", "alarm-1")];
    let body = r#"{"text": "the disk is full"}"#;
    assert_eq!(hooks.send("plain", &[token], body).await, accepted());
    assert_eq!(hooks.send("plain", &named, body).await, accepted());
    hooks.house.clock.advance(Duration::from_secs(6 * 60));
    assert_eq!(hooks.send("plain", &[token], body).await, accepted());
    assert_eq!(hooks.send("plain", &named, body).await, duplicate());
    hooks.house.clock.advance(Duration::from_secs(60 * 60));
    assert_eq!(hooks.send("plain", &named, body).await, accepted());
    assert_eq!(hooks.sessions().await.len(), 4);
}

#[tokio::test]
async fn what_was_cut_short_is_delivered_once_when_it_comes_again() {
    let hooks = Hooks::start().await;
    let headers = [("x-gitlab-token", SECRET), ("x-request-id", "1")];
    let body = r#"{"text": "the disk is full"}"#;
    *hooks.house.chat.is_slow.lock().unwrap() = true;
    let hung_up = hooks.try_send("notify", &headers, body, Duration::from_millis(500));
    assert_eq!(hung_up.await, None);
    assert_eq!(hooks.house.chat.got().len(), 1, "it is in the outbox");
    *hooks.house.chat.is_slow.lock().unwrap() = false;
    let mut told = hooks.send("notify", &headers, body).await;
    while told.0 == 429 {
        told = hooks.send("notify", &headers, body).await;
    }
    assert_eq!(told, (200, "delivered".to_owned()));
    assert_eq!(hooks.send("notify", &headers, body).await, duplicate());
    assert_eq!(hooks.house.chat.got().len(), 1);
}

#[tokio::test]
async fn what_is_only_delivered_is_told_as_it_is() {
    let hooks = Hooks::start().await;
    let send = async |id: &str, text: &str| {
        let headers = [("x-gitlab-token", SECRET), ("x-request-id", id)];
        let body = json!({"text": text}).to_string();
        hooks.send("notify", &headers, &body).await
    };
    assert_eq!(send("1", "first").await, (200, "delivered".to_owned()));
    assert_eq!(send("2", " ").await, (200, "ignored".to_owned()));
    *hooks.house.chat.is_slow.lock().unwrap() = true;
    assert_eq!(send("3", "second").await, accepted());
    assert_eq!(send("3", "second").await, duplicate());
    *hooks.house.chat.is_slow.lock().unwrap() = false;
    *hooks.house.chat.gone.lock().unwrap() = Some(String::new());
    assert_eq!(send("4", "third").await, (502, "not_delivered".to_owned()));
    // It stays in the outbox, so that nothing is sent twice when it comes again.
    *hooks.house.chat.gone.lock().unwrap() = None;
    assert_eq!(send("4", "third").await, (200, "delivered".to_owned()));
    let got = hooks.house.chat.got();
    let texts: Vec<&str> = got.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[tokio::test]
async fn nobody_sends_again_what_they_saw_under_another_name() {
    let hooks = Hooks::start().await;
    let time = hooks.seconds().to_string();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let svix = hmac::sign(&key, format!("msg_1.{time}.{{\"of\":\"svix\"}}").as_bytes());
    let svix = format!("v1,{}", STANDARD.encode(svix));
    let own = signed(SECRET, hooks.seconds(), br#"{"of":"v2"}"#);
    let legacy = hmac::sign(&key, br#"{"of":"legacy"}"#);
    let legacy: String = legacy
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let events: [(&[(&str, &str)], &str); 3] = [
        (
            &[
                ("svix-id", "msg_1"),
                ("svix-timestamp", &time),
                ("svix-signature", &svix),
            ],
            r#"{"of":"svix"}"#,
        ),
        (
            &[
                ("x-webhook-timestamp", &time),
                ("x-webhook-signature-v2", &own),
                ("x-request-id", "1"),
            ],
            r#"{"of":"v2"}"#,
        ),
        (
            &[("x-webhook-signature", &legacy), ("x-request-id", "2")],
            r#"{"of":"legacy"}"#,
        ),
    ];
    for (headers, body) in events {
        assert_eq!(
            hooks.send("plain", headers, body).await,
            accepted(),
            "{body}"
        );
        for added in ["x-github-delivery", "x-request-id", "webhook-id"] {
            let mut replayed = headers.to_vec();
            replayed.retain(|(name, _)| *name != added);
            replayed.push((added, "another"));
            assert_eq!(
                hooks.send("plain", &replayed, body).await,
                duplicate(),
                "{body} {added}"
            );
        }
    }
}
