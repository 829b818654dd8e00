//! Tokens and codes are in the files and on the wire, and nowhere else.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use hermes_testkit::oauth::TokenFault;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::oauth_home::{Home, protected, settings};

/// Keeps every line that a log of the most talkative level would have.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<String>>);

impl Visit for Lines {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Everything secret that the authorisation server gives out begins with this, and so does our own secret.
const SECRET: &str = "secret-";

#[tokio::test(flavor = "multi_thread")]
async fn no_token_code_or_client_secret_is_ever_shown() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let (auth, server, mut section) = protected().await;
    section["oauth"] = json!({ "client_id": "ours", "client_secret": "secret-client" });
    let home = Home::new();
    let mut shown = format!("{:?}", settings("test", &section));
    home.visit(&section, &[]).await.unwrap();
    let client = home.ready(&section).await;
    auth.expire_access();
    client.append("renewed").await.unwrap();
    auth.expire_access();
    auth.fail([
        TokenFault::Status(500),
        TokenFault::InvalidGrant,
        TokenFault::InvalidGrant,
    ]);
    let error = client.append("refused").await.unwrap_err();
    write!(shown, "{error} {error:?} {:?}", client.mcp.status()).unwrap();
    std::fs::write(
        home.tokens().join("test.json"),
        "{\"access_token\": \"secret-torn",
    )
    .unwrap();
    client.mcp.reconnect("test").await.unwrap();
    client.append("torn").await.unwrap_err();
    client.mcp.shutdown().await;
    assert_eq!(server.executions("renewed"), 1);
    let log = lines.0.lock().unwrap().clone();
    assert!(
        log.contains("needs") || log.contains("connected"),
        "the log was kept"
    );
    for text in [&shown, &log] {
        let at = text.find(SECRET);
        let around = at.map(|at| &text[at.saturating_sub(200)..(at + 40).min(text.len())]);
        assert_eq!(around, None);
    }
}
