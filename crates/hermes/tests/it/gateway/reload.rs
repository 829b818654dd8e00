//! Settings that change while the gateway runs.

use std::time::{Duration, Instant};

use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::TOKEN;
use hermes_testkit::telegram::people::ALICE;
use rustix::process::Signal;
use serde_json::json;

use super::background::signal;
use super::platform::Bot;

const SOON: Duration = Duration::from_secs(20);

fn wait_for(running: &Running, words: &str) {
    let deadline = Instant::now() + SOON;
    while !running.stderr().contains(words) {
        assert!(
            Instant::now() < deadline,
            "no `{words}`: {}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn reload(bot: &Bot, variables: &str) {
    std::fs::write(bot.setting.hermes.home().join(".env"), variables).unwrap();
    let running = bot.running.as_ref().unwrap();
    signal(&json!(running.id()), Signal::HUP);
}

#[tokio::test(flavor = "multi_thread")]
async fn platforms_change_come_and_go_and_no_turn_is_dropped() {
    let script = Script::new([
        Answer::text("the slow answer").headers_delay(Duration::from_millis(1500)),
        Answer::text("the next"),
        Answer::text("the last"),
    ]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    let running = bot.running.as_ref().unwrap();
    bot.say("slowly");
    let deadline = Instant::now() + SOON;
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    reload(
        &bot,
        &format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=5,{ALICE}\n"),
    );
    wait_for(running, "telegram is changed; MCP: ");
    bot.expect_answers(&["the slow answer"]);
    bot.say("more");
    bot.expect_answers(&["the slow answer", "the next"]);
    // Without its token it is gone, and the gateway goes on.
    reload(&bot, "");
    wait_for(running, "telegram is gone");
    bot.say("anybody?");
    // With it, what was written meanwhile is answered.
    reload(
        &bot,
        &format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS={ALICE}\n"),
    );
    wait_for(running, "telegram is added");
    bot.expect_answers(&["the slow answer", "the next", "the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_more_room_for_turns_as_soon_as_the_settings_say_so() {
    let slow = Answer::text("for Alice").headers_delay(Duration::from_secs(60));
    let script = Script::new([slow, Answer::text("for Bob")]);
    let more = "approvals:\n  mode: manual\nmax_concurrent_sessions: 1\n";
    let bot = Bot::with(script, &format!("{ALICE},1002"), more).await;
    bot.say("think");
    let deadline = Instant::now() + SOON;
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    bot.telegram.say_as(1002, "Bob", "and me?");
    bot.expect(1002, "a sign", |texts| texts.len() == 1);
    let file = bot.setting.hermes.home().join("config.yaml");
    let config = std::fs::read_to_string(&file).unwrap();
    let config = config.replace("max_concurrent_sessions: 1", "max_concurrent_sessions: 2");
    std::fs::write(&file, config).unwrap();
    let running = bot.running.as_ref().unwrap();
    signal(&json!(running.id()), Signal::HUP);
    bot.expect(1002, "an answer", |texts| {
        texts.last().is_some_and(|text| text == "for Bob")
    });
    assert!(bot.texts(ALICE).is_empty(), "it runs on");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_read_change_nothing() {
    let bot = Bot::new(Script::always(Answer::text("yes")), &ALICE.to_string()).await;
    let running = bot.running.as_ref().unwrap();
    let file = bot.setting.hermes.home().join("config.yaml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "platforms: [").unwrap();
    signal(&json!(running.id()), Signal::HUP);
    wait_for(running, "the settings stay as they were");
    std::fs::write(&file, config).unwrap();
    bot.say("there?");
    bot.expect_answers(&["yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_behind_by_platforms_that_come_and_go() {
    // Complaint 13: descriptors and threads that grow in a process of months.
    let bot = Bot::new(Script::always(Answer::text("yes")), &ALICE.to_string()).await;
    let running = bot.running.as_ref().unwrap();
    let count = |what: &str| {
        let folder = format!("/proc/{}/{what}", running.id());
        std::fs::read_dir(folder).map(Iterator::count)
    };
    let change = |times: usize| {
        for _ in 0..times {
            let before = running.stderr().matches("telegram is changed").count();
            let user = before % 2 + 5;
            reload(
                &bot,
                &format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS={user},{ALICE}\n"),
            );
            let deadline = Instant::now() + SOON;
            while running.stderr().matches("telegram is changed").count() == before {
                assert!(Instant::now() < deadline, "{}", running.stderr());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    };
    change(3);
    let (Ok(descriptors), Ok(threads)) = (count("fd"), count("task")) else {
        eprintln!("SKIPPED: who is not root cannot look into the process");
        return;
    };
    change(20);
    assert!(
        count("fd").unwrap() <= descriptors + 5,
        "{descriptors} before"
    );
    assert!(count("task").unwrap() <= threads + 5, "{threads} before");
    bot.say("there?");
    bot.expect_answers(&["yes"]);
}
