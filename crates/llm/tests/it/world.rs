//! A client and the servers it asks.

use std::time::Duration;

use hermes_core::Secret;
use hermes_core::backoff::Backoff;
use hermes_llm::{Client, DeadlineSettings, ModelChoice, ModelSettings, Protocol, resolve};
use hermes_testkit::server::ScriptedServer;

/// Nothing like a real key, so that only exact matching finds it.
pub(crate) const KEY: &str = "top-secret-of-the-test";

/// Waits that a test can afford.
pub(crate) const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(2),
    cap: Duration::from_millis(10),
};

/// Where a protocol begins on a scripted server.
pub(crate) fn base_url(server: &ScriptedServer, protocol: Protocol) -> String {
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses => server.url(),
        Protocol::Anthropic => server.root_url(),
        Protocol::Gemini => format!("{}/v1beta", server.root_url()),
    }
}

pub(crate) fn api_mode(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenAiChat => "chat_completions",
        Protocol::OpenAiResponses => "responses",
        Protocol::Anthropic => "anthropic_messages",
        Protocol::Gemini => "gemini",
    }
}

/// A choice of `model` on a scripted server.
pub(crate) fn choice(server: &ScriptedServer, protocol: Protocol, model: &str) -> ModelChoice {
    ModelChoice {
        provider: Some("custom".into()),
        model: Some(model.into()),
        base_url: Some(base_url(server, protocol)),
        api_key: Some(Secret::new(KEY)),
        api_mode: Some(api_mode(protocol).into()),
    }
}

/// Settings with deadlines that a test can afford.
pub(crate) fn settings(choice: ModelChoice) -> ModelSettings {
    let millis = |millis| Some(Duration::from_millis(millis));
    ModelSettings {
        choice,
        deadlines: DeadlineSettings {
            connect: millis(1000),
            first_byte: millis(400),
            first_token: None,
            idle: millis(150),
            total: millis(10_000),
        },
        ..ModelSettings::default()
    }
}

pub(crate) fn client(settings: &ModelSettings) -> Client {
    let resolved = resolve(settings, &|_| None).unwrap();
    assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
    Client::new(resolved).with_backoff(BACKOFF)
}
