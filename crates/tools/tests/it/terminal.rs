//! `terminal`, over a terminal that runs nothing: real commands are tested where they are run.

use hermes_core::{Consent, Effect, Parallel};
use serde_json::json;

use crate::Place;

const TERMINAL: &str = "terminal";

#[tokio::test]
async fn a_command_runs_in_the_working_directory_with_the_default_timeout() {
    let place = Place::new();
    let text = place
        .call(TERMINAL, json!({"command": "make"}))
        .await
        .unwrap();
    let root = place.root().display();
    assert_eq!(
        text,
        format!("make in {root} for 180 s\n[exit code 0, 0.0 s]")
    );
}

#[tokio::test]
async fn a_call_may_choose_its_folder_and_its_timeout() {
    let place = Place::new();
    let arguments = json!({"command": "make", "workdir": "sub", "timeout": 5});
    let text = place.call(TERMINAL, arguments).await.unwrap();
    let sub = place.path("sub").display().to_string();
    assert!(
        text.starts_with(&format!("make in {sub} for 5 s")),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_run_is_answered() {
    let place = Place::new();
    for (arguments, expected) in [
        (json!({"command": "  "}), "is empty"),
        (json!({"command": "x".repeat(200_000)}), "write a script"),
        (json!({"command": "a\u{0}b"}), "NUL"),
        (
            json!({"command": "a", "timeout": 601}),
            "at most 600 seconds",
        ),
        (
            json!({"command": "a", "workdir": "missing"}),
            "does not exist",
        ),
        (json!({"command": "exit 3"}), "[exit code 3, 0.0 s]"),
    ] {
        let answer = place.answer(TERMINAL, arguments).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn only_commands_that_surely_change_nothing_are_reads() {
    let place = Place::new();
    let tool = place.tool(TERMINAL);
    let look = json!({"command": "git status | head"});
    let change = json!({"command": "git commit"});
    assert_eq!(tool.effect(&look), Effect::Read);
    assert_eq!(
        tool.parallel(&look, place.root()),
        Parallel::Reads(vec!["/".into()])
    );
    assert_eq!(tool.effect(&change), Effect::Effect);
    assert_eq!(tool.parallel(&change, place.root()), Parallel::Never);
}

#[test]
fn consent_follows_the_command() {
    let place = Place::new();
    let tool = place.tool(TERMINAL);
    let consent = |command: &str| tool.consent(&json!({"command": command}));
    assert_eq!(consent("ls"), Consent::NotNeeded);
    assert!(matches!(consent("rm -r x"), Consent::Needed { .. }));
    assert!(matches!(consent("rm -rf /"), Consent::Forbidden { .. }));
}
