//! Suggestions behind commands, in a real terminal.

use std::time::Duration;

use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);

fn open(setting: &Setting) -> Terminal {
    let terminal = setting.hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.expect_screen("›", SOON);
    terminal
}

#[tokio::test]
async fn a_model_that_the_provider_offers_is_suggested_chosen_and_asked() {
    let script = Script::always(Answer::text("fine"))
        .model("test-model")
        .model("claude-haiku-4-5");
    let setting = Setting::new(script).await;
    let terminal = open(&setting);
    terminal.send("/model ");
    terminal.expect_screen("  custom:test-model        in use · ", SOON);
    terminal.expect_screen("  custom:claude-haiku-4-5  ", SOON);
    terminal.send("haiku");
    terminal.expect_screen("› /model haiku\n", SOON);
    terminal.send("\t");
    terminal.expect_screen("› /model custom:claude-haiku-4-5 \n", SOON);
    terminal.send("\r");
    terminal.expect_screen("custom:claude-haiku-4-5 answers from now on", SOON);
    terminal.expect_screen("☤ Hermes · custom:claude-haiku-4-5", SOON);
    terminal.send("hi\r");
    terminal.expect_screen("› hi\n\nfine\n\n──", SOON);
    let asked = setting.server.requests();
    let asked = asked
        .iter()
        .find(|request| !request.json["model"].is_null());
    assert_eq!(asked.unwrap().json["model"], "claude-haiku-4-5");
    // The one before is offered to go back to.
    terminal.send("/model ");
    terminal.expect_screen("  custom:claude-haiku-4-5  in use · ", SOON);
    terminal.expect_screen("  custom:test-model        ", SOON);
}

#[tokio::test]
async fn a_session_is_suggested_by_its_words_and_gone_on_with() {
    let answers = ["It is in the cellar.", "Noted.", "Good."].map(Answer::text);
    let setting = Setting::new(Script::new(answers)).await;
    for question in ["where is the barometer?", "buy bread"] {
        let asked = setting.run(&["-z", question]);
        assert!(asked.is_success(), "{}", asked.stderr);
    }
    let terminal = open(&setting);
    terminal.send("/resume ");
    terminal.expect_screen("\n  buy bread                ", SOON);
    terminal.expect_screen("\n  where is the barometer?  ", SOON);
    terminal.expect_screen("2 messages", SOON);
    terminal.send("barometer where");
    terminal.expect_screen("\n› where is the barometer?  ", SOON);
    terminal.send("\r");
    terminal.expect_screen("It is in the cellar.", SOON);
    terminal.send("thanks\r");
    terminal.expect_screen("Good.", SOON);
}

#[tokio::test]
async fn words_that_a_command_knows_are_suggested_one_after_the_other() {
    let setting = Setting::new(Script::new([Answer::text("x")])).await;
    let terminal = open(&setting);
    terminal.send("/tools ");
    terminal.expect_screen("\n  disable  offer it no more", SOON);
    terminal.send("en\tw");
    terminal.expect_screen("\n› web ", SOON);
    terminal.send("\x15/personality pir");
    terminal.expect_screen("\n› pirate  ", SOON);
    terminal.send("\r");
    terminal.expect_screen("personality: pirate", SOON);
}
