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
async fn with_write_approval_what_nobody_could_be_asked_about_waits() {
    let more = "memory:\n  write_approval: true\n";
    let script = Script::new([
        note("Prefers tea"),
        Answer::text("it waits"),
        note("Prefers mate"),
        Answer::text("it waits"),
    ]);
    let setting = Setting::with(script, more).await;
    setting.run(&["-z", "I prefer tea"]);
    setting.run(&["-z", "I prefer mate"]);
    let told = setting.server.requests()[1].json.to_string();
    assert!(told.contains("/memory approve 1"), "{told}");
    let listed = setting.run(&["memory", "pending"]).stdout;
    assert_eq!(
        listed,
        "1  user: added: Prefers tea\n2  user: added: Prefers mate\n"
    );
    let approved = setting.run(&["memory", "approve", "1"]);
    assert_eq!(
        approved.stdout, "added: Prefers tea (change 1)\n",
        "{approved:?}"
    );
    let dropped = setting.run(&["memory", "reject", "2"]);
    assert_eq!(
        dropped.stdout, "dropped: added: Prefers mate\n",
        "{dropped:?}"
    );
    let again = setting.run(&["memory", "approve", "2"]);
    assert!(
        !again.is_success() && again.stderr.contains("no change 2"),
        "{again:?}"
    );
    let notes = fs::read_to_string(setting.hermes.home().join("memories/USER.md")).unwrap();
    assert_eq!(notes, "Prefers tea");
    let listed = setting.run(&["memory", "pending"]).stdout;
    assert!(listed.contains("no change"), "{listed}");
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

/// What a hearing would have kept.
const KNOWN: &str = r#"{"next": 2, "premises": [
    {"id": "p1", "text": "The user lives in Lyon", "kind": "identity", "confidence": 90, "at": 1794777845000,
     "evidence": [{"session": "s1", "message": 1, "at": 1794777845000, "quote": "I live in Lyon"}]}],
    "conclusions": [{"id": "c2", "text": "The user is near the Alps", "premises": ["p1"], "confidence": 70,
     "at": 1794777845000}]}"#;

async fn know(setting: &Setting) {
    use hermes_core::{Author, NewLearnedChange, Subject, Timestamp, UserModels as _};
    let home = setting.hermes.home();
    let store =
        hermes_store::SqliteStore::open(home.join("hermes.db"), home.join("locks")).unwrap();
    let change = NewLearnedChange {
        at: Timestamp::from_millis(1_794_777_845_000),
        subject: Subject::UserModel { person: None },
        author: Author::Review,
        session: None,
        turn: None,
        summary: "about you: The user lives in Lyon".to_owned(),
        before: None,
        after: Some(KNOWN.to_owned()),
        undoes: None,
    };
    store.replace_user_model(0, change).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_known_of_the_user_is_shown_asked_edited_forgotten_and_taken_back() {
    let setting = Setting::new(Script::new([
        Answer::text("hello"),
        Answer::text("They live in Lyon [p1]."),
    ]))
    .await;
    let shown = |args: &[&str]| {
        let ran = setting.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    };
    assert!(shown(&["user"]).starts_with("nothing is known of you yet"));
    know(&setting).await;
    let listed = shown(&["user"]);
    assert!(
        listed.contains("p1") && listed.contains("The user lives in Lyon"),
        "{listed}"
    );
    assert!(
        listed.contains("The user is near the Alps [p1]"),
        "{listed}"
    );
    let as_json: Value = serde_json::from_str(&shown(&["user", "show", "--json"])).unwrap();
    assert_eq!(
        as_json["premises"][0]["evidence"][0]["quote"],
        "I live in Lyon"
    );
    shown(&["-z", "who am I?"]);
    assert!(prompt(&setting, 0).contains("The user lives in Lyon"));
    let answer = shown(&["user", "ask", "Where", "do", "they", "live?"]);
    assert!(
        answer.starts_with("They live in Lyon [p1].\n[p1] The user lives in Lyon (90 %"),
        "{answer}"
    );
    assert!(shown(&["user", "edit", "p1", "Lives", "in", "Oslo"]).contains("change 2"));
    let all = shown(&["user", "show", "--all"]);
    assert!(
        all.contains("The user lives in Lyon (replaced by p3)"),
        "{all}"
    );
    assert_eq!(shown(&["user", "forget", "p3"]), "forgot p3 (change 3)\n");
    assert!(shown(&["learning", "undo", "3"]).contains("took back change 3"));
    assert_eq!(
        shown(&["user", "forget", "--all"]),
        "forgot everything (change 5)\n"
    );
    assert!(shown(&["learning", "log"]).contains("user model"));
    for args in [
        &["user", "forget", "p9"][..],
        &["user", "forget", "nine"],
        &["user", "edit", "p1"],
        &["user", "edit"],
    ] {
        let ran = setting.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn how_honcho_is_shows_in_doctor_and_status() {
    use hermes_testkit::honcho::{Fault, HonchoServer};
    let script = Script::always(Answer::text("hello"));
    let setting = Setting::with(script, "memory: {provider: honcho}\n").await;
    let honcho = HonchoServer::start();
    let file = json!({"baseUrl": honcho.address(), "queryRewrite": true, "peerName": "me"});
    fs::write(setting.hermes.home().join("honcho.json"), file.to_string()).unwrap();
    let status = setting.run(&["status"]).stdout;
    let works = format!("Honcho at {} answers", honcho.address());
    assert!(status.contains(&works), "{status}");
    let doctor = setting.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("without an effect here: queryRewrite"),
        "{doctor}"
    );
    assert_eq!(
        setting.run(&["user"]).stdout,
        "Honcho knows nothing of you yet\n"
    );
    honcho.set_fault(Some(Fault::Status(500)));
    let status: Value = serde_json::from_str(&setting.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["user_model"]["works"], false, "{status}");
    let doctor = setting.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("does not work: the server fails (500)"),
        "{doctor}"
    );
    assert_eq!(setting.run(&["-z", "hello"]).stdout, "hello\n");
}
