//! What the program remembers: notes over several runs, and the commands that show and take them back.

use std::fs;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);

fn note(content: &str) -> Answer {
    Answer::call(
        "m1",
        "memory",
        json!({"action": "add", "target": "user", "content": content}),
    )
}

fn prompt(setting: &Setting, request: usize) -> String {
    setting.server.requests()[request].json["messages"][0]["content"].to_string()
}

#[tokio::test]
async fn what_one_run_notes_the_next_one_knows_until_it_is_taken_back() {
    let setting = Setting::new(Script::new([
        note("Prefers tea"),
        Answer::text("noted"),
        Answer::text("tea"),
        Answer::text("none"),
    ]))
    .await;
    assert_eq!(setting.run(&["-z", "I prefer tea"]).code, Some(0));
    assert_eq!(setting.run(&["-z", "what do I drink?"]).code, Some(0));
    assert!(!prompt(&setting, 0).contains("Prefers tea"));
    assert!(prompt(&setting, 2).contains("Prefers tea"));

    let listed = setting.run(&["memory"]).stdout;
    assert!(
        listed.contains("USER.md (0% — 11/1375 chars)\n  - Prefers tea"),
        "{listed}"
    );
    let found = setting.run(&["memory", "search", "TEA"]).stdout;
    assert_eq!(found, "USER.md: Prefers tea\n");
    let history: Value =
        serde_json::from_str(&setting.run(&["memory", "history", "--json"]).stdout).unwrap();
    assert_eq!(history[0]["author"], "agent");
    assert_eq!(history[0]["after"], "Prefers tea");
    assert!(
        history[0]["session"].is_string() && history[0]["turn"].is_string(),
        "{history}"
    );
    let shown = setting.run(&["learning", "show", "1"]).stdout;
    assert!(shown.contains("+Prefers tea"), "{shown}");
    let exported: Value = serde_json::from_str(&setting.run(&["memory", "export"]).stdout).unwrap();
    assert_eq!(exported["notes"]["user"]["entries"], json!(["Prefers tea"]));

    let undone = setting.run(&["learning", "undo", "1"]);
    assert_eq!(
        (undone.code, undone.stdout.as_str()),
        (
            Some(0),
            "took back change 1: added: Prefers tea (change 2)\n"
        )
    );
    let again = setting.run(&["memory", "undo", "1"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(
        again.stderr.contains("was taken back already, by change 2"),
        "{again:?}"
    );
    assert_eq!(setting.run(&["-z", "and now?"]).code, Some(0));
    assert!(!prompt(&setting, 3).contains("Prefers tea"));
    let log = setting.run(&["learning", "log"]).stdout;
    assert!(log.contains("(taken back by 2)"), "{log}");
}

#[tokio::test]
async fn with_write_approval_nothing_is_noted_where_nobody_can_be_asked() {
    let more = "memory:\n  write_approval: true\n";
    let script = Script::new([note("Prefers tea"), Answer::text("could not")]);
    let setting = Setting::with(script, more).await;
    let output = setting.run(&["-z", "I prefer tea"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!setting.hermes.home().join("memories/USER.md").exists());
}

#[tokio::test]
async fn notes_are_seen_and_taken_back_in_a_conversation() {
    let setting = Setting::new(Script::new([note("Prefers tea"), Answer::text("noted")])).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("I prefer tea\n");
    terminal.expect("noted", SOON);
    terminal.expect("›", SOON);
    terminal.send("/memory\n");
    terminal.expect("- Prefers tea", SOON);
    terminal.send("/learned\n");
    terminal.expect("added: Prefers tea", SOON);
    terminal.send("/learned undo 1\n");
    terminal.expect("took back change 1", SOON);
    terminal.send("/memory undo 99\n");
    terminal.expect("there is no change 99", SOON);
    let notes = setting.hermes.home().join("memories/USER.md");
    assert_eq!(fs::read_to_string(notes).unwrap(), "");
}
