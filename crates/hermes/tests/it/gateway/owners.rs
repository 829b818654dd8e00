//! Who the owner of a home is, as the settings of all platforms say it together.

use std::time::{Duration, Instant};

use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::TOKEN;
use hermes_testkit::telegram::people::ALICE;
use rustix::process::Signal;
use serde_json::json;

use super::background::signal;
use super::platform::{Bot, ends_with};
use crate::setting::bare;

const SOON: Duration = Duration::from_secs(20);
const BOB: i64 = 1002;
/// A platform with a friend in its list, and with a token that is none.
const FRIEND: &str = "DISCORD_BOT_TOKEN=garbage\nDISCORD_ALLOWED_USERS=77\n";

fn ours(allowed: &str) -> String {
    format!("TELEGRAM_BOT_TOKEN={TOKEN}\n{allowed}\n")
}

/// A gateway with these variables.
async fn served(variables: &str, of_platform: &str) -> Bot {
    let script = Script::always(Answer::text("hi"));
    let mut bot = Bot::with_platform(script, "", "", of_platform).await;
    bot.kill();
    std::fs::write(bot.setting.hermes.home().join(".env"), variables).unwrap();
    bot.start();
    bot
}

/// What somebody is told who wants what only the owner has.
fn asked(bot: &Bot, user: i64) -> String {
    let before = bot.texts(user).len();
    bot.telegram.say_as(user, "Somebody", "/memory");
    let texts = bot.expect(user, "an answer", |texts| texts.len() > before);
    texts.last().cloned().unwrap_or_default()
}

fn wait_for(running: &Running, words: &str) {
    let deadline = Instant::now() + SOON;
    while !running.stderr().contains(words) {
        let told = running.stderr();
        assert!(Instant::now() < deadline, "no `{words}`: {told}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_alone_in_the_list_of_one_platform_is_no_owner_where_others_are_named_elsewhere()
{
    let variables = ours(&format!("TELEGRAM_ALLOWED_USERS={ALICE}")) + FRIEND;
    let bot = served(&variables, "").await;
    let told = asked(&bot, ALICE);
    assert!(
        told.contains("for the owner") && told.contains("hermes pairing owner telegram:1001"),
        "{told}"
    );
    let owner = |account: &str| bot.setting.run(&["pairing", "owner", account]);
    let stranger = owner("telegram:5");
    assert!(stranger.stderr.contains("may not ask"), "{stranger:?}");
    assert!(owner("telegram:1001").is_success());
    let told = asked(&bot, ALICE);
    assert!(!told.contains("for the owner"), "{told}");
    let shown = bot.setting.run(&["pairing", "owner"]).stdout;
    assert!(shown.contains("telegram:1001 is the owner"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_one_who_is_named_for_all_platforms_is_the_owner() {
    let variables = ours(&format!("GATEWAY_ALLOWED_USERS={ALICE}"));
    let bot = served(&variables, "").await;
    let told = asked(&bot, ALICE);
    assert!(!told.contains("for the owner"), "{told}");
    let other = bot.setting.run(&["pairing", "owner", "telegram:5"]);
    assert!(!other.is_success(), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_of_groups_owns_nothing_in_private() {
    let variables = ours(&format!("TELEGRAM_ALLOWED_USERS={ALICE},{BOB}"));
    let bot = served(
        &variables,
        &format!("    group_allow_admin_from: ['{BOB}']\n"),
    )
    .await;
    let told = asked(&bot, BOB);
    assert!(told.contains("for the owner"), "{told}");
    // Once there is an owner, nobody is told how to become one.
    assert!(
        bot.setting
            .run(&["pairing", "owner", "telegram:1001"])
            .is_success()
    );
    let told = asked(&bot, BOB);
    assert_eq!(told, "/memory is for the owner of this Hermes.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_wrongly_set_up_hinders_no_other() {
    let variables = ours(&format!("TELEGRAM_ALLOWED_USERS={ALICE}")) + FRIEND;
    let bot = served(&variables, "").await;
    let running = bot.running.as_ref().unwrap();
    wait_for(running, "discord is not connected");
    assert!(
        running.stderr().contains("DISCORD_BOT_TOKEN"),
        "{}",
        running.stderr()
    );
    bot.say("hello");
    bot.expect(ALICE, "hi", |texts| ends_with(texts, "hi"));
    let status = bot.setting.run(&["gateway", "status"]).stdout;
    assert!(
        status.contains("refused") && status.contains("DISCORD_BOT_TOKEN"),
        "{status}"
    );
    // The same when it comes while the gateway runs, and when it goes.
    let alone = ours(&format!("TELEGRAM_ALLOWED_USERS={ALICE}"));
    for (variables, words) in [
        (
            alone.clone(),
            "the settings were read again: the same platforms",
        ),
        (alone + FRIEND, "discord cannot be used"),
    ] {
        std::fs::write(bot.setting.hermes.home().join(".env"), variables).unwrap();
        signal(&json!(running.id()), Signal::HUP);
        wait_for(running, words);
    }
    bot.say("and now?");
    bot.expect(ALICE, "hi", |texts| {
        texts.iter().filter(|text| *text == "hi").count() == 2
    });
}

#[test]
fn where_nothing_else_is_left_the_gateway_does_not_start() {
    let hermes = bare();
    std::fs::write(hermes.home().join(".env"), FRIEND).unwrap();
    let ended = hermes.clone().args(["gateway", "run"]).run();
    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(ended.stderr.contains("DISCORD_BOT_TOKEN"), "{ended:?}");
}
