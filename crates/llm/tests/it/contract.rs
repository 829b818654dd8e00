//! Every protocol keeps the promises of the `Model` port.

use hermes_llm::Protocol;
use hermes_testkit::contract::model::{Carries, model_contract};
use hermes_testkit::server::{Script, ScriptedServer};

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
