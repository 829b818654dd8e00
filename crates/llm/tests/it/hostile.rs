//! Servers that mean harm, or are broken in ways that look like it.

use std::time::Duration;

use hermes_core::{FinishReason, Message, ModelErrorKind};
use hermes_llm::Protocol;
use hermes_testkit::contract::model::tell;
use hermes_testkit::server::{Answer, NoiseKind, Part, Script, ScriptedServer, Split};
use serde_json::json;

use crate::world::{choice, client, settings};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::OpenAiChat,
    Protocol::OpenAiResponses,
    Protocol::Anthropic,
    Protocol::Gemini,
];

async fn told(protocol: Protocol, answer: Answer) -> hermes_testkit::contract::model::Told {
    let server = ScriptedServer::start(Script::always(answer)).await;
    let mut settings = settings(choice(&server, protocol, "m"));
    settings.attempts_max = Some(1);
    // Time is not what these are about, and a debug build takes its time to make megabytes of nonsense.
    settings.deadlines.first_byte = Some(Duration::from_secs(120));
    settings.deadlines.idle = settings.deadlines.first_byte;
    settings.deadlines.total = settings.deadlines.first_byte;
    tell(&client(&settings), &[Message::user("hello")]).await
}

#[tokio::test]
async fn a_huge_line_is_refused() {
    // One protocol is enough: all of them are cut into frames by the same code.
    let line = Answer::huge_line(5 << 20);
    let error = told(Protocol::OpenAiChat, line).await.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Broken);
    assert!(error.message.contains("4194304 is the limit"), "{error}");
}

#[tokio::test]
async fn endless_thinking_is_stopped() {
    let thought = Part::Reasoning {
        reasoning: "hm ".repeat(6 << 20),
        signature: None,
        split: Split::Every(1 << 16),
    };
    let answer = Answer::default().part(thought);
    let error = told(Protocol::OpenAiChat, answer).await.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Broken);
    assert!(error.message.contains("went on past"), "{error}");
}

#[tokio::test]
async fn a_hostile_index_costs_nothing() {
    let call = json!({"index": u32::MAX, "id": "c1", "function": {"name": "read_file", "arguments": "{}"}});
    let frame = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let raw = NoiseKind::Raw(format!("data: {frame}\n\n"));
    let told = told(Protocol::OpenAiChat, Answer::text("hi").noise_after(0, raw)).await;
    assert_eq!(told.end.unwrap().reason, FinishReason::ToolCalls);
    assert_eq!(told.message.calls().count(), 1);
}

#[tokio::test]
async fn what_is_not_a_stream_is_not_an_answer() {
    for body in [
        "<html>hello</html>",
        "{\"choices\": []}",
        "\u{0}\u{1}\u{2}\n\n\n\n",
        "",
    ] {
        let raw = NoiseKind::Raw(body.to_owned());
        let answer = Answer::default().noise_after(0, raw).close_after(0);
        for protocol in PROTOCOLS {
            let error = told(protocol, answer.clone()).await.end.unwrap_err();
            assert_eq!(
                error.kind,
                ModelErrorKind::Broken,
                "{protocol:?} {body}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn what_calls_itself_something_else_is_named() {
    let page = "<html><h1>Sign in to the hotel's network</h1></html>";
    for (content_type, body) in [
        ("text/html", page.to_owned()),
        (
            "application/json",
            r#"{"object": "chat.completion"}"#.to_owned(),
        ),
        ("text/html", "<p>".repeat(1 << 20)),
    ] {
        let raw = NoiseKind::Raw(body);
        let answer = Answer::default().noise_after(0, raw).close_after(0);
        let answer = answer.content_type(content_type);
        let error = told(Protocol::OpenAiChat, answer).await.end.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        let named = format!("answered with `{content_type}` instead of a stream");
        assert!(error.message.contains(&named), "{error}");
        assert!(error.hint.contains("model.base_url"), "{}", error.hint);
    }
    // Some servers call a stream something else.
    let answer = Answer::text("hi").content_type("application/json");
    assert_eq!(
        told(Protocol::OpenAiChat, answer).await.message.text(),
        "hi"
    );
}

#[tokio::test]
async fn a_refusal_as_long_as_a_book_is_read_in_part() {
    let error = told(
        Protocol::OpenAiChat,
        Answer::status(400, "no ".repeat(1 << 20)),
    )
    .await;
    let error = error.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::BadRequest);
    assert!(error.message.starts_with("no no"), "{error}");
    assert!(error.message.len() < 2000, "{error}");
}

#[tokio::test]
async fn nonsense_in_valid_json_is_not_a_panic() {
    for data in [
        "null",
        "[]",
        "1",
        "\"x\"",
        "{\"choices\": 1}",
        "{\"type\": 1}",
        "{\"candidates\": [[]]}",
    ] {
        let raw = NoiseKind::Raw(format!("data: {data}\n\n"));
        for protocol in PROTOCOLS {
            let answer = Answer::text("hi").noise_after(0, raw.clone());
            // Ignored or refused, but never wrong text.
            let told = told(protocol, answer).await;
            let text = told.message.text();
            assert!(
                text == "hi" || told.end.is_err(),
                "{protocol:?} {data}: {text}"
            );
        }
    }
}
