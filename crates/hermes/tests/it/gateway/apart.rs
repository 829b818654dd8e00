//! What is sent to chats apart from their conversations, and what becomes of what cannot be sent.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::{ALICE, GROUP};
use hermes_testkit::telegram::{BOT_NAME, CallFault};
use serde_json::json;

use super::platform::Bot;

const PATIENCE: Duration = Duration::from_secs(30);

fn wait(what: &str, is_right: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_right() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn target() -> String {
    format!("telegram:{ALICE}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_apart_is_known_when_somebody_asks_about_it() {
    let script = Script::new([
        Answer::text("hello"),
        Answer::text("because"),
        Answer::text("yes"),
    ]);
    let mut bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("hi");
    bot.expect_answers(&["hello"]);
    let sent = bot.setting.run(&["send", &target(), "the disk is full"]);
    assert!(sent.is_success(), "{sent:?}");
    bot.expect_answers(&["hello", "the disk is full"]);
    assert_eq!(bot.requests().len(), 1, "no turn begins with it");
    // It is durable.
    bot.kill();
    bot.start();
    bot.say("why?");
    bot.expect_answers(&["hello", "the disk is full", "because"]);
    bot.say("really?");
    bot.expect_answers(&["hello", "the disk is full", "because", "yes"]);
    let requests = bot.requests();
    let messages = |i: usize| requests[i].json["messages"].as_array().unwrap().clone();
    assert_eq!(messages(0)[..2], messages(2)[..2], "the prefix stays");
    let asked = messages(1).last().unwrap().to_string();
    assert!(asked.contains("why?") && asked.contains("the disk is full"));
    // Once, and not with every message from then on.
    let all = requests[2].json.to_string();
    assert_eq!(all.matches("the disk is full").count(), 1, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_died_with_a_chat_is_sent_when_its_person_is_back() {
    let bot = Bot::new(Script::always(Answer::text("hello")), &ALICE.to_string()).await;
    bot.say("hi");
    bot.expect_answers(&["hello"]);
    bot.telegram.block(ALICE);
    let failed = bot.setting.run(&["send", &target(), "one"]);
    assert!(failed.stderr.contains("blocked"), "{failed:?}");
    let calls = bot.telegram.calls_of("sendMessage").len();
    // Nobody asks a chat again that said no.
    let failed = bot.setting.run(&["send", &target(), "two"]);
    assert!(failed.stderr.contains("blocked"), "{failed:?}");
    assert_eq!(bot.telegram.calls_of("sendMessage").len(), calls);
    bot.telegram.unblock(ALICE);
    bot.say("I am back");
    bot.expect_answers(&["hello", "one", "two", "hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_refused_is_told_of_and_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut answer = "Here you are.".to_owned();
    for name in ["a.txt", "b.txt"] {
        let path = folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        answer.push_str(&format!("\nMEDIA:{}", path.display()));
    }
    let bot = Bot::new(Script::always(Answer::text(&answer)), &ALICE.to_string()).await;
    let refusal = CallFault::Refuse(400, "Bad Request: FILE_FORBIDDEN".to_owned());
    bot.telegram.fail("sendDocument", refusal);
    bot.say("send me both");
    wait("the second file", || bot.telegram.ours(ALICE).len() == 3);
    let ours = bot.telegram.ours(ALICE);
    let told = ours[1]["text"].as_str().unwrap_or_default();
    assert!(told.contains("could not send a.txt"), "{told}");
    assert_eq!(ours[2]["document"]["file_name"], "b.txt", "{ours:?}");
    wait("the status tells of it", || {
        let status = bot.setting.run(&["gateway", "status"]).stdout;
        status.contains("1 could not be delivered")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_takes_no_files_is_not_dead() {
    for (code, why) in [
        (
            400,
            "Bad Request: not enough rights to send documents to the chat",
        ),
        (403, "Forbidden: no files are taken here"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "a").unwrap();
        let answer = format!("Here you are.\nMEDIA:{}", path.display());
        let script = Script::new([Answer::text(&answer), Answer::text("welcome")]);
        let bot = Bot::new(script, &ALICE.to_string()).await;
        let refusal = CallFault::Refuse(code, why.to_owned());
        bot.telegram.fail("sendDocument", refusal);
        bot.say("send it to me");
        let texts = bot.expect(ALICE, "two messages", |texts| texts.len() == 2);
        assert!(texts[1].contains("could not send a.txt"), "{texts:?}");
        bot.say("thank you");
        bot.expect(ALICE, "an answer", |texts| {
            texts.last().is_some_and(|text| text == "welcome")
        });
        assert_eq!(bot.telegram.calls_of("sendDocument").len(), 1, "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_group_said_among_itself_comes_with_a_question_where_that_is_wanted() {
    for (is_wanted, settings) in [
        (false, "    require_mention: true\n"),
        (
            true,
            "    require_mention: true\n    observe_unmentioned_group_messages: true\n",
        ),
    ] {
        let script = Script::always(Answer::text("at nine"));
        let bot = Bot::with_platform(script, &ALICE.to_string(), "", settings).await;
        let say = |text: &str| bot.telegram.say(GROUP, json!({"text": text}));
        say("the boat leaves at nine");
        say(&format!("@{BOT_NAME} when does it leave?"));
        bot.expect(GROUP, "an answer", |texts| texts == ["at nine"]);
        say(&format!("@{BOT_NAME} and again?"));
        bot.expect(GROUP, "another", |texts| texts.len() == 2);
        let requests = bot.requests();
        assert_eq!(requests.len(), 2, "no turn begins with what is not for us");
        let all = requests[1].json.to_string();
        let times = all.matches("the boat leaves at nine").count();
        assert_eq!(times, usize::from(is_wanted), "{all}");
        let asked = all.find("when does it leave?");
        let heard = all.find("the boat leaves at nine");
        assert!(heard.is_none() || asked < heard, "{all}");
    }
}
