//! Conversations that are over by themselves.

use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;

use super::platform::Bot;
use crate::setting::{Setting, bare};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_silence_a_new_conversation_begins_and_the_last_can_be_resumed() {
    // Complaint 15: conversations that never roll over.
    let script = Script::new([
        Answer::text("first answer"),
        Answer::text("second answer"),
        Answer::text("third answer"),
    ]);
    let more = "approvals:\n  mode: manual\nsession_reset: {mode: both, idle_minutes: 0.01}\n";
    let bot = Bot::with(script, &ALICE.to_string(), more).await;
    bot.say("the first words");
    bot.expect_answers(&["first answer"]);
    std::thread::sleep(Duration::from_millis(900));
    bot.say("the second words");
    let texts = bot.expect(ALICE, "a notice and an answer", |texts| {
        texts.last().is_some_and(|text| text == "second answer")
    });
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1].contains("nothing was said here"), "{texts:?}");
    let asked = bot.requests()[1].json.to_string();
    assert!(!asked.contains("the first words"), "{asked}");
    let (words, note) = ("the second words", "A new conversation begins here because");
    assert!(asked.find(words) < asked.find(note), "{asked}");
    let listed = bot.setting.run(&["sessions", "list", "--json"]).stdout;
    assert!(
        listed.contains("the second words"),
        "known by what was said: {listed}"
    );
    let resume = texts[1].split("/resume ").nth(1).unwrap();
    let id = resume.split_whitespace().next().unwrap();
    let id = id.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    bot.say(&format!("/resume {id}"));
    bot.say("the third words");
    bot.expect(ALICE, "the old conversation", |texts| {
        texts.last().is_some_and(|text| text == "third answer")
    });
    let asked = bot.requests()[2].json.to_string();
    assert!(asked.contains("the first words"), "{asked}");
    assert!(!asked.contains("the second words"), "{asked}");
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_is_told() {
    for (settings, words) in [
        ("session_reset: {mode: weekly}\n", "`session_reset.mode` is"),
        (
            "reset_by_type: {dm: {mode: daily, at_hour: 25}}\n",
            "`reset_by_type.dm.at_hour` is",
        ),
    ] {
        let hermes = bare().env("TELEGRAM_BOT_TOKEN", "42:AAF-x");
        let setting = Setting::with(Script::always(Answer::text("x")), settings).await;
        std::fs::copy(
            setting.hermes.home().join("config.yaml"),
            hermes.home().join("config.yaml"),
        )
        .unwrap();
        let output = hermes.args(["gateway", "run"]).run();
        assert_eq!(output.code, Some(78), "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
    }
}
