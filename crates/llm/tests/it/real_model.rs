//! A conversation with a real model, when there is one: `scripts/real-model` starts a small one and runs this.

use hermes_core::{FinishReason, Message};
use hermes_llm::{Client, ModelChoice, ModelSettings, Protocol, resolve};
use hermes_testkit::contract::model::tell;

use crate::world::api_mode;

const URL: &str = "HERMES_REAL_MODEL_URL";

#[tokio::test]
async fn a_real_model_talks_over_three_wires() {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs the tests says where the model is"
    )]
    let Ok(root) = std::env::var(URL) else {
        println!("skipped: set {URL}");
        return;
    };
    let root = root.trim_end_matches('/');
    for (protocol, base_url) in [
        (Protocol::OpenAiChat, format!("{root}/v1")),
        (Protocol::OpenAiResponses, format!("{root}/v1")),
        (Protocol::Anthropic, root.to_owned()),
    ] {
        let settings = ModelSettings {
            choice: ModelChoice {
                provider: Some("custom".into()),
                model: Some("real".into()),
                base_url: Some(base_url),
                api_mode: Some(api_mode(protocol).into()),
                api_key: None,
            },
            max_tokens: Some(48),
            ..ModelSettings::default()
        };
        let client = Client::new(resolve(&settings, &|_| None).unwrap());
        let mut messages = vec![Message::user("Say hello to Ada in one short sentence.")];
        for question in ["And now to Grace, please.", "Thank you."] {
            let told = tell(&client, &messages).await;
            let finished = told.end.unwrap();
            println!(
                "{protocol:?}: {:?} {:?}",
                told.message.text(),
                finished.usage
            );
            assert!(!told.message.text().trim().is_empty(), "{protocol:?}");
            assert!(matches!(
                finished.reason,
                FinishReason::Stop | FinishReason::Length
            ));
            assert!(finished.usage.output > 0, "{protocol:?}: {finished:?}");
            messages.push(told.message);
            messages.push(Message::user(question));
        }
    }
}
