//! What is in a request, beyond the prefix: effort, limits, pictures, what the user adds.

use hermes_core::{Media, MediaSource, Message, Part, Role, Secret};
use hermes_llm::{ModelChoice, ModelSettings, Protocol, ProviderOptions};
use hermes_testkit::contract::model::tell;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::world::{base_url, client, settings};

/// Sends one message to `provider:model` and returns the body of the request.
async fn sent(
    (provider, protocol, model): (&str, Protocol, &str),
    message: Message,
    change: impl Fn(&mut ModelSettings),
) -> Value {
    let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
    let mut settings = settings(ModelChoice {
        provider: Some(provider.into()),
        model: Some(model.into()),
        base_url: Some(base_url(&server, protocol)),
        api_key: Some(Secret::new("k")),
        api_mode: None,
    });
    change(&mut settings);
    tell(&client(&settings), &[message]).await.end.unwrap();
    server.requests().remove(0).json
}

const CHAT: (&str, Protocol, &str) = (
    "openrouter",
    Protocol::OpenAiChat,
    "anthropic/claude-sonnet-4.6",
);
const PLAIN: (&str, Protocol, &str) = ("groq", Protocol::OpenAiChat, "openai/gpt-oss-120b");
const RESPONSES: (&str, Protocol, &str) = ("openai", Protocol::OpenAiResponses, "gpt-5.1");
const UNTHINKING: (&str, Protocol, &str) = ("openai", Protocol::OpenAiResponses, "gpt-4.1");
const ANTHROPIC: (&str, Protocol, &str) = ("anthropic", Protocol::Anthropic, "claude-sonnet-4-6");
const GEMINI: (&str, Protocol, &str) = ("gemini", Protocol::Gemini, "gemini-3-pro-preview");

#[tokio::test]
async fn effort_is_said_in_each_wires_words_and_only_where_it_is_understood() {
    let check = async |model, effort: Option<&str>, spot: &str, expected: Value| {
        let change = |settings: &mut ModelSettings| {
            settings.reasoning_effort = effort.map(str::to_owned);
        };
        let body = sent(model, Message::user("hi"), change).await;
        let found = body.pointer(spot).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{model:?} {effort:?}: {body}");
    };
    check(CHAT, Some("high"), "/reasoning_effort", json!("high")).await;
    check(CHAT, None, "/reasoning_effort", Value::Null).await;
    check(PLAIN, Some("high"), "/reasoning_effort", Value::Null).await;
    check(
        RESPONSES,
        Some("low"),
        "/reasoning",
        json!({"effort": "low", "summary": "auto"}),
    )
    .await;
    check(
        RESPONSES,
        Some("none"),
        "/reasoning",
        json!({"effort": "none"}),
    )
    .await;
    check(RESPONSES, None, "/reasoning", Value::Null).await;
    check(
        RESPONSES,
        None,
        "/include/0",
        json!("reasoning.encrypted_content"),
    )
    .await;
    check(UNTHINKING, Some("low"), "/reasoning", Value::Null).await;
    check(UNTHINKING, None, "/include", Value::Null).await;
    check(ANTHROPIC, Some("high"), "/thinking/type", json!("adaptive")).await;
    check(ANTHROPIC, None, "/thinking", Value::Null).await;
    check(
        GEMINI,
        Some("low"),
        "/generationConfig/thinkingConfig/thinkingLevel",
        json!("LOW"),
    )
    .await;
    check(
        GEMINI,
        None,
        "/generationConfig/thinkingConfig/thinkingLevel",
        Value::Null,
    )
    .await;
}

#[tokio::test]
async fn the_output_limit_is_the_users() {
    for (model, spot) in [
        (CHAT, "/max_tokens"),
        (RESPONSES, "/max_output_tokens"),
        (ANTHROPIC, "/max_tokens"),
        (GEMINI, "/generationConfig/maxOutputTokens"),
    ] {
        let change = |settings: &mut ModelSettings| settings.max_tokens = Some(777);
        let body = sent(model, Message::user("hi"), change).await;
        assert_eq!(body.pointer(spot), Some(&json!(777)), "{model:?}");
    }
}

#[tokio::test]
async fn pictures_reach_every_wire() {
    let picture = |source| Message {
        role: Role::User,
        origin: None,
        parts: vec![
            Part::text("look"),
            Part::Image(Media {
                mime: "image/png".into(),
                source,
            }),
        ],
    };
    for model in [CHAT, RESPONSES, ANTHROPIC, GEMINI] {
        for source in [
            MediaSource::Base64("aGVsbG8=".into()),
            MediaSource::Url("https://example.org/aGVsbG8=.png".into()),
        ] {
            let body = sent(model, picture(source), |_| {}).await.to_string();
            assert!(body.contains("aGVsbG8="), "{model:?}: {body}");
        }
    }
}

#[tokio::test]
async fn what_the_user_adds_is_added_last() {
    let change = |settings: &mut ModelSettings| {
        let fields = json!({"temperature": 0.5, "stream_options": {"mine": true}});
        let options = ProviderOptions {
            extra_body: fields.as_object().unwrap().clone(),
            ..ProviderOptions::default()
        };
        settings.provider_options.insert(PLAIN.0.into(), options);
    };
    let body = sent(PLAIN, Message::user("hi"), change).await;
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body["stream_options"], json!({"mine": true}));
}

#[tokio::test]
async fn claude_behind_an_aggregator_is_cached() {
    let body = sent(CHAT, Message::user("hi"), |_| {}).await;
    assert_eq!(body["cache_control"]["type"], "ephemeral");
    let body = sent(PLAIN, Message::user("hi"), |_| {}).await;
    assert_eq!(body["cache_control"], Value::Null);
}
