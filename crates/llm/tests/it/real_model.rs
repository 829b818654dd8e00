//! A conversation with a real model, when there is one: `scripts/real-model` starts a small one and runs this.

use hermes_core::{FinishReason, Media, MediaSource, Message, ModelNotice, Part, Role};
use hermes_llm::{Client, ModelChoice, ModelSettings, Protocol, resolve};
use hermes_testkit::PIXEL_BASE64;
use hermes_testkit::contract::model::tell;

use crate::world::api_mode;

const URL: &str = "HERMES_REAL_MODEL_URL";

/// A client for each wire of the real model; none when there is no such model.
#[expect(clippy::print_stdout, reason = "who skips a test says so")]
fn clients() -> Vec<(Protocol, Client)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs the tests says where the model is"
    )]
    let Ok(root) = std::env::var(URL) else {
        println!("skipped: set {URL}");
        return Vec::new();
    };
    let root = root.trim_end_matches('/');
    let wires = [
        (Protocol::OpenAiChat, format!("{root}/v1")),
        (Protocol::OpenAiResponses, format!("{root}/v1")),
        (Protocol::Anthropic, root.to_owned()),
    ];
    let client = |(protocol, base_url)| {
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
        let resolved = resolve(&settings, &|_| None).unwrap();
        (protocol, Client::new(resolved))
    };
    wires.into_iter().map(client).collect()
}

#[tokio::test]
async fn a_real_model_talks_over_three_wires() {
    for (protocol, client) in clients() {
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

#[tokio::test]
async fn a_real_model_that_cannot_see_answers_without_the_picture() {
    for (protocol, client) in clients() {
        let look = Message {
            role: Role::User,
            origin: None,
            parts: vec![
                Part::text("Say hello to Ada in one short sentence."),
                Part::Image(Media {
                    mime: "image/png".into(),
                    source: MediaSource::Base64(PIXEL_BASE64.into()),
                }),
            ],
        };
        let told = tell(&client, &[look]).await;
        println!("{protocol:?}: {:?}", told.notices);
        assert!(!told.message.text().trim().is_empty(), "{:?}", told.end);
        let is_told = |notice: &ModelNotice| matches!(notice, ModelNotice::PicturesLeftOut { .. });
        assert!(told.notices.iter().any(is_told), "{protocol:?}");
    }
}
