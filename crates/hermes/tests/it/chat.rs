//! The conversation in a terminal.

use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_conversation_goes_back_and_forth_and_can_be_left() {
    let setting = Setting::new(Script::new([
        Answer::text("hello you"),
        Answer::text("bye then"),
    ]))
    .await;
    let mut terminal = setting.hermes.spawn_in_terminal();
    terminal.expect("›", SOON);
    terminal.send("hi\n");
    terminal.expect("hello you", SOON);
    terminal.send("/unknown\n");
    terminal.expect("no command `/unknown`", SOON);
    terminal.send("so long\n");
    terminal.expect("bye then", SOON);
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
    let mut terminal = setting.hermes.spawn_in_terminal();
    terminal.expect("›", SOON);
    terminal.send("go\n");
    terminal.expect("│ started", SOON);
    terminal.send("\x03");
    terminal.expect("interrupted", SOON);
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
    let mut terminal = setting.hermes.spawn_in_terminal();
    terminal.expect("›", SOON);
    terminal.send("clean up\n");
    terminal.expect("allow?", SOON);
    assert!(victim.exists());
    terminal.send("y\n");
    terminal.expect("gone", SOON);
    assert!(!victim.exists());
}
