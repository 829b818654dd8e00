//! `hermes status`.

use super::{KEY, contains, json, refused, run, stdout, talked};
use crate::setting::bare;

#[tokio::test]
async fn it_shows_what_is_configured_and_no_key() {
    let setting = talked(&["hi"]).await;
    let text = stdout(&setting.hermes, &["status"]);
    let home = setting.hermes.home();
    contains(
        &text,
        &[
            home.to_str().unwrap(),
            "default",
            "custom:test-model",
            "found in",
            "terminal",
            "1 (2 messages)",
            env!("CARGO_PKG_VERSION"),
        ],
    );
    // How much depends on how much of the log is not in the file yet.
    let database = text.lines().find(|line| line.starts_with("database"));
    let is_size = |line: &str| line.ends_with(" kB") || line.ends_with(" MB");
    assert!(database.is_some_and(is_size), "{text}");
    assert!(!text.contains(KEY), "{text}");
    let status = json(&setting.hermes, &["status", "--json"]);
    assert_eq!(status["model"]["model"], "test-model");
    assert_eq!(status["sessions"]["sessions"], 1);
    assert!(!status.to_string().contains(KEY), "{status}");
}

#[test]
fn a_home_with_nothing_in_it_is_told_as_it_is() {
    contains(
        &stdout(&bare(), &["status"]),
        &["no model provider is configured", "0 (0 messages)", "none"],
    );
    assert!(json(&bare(), &["status", "--json"])["model"]["error"].is_string());
}

#[test]
fn an_unknown_profile_is_refused() {
    refused(&run(&bare(), &["-p", "work", "status"]), 1, &["work"]);
}

#[test]
fn a_home_that_cannot_be_made_is_told() {
    let hermes = bare().env("HERMES_HOME", "/proc/no-home");
    refused(
        &run(&hermes, &["status"]),
        1,
        &["cannot create `/proc/no-home`", "HERMES_HOME"],
    );
    refused(
        &run(&hermes, &["config", "set", "agent.max_turns", "5"]),
        1,
        &["cannot create"],
    );
}

/// Who comes from Hermes Agent hears what of their home is not used yet, wherever they look.
#[test]
fn what_of_a_former_home_is_not_used_is_said() {
    let hermes = bare();
    let home = hermes.home();
    for folder in ["cron", "memories"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    let unused = ["state.db", "cron/jobs.json"];
    for file in unused.iter().chain(&["memories/MEMORY.md"]) {
        std::fs::write(home.join(file), "something").unwrap();
    }
    let settings = "auxiliary:\n  vision: {model: x}\n  approval: {extra_body: {a: 1}}\ncompression: {in_place: false}\n";
    std::fs::write(home.join("config.yaml"), settings).unwrap();
    let status = stdout(&hermes, &["status"]);
    contains(&status, &unused);
    assert!(!status.contains("MEMORY.md"), "notes are used: {status}");
    contains(&run(&hermes, &["doctor", "--offline"]).stdout, &unused);
    let migrate = stdout(&hermes, &["config", "migrate"]);
    contains(&migrate, &unused);
    contains(&migrate, &["config.yaml (settings)", "nothing was changed"]);
    contains(
        &migrate,
        &[
            "auxiliary.vision",
            "auxiliary.approval.extra_body",
            "compression.in_place",
        ],
    );
    assert_eq!(
        std::fs::read_to_string(home.join("config.yaml")).unwrap(),
        settings
    );
    let fresh = stdout(&bare(), &["status"]);
    assert!(!fresh.contains("not used yet"), "{fresh}");
}
