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
    settings.deadlines.first_byte = Some(Duration::from_secs(15));
    settings.deadlines.idle = settings.deadlines.first_byte;
    settings.deadlines.total = Some(Duration::from_secs(30));
    tell(&client(&settings), &[Message::user("hello")]).await
}

#[tokio::test]
async fn a_huge_line_is_refused() {
    // One protocol is enough: all of them are cut into frames by the same code, which is slow with huge ones.
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
