//! `hermes model`.

use std::fs;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};

use super::{KEY, contains, json, refused, run, stdout};
use crate::setting::{Setting, bare, write_config};

#[test]
fn the_chosen_model_is_shown_with_where_it_was_set_and_without_its_key() {
    let hermes = bare();
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    let text = stdout(&hermes, &["model"]);
    contains(
        &text,
        &[
            "test-model",
            "custom",
            "http://127.0.0.1:9/v1",
            "config.yaml:4:12",
            "found in",
            "config.yaml:6:12",
            "hermes model set",
        ],
    );
    assert!(!text.contains(KEY), "{text}");
    let hermes = bare().env("OPENROUTER_API_KEY", KEY);
    let text = stdout(&hermes, &["model"]);
    contains(
        &text,
        &[
            "openrouter",
            "found in OPENROUTER_API_KEY",
            "the provider's default",
        ],
    );
    assert!(!text.contains(KEY), "{text}");
}

#[tokio::test]
async fn a_run_may_name_an_endpoint_of_ones_own_or_the_provider_of_the_file() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    let url = setting.server.url();
    let own = format!("providers:\n  mine:\n    base_url: {url}\n");
    write_config(&setting.hermes, &url, &own);
    for model in ["custom:big", "local:big", "mine:small:1b", "big:1b"] {
        contains(&stdout(&setting.hermes, &["-z", "hi", "-m", model]), &["x"]);
    }
    let asked = setting.server.requests();
    let asked: Vec<_> = asked.iter().map(|request| &request.json["model"]).collect();
    assert_eq!(asked, ["big", "big", "small:1b", "big:1b"]);
}

/// Nothing that redaction would find by its shape.
const HEADER: &str = "blue-lantern-42";

#[tokio::test]
async fn what_is_set_for_a_provider_goes_along_and_its_headers_are_never_shown() {
    let setting = Setting::new(Script::always(Answer::text("x")).model("m")).await;
    let url = setting.server.url();
    let entry = format!(
        "base_url: {url}, extra_headers: {{X-Gate: {HEADER}}}, extra_body: {{top_k: 3}}, models: {{m: {{context_length: 4096}}}}"
    );
    let config = format!(
        "model: {{provider: lab, default: m}}\nproviders:\n  lab: {{{entry}}}\n\
         custom_providers:\n- {{name: old, {entry}}}\n"
    );
    fs::write(setting.hermes.home().join("config.yaml"), config).unwrap();
    for model in ["lab:m", "old:m"] {
        stdout(&setting.hermes, &["-z", "hi", "-m", model]);
    }
    let list = stdout(&setting.hermes, &["model", "list", "lab"]);
    let asked = setting.server.requests();
    for request in &asked {
        assert_eq!(request.header("x-gate"), Some(HEADER), "{}", request.path);
    }
    let fields: Vec<_> = asked.iter().map(|request| &request.json["top_k"]).collect();
    assert_eq!(fields, [&3.into(), &3.into(), &serde_json::Value::Null]);
    let shown = stdout(&setting.hermes, &["model"]);
    contains(&shown, &["4096 tokens"]);
    let settings = stdout(&setting.hermes, &["config", "get", "providers"]);
    contains(&settings, &["X-Gate", "***"]);
    for text in [list, shown, settings] {
        assert!(!text.contains(HEADER), "{text}");
    }
}

#[tokio::test]
async fn what_a_server_states_of_its_model_is_remembered_and_nothing_is_guessed() {
    let script = Script::always(Answer::text("x")).model("test-model");
    let setting = Setting::new(script.context_length(4_096)).await;
    let shown = stdout(&setting.hermes, &["model"]);
    assert!(!shown.contains("tokens"), "{shown}");
    contains(
        &stdout(&setting.hermes, &["model", "list"]),
        &["test-model (4096 tokens)"],
    );
    let asked = setting.server.requests().len();
    contains(&stdout(&setting.hermes, &["model"]), &["4096 tokens"]);
    assert_eq!(setting.server.requests().len(), asked);
    stdout(
        &setting.hermes,
        &["config", "set", "model.context_length", "2048"],
    );
    contains(&stdout(&setting.hermes, &["model"]), &["2048 tokens"]);
    let cache = setting.hermes.home().join("cache/context_lengths.json");
    fs::write(cache, "{broken").unwrap();
    stdout(
        &setting.hermes,
        &["config", "unset", "model.context_length"],
    );
    let shown = stdout(&setting.hermes, &["model"]);
    assert!(!shown.contains("tokens"), "{shown}");
}

#[tokio::test]
async fn a_provider_that_is_known_takes_options_and_its_requests_end_in_time() {
    let late = Answer::text("x").headers_delay(Duration::from_secs(20));
    let more =
        "agent: {api_max_retries: 1}\nproviders:\n  custom: {request_timeout_seconds: 0.2}\n";
    let setting = Setting::with(Script::always(late), more).await;
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(&output.stderr, &["0.2 s"]);
}

#[test]
fn options_of_the_wrong_kind_are_refused_where_they_stand_without_their_value() {
    let hermes = bare();
    for (entry, told) in [
        (
            "extra_headers: {X-Gate: [blue-lantern-42]}",
            "`providers.lab.extra_headers.X-Gate` must be text",
        ),
        (
            "extra_headers: blue-lantern-42",
            "`providers.lab.extra_headers` must be a section",
        ),
        (
            "extra_body: 7",
            "`providers.lab.extra_body` must be a section",
        ),
        (
            "request_timeout_seconds: soon",
            "`providers.lab.request_timeout_seconds` must be a number of seconds",
        ),
        ("models: 7", "`providers.lab.models` must be a list"),
    ] {
        let entry = format!("providers:\n  lab: {{base_url: u, {entry}}}\n");
        write_config(&hermes, "http://127.0.0.1:9/v1", &entry);
        let output = run(&hermes, &["-z", "hi"]);
        assert_ne!(output.code, Some(0), "{output:?}");
        contains(&output.stderr, &[told, "config.yaml:8:"]);
        assert!(!output.stderr.contains(HEADER), "{output:?}");
    }
}

#[test]
fn without_a_model_it_says_how_to_get_one() {
    let text = stdout(&bare(), &["model"]);
    contains(
        &text,
        &[
            "no model can be asked",
            "OPENROUTER_API_KEY",
            "hermes model list",
            "hermes model set",
        ],
    );
}

#[tokio::test]
async fn the_list_shows_every_provider_and_the_models_of_the_chosen_one() {
    let script = Script::always(Answer::text("x"))
        .model("test-model")
        .model("other-model");
    let setting = Setting::new(script).await;
    let hermes = setting.hermes.clone().env("GROQ_API_KEY", KEY);
    let text = stdout(&hermes, &["model", "list"]);
    contains(
        &text,
        &[
            "*  custom",
            "key in GROQ_API_KEY",
            "no key (set XAI_API_KEY)",
            "2 models of custom",
            "other-model",
        ],
    );
    let list = json(&hermes, &["model", "list", "custom", "--json"]);
    assert_eq!(
        (&list["provider"], &list["models"][1]["model"]),
        (&"custom".into(), &"other-model".into())
    );
}

#[test]
fn without_a_network_the_usual_model_is_named() {
    let hermes = bare()
        .env("OPENROUTER_API_KEY", KEY)
        .env("OPENROUTER_BASE_URL", "http://127.0.0.1:9/v1");
    let text = stdout(&hermes, &["model", "list", "openrouter"]);
    contains(
        &text,
        &["cannot be listed", "127.0.0.1:9", "is its usual model"],
    );
}

#[test]
fn a_choice_is_written_and_counts_from_then_on() {
    let hermes = bare().env("ANTHROPIC_API_KEY", KEY);
    contains(
        &stdout(&hermes, &["model", "set", "anthropic:claude-x"]),
        &["anthropic:claude-x", "config.yaml"],
    );
    contains(&stdout(&hermes, &["model"]), &["claude-x", "anthropic"]);
    stdout(
        &hermes,
        &["model", "set", "qwen3:8b", "--provider", "ollama"],
    );
    contains(
        &stdout(&hermes, &["model"]),
        &["qwen3:8b", "ollama", "none needed"],
    );
    let output = run(&hermes, &["model", "set", "grok-9", "--provider", "xai"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stderr,
        &["warning: there is no API key for xAI", "XAI_API_KEY"],
    );
}

#[test]
fn an_unknown_provider_gets_near_matches_and_changes_nothing() {
    let hermes = bare();
    refused(
        &run(&hermes, &["model", "set", "m", "--provider", "antropic"]),
        1,
        &["`antropic`", "anthropic"],
    );
    refused(
        &run(&hermes, &["model", "list", "antropic"]),
        1,
        &["`antropic`", "anthropic"],
    );
    refused(&run(&hermes, &["model", "set", " "]), 2, &["empty"]);
    assert!(!hermes.home().join("config.yaml").exists());
    let output = run(&hermes, &["model", "set", "antropic:m"]);
    contains(&output.stderr, &["did you mean the provider `anthropic`"]);
}

#[test]
fn a_key_in_the_settings_is_never_left_to_another_provider() {
    let hermes = bare();
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    let before = fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    let output = run(&hermes, &["model", "set", "xai:grok-9"]);
    refused(
        &output,
        1,
        &[
            "model.api_key",
            "config.yaml:6:12",
            "config unset model.api_key",
        ],
    );
    assert_eq!(
        fs::read_to_string(hermes.home().join("config.yaml")).unwrap(),
        before
    );
    stdout(&hermes, &["config", "unset", "model.api_key"]);
    let output = run(&hermes, &["model", "set", "xai:grok-9"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stderr,
        &["removed model.base_url (`http://127.0.0.1:9/v1`)"],
    );
    assert_eq!(
        stdout(&hermes, &["config", "get", "model.provider"]),
        "xai\n"
    );
}
