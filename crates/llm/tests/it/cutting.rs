//! What is understood does not depend on where the network cuts the bytes.

use hermes_core::{Message, Random};
use hermes_llm::Protocol;
use hermes_testkit::contract::model::tell;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::json;

use crate::world::{choice, client, settings};

const ROUNDS: usize = 12;

#[tokio::test]
async fn random_cuts_change_nothing() {
    let random = Random::from_system();
    let seed = random.next_u64();
    let random = Random::seeded(seed);
    let answer = Answer::text("<think>或许 🤔</think>\n\nStraße\r\nnaïve 🦀")
        .reasoning("思考\u{2028}x")
        .also_call("c1", "read_file", json!({"path": "日本語/\u{7f}\"\\"}))
        .pieces(6);
    for protocol in [
        Protocol::OpenAiChat,
        Protocol::OpenAiResponses,
        Protocol::Anthropic,
        Protocol::Gemini,
    ] {
        let whole = understood(protocol, answer.clone()).await;
        for _ in 0..ROUNDS {
            let cuts: Vec<usize> = (0..8).map(|_| 1 + random.below(40) as usize).collect();
            let cut = answer.clone().cut_at(cuts.clone());
            let cut = if random.below(2) == 0 {
                cut.crlf()
            } else {
                cut
            };
            assert_eq!(
                understood(protocol, cut).await,
                whole,
                "{protocol:?}, seed {seed}, {cuts:?}"
            );
        }
    }
}

async fn understood(protocol: Protocol, answer: Answer) -> Message {
    let server = ScriptedServer::start(Script::always(answer)).await;
    let client = client(&settings(choice(&server, protocol, "scripted")));
    let told = tell(&client, &[Message::user("hello")]).await;
    told.end.unwrap();
    told.message
}
