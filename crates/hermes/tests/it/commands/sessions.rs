//! `hermes sessions`, except recovery.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use super::{contains, ids, json, refused, run, stdout, talked};
use crate::setting::{Setting, bare};

#[test]
fn before_the_first_session_looking_is_no_error() {
    let hermes = bare();
    for args in [
        &["sessions"][..],
        &["sessions", "list"],
        &["sessions", "search", "x"],
        &["sessions", "stats"],
    ] {
        contains(&stdout(&hermes, args), &["no sessions yet"]);
    }
    assert_eq!(json(&hermes, &["sessions", "list", "--json"]), json!([]));
    assert_eq!(
        json(&hermes, &["sessions", "search", "x", "--json"]),
        json!([])
    );
    assert_eq!(
        json(&hermes, &["sessions", "stats", "--json"])["sessions"],
        0
    );
    assert_eq!(stdout(&hermes, &["sessions", "export"]), "");
    for command in ["show", "export", "recover"] {
        refused(
            &run(&hermes, &["sessions", command, "nobody"]),
            1,
            &["no session `nobody`", "sessions list"],
        );
    }
    refused(
        &run(&hermes, &["sessions", "delete", "nobody", "--yes"]),
        1,
        &["no session `nobody`"],
    );
    refused(
        &run(&hermes, &["sessions", "rename", "nobody", "x"]),
        1,
        &["no session `nobody`"],
    );
    assert!(
        !hermes.home().join("hermes.db").exists(),
        "looking makes no database"
    );
}

#[tokio::test]
async fn the_list_is_newest_first_with_what_identifies_a_session() {
    let setting = talked(&["first question", "second question"]).await;
    let list = stdout(&setting.hermes, &["sessions"]);
    contains(
        &list,
        &["ID", "just now", "custom:test-model", "first question"],
    );
    let (newer, older) = (list.find("second question"), list.find("first question"));
    assert!(newer < older, "{list}");
    assert_eq!(
        stdout(&setting.hermes, &["sessions", "list", "-n", "1"])
            .lines()
            .count(),
        2
    );
    contains(
        &stdout(
            &setting.hermes,
            &["sessions", "list", "--source", "telegram"],
        ),
        &["no sessions fit"],
    );
    let here = setting.hermes.work_folder();
    let here = here.to_str().unwrap();
    contains(
        &stdout(&setting.hermes, &["sessions", "list", "--workspace", here]),
        &["first question"],
    );
    contains(
        &stdout(&setting.hermes, &["sessions", "list", "--workspace", "/"]),
        &["no sessions fit"],
    );
}

#[tokio::test]
async fn sessions_of_tools_are_listed_only_when_asked_for() {
    let setting = talked(&["mine"]).await;
    stdout(
        &setting.hermes,
        &["chat", "-q", "a tool's", "--source", "tool", "-Q"],
    );
    assert!(!stdout(&setting.hermes, &["sessions"]).contains("a tool's"));
    contains(
        &stdout(&setting.hermes, &["sessions", "list", "--source", "tool"]),
        &["a tool's"],
    );
}

#[tokio::test]
async fn a_transcript_shows_who_said_what_and_each_call_in_one_line() {
    let call = Answer::call("c1", "read_file", json!({"path": "notes.txt"}));
    let setting = Setting::new(Script::new([call, Answer::text("It says hello.")])).await;
    fs::write(
        setting.hermes.work_folder().join("notes.txt"),
        "hello\nthere\n",
    )
    .unwrap();
    stdout(&setting.hermes, &["-z", "what do the notes say?"]);
    let id = ids(&setting.hermes).remove(0);
    let shown = stdout(&setting.hermes, &["sessions", "show", &id[..15]]);
    contains(
        &shown,
        &[
            "── you",
            "what do the notes say?",
            "── hermes",
            "• read_file notes.txt",
            "✓",
            "It says hello.",
        ],
    );
    assert_eq!(
        shown.lines().filter(|line| line.contains("hello")).count(),
        2,
        "{shown}"
    );
    let lines = stdout(&setting.hermes, &["sessions", "show", &id, "--json"]);
    let messages: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let roles: Vec<_> = messages
        .iter()
        .map(|line| line["message"]["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[tokio::test]
async fn what_a_model_wrote_cannot_move_the_cursor() {
    let setting = Setting::new(Script::always(Answer::text("clear\u{1b}[2J me"))).await;
    stdout(&setting.hermes, &["-z", "title\u{1b}]0;x\u{7}"]);
    let id = ids(&setting.hermes).remove(0);
    for args in [
        &["sessions"][..],
        &["sessions", "show", &id],
        &["sessions", "search", "clear"],
    ] {
        assert!(
            !stdout(&setting.hermes, args).contains('\u{1b}'),
            "{args:?}"
        );
    }
}

#[tokio::test]
async fn an_unclear_beginning_names_the_candidates() {
    let setting = talked(&["one", "two"]).await;
    let ids = ids(&setting.hermes);
    let output = run(&setting.hermes, &["sessions", "show", "20"]);
    refused(
        &output,
        1,
        &["fits 2 sessions", &ids[0], &ids[1], "more of the id"],
    );
}

#[tokio::test]
async fn search_shows_the_words_around_a_match_and_says_when_there_is_none() {
    let setting = talked(&["where is the harbour?", "something else"]).await;
    let id = ids(&setting.hermes).pop().unwrap();
    contains(
        &stdout(&setting.hermes, &["sessions", "search", "the", "harbour"]),
        &[&id, "you", ">>>harbour<<<"],
    );
    contains(
        &stdout(&setting.hermes, &["sessions", "search", "zebra"]),
        &["nothing found for `zebra`"],
    );
    contains(
        &stdout(&setting.hermes, &["sessions", "search", "\"( AND *"]),
        &["nothing found"],
    );
    let hits = json(
        &setting.hermes,
        &["sessions", "search", "harbour", "--session", &id, "--json"],
    );
    assert_eq!(hits[0]["session"], id.as_str());
    refused(
        &run(
            &setting.hermes,
            &["sessions", "search", "x", "--session", "nobody"],
        ),
        1,
        &["nobody"],
    );
}

#[tokio::test]
async fn matches_are_coloured_on_a_terminal_and_not_under_no_color() {
    let setting = talked(&["where is the harbour?"]).await;
    let search = setting
        .hermes
        .clone()
        .args(["sessions", "search", "harbour"]);
    let wait = Duration::from_secs(10);
    let mut terminal = search.spawn_in_terminal();
    terminal.expect("\u{1b}[33mharbour\u{1b}[0m", wait);
    assert_eq!(terminal.wait(wait), Some(0));
    let mut terminal = search.env("NO_COLOR", "1").spawn_in_terminal();
    terminal.expect(">>>harbour<<<", wait);
    assert!(
        !terminal.output().contains("\u{1b}["),
        "{}",
        terminal.output()
    );
}

#[tokio::test]
async fn an_export_holds_everything_and_never_replaces_a_file() {
    let setting = talked(&["password=hunter2hunter2 please", "another"]).await;
    let hermes = &setting.hermes;
    let lines = stdout(hermes, &["sessions", "export"]);
    let sessions: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(sessions.len(), 2);
    assert_eq!(
        sessions[0]["transcript"][1]["message"]["parts"][0]["text"],
        "a fine answer"
    );
    contains(&lines, &["hunter2hunter2"]);
    let id = sessions[0]["id"].as_str().unwrap();
    for format in ["jsonl", "md"] {
        let text = stdout(
            hermes,
            &["sessions", "export", id, "--redact", "--format", format],
        );
        contains(&text, &["password=***", "a fine answer"]);
        assert!(!text.contains("hunter2"), "{text}");
    }
    let file = hermes.work_folder().join("talk.md");
    let export = ["sessions", "export", "--format", "md", "-o", "talk.md"];
    let output = run(hermes, &export);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), ""),
        "{output:?}"
    );
    contains(
        &fs::read_to_string(&file).unwrap(),
        &["## you", "another", "---"],
    );
    fs::write(&file, "mine").unwrap();
    refused(&run(hermes, &export), 2, &["talk.md", "exists already"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    refused(
        &run(hermes, &["sessions", "export", "-o", "no/such/folder"]),
        1,
        &["no/such/folder"],
    );
}

#[tokio::test]
async fn a_renamed_session_is_found_by_its_title() {
    let setting = talked(&["one", "two"]).await;
    let ids = ids(&setting.hermes);
    contains(
        &stdout(
            &setting.hermes,
            &["sessions", "rename", &ids[0], "The harbour"],
        ),
        &[&ids[0], "The harbour"],
    );
    contains(&stdout(&setting.hermes, &["sessions"]), &["The harbour"]);
    contains(
        &stdout(&setting.hermes, &["sessions", "show", "The harbour"]),
        &["two"],
    );
    let output = run(
        &setting.hermes,
        &["sessions", "rename", &ids[1], "The harbour"],
    );
    refused(&output, 1, &["already used", &ids[0]]);
    refused(
        &run(&setting.hermes, &["sessions", "rename", &ids[1], " \n"]),
        1,
        &["title"],
    );
}

#[tokio::test]
async fn nothing_is_deleted_without_a_yes() {
    let setting = talked(&["precious"]).await;
    let id = ids(&setting.hermes).remove(0);
    let delete = setting.hermes.clone().args(["sessions", "delete", &id]);
    refused(
        &delete.clone().stdin("y\n").run(),
        2,
        &["nobody is there", "--yes"],
    );
    let wait = Duration::from_secs(10);
    let mut terminal = delete.spawn_in_terminal();
    terminal.expect("[y/N]", wait);
    terminal.send("\r");
    terminal.expect("nothing was deleted", wait);
    assert_eq!(terminal.wait(wait), Some(0));
    assert_eq!(ids(&setting.hermes).len(), 1, "{id} is still there");
    let mut terminal = delete.spawn_in_terminal();
    terminal.expect("precious", wait);
    terminal.send("y\r");
    terminal.expect("deleted", wait);
    assert_eq!(terminal.wait(wait), Some(0));
    assert!(ids(&setting.hermes).is_empty());
    refused(
        &run(&setting.hermes, &["sessions", "delete", &id, "--yes"]),
        1,
        &["no session"],
    );
}

#[tokio::test]
async fn the_statistics_count_and_measure() {
    let setting = talked(&["one", "two"]).await;
    let stats = json(&setting.hermes, &["sessions", "stats", "--json"]);
    assert_eq!(
        (&stats["sessions"], &stats["messages"]),
        (&json!(2), &json!(4))
    );
    contains(
        &stdout(&setting.hermes, &["sessions", "stats"]),
        &["sessions", "tokens out", "database ", "B\n"],
    );
}

#[tokio::test]
async fn a_damaged_database_says_so_and_points_at_the_doctor() {
    let hermes = bare();
    fs::write(
        hermes.home().join("hermes.db"),
        "not a database, whatever its name says".repeat(50),
    )
    .unwrap();
    refused(
        &run(&hermes, &["sessions", "list"]),
        1,
        &["hermes.db", "hermes doctor"],
    );
}

#[tokio::test]
async fn nobody_reading_the_list_is_no_panic() {
    let setting = talked(&["one"]).await;
    let command = format!(
        "'{}' sessions list | true; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_hermes")
    );
    #[expect(clippy::disallowed_methods, reason = "a test plays the shell")]
    let output = std::process::Command::new("bash")
        .args(["-c", &command])
        .env("HERMES_HOME", setting.hermes.home())
        .output()
        .expect("bash runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[tokio::test]
async fn a_home_that_may_not_be_written_is_told() {
    let setting = talked(&["one"]).await;
    let home = setting.hermes.home();
    let mode = |mode| fs::set_permissions(&home, Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    let is_writable = fs::write(home.join("probe"), "").is_ok();
    // SQLite shares memory through a file beside the database, also for reading.
    let list = run(&setting.hermes, &["sessions", "list"]);
    let change = run(&setting.hermes, &["config", "set", "agent.max_turns", "5"]);
    mode(0o700);
    if is_writable {
        println!("skipped: root may write everywhere");
        return;
    }
    refused(&list, 1, &["hermes.db", "is writable"]);
    refused(&change, 1, &["config.yaml", "unchanged"]);
}
