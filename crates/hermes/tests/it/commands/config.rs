//! `hermes config`.

use std::fs;
use std::time::Duration;

use hermes_testkit::process::Hermes;
use serde_json::json;

use super::{KEY, contains, json, refused, run, stdout};
use crate::setting::{bare, write_config};

const SOON: Duration = Duration::from_secs(30);
const BROKEN: &str = "agent:\n  max_turns: [1\nmodel: x\n";

fn configured() -> Hermes {
    let hermes = bare();
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "agent:\n  max_turns: 7 # seven\n",
    );
    hermes
}

fn config_text(hermes: &Hermes) -> String {
    fs::read_to_string(hermes.home().join("config.yaml")).unwrap()
}

#[test]
fn a_value_is_printed_as_scripts_want_it() {
    let hermes = configured();
    let get = |key: &str| stdout(&hermes, &["config", "get", key]);
    assert_eq!(get("agent.max_turns"), "7\n");
    assert_eq!(get("compression.enabled"), "true\n");
    assert_eq!(get("model.provider"), "custom\n");
    assert_eq!(get("model.max_tokens"), "null\n");
    assert_eq!(get("toolsets"), "- hermes-cli\n");
    contains(&get("agent"), &["max_turns: 7\n", "api_max_retries: 3\n"]);
    assert_eq!(
        json(&hermes, &["config", "get", "agent", "--json"])["max_turns"],
        7
    );
    assert_eq!(
        json(&hermes, &["config", "get", "model.provider", "--json"]),
        json!("custom")
    );
}

#[test]
fn a_missing_setting_gets_near_matches() {
    let hermes = configured();
    for command in ["get", "explain"] {
        refused(
            &run(&hermes, &["config", command, "agent.max_turn"]),
            1,
            &["agent.max_turn", "did you mean `agent.max_turns`"],
        );
        refused(
            &run(&hermes, &["config", command, "zzz.yyy"]),
            1,
            &["zzz.yyy", "hermes config show"],
        );
        refused(
            &run(&hermes, &["config", command, "a..b"]),
            1,
            &["a..b", "empty"],
        );
    }
}

#[test]
fn secrets_are_masked_everywhere() {
    let hermes = configured();
    stdout(&hermes, &["config", "set", "OPENAI_API_KEY", KEY]);
    for args in [
        &["config"][..],
        &["config", "show"],
        &["config", "get", "model"],
        &["config", "get", "model.api_key"],
        &["config", "get", "model", "--json"],
        &["config", "get", "OPENAI_API_KEY"],
        &["config", "explain", "model.api_key"],
        &["config", "explain", "model"],
    ] {
        let text = stdout(&hermes, args);
        contains(&text, &["***"]);
        assert!(!text.contains("0123456789"), "{args:?}: {text}");
    }
    contains(
        &fs::read_to_string(hermes.home().join(".env")).unwrap(),
        &[KEY],
    );
}

#[test]
fn a_change_keeps_comments_and_can_be_taken_back() {
    let hermes = configured();
    let before = config_text(&hermes);
    contains(
        &stdout(&hermes, &["config", "set", "agent.max_turns", "8"]),
        &["agent.max_turns", "config.yaml"],
    );
    assert_eq!(
        config_text(&hermes),
        before.replace("7 # seven", "8 # seven")
    );
    stdout(&hermes, &["config", "unset", "agent.max_turns"]);
    assert_eq!(
        stdout(&hermes, &["config", "get", "agent.max_turns"]),
        "90\n"
    );
    refused(
        &run(&hermes, &["config", "unset", "agent.max_turns"]),
        1,
        &["not in your settings"],
    );
    contains(&config_text(&hermes), &["# written by hand"]);
}

#[test]
fn at_a_terminal_settings_are_looked_for_explained_and_changed_with_the_same_checks() {
    let hermes = configured();
    let before = config_text(&hermes);
    let mut terminal = hermes.clone().args(["config"]).spawn_in_terminal();
    terminal.expect("words to look for", SOON);
    terminal.send("requests in one turn\n");
    terminal.expect("agent.max_turns", SOON);
    terminal.expect("words to look for", SOON);
    terminal.send("1\n");
    terminal.expect("model requests in one turn", SOON);
    terminal.expect("agent.max_turns = 7", SOON);
    terminal.expect("built in: 90", SOON);
    terminal.expect("new value", SOON);
    terminal.send("many\n");
    terminal.expect("must be a number", SOON);
    terminal.expect("new value", SOON);
    assert_eq!(config_text(&hermes), before);
    terminal.send("8\n");
    terminal.expect("saved in", SOON);
    // The list again, with the new value, and back to where it began.
    terminal.expect("agent.max_turns", SOON);
    terminal.expect("8", SOON);
    terminal.expect("words to look for", SOON);
    terminal.send("\n");
    terminal.expect("words to look for", SOON);
    assert_eq!(
        config_text(&hermes),
        before.replace("7 # seven", "8 # seven")
    );
    terminal.send("agent.max_turns\n");
    terminal.expect("new value", SOON);
    terminal.send("-\n");
    terminal.expect("saved in", SOON);
    terminal.expect("words to look for", SOON);
    terminal.send("q\n");
    assert_eq!(terminal.wait(SOON), Some(0));
    assert_eq!(
        stdout(&hermes, &["config", "get", "agent.max_turns"]),
        "90\n"
    );
}

#[test]
fn a_secret_is_asked_for_without_showing_it() {
    let hermes = configured();
    let mut terminal = hermes.clone().args(["config"]).spawn_in_terminal();
    terminal.expect("words to look for", SOON);
    terminal.send("model.api_key\n");
    terminal.expect("new value", SOON);
    terminal.send("sk-other-9876543210\n");
    terminal.expect("saved in", SOON);
    terminal.expect("words to look for", SOON);
    assert!(!terminal.output().contains("9876543210"));
    contains(&config_text(&hermes), &["sk-other-9876543210"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_and_an_unknown_name_is_kept_with_a_warning() {
    let hermes = configured();
    let before = config_text(&hermes);
    refused(
        &run(&hermes, &["config", "set", "agent.max_turns", "many"]),
        1,
        &["must be a number", "many"],
    );
    assert_eq!(config_text(&hermes), before);
    let output = run(&hermes, &["config", "set", "agent.max_trns", "5"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stderr,
        &["warning", "did you mean `agent.max_turns`"],
    );
}

#[test]
fn an_explanation_names_every_layer_and_the_one_that_counts() {
    let hermes = configured().env("HERMES_INFERENCE_MODEL", "other");
    let text = stdout(&hermes, &["config", "explain", "model.default"]);
    contains(
        &text,
        &[
            "model.default = other",
            "HERMES_INFERENCE_MODEL",
            "config.yaml:4:12",
            "built-in default",
        ],
    );
    let (first, second) = (text.find("in effect"), text.find("overridden"));
    assert!(first.is_some() && first < second, "{text}");
}

#[test]
fn settings_without_an_effect_are_told_and_no_mistake() {
    let hermes = configured();
    fs::write(
        hermes.home().join("config.yaml"),
        "tts: {provider: edge}\ndisplay: {skin: mono}\n",
    )
    .unwrap();
    let checked = stdout(&hermes, &["config", "check"]);
    contains(
        &checked,
        &[
            "config.yaml:1:6: the settings of `tts` have no effect in this version",
            "config.yaml:2:17: `display.skin` has no effect in this version",
            "ok\n",
        ],
    );
    let output = run(&hermes, &["doctor", "--offline"]);
    contains(
        &output.stdout,
        &[
            "! settings: 2 settings without effect",
            "`hermes config check`",
        ],
    );
}

#[test]
fn the_check_lists_mistakes_with_their_place() {
    let hermes = configured();
    assert_eq!(stdout(&hermes, &["config", "check"]), "ok\n");
    fs::write(
        hermes.home().join("config.yaml"),
        "agent:\n  max_trns: 5\n  max_turns: many\n",
    )
    .unwrap();
    fs::write(hermes.home().join(".env"), "A=1\nnonsense\n").unwrap();
    let output = run(&hermes, &["config", "check"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(
        &output.stdout,
        &[
            "config.yaml:2:3",
            "agent.max_turns",
            "config.yaml:3:14",
            ".env:2",
        ],
    );
}

#[test]
fn a_broken_file_is_explained_with_line_and_column_and_never_touched() {
    let hermes = bare();
    fs::write(hermes.home().join("config.yaml"), BROKEN).unwrap();
    for args in [
        &["config", "set", "agent.max_turns", "5"][..],
        &["config", "unset", "agent.max_turns"],
        &["config", "get", "agent.max_turns"],
        &["config", "show"],
    ] {
        refused(
            &run(&hermes, args),
            1,
            &["config.yaml", "line 3, column", "hermes config edit"],
        );
    }
    let output = run(&hermes, &["config", "check"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(&output.stdout, &["line 3, column"]);
    contains(&stdout(&hermes, &["config", "path"]), &["config.yaml"]);
    contains(&stdout(&hermes, &["config", "env-path"]), &[".env"]);
    assert_eq!(config_text(&hermes), BROKEN);
}

#[test]
fn a_directory_in_its_place_is_told() {
    let hermes = bare();
    fs::create_dir(hermes.home().join("config.yaml")).unwrap();
    refused(
        &run(&hermes, &["config", "set", "agent.max_turns", "5"]),
        1,
        &["config.yaml", "directory"],
    );
    refused(
        &run(&hermes, &["config", "show"]),
        1,
        &["config.yaml", "directory"],
    );
}

#[test]
fn editing_needs_a_terminal() {
    refused(
        &run(&configured(), &["config", "edit"]),
        2,
        &["needs a terminal", "config set"],
    );
}

#[test]
fn after_editing_mistakes_are_shown_and_can_be_mended_at_once() {
    let hermes = configured();
    // The first call breaks the file, the second mends it.
    let editor = hermes.work_folder().join("editor");
    let script = "#!/bin/sh\nif [ -e edited ]; then echo 'agent: {max_turns: 9}' > \"$2\"; else touch edited; echo 'agent: [' > \"$2\"; fi\n";
    fs::write(&editor, script).unwrap();
    fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let edit = hermes
        .clone()
        .env("EDITOR", format!("{} --wait", editor.display()));
    let mut terminal = edit.args(["config", "edit"]).spawn_in_terminal();
    let wait = Duration::from_secs(10);
    terminal.expect("line 2, column", wait);
    terminal.expect("edit again? [Y/n]", wait);
    terminal.send("\r");
    terminal.expect("ok", wait);
    assert_eq!(terminal.wait(wait), Some(0));
    assert_eq!(
        stdout(&hermes, &["config", "get", "agent.max_turns"]),
        "9\n"
    );
}

#[test]
fn an_editor_that_is_not_there_is_told() {
    let edit = configured()
        .env("VISUAL", "no-such-editor")
        .args(["config", "edit"]);
    let mut terminal = edit.spawn_in_terminal();
    terminal.expect("no-such-editor", Duration::from_secs(10));
    terminal.expect("EDITOR", Duration::from_secs(10));
    assert_eq!(terminal.wait(Duration::from_secs(10)), Some(1));
}

#[test]
fn keys_that_a_platform_does_not_know_are_told_and_those_that_are_read_are_not() {
    let hermes = bare();
    let settings = "privacy: {redact_pii: true}
gateway:
  session_reset: {mode: idle}
  telegram: {require_mentoin: true}
platforms:
  telegram:
    allowed_user: ['7']
    dm_policy: disabled
    group_policy: allowlist
    notice_delivery: private
    reply_prefix: '> '
    channel_prompts: {'-1': Be brief.}
    allow_admin_from: ['7']
";
    std::fs::write(hermes.home().join("config.yaml"), settings).unwrap();
    let checked = run(&hermes, &["config", "check"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for words in [
        "unknown setting `platforms.telegram.allowed_user` (did you mean `allowed_users`?)",
        "unknown setting `gateway.telegram.require_mentoin` (did you mean `require_mention`?)",
        "`platforms.telegram.notice_delivery` has no effect",
        "`platforms.telegram.reply_prefix` has no effect",
        "config.yaml:7",
    ] {
        assert!(
            checked.stdout.contains(words),
            "{words}: {}",
            checked.stdout
        );
    }
    for words in [
        "redact_pii",
        "session_reset",
        "policy",
        "channel_prompts",
        "admin",
    ] {
        assert!(
            !checked.stdout.contains(words),
            "{words}: {}",
            checked.stdout
        );
    }
}
