//! The interface in tmux: a terminal with a scrollback of its own, which breaks rows anew when it is resized.

use std::fs;
use std::thread;
use std::time::Duration;

use hermes_testkit::peers::{self, wait_until};
use hermes_testkit::process::{Hermes, Tmux};
use hermes_testkit::server::{Answer, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(30);
const QUEUE: &str = "approvals:\n  mode: manual\ndisplay:\n  busy_input_mode: queue\n";

/// A window with the interface in it, which can be typed into.
fn open(setting: &Setting) -> Tmux {
    let tmux = setting.hermes.spawn_in_tmux();
    tmux.expect_screen("/help shows", SOON);
    tmux.expect_screen("\n›\n", SOON);
    tmux
}

/// An answer of so many numbered words that takes some seconds.
fn slow(words: usize) -> Answer {
    let text: Vec<String> = (0..words).map(|n| format!("word{n:03}")).collect();
    Answer::text(text.join(" "))
        .pieces(words)
        .chunk_delay(Duration::from_millis(30))
}

/// Waits until nothing runs: the input follows the end of the answer.
fn expect_answer(tmux: &Tmux, end: &str) {
    tmux.expect_screen(&format!("{end}\n\n──"), SOON);
}

/// Everything that can be scrolled back to has each of these words once, in this order.
fn assert_each_once(tmux: &Tmux, words: &[String]) {
    let all = tmux.scrollback();
    let mut rest = all.as_str();
    for word in words {
        assert_eq!(all.matches(word.as_str()).count(), 1, "`{word}` in\n{all}");
        let (_, after) = rest.split_once(word.as_str()).expect("they are in order");
        rest = after;
    }
}

#[tokio::test]
async fn in_tmux_one_types_while_it_streams_and_what_is_sent_waits() {
    if !peers::is_there("tmux") {
        return;
    }
    let script = Script::new([slow(120), Answer::text("second answer")]);
    let setting = Setting::with(script, QUEUE).await;
    let tmux = open(&setting);
    tmux.write("go");
    tmux.press("Enter");
    tmux.expect_screen("word003", SOON);
    tmux.write("and then");
    tmux.expect_screen("\n› and then\n", SOON);
    assert!(!tmux.screen().contains("word119"), "it still streams");
    tmux.press("Enter");
    tmux.expect_screen("waits: and then", SOON);
    expect_answer(&tmux, "› and then\n\nsecond answer");
    let words: Vec<_> = (0..120).map(|n| format!("word{n:03}")).collect();
    assert_each_once(&tmux, &words);
}

#[tokio::test]
async fn in_tmux_ctrl_c_stops_the_turn_and_gives_back_what_waited() {
    if !peers::is_there("tmux") {
        return;
    }
    let sleep = json!({"command": "echo started; sleep 60"});
    let calls = Answer::call("c1", "terminal", sleep);
    let setting = Setting::with(Script::new([calls, Answer::text("still here")]), QUEUE).await;
    let tmux = open(&setting);
    tmux.write("go");
    tmux.press("Enter");
    tmux.expect_screen("│ started", SOON);
    tmux.write("next thing");
    tmux.press("Enter");
    tmux.expect_screen("waits: next thing", SOON);
    tmux.press("C-c");
    tmux.expect_screen("interrupted", SOON);
    tmux.expect_screen("\n› next thing\n──", SOON);
    tmux.press("Enter");
    expect_answer(&tmux, "still here");
}

#[tokio::test]
async fn in_tmux_a_paste_of_five_thousand_lines_is_one_chip_and_is_sent_whole() {
    if !peers::is_there("tmux") {
        return;
    }
    let setting = Setting::new(Script::new([Answer::text("got it")])).await;
    let tmux = open(&setting);
    tmux.write("see ");
    tmux.expect_screen("\n› see\n", SOON);
    let lines: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    tmux.paste(&lines);
    tmux.expect_screen("\n› see [pasted 5000 lines]\n", SOON);
    tmux.press("Enter");
    expect_answer(&tmux, "got it");
    let body = setting.server.requests()[0].json["messages"].to_string();
    assert!(body.contains(r"see line 0\nline 1\n") && body.contains("line 4999"));
}

/// An answer of numbered paragraphs, one after the other.
fn paragraphs(numbers: std::ops::Range<usize>, delay: Duration) -> Answer {
    let count = numbers.len();
    let text: Vec<String> = numbers.map(|n| format!("word{n:03} and more")).collect();
    Answer::text(text.join("\n\n"))
        .pieces(count)
        .chunk_delay(delay)
}

/// Resizes the window, and waits until the interface is drawn for it.
fn resize(tmux: &Tmux, rows: u16, columns: u16) {
    tmux.resize(rows, columns);
    tmux.expect("not drawn for the new size", SOON, |screen| {
        let mut rows = screen.lines();
        rows.any(|row| row == "─".repeat(columns.into()))
    });
}

#[tokio::test]
async fn in_tmux_a_resize_while_it_streams_loses_and_doubles_nothing() {
    if !peers::is_there("tmux") {
        return;
    }
    let script = Script::new([
        paragraphs(0..15, Duration::ZERO),
        paragraphs(15..25, Duration::from_millis(400)),
        Answer::text("after"),
    ]);
    let setting = Setting::with(script, QUEUE).await;
    let tmux = open(&setting);
    // The screen is full: from here on the rows below the input are the last ones.
    tmux.write("fill it");
    tmux.press("Enter");
    expect_answer(&tmux, "word014 and more");
    tmux.write("go on");
    tmux.press("Enter");
    let sizes = [(24, 50), (14, 50), (14, 100), (30, 100), (24, 80)];
    for (n, (rows, columns)) in (15..).zip(sizes) {
        // What is on the screen is no longer on its way to it, at another width than the terminal's.
        tmux.expect_screen(&format!("word{n:03}"), SOON);
        resize(&tmux, rows, columns);
    }
    tmux.write("more");
    tmux.press("Enter");
    expect_answer(&tmux, "› more\n\nafter");
    let screen = tmux.screen();
    assert_eq!(screen.matches("\n›\n").count(), 1, "one input in\n{screen}");
    let words: Vec<_> = (0..25).map(|n| format!("word{n:03}")).collect();
    assert_each_once(&tmux, &words);
    let others = ["/help shows", "› fill it", "› go on", "› more"];
    assert_each_once(&tmux, &others.map(str::to_owned));
}

#[tokio::test]
async fn in_tmux_resizes_at_any_instant_of_a_stream_lose_and_double_no_row() {
    if !peers::is_there("tmux") {
        return;
    }
    // Rows are printed all the time, so some resizes meet a frame that is on its way. It takes its seconds: one resize
    // proves nothing.
    let script = Script::new([paragraphs(0..300, Duration::from_millis(15))]);
    let setting = Setting::with(script, QUEUE).await;
    let tmux = open(&setting);
    tmux.write("go");
    tmux.press("Enter");
    tmux.expect_screen("word003", SOON);
    for n in 0..40_u16 {
        // Faster than tmux tells of them, and slower.
        thread::sleep(Duration::from_millis(u64::from(n * 37 % 11) * 15));
        tmux.resize(8 + n * 7 % 25, 30 + n * 29 % 70);
    }
    resize(&tmux, 24, 80);
    expect_answer(&tmux, "word299 and more");
    let words: Vec<_> = (0..300).map(|n| format!("word{n:03}")).collect();
    assert_each_once(&tmux, &words);
}

#[tokio::test]
async fn in_tmux_a_long_paragraph_in_a_window_that_gets_narrower_stands_there_once() {
    if !peers::is_there("tmux") {
        return;
    }
    let setting = Setting::with(Script::new([slow(100)]), QUEUE).await;
    let tmux = open(&setting);
    tmux.write("go");
    tmux.press("Enter");
    tmux.expect_screen("word020", SOON);
    resize(&tmux, 24, 50);
    expect_answer(&tmux, "word099");
    let words: Vec<_> = (0..100).map(|n| format!("word{n:03}")).collect();
    assert_each_once(&tmux, &words);
}

#[tokio::test]
async fn in_tmux_a_window_too_small_for_what_was_on_it_loses_nothing() {
    if !peers::is_there("tmux") {
        return;
    }
    let setting = Setting::with(Script::new([slow(200), Answer::text("after")]), QUEUE).await;
    let tmux = open(&setting);
    tmux.write("go");
    tmux.press("Enter");
    tmux.expect_screen("word060", SOON);
    for (rows, columns) in [(8, 30), (24, 80)] {
        resize(&tmux, rows, columns);
    }
    tmux.write("more");
    tmux.press("Enter");
    expect_answer(&tmux, "› more\n\nafter");
    let (screen, all) = (tmux.screen(), tmux.scrollback());
    assert_eq!(screen.matches("\n›\n").count(), 1, "one input in\n{screen}");
    let words = (0..200).map(|n| format!("word{n:03}"));
    let lost: Vec<_> = words.filter(|word| !all.contains(word)).collect();
    assert!(lost.is_empty(), "{lost:?} in\n{all}");
}

#[tokio::test]
async fn in_tmux_a_dangerous_command_asks_and_is_answered_by_a_key() {
    if !peers::is_there("tmux") {
        return;
    }
    let call = |id: &str| Answer::call(id, "terminal", json!({"command": "rm -r victim"}));
    let script = Script::new([call("c1"), call("c2"), Answer::text("gone")]);
    let setting = Setting::with(script, QUEUE).await;
    let victim = setting.hermes.work_folder().join("victim");
    fs::create_dir(&victim).unwrap();
    let tmux = open(&setting);
    tmux.write("clean up");
    tmux.press("Enter");
    tmux.expect_screen("▎   rm -r victim\n", SOON);
    tmux.expect_screen("allow? y once", SOON);
    // tmux hands over a lone Escape only after it knows that nothing follows.
    tmux.press("Escape");
    tmux.expect_screen("refused", SOON);
    assert!(victim.exists());
    tmux.expect_screen("allow? y once", SOON);
    tmux.press("y");
    expect_answer(&tmux, "gone");
    assert!(!victim.exists());
}

#[tokio::test]
async fn in_tmux_a_killed_interface_leaves_a_shell_in_which_the_conversation_goes_on() {
    if !peers::is_there("tmux") {
        return;
    }
    let setting = Setting::new(Script::new([slow(400), Answer::text("I was cut short.")])).await;
    let shell = Hermes::new("/bin/bash")
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "shell> ");
    write_config(&shell, &setting.server.url(), "");
    let tmux = shell.spawn_in_tmux();
    tmux.expect_screen("shell>", SOON);
    let hermes = env!("CARGO_BIN_EXE_hermes");
    tmux.write(&format!("sh -c 'echo $$ >pid && exec {hermes}'"));
    tmux.press("Enter");
    tmux.expect_screen("/help shows", SOON);
    tmux.write("count");
    tmux.press("Enter");
    tmux.expect_screen("word020", SOON);
    let id = fs::read_to_string(shell.work_folder().join("pid")).unwrap();
    let id = id.trim().parse().ok().and_then(Pid::from_raw).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    tmux.expect_screen("Killed", SOON);
    wait_until("the process is gone", || {
        rustix::process::test_kill_process(id).is_err()
    });
    tmux.write(&format!("{hermes} -c"));
    tmux.press("Enter");
    tmux.expect_screen("› count", SOON);
    expect_answer(&tmux, "I was cut short.");
    tmux.write("/quit");
    tmux.press("Enter");
    tmux.expect_screen("goes on with this conversation", SOON);
    tmux.write("echo in the $0");
    tmux.press("Enter");
    tmux.expect_screen("\nin the /bin/bash\n", SOON);
}
