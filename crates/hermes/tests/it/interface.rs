//! The interface in a real terminal.

use std::time::Duration;

use hermes_core::{Entry, Message, ModelName, NewSession, Prefix, Store as _, Timestamp};
use hermes_store::SqliteStore;
use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(20);

/// Opens the interface and waits until it can be typed into.
fn open(setting: &Setting) -> Terminal {
    let terminal = setting.hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.expect_screen("›", SOON);
    terminal
}

/// Waits for the end of an answer: between it and the input nothing says any more that something runs. What is sent
/// sooner interrupts the turn.
fn expect_answer(terminal: &Terminal, end: &str) {
    terminal.expect_screen(&format!("{end}\n\n──"), SOON);
}

fn configure(setting: &Setting, more: &str) {
    crate::setting::write_config(&setting.hermes, &setting.server.url(), more);
}

/// An answer that takes some seconds.
fn slow(words: usize) -> Answer {
    let text: Vec<String> = (0..words).map(|n| format!("word{n}")).collect();
    Answer::text(text.join(" "))
        .pieces(words)
        .chunk_delay(Duration::from_millis(50))
}

#[tokio::test]
async fn a_conversation_goes_back_and_forth_and_can_be_left() {
    let answer = "# Title\n\nSome **bold** words.";
    let setting = Setting::new(Script::new([Answer::text(answer), Answer::text("bye")])).await;
    let terminal = open(&setting);
    terminal.send("hi\r");
    expect_answer(&terminal, "Title\n\nSome bold words.");
    terminal.send("so long\r");
    expect_answer(&terminal, "› so long\n\nbye");
    terminal.send("/quit\r");
    terminal.expect_screen("goes on with this conversation", SOON);
    let end = terminal.output();
    assert!(
        end.contains("\x1b[?2004l") && end.contains("\x1b[?25h"),
        "given back"
    );
    assert_eq!(terminal.wait(SOON), Some(0));
}

#[tokio::test]
async fn one_can_type_while_it_streams_and_what_is_sent_waits() {
    let setting = Setting::new(Script::new([slow(80), Answer::text("second answer")])).await;
    configure(&setting, "display:\n  busy_input_mode: queue\n");
    let terminal = open(&setting);
    terminal.send("go\r");
    terminal.expect_screen("word3", SOON);
    terminal.send("and then");
    terminal.expect_screen("› and then", SOON);
    assert!(
        !terminal.screen().contains("word79"),
        "it is still streaming"
    );
    terminal.send("\r");
    terminal.expect_screen("waits: and then", SOON);
    terminal.expect_screen("› and then\n\nsecond answer", SOON);
    assert!(terminal.output().contains("word79"));
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_gives_back_what_waited() {
    let sleep = json!({"command": "echo started; sleep 60"});
    let calls = Answer::call("c1", "terminal", sleep);
    let setting = Setting::new(Script::new([calls, Answer::text("still here")])).await;
    configure(&setting, "display:\n  busy_input_mode: queue\n");
    let terminal = open(&setting);
    terminal.send("go\r");
    terminal.expect_screen("│ started", SOON);
    terminal.send("next thing\r");
    terminal.expect_screen("waits: next thing", SOON);
    terminal.send("\x03");
    terminal.expect_screen("interrupted", SOON);
    terminal.expect_screen("› next thing\n──", SOON);
    terminal.send("\r");
    terminal.expect_screen("still here", SOON);
}

#[tokio::test]
async fn a_paste_of_five_thousand_lines_is_one_chip_and_is_sent_whole() {
    let setting = Setting::new(Script::new([Answer::text("got it")])).await;
    let terminal = open(&setting);
    let lines: String = (0..5_000).map(|n| format!("line {n}\r")).collect();
    terminal.send(&format!("see \x1b[200~{lines}\x1b[201~"));
    terminal.expect_screen("› see [pasted 5000 lines]", SOON);
    terminal.send("\r");
    terminal.expect_screen("got it", SOON);
    let body = setting.server.requests()[0].json["messages"].to_string();
    assert!(body.contains(r"see line 0\nline 1\n") && body.contains("line 4999"));
}

#[tokio::test]
async fn vi_keys_edit_the_message_when_they_are_wanted() {
    let setting = Setting::new(Script::new([Answer::text("fine")])).await;
    configure(&setting, "display:\n  edit_mode: vi\n");
    let terminal = open(&setting);
    terminal.expect_screen("  insert · ", SOON);
    terminal.send("helo world");
    terminal.expect_screen("› helo world", SOON);
    terminal.send("\x1b");
    terminal.expect_screen("  normal · ", SOON);
    terminal.send("0flylp");
    terminal.expect_screen("› hello world", SOON);
    terminal.send("wcweverybody");
    terminal.expect_screen("› hello everybody", SOON);
    terminal.expect_screen("  insert · ", SOON);
    terminal.send("\r");
    expect_answer(&terminal, "fine");
    let body = setting.server.requests()[0].json["messages"].to_string();
    assert!(body.contains("hello everybody"), "{body}");
}

#[tokio::test]
async fn one_goes_back_to_a_message_that_is_chosen_from_a_list() {
    let answers = ["one", "two", "three", "anew"].map(Answer::text);
    let setting = Setting::new(Script::new(answers)).await;
    let terminal = open(&setting);
    for (said, answer) in [("apples", "one"), ("pears", "two"), ("plums", "three")] {
        terminal.send(&format!("{said}\r"));
        expect_answer(&terminal, answer);
    }
    terminal.send("/rewind\r");
    terminal.expect_screen("Go back to before", SOON);
    terminal.expect_screen("› plums  your last message", SOON);
    terminal.send("pea");
    terminal.expect_screen("› pears  2 messages back", SOON);
    terminal.send("\r");
    terminal.expect_screen("your last 2 messages are taken back", SOON);
    terminal.expect_screen("\n› pears\n──", SOON);
    terminal.send("\r");
    expect_answer(&terminal, "anew");
    let body = setting.server.requests()[3].json["messages"].to_string();
    assert!(body.contains("pears") && !body.contains("two") && !body.contains("plums"));
}

#[tokio::test]
async fn a_terminal_that_is_resized_while_it_streams_stays_whole() {
    let setting = Setting::new(Script::new([slow(60), Answer::text("after")])).await;
    let mut terminal = open(&setting);
    terminal.send("go\r");
    terminal.expect_screen("word3", SOON);
    for (rows, columns) in [(12, 40), (5, 10), (30, 100)] {
        terminal.resize(rows, columns);
        terminal.expect(&"─".repeat(usize::from(columns)), SOON);
    }
    expect_answer(&terminal, "word59");
    terminal.send("more\r");
    terminal.expect_screen("after", SOON);
}

#[tokio::test]
async fn a_dangerous_command_asks_first_and_hides_nothing() {
    let command = json!({"command": "rm -r victim; : \u{1b}[2K\u{202e}"});
    let calls = Answer::call("c1", "terminal", command);
    let setting = Setting::new(Script::new([calls, Answer::text("gone")])).await;
    let victim = setting.hermes.work_folder().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let terminal = open(&setting);
    terminal.send("clean up\r");
    terminal.expect_screen("allow? y once", SOON);
    terminal.expect_screen("▎   rm -r victim; : \\u{1b}[2K\\u{202e}", SOON);
    assert!(victim.exists());
    terminal.send("y");
    terminal.expect_screen("gone", SOON);
    assert!(!victim.exists());
    assert!(!terminal.output().contains('\u{202e}'));
}

#[tokio::test]
async fn after_kill_9_the_conversation_goes_on() {
    let sleep = json!({"command": "echo started; sleep 60"});
    let script = Script::new([
        Answer::text("the *first* answer"),
        Answer::call("c1", "terminal", sleep),
        Answer::text("picked up again"),
    ]);
    let setting = Setting::new(script).await;
    let terminal = open(&setting);
    terminal.send("one\r");
    expect_answer(&terminal, "the first answer");
    terminal.send("two\r");
    terminal.expect_screen("│ started", SOON);
    terminal.kill_9();
    let terminal = setting.hermes.clone().args(["-c"]).spawn_in_terminal();
    terminal.expect_screen("› one\n\nthe first answer\n\n› two", SOON);
    terminal.expect_screen("going on where a crash cut this turn short", SOON);
    terminal.expect_screen("picked up again", SOON);
}

#[tokio::test]
async fn sigterm_gives_the_terminal_back_and_keeps_the_draft() {
    let setting = Setting::new(Script::new([])).await;
    let terminal = open(&setting);
    terminal.send("an unfinished thought");
    terminal.expect_screen("unfinished thought", SOON);
    let id = i32::try_from(terminal.id())
        .ok()
        .and_then(Pid::from_raw)
        .unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(terminal.wait(SOON), Some(143));
    let terminal = open(&setting);
    terminal.send("\x1b[A");
    terminal.expect_screen("› an unfinished thought", SOON);
}

#[tokio::test]
async fn a_megabyte_in_one_line_is_shown_and_one_can_go_on() {
    let setting = Setting::new(Script::new([
        Answer::huge_line(1_000_000),
        Answer::text("small again"),
    ]))
    .await;
    configure(&setting, "display:\n  busy_input_mode: queue\n");
    let terminal = open(&setting);
    terminal.send("much\r");
    terminal.send("more\r");
    terminal.expect_screen("small again", SOON);
}

#[tokio::test]
async fn the_users_editor_writes_the_message() {
    let setting = Setting::new(Script::new([Answer::text("read")])).await;
    let editor = setting.hermes.work_folder().join("editor.sh");
    std::fs::write(
        &editor,
        "#!/bin/sh\nsed -i 's/draft/finished text/' \"$1\"\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).unwrap();
    let hermes = setting.hermes.clone().env("EDITOR", &editor);
    let terminal = hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.send("my draft");
    terminal.expect_screen("› my draft", SOON);
    terminal.send("\x07");
    terminal.expect_screen("› my finished text", SOON);
    terminal.send("\r");
    terminal.expect_screen("read", SOON);
}

#[tokio::test]
async fn the_picker_shows_what_was_said_and_finds_it() {
    let answers = ["It is in the cellar.", "Noted.", "Good."].map(Answer::text);
    let setting = Setting::new(Script::new(answers)).await;
    for question in ["where is the barometer?", "buy bread"] {
        let asked = setting.run(&["-z", question]);
        assert!(asked.is_success(), "{}", asked.stderr);
    }
    let terminal = open(&setting);
    terminal.send("/resume --all\r");
    terminal.expect_screen("› buy bread", SOON);
    terminal.expect_screen("\n    Noted.", SOON);
    terminal.send("cellar");
    terminal.expect_screen("1 by what is in them", SOON);
    terminal.expect_screen("\n    It is in the cellar.", SOON);
    terminal.send("\r");
    terminal.expect_screen("› where is the barometer?", SOON);
    terminal.send("thanks\r");
    terminal.expect_screen("Good.", SOON);
}

/// Keeps a conversation of so many exchanges, as if it had been talked.
async fn keep_conversation(setting: &Setting, id: &str, exchanges: usize) {
    let home = setting.hermes.home();
    let store = SqliteStore::open(home.join("hermes.db"), home.join("locks")).unwrap();
    let session = NewSession {
        id: id.into(),
        created: Timestamp::from_millis(1),
        source: "cli".into(),
        title: None,
        cwd: None,
        model: ModelName {
            provider: "custom".into(),
            model: "test-model".into(),
        },
        parent: None,
        prefix: Prefix::default(),
    };
    let said = (0..exchanges).map(|n| Entry::Inherited {
        turn: format!("t{n}").into(),
        messages: vec![
            Message::user(format!("question {n}.")),
            Message::assistant(format!("answer {n}.")),
        ],
    });
    store.create(session, said.collect()).await.unwrap();
}

#[tokio::test]
async fn a_long_conversation_shows_its_end_when_it_is_resumed_and_knows_the_rest() {
    let setting = Setting::new(Script::new([Answer::text("I remember.")])).await;
    keep_conversation(&setting, "long", 50).await;
    let resume = setting.hermes.clone().args(["-r", "long"]);
    let mut terminal = resume.spawn_in_terminal();
    expect_answer(&terminal, "answer 49.");
    let shown = terminal.output();
    assert!(shown.contains("80 messages came before these; /history shows them"));
    assert!(shown.contains("question 40.") && !shown.contains("question 39."));
    terminal.send("and before?\r");
    expect_answer(&terminal, "I remember.");
    let asked = setting.server.requests()[0].json["messages"].to_string();
    assert!(asked.contains("question 0.") && asked.contains("answer 49."));
    terminal.send("/history\r");
    terminal.expect("question 0.", SOON);
    terminal.expect("question 39.", SOON);
}

#[tokio::test]
async fn a_resumed_conversation_works_in_its_own_folder() {
    let pwd = Answer::call("c1", "terminal", json!({"command": "pwd"}));
    let setting = Setting::new(Script::new([Answer::text("one"), pwd, Answer::text("two")])).await;
    let folder = setting.hermes.work_folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    let there = setting.hermes.clone().current_folder(&folder);
    assert!(there.args(["-z", "first"]).run().is_success());
    let terminal = setting.hermes.clone().args(["-c"]).spawn_in_terminal();
    terminal.expect_screen("~/work/project", SOON);
    terminal.send("where?\r");
    terminal.expect_screen("two", SOON);
    let requests = setting.server.requests();
    let body = requests.last().unwrap().json["messages"].to_string();
    assert!(body.contains("work/project"), "{body}");
}

#[tokio::test]
async fn the_status_row_tells_of_servers_that_do_not_work_and_of_processes_left_running() {
    let sleep = json!({"command": "sleep 60", "background": true});
    let calls = Answer::call("c1", "terminal", sleep);
    let setting = Setting::new(Script::new([calls, Answer::text("it runs")])).await;
    configure(
        &setting,
        "mcp_servers:\n  broken:\n    command: /nonexistent/server\n",
    );
    let terminal = open(&setting);
    terminal.expect_screen("MCP 0/1", SOON);
    terminal.send("start it\r");
    terminal.expect_screen("it runs", SOON);
    terminal.expect_screen("1 in the background", SOON);
}

#[tokio::test]
async fn the_end_of_a_background_process_that_was_asked_for_is_a_turn() {
    let work = json!({"command": "sleep 1", "background": true, "notify_on_complete": true});
    let calls = Answer::call("c1", "terminal", work);
    let script = [calls, Answer::text("it runs"), Answer::text("so it ended")];
    let setting = Setting::new(Script::new(script)).await;
    let terminal = open(&setting);
    terminal.send("start it\r");
    terminal.expect_screen("so it ended", SOON);
}

#[tokio::test]
async fn the_users_own_commands_are_suggested_and_run() {
    let setting = Setting::new(Script::new([])).await;
    let own = "quick_commands:\n  disk: {type: exec, command: echo plenty of room}\n";
    configure(&setting, own);
    let terminal = open(&setting);
    terminal.send("/di");
    terminal.expect_screen("/disk", SOON);
    terminal.send("\r");
    terminal.expect_screen("\n  plenty of room", SOON);
}

#[tokio::test]
async fn an_answer_is_copied_by_the_terminal_itself() {
    let setting = Setting::new(Script::new([Answer::text("two")])).await;
    let mut terminal = open(&setting);
    terminal.send("hi\r");
    expect_answer(&terminal, "two");
    terminal.send("/copy\r");
    terminal.expect("\x1b]52;c;dHdv\x07", SOON);
    terminal.expect_screen("3 characters to the terminal", SOON);
}
