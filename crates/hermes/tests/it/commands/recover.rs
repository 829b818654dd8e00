//! `hermes sessions recover`, after a real `kill -9`.

use std::time::{Duration, Instant};

use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use super::{contains, ids, json, run, stdout, talked};
use crate::setting::Setting;

/// Starts a run whose model falls silent, and waits until it is being asked.
fn ask_in_vain(setting: &Setting) -> Running {
    let running = setting.hermes.clone().args(["-z", "a long story"]).spawn();
    let deadline = Instant::now() + Duration::from_secs(10);
    while setting.server.requests().is_empty() {
        assert!(
            Instant::now() < deadline,
            "the model was not asked: {}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

/// A home with a turn that was cut short, and a model that says `answers` afterwards.
async fn cut_short(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let silence = Answer::text("…").stall_after(0);
    let setting = Setting::new(Script::new([silence].into_iter().chain(answers))).await;
    ask_in_vain(&setting).kill_9();
    setting
}

#[tokio::test]
async fn a_turn_that_a_kill_cut_short_is_marked_and_finished() {
    let setting = cut_short([Answer::text("once upon a time")]).await;
    let hermes = &setting.hermes;
    contains(
        &stdout(hermes, &["sessions"]),
        &["! a long story", "hermes sessions recover"],
    );
    contains(
        &stdout(hermes, &["status"]),
        &["1 turn", "hermes sessions recover"],
    );
    contains(
        &stdout(hermes, &["doctor", "--fix"]),
        &["! turns", "hermes sessions recover"],
    );
    let id = ids(hermes).remove(0);
    contains(
        &stdout(hermes, &["sessions", "recover"]),
        &[&id, "finished: once upon a time"],
    );
    contains(
        &stdout(hermes, &["sessions", "recover"]),
        &["nothing to recover"],
    );
    contains(
        &stdout(hermes, &["sessions", "recover", &id]),
        &["nothing to recover"],
    );
    assert!(!stdout(hermes, &["sessions"]).contains('!'));
    contains(
        &stdout(hermes, &["sessions", "show", &id]),
        &["once upon a time"],
    );
}

#[tokio::test]
async fn a_turn_that_cannot_be_finished_is_closed_with_the_reason() {
    let error = json!({"error": {"message": "this key is not valid"}});
    let setting = cut_short([Answer::status(401, error)]).await;
    let output = run(&setting.hermes, &["sessions", "recover"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(&output.stdout, &["closed: ", "this key is not valid"]);
    assert_eq!(
        json(&setting.hermes, &["sessions", "stats", "--json"])["unfinished_turns"],
        0
    );
}

#[tokio::test]
async fn a_session_in_use_is_left_alone() {
    let setting = Setting::new(Script::new([Answer::text("…").stall_after(0)])).await;
    let running = ask_in_vain(&setting);
    let output = run(&setting.hermes, &["sessions", "recover"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stderr,
        &["skipped", "in use by another hermes process"],
    );
    let id = ids(&setting.hermes).remove(0);
    let output = run(&setting.hermes, &["sessions", "delete", &id, "--yes"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(&output.stderr, &["in use by another hermes process"]);
    running.kill_9();
}

#[tokio::test]
async fn recovery_without_a_model_says_what_is_missing() {
    let setting = cut_short([]).await;
    std::fs::write(setting.hermes.home().join("config.yaml"), "").unwrap();
    let output = run(&setting.hermes, &["sessions", "recover"]);
    super::refused(&output, 1, &["no model provider is configured"]);
}

#[tokio::test]
async fn with_every_turn_ended_there_is_nothing_to_do() {
    let setting = talked(&["hi"]).await;
    contains(
        &stdout(&setting.hermes, &["sessions", "recover"]),
        &["nothing to recover"],
    );
}
