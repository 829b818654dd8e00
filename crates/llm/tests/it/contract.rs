//! Every protocol keeps the promises of the `Model` port.

use hermes_core::{Arguments, FinishReason, Message, ModelErrorKind};
use hermes_llm::Protocol;
use hermes_testkit::contract::model::{Carries, model_contract, tell};
use hermes_testkit::server::{Script, ScriptedServer};
use hermes_testkit::{ScriptedModel, Step};

use crate::world::{choice, client, settings};

async fn check(protocol: Protocol, carries: Carries) {
    model_contract(carries, async |answer| {
        let server = ScriptedServer::start(Script::always(answer)).await;
        let client = client(&settings(choice(&server, protocol, "scripted")));
        (client, server)
    })
    .await;
}

#[tokio::test]
async fn chat_completions_keep_the_contract() {
    check(Protocol::OpenAiChat, Carries::Everything).await;
}

#[tokio::test]
async fn responses_keep_the_contract() {
    check(Protocol::OpenAiResponses, Carries::Everything).await;
}

#[tokio::test]
async fn anthropic_messages_keep_the_contract() {
    check(Protocol::Anthropic, Carries::Everything).await;
}

#[tokio::test]
async fn gemini_keeps_the_contract() {
    check(Protocol::Gemini, Carries::ParsedArguments).await;
}

/// The model that other crates test with: what it can do at all, it does as the port says. [`tell`] checks how it ends.
#[tokio::test]
async fn the_scripted_model_ends_as_real_ones_do() {
    let hello = [Message::user("hello")];
    let told = async |step: Step| tell(&ScriptedModel::new([step]), &hello).await;

    let said = told(Step::text("Grüße, 世界 🌍")).await;
    assert_eq!(said.message.text(), "Grüße, 世界 🌍");
    assert_eq!(said.end.unwrap().reason, FinishReason::Stop);

    let malformed = r#"{"path": "unclosed"#;
    let calls = [("c1", "read_file", "{}"), ("c2", "read_file", malformed)];
    let called = told(Step::calls(&calls)).await;
    let arguments: Vec<_> = called.message.calls().map(|call| &call.arguments).collect();
    let expected = [
        &Arguments::parse("{}"),
        &Arguments::Malformed(malformed.into()),
    ];
    assert_eq!(arguments, expected);
    assert_eq!(called.end.unwrap().reason, FinishReason::ToolCalls);

    assert_eq!(told(Step::empty()).await.message.text(), "");
    for reason in [
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Cut,
    ] {
        let cut = told(Step::text("I").because(reason)).await;
        assert_eq!(cut.end.unwrap().reason, reason);
    }
    for kind in [
        ModelErrorKind::Network,
        ModelErrorKind::Auth,
        ModelErrorKind::ContextTooLong,
    ] {
        let error = told(Step::error(kind)).await.end.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(!error.message.is_empty() && !error.hint.is_empty());
    }
}
