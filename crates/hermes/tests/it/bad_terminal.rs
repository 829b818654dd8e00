//! Terminals that stop, go away, are small or can do little, and models that write what terminals obey.

use std::time::Duration;

use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Answer, NoiseKind, Script};

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(30);
/// What is typed before an answer has ended waits for its end.
const QUEUE: &str = "display:\n  busy_input_mode: queue\n";
const HERMES: &str = env!("CARGO_BIN_EXE_hermes");

fn open(hermes: &Hermes) -> Terminal {
    let terminal = hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal
}

/// A shell with job control, in a home whose model is the script.
fn shell(setting: &Setting) -> Terminal {
    let shell = Hermes::new("/bin/bash")
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "shell> ");
    write_config(&shell, &setting.server.url(), "");
    let terminal = shell.spawn_in_terminal();
    terminal.expect_screen("shell>", SOON);
    terminal
}

#[tokio::test]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_goes_on() {
    let setting = Setting::new(Script::new([Answer::text("welcome back")])).await;
    let mut terminal = shell(&setting);
    terminal.send(&format!("{HERMES}\r"));
    terminal.expect_screen("/help shows", SOON);
    terminal.send("half a thought");
    terminal.expect_screen("› half a thought", SOON);
    terminal.send("\x1a");
    terminal.expect("Stopped", SOON);
    // The shell's own terminal: it echoes, and no rows of the interface are left over.
    terminal.send("echo in the $0\r");
    terminal.expect_screen("\nin the /bin/bash\n", SOON);
    assert!(!terminal.screen().contains("› half a thought"));
    terminal.send("fg\r");
    terminal.expect_screen("› half a thought", SOON);
    terminal.send(" and the rest\r");
    terminal.expect_screen("welcome back\n\n──", SOON);
    terminal.send("/quit\r");
    terminal.expect("goes on with this conversation", SOON);
}

#[tokio::test]
async fn a_closed_terminal_ends_it_and_the_draft_is_kept() {
    let setting = Setting::new(Script::new([])).await;
    let terminal = open(&setting.hermes);
    terminal.send("an unfinished thought");
    terminal.expect_screen("› an unfinished thought", SOON);
    assert_eq!(terminal.hang_up(SOON), Some(143));
    let terminal = open(&setting.hermes);
    terminal.send("\x1b[A");
    terminal.expect_screen("› an unfinished thought", SOON);
}

#[tokio::test]
async fn a_terminal_closed_in_the_middle_of_an_answer_leaves_a_session_that_can_be_resumed() {
    let slow = Answer::text("one two three four five six")
        .pieces(6)
        .chunk_delay(Duration::from_millis(500));
    let setting = Setting::new(Script::new([slow, Answer::text("again")])).await;
    let terminal = open(&setting.hermes);
    terminal.send("count\r");
    terminal.expect_screen("one", SOON);
    terminal.hang_up(SOON);
    let terminal = setting.hermes.clone().args(["-c"]).spawn_in_terminal();
    terminal.expect_screen("› count", SOON);
    terminal.send("go on\r");
    terminal.expect_screen("again", SOON);
}

#[tokio::test]
async fn no_color_leaves_weight_and_takes_colour() {
    let answer = "# Title\n\n`code` and **bold**, see [there](https://example.org)";
    let setting = Setting::new(Script::new([Answer::text(answer)])).await;
    let terminal = open(&setting.hermes.clone().env("NO_COLOR", "1"));
    terminal.send("hi\r");
    terminal.expect_screen("code and bold", SOON);
    let output = terminal.output();
    let styles = output.split("\x1b[").filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        (rest[end..].starts_with('m')).then(|| &rest[..end])
    });
    let codes: Vec<u32> = styles
        .flat_map(|style| style.split(';'))
        .filter_map(|code| code.parse().ok())
        .collect();
    assert!(codes.contains(&1), "{codes:?}");
    assert!(codes.iter().all(|code| *code < 30), "{codes:?}");
}

#[tokio::test]
async fn a_terminal_that_can_do_nothing_gets_plain_lines() {
    let setting = Setting::new(Script::new([Answer::text("hello")])).await;
    for term in ["dumb", ""] {
        let mut terminal = setting.hermes.clone().env("TERM", term).spawn_in_terminal();
        terminal.expect("/help for help", SOON);
        terminal.expect("›", SOON);
        terminal.send("/version\n");
        terminal.expect("hermes 0.", SOON);
        let output = terminal.output();
        assert!(!output.contains("\x1b[?"), "{output:?}");
    }
}

#[tokio::test]
async fn ten_columns_are_enough_to_talk() {
    let answer =
        "A sentence longer than a row.\n\n| a | b |\n|---|---|\n| long cell | other cell |";
    let setting = Setting::new(Script::new([Answer::text(answer), Answer::text("two")])).await;
    write_config(&setting.hermes, &setting.server.url(), QUEUE);
    for (rows, columns) in [(12, 10), (3, 10), (24, 1)] {
        let terminal = setting.hermes.spawn_in_terminal_of(rows, columns);
        terminal.expect_screen("›", SOON);
        drop(terminal);
    }
    let terminal = setting.hermes.spawn_in_terminal_of(12, 10);
    terminal.expect_screen("›", SOON);
    terminal.send("a question that is long\r");
    terminal.expect_screen("│ cel", SOON);
    terminal.expect_screen("\n› \n", SOON);
    terminal.send("next\r");
    terminal.expect_screen("two", SOON);
}

#[tokio::test]
async fn words_from_a_pipe_are_no_conversation_even_with_a_terminal_beside_it() {
    let setting = Setting::new(Script::new([])).await;
    let mut terminal = shell(&setting);
    terminal.send(&format!("echo hi | {HERMES}\r"));
    terminal.expect("standard input is not a terminal", SOON);
    terminal.send("echo in the $0\r");
    terminal.expect_screen("\nin the /bin/bash\n", SOON);
}

#[tokio::test]
async fn what_a_model_writes_is_shown_and_never_obeyed() {
    let words = "start \u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{1b}]52;c;aGk=\u{7} \u{9b}5m\u{202e}\u{8}\u{7f} end";
    let code = format!("```sh\n{words}\n```\n\n[{words}](http://x/{words})");
    let call = Answer::call(
        "c1",
        "terminal",
        serde_json::json!({"command": "printf 'tool \\033[2J\\033]0;owned\\007 \\377\\376 done\\n'"}),
    );
    let answers = [
        Answer::text(words),
        Answer::text(code),
        call,
        Answer::text("over"),
    ];
    let setting = Setting::new(Script::new(answers)).await;
    write_config(&setting.hermes, &setting.server.url(), QUEUE);
    let terminal = open(&setting.hermes);
    for (question, answer) in [
        ("plain", "end"),
        ("code", "http://x/start"),
        ("tool", "over"),
    ] {
        terminal.send(&format!("{question}\r"));
        terminal.expect_screen(answer, SOON);
        terminal.expect_screen("\n› \n", SOON);
    }
    let output = terminal.output();
    for obeyed in [
        "\x1b]", "\x1b[2J", "\x1b[31m", "\u{9b}", "\u{202e}", "\u{7}", "\u{8}", "\u{7f}",
    ] {
        assert!(!output.contains(obeyed), "{obeyed:?} reached the terminal");
    }
    assert!(output.contains("start") && output.contains("end"));
}

#[tokio::test]
async fn z_writes_nothing_to_a_terminal_that_it_would_obey_and_everything_to_a_pipe() {
    let words = "start\tof \u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{1b}]52;c;aGk=\u{7} \u{9b}5m\u{202e}\u{8}\u{7f}\r end";
    for question in [&["-z", "hi"][..], &["chat", "-Q", "-q", "hi"]] {
        let script = Script::new([Answer::text(words), Answer::text(words)]);
        let setting = Setting::new(script).await;
        assert_eq!(setting.run(question).stdout, format!("{words}\n"));
        let mut terminal = setting.hermes.clone().args(question).spawn_in_terminal();
        terminal.expect(" end", SOON);
        let output = terminal.output();
        for obeyed in ["\u{1b}", "\u{9b}", "\u{202e}", "\u{7}", "\u{8}", "\u{7f}"] {
            assert!(!output.contains(obeyed), "{obeyed:?} reached the terminal");
        }
        assert!(
            output.contains("red ") && output.contains("start"),
            "{output}"
        );
        assert_eq!(terminal.wait(SOON), Some(0));
    }
}

#[tokio::test]
async fn a_stream_that_is_not_utf_8_is_shown_as_far_as_it_is_text() {
    let frame =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<\xff\xfe\xc3>\"}}]}\n\n";
    let answer = Answer::text("before after")
        .pieces(2)
        .noise_after(1, NoiseKind::Bytes(frame.to_vec()));
    let setting = Setting::new(Script::new([answer, Answer::text("fine again")])).await;
    let mut terminal = open(&setting.hermes);
    terminal.send("hi\r");
    terminal.expect("before<\u{fffd}\u{fffd}\u{fffd}> after", SOON);
    // The rule follows at once when the turn is over. The emulator leaves out what it cannot show.
    terminal.expect_screen("> after\n\n──", SOON);
    terminal.send("and now?\r");
    terminal.expect_screen("fine again", SOON);
}
