//! The conversation in a terminal.

use std::time::Duration;

use hermes_testkit::peers::wait_until;
use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_conversation_goes_back_and_forth_and_can_be_left() {
    let setting = Setting::new(Script::new([
        Answer::text("hello you"),
        Answer::text("bye then"),
    ]))
    .await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("hi\n");
    terminal.expect("hello you", SOON);
    terminal.expect("›", SOON);
    terminal.send("/unknown\n");
    terminal.expect("no command `/unknown`", SOON);
    terminal.expect("›", SOON);
    terminal.send("so long\n");
    terminal.expect("bye then", SOON);
    terminal.expect("›", SOON);
    terminal.send("/quit\n");
    terminal.expect("goes on with this conversation", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_not_the_program() {
    let setting = Setting::new(Script::new([
        Answer::call(
            "c1",
            "terminal",
            json!({"command": "echo started; sleep 60"}),
        ),
        Answer::text("still here"),
    ]))
    .await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("go\n");
    terminal.expect("│ started", SOON);
    terminal.send("\x03");
    terminal.expect("interrupted", SOON);
    terminal.expect("›", SOON);
    terminal.send("and now?\n");
    terminal.expect("still here", SOON);
}

#[tokio::test]
async fn a_dangerous_command_asks_first() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({"command": "rm -r victim"})),
        Answer::text("gone"),
    ]))
    .await;
    let victim = setting.hermes.work_folder().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("clean up\n");
    terminal.expect("allow?", SOON);
    assert!(victim.exists());
    terminal.send("y\n");
    terminal.expect("gone", SOON);
    assert!(!victim.exists());
}

#[tokio::test]
async fn a_command_cannot_hide_behind_control_characters() {
    let command = "rm -rf victim; : \r\u{1b}[2K  terminal wants to run: ls -l \u{1b}[8m\u{202e}";
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({ "command": command })),
        Answer::text("\u{1b}]0;owned\u{7}done"),
    ]))
    .await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("go\n");
    terminal.expect("allow?", SOON);
    let screen = terminal.output();
    assert!(
        screen.contains("rm -rf victim") && screen.contains("\\x1b[2K"),
        "{screen:?}"
    );
    assert!(
        !screen.contains("\u{1b}[2K") && !screen.contains('\u{202e}'),
        "{screen:?}"
    );
    terminal.send("n\n");
    terminal.expect("done", SOON);
    assert!(
        !terminal.output().contains("\u{1b}]0;"),
        "a model does not set the window's title"
    );
}

#[tokio::test]
async fn pasted_lines_are_one_message() {
    let setting = Setting::new(Script::new([Answer::text("got it")])).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("one\ntwo\n\nthree\n");
    terminal.expect("got it", SOON);
    let body = setting.server.requests()[0].json["messages"].to_string();
    assert!(body.contains(r"one\ntwo\n\nthree"), "{body}");
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn leaving_forgets_what_waits() {
    // Longer than anything typed here takes: it is left in its middle.
    let slow = Answer::text("a b ".repeat(200))
        .pieces(200)
        .chunk_delay(Duration::from_millis(200));
    let setting = Setting::new(Script::new([slow, Answer::text("never asked")])).await;
    let queue = "display:\n  busy_input_mode: queue\n";
    write_config(&setting.hermes, &setting.server.url(), queue);
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("one\n");
    terminal.expect("a b", SOON);
    terminal.send("two\n");
    terminal.expect("waits for the end", SOON);
    terminal.send("/quit\n");
    terminal.expect("1 waiting messages were dropped", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn late_steering_is_a_turn_of_its_own_and_the_prompt_waits_for_it() {
    let slow = Answer::text("a b c d")
        .pieces(4)
        .chunk_delay(Duration::from_millis(150));
    let setting = Setting::new(Script::new([
        slow,
        Answer::text("second"),
        Answer::text("third"),
    ]))
    .await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("go\n");
    terminal.expect("a b", SOON);
    terminal.send("/steer late words\n");
    terminal.expect("second", SOON);
    terminal.expect("›", SOON);
    terminal.send("and?\n");
    terminal.expect("third", SOON);
}

fn signal(terminal: &Terminal, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(terminal.id()).unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// A server that is a program, whose process is written to a file.
fn add_program(setting: &Setting) -> std::path::PathBuf {
    let folder = setting.hermes.work_folder();
    let (script, pid) = (folder.join("server.sh"), folder.join("server.pid"));
    let text = format!(
        "echo $$ >{}\nwhile read -r line; do :; done\nsleep 60\n",
        pid.display()
    );
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap().to_owned();
    let added = setting.run(&["mcp", "add", "idle", "--command", "/bin/sh", "--", &script]);
    assert_eq!(added.code, Some(0), "{added:?}");
    pid
}

#[tokio::test]
async fn plain_lines_end_properly_when_somebody_wants_the_program_to_end() {
    for (wanted, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let setting = Setting::new(Script::new([Answer::text("hello you")])).await;
        let pid = add_program(&setting);
        let mut terminal = setting.talk_plainly();
        terminal.expect("›", SOON);
        terminal.send("hi\n");
        terminal.expect("hello you", SOON);
        terminal.expect("›", SOON);
        signal(&terminal, wanted);
        assert_eq!(terminal.wait(SOON), Some(code), "at rest");
        let server: i32 = std::fs::read_to_string(&pid)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let server = Pid::from_raw(server).unwrap();
        assert!(test_kill_process(server).is_err(), "its servers have ended");
    }
}

#[tokio::test]
async fn a_single_question_ends_with_the_code_of_the_signal() {
    for (wanted, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let command = json!({"command": "touch started; sleep 60"});
        let setting = Setting::new(Script::new([Answer::call("c1", "terminal", command)])).await;
        let asked = setting.hermes.clone().args(["-z", "go"]);
        let terminal = asked.spawn_in_terminal();
        let started = setting.hermes.work_folder().join("started");
        wait_until("it runs", || started.exists());
        signal(&terminal, wanted);
        assert_eq!(terminal.wait(SOON), Some(code));
    }
}

#[tokio::test]
async fn a_terminal_that_is_closed_ends_plain_lines() {
    let setting = Setting::new(Script::new([])).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    assert_eq!(terminal.hang_up(SOON), Some(129));
}

#[tokio::test]
async fn plain_lines_end_in_the_middle_of_a_turn_too() {
    for (wanted, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let setting = Setting::new(Script::new([Answer::call(
            "c1",
            "terminal",
            json!({"command": "echo started; sleep 60"}),
        )]))
        .await;
        let mut terminal = setting.talk_plainly();
        terminal.expect("›", SOON);
        terminal.send("go\n");
        terminal.expect("│ started", SOON);
        signal(&terminal, wanted);
        assert_eq!(terminal.wait(SOON), Some(code));
    }
}
