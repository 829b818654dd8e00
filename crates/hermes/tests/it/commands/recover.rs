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

/// A home with two sessions in its database, and a third in the log that a kill left.
async fn killed_after_two() -> Setting {
    let setting = talked(&["the first of all", "the second of all"]).await;
    let hermes = &setting.hermes;
    let slow = Script::new([Answer::text("…").stall_after(0)]);
    let silent = hermes_testkit::server::ScriptedServer::start(slow).await;
    crate::setting::write_config(hermes, &silent.url(), "");
    let running = hermes.clone().args(["-z", "the third of all"]).spawn();
    let deadline = Instant::now() + Duration::from_secs(30);
    while silent.requests().is_empty() {
        assert!(Instant::now() < deadline, "{}", running.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill_9();
    crate::setting::write_config(hermes, &setting.server.url(), "");
    setting
}

#[tokio::test]
async fn a_log_that_was_cut_is_said_by_every_command_until_it_is_recovered() {
    let setting = killed_after_two().await;
    let hermes = &setting.hermes;
    let log = hermes.home().join("hermes.db-wal");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "list"],
        &["sessions", "stats"],
        &["-z", "hello"],
    ] {
        let words = ["hermes.db-wal", "is lost", "hermes sessions recover"];
        super::refused(&run(hermes, args), 1, &words);
    }
    let output = run(hermes, &["sessions", "recover"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(&output.stderr, &["hermes.db-wal", "is lost"]);
    contains(&output.stdout, &["saved ", "the damaged file is kept as"]);
    contains(
        &stdout(hermes, &["sessions", "list"]),
        &["the first of all", "the second of all"],
    );
    contains(
        &stdout(hermes, &["sessions", "recover"]),
        &["nothing to recover"],
    );
    contains(&stdout(hermes, &["-z", "hello"]), &["a fine answer"]);
}

#[tokio::test]
async fn of_a_damaged_database_what_can_be_read_is_saved_and_counted() {
    let setting = talked(&["the first of all", "the second of all"]).await;
    let hermes = &setting.hermes;
    let path = hermes.home().join("hermes.db");
    let whole = std::fs::read(&path).unwrap();
    // The table of sessions comes first, its indexes later.
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    super::refused(
        &run(hermes, &["sessions", "list"]),
        1,
        &["hermes.db", "damaged", "hermes sessions recover"],
    );
    let output = run(hermes, &["sessions", "recover"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(&output.stdout, &["saved 2 sessions", "kept as"]);
    contains(
        &stdout(hermes, &["sessions", "list"]),
        &["the first of all"],
    );
}

#[tokio::test]
async fn where_nothing_can_be_read_recovery_says_so_and_touches_nothing() {
    let setting = talked(&["the first of all"]).await;
    let hermes = &setting.hermes;
    let path = hermes.home().join("hermes.db");
    let whole = std::fs::read(&path).unwrap();
    let mut headless = whole.clone();
    headless[..16384].fill(0);
    for damaged in [
        b"no database at all".repeat(100),
        headless,
        whole[..16384].to_vec(),
        vec![7; 5],
    ] {
        std::fs::write(&path, &damaged).unwrap();
        let output = run(hermes, &["sessions", "recover"]);
        assert_eq!(output.code, Some(1), "{output:?}");
        contains(
            &output.stderr,
            &["hermes.db", "damaged", "error: nothing of", " hint: "],
        );
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
    }
}
