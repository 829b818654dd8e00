//! `hermes model`.

use std::fs;

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
