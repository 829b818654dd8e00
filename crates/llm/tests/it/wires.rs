//! Every provider of the table is asked the way it wants to be asked, and understood.

use hermes_core::{FinishReason, Message, Part, Secret};
use hermes_llm::{ModelChoice, PROVIDERS, Protocol, Provider};
use hermes_testkit::contract::model::tell;
use hermes_testkit::server::{Answer, Request, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::world::{KEY, client, settings};

/// Ends like an effort, as real names do, and must not be cut.
const MODEL: &str = "model-max";

#[tokio::test]
async fn every_provider_speaks_its_wire() {
    for provider in PROVIDERS {
        check(provider).await;
    }
}

async fn check(provider: &Provider) {
    let answer =
        Answer::text("hi")
            .reasoning("hm")
            .also_call("c1", "read_file", json!({"path": "a"}));
    let server = ScriptedServer::start(Script::always(answer)).await;
    let path = path_of(provider.base_url);
    let client = client(&settings(ModelChoice {
        provider: Some(provider.id.into()),
        model: Some(MODEL.into()),
        base_url: Some(format!("{}{path}", server.root_url())),
        api_key: Some(Secret::new(KEY)),
        api_mode: None,
    }));
    let told = tell(&client, &[Message::user("hello")]).await;

    let id = provider.id;
    assert_eq!(told.message.text(), "hi", "{id}");
    assert_eq!(told.message.calls().count(), 1, "{id}");
    assert!(
        matches!(&told.message.parts[0], Part::Reasoning(reasoning) if reasoning.text == "hm"),
        "{id}"
    );
    let finished = told.end.unwrap();
    assert_eq!(finished.reason, FinishReason::ToolCalls, "{id}");
    assert_eq!(
        (finished.usage.input, finished.usage.output),
        (10, 5),
        "{id}"
    );
    assert_eq!(finished.model.to_string(), format!("{id}:{MODEL}"));

    let request = &server.requests()[0];
    assert_eq!(
        request.route(),
        format!("{path}{}", suffix(provider.protocol)),
        "{id}"
    );
    assert_eq!(
        tool_names(provider.protocol, &request.json),
        ["web_search", "read_file"],
        "{id}"
    );
    check_headers(provider.protocol, request);
    if provider.protocol != Protocol::Gemini {
        assert_eq!(request.json["model"], MODEL, "{id}");
        assert_eq!(request.json["stream"], true, "{id}");
    }
}

fn path_of(base_url: &str) -> &str {
    let after_scheme = base_url.split_once("://").map_or("/v1", |(_, rest)| rest);
    after_scheme.find('/').map_or("", |at| &after_scheme[at..])
}

fn suffix(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenAiChat => "/chat/completions",
        Protocol::OpenAiResponses => "/responses",
        Protocol::Anthropic => "/v1/messages",
        Protocol::Gemini => "/models/model-max:streamGenerateContent",
    }
}

/// The names of the tools, all of them ours: `web_search` is not to become the provider's own.
fn tool_names(protocol: Protocol, body: &Value) -> Vec<&str> {
    let tools = match protocol {
        Protocol::Gemini => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool_name(protocol, tool))
        .collect()
}

fn tool_name(protocol: Protocol, tool: &Value) -> &str {
    let (tool, schema) = match protocol {
        Protocol::OpenAiChat => (&tool["function"], "parameters"),
        Protocol::OpenAiResponses => (tool, "parameters"),
        Protocol::Anthropic => (tool, "input_schema"),
        Protocol::Gemini => (tool, "parametersJsonSchema"),
    };
    assert!(tool[schema].is_object(), "{tool}");
    tool["name"].as_str().unwrap()
}

fn check_headers(protocol: Protocol, request: &Request) {
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses => {
            assert_eq!(
                request.header("authorization"),
                Some(format!("Bearer {KEY}").as_str())
            );
        }
        Protocol::Anthropic => {
            assert_eq!(request.header("x-api-key"), Some(KEY));
            assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
            assert_eq!(request.header("authorization"), None);
        }
        Protocol::Gemini => assert_eq!(request.header("x-goog-api-key"), Some(KEY)),
    }
}
