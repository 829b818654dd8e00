//! Waits that a server asks for, and servers that say nothing: what scripts and people see of them.

use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(15);

fn busy(seconds: &str) -> Answer {
    Answer::status(429, json!({"error": {"message": "slow down"}})).header("retry-after", seconds)
}

#[tokio::test]
async fn a_script_waits_as_the_server_says_and_tells_so_on_standard_error() {
    let busy = || busy("1");
    let answers = [busy(), busy(), busy(), busy(), Answer::text("at last")];
    let setting = Setting::new(Script::new(answers)).await;
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(
        (output.stdout.as_str(), output.code),
        ("at last\n", Some(0)),
        "{output:?}"
    );
    let told = output.stderr.matches("slow down").count();
    assert!(
        told == 4 && output.stderr.contains("trying again in 1.0 s"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains('\x1b'), "{}", output.stderr);
}

#[tokio::test]
async fn a_wait_beyond_the_settings_is_told_at_once() {
    let more = "agent:\n  retry_minutes: 0.5\n";
    let setting = Setting::with(Script::always(busy("40")), more).await;
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("asks to wait 40 s: slow down"),
        "{}",
        output.stderr
    );
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn the_countdown_is_seen_and_ctrl_c_ends_it() {
    let setting = Setting::new(Script::always(busy("90"))).await;
    let lines: [(&[&str], bool); 3] = [(&["-z", "hi"], false), (&["--plain"], true), (&[], true)];
    for (flags, is_chat) in lines {
        let hermes = setting.hermes.clone().args(flags.iter().copied());
        let mut terminal = hermes.spawn_in_terminal();
        if is_chat {
            terminal.expect("›", SOON);
            terminal.send("hi\r");
        }
        terminal.expect("asking again in 90 s", SOON);
        terminal.expect("asking again in 89 s", SOON);
        terminal.send("\x03");
        if is_chat {
            terminal.expect("nterrupted", SOON);
            continue;
        }
        assert_eq!(terminal.wait(SOON), Some(130));
    }
}

#[tokio::test]
async fn a_silent_server_ends_a_script_with_an_error() {
    let late = Answer::text("late").headers_delay(Duration::from_secs(60));
    let more = "agent:\n  first_token_timeout: 1\n";
    let setting = Setting::with(Script::always(late), more).await;
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("no answer began within 1 s"),
        "{}",
        output.stderr
    );
    assert_eq!(setting.server.requests().len(), 1);
}
