//! The agent's own questions, as a user meets them.

use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);

async fn setting() -> Setting {
    let arguments = json!({"question": "Which colour?", "choices": ["red", "blue"]});
    let call = Answer::call("c1", "clarify", arguments);
    Setting::new(Script::new([call, Answer::text("painted")])).await
}

/// What the model learned.
fn told(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let messages = requests.last().unwrap().json["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    last["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_choice_is_taken_by_its_number_in_plain_lines() {
    let setting = setting().await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("paint it\n");
    terminal.expect("the agent asks: Which colour?", SOON);
    terminal.expect("2. blue", SOON);
    terminal.expect("your own words", SOON);
    terminal.send("2\n");
    terminal.expect("painted", SOON);
    assert!(told(&setting).contains(r#""user_response":"blue""#));
}

#[tokio::test]
async fn the_interface_takes_other_words_too() {
    let setting = setting().await;
    let terminal = setting.hermes.spawn_in_terminal();
    terminal.expect_screen("›", SOON);
    terminal.send("paint it\r");
    terminal.expect_screen("the agent asks: Which colour?", SOON);
    terminal.expect_screen("2. blue", SOON);
    terminal.send("green");
    terminal.expect_screen("green", SOON);
    terminal.send("\r");
    terminal.expect_screen("painted", SOON);
    assert!(told(&setting).contains(r#""user_response":"green""#));
}

#[tokio::test]
async fn where_nobody_is_the_model_chooses_itself() {
    let setting = setting().await;
    let output = setting.run(&["-z", "paint it"]);
    assert_eq!(output.stdout, "painted\n", "{output:?}");
    let told = told(&setting);
    assert!(
        told.contains("nobody is here") && told.contains("Choose"),
        "{told}"
    );
}
