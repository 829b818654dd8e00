//! Lists of models.

use hermes_core::Secret;
use hermes_llm::discover::{DiscoverError, list_models};
use hermes_llm::{ModelChoice, Protocol, Route, resolve};
use hermes_testkit::server::{Script, ScriptedServer};

use crate::world::{choice, settings};

fn route(choice: ModelChoice) -> Route {
    resolve(&settings(choice), &|_| None).unwrap().primary
}

#[tokio::test]
async fn the_models_of_an_endpoint_are_listed() {
    let server = ScriptedServer::start(Script::default().model("one").model("two")).await;
    for protocol in [Protocol::OpenAiChat, Protocol::Anthropic, Protocol::Gemini] {
        let offered = list_models(&route(choice(&server, protocol, "m")))
            .await
            .unwrap();
        let names: Vec<_> = offered
            .iter()
            .map(|offered| offered.model.as_str())
            .collect();
        assert_eq!(names, ["one", "two"], "{protocol:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_named() {
    let error = list_models(&route(ModelChoice {
        provider: Some("custom".into()),
        model: Some("m".into()),
        base_url: Some("http://127.0.0.1:9/v1".into()),
        api_key: Some(Secret::new("k")),
        ..ModelChoice::default()
    }))
    .await
    .unwrap_err();
    assert!(matches!(error, DiscoverError::Unreachable { .. }));
    assert_eq!(
        error.to_string(),
        "cannot reach `http://127.0.0.1:9/v1/models`"
    );
}
