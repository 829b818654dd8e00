//! Jobs that were made in a chat: their results come there.

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use serde_json::json;

use super::platform::{Bot, ends_with};

/// The last words in the chat of Alice hold these.
fn expect_last(bot: &Bot, words: &str) -> String {
    let is_right = |texts: &[String]| ends_with(texts, words);
    let texts = bot.expect(ALICE, words, is_right);
    texts.last().cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_made_in_a_chat_tells_its_result_there() {
    let create = json!({"action": "create", "schedule": "in 1 second", "prompt": "Is the kettle hot?", "name": "kettle"});
    let script = Script::new([
        Answer::call("1", "cronjob", create),
        Answer::text("I will look."),
        Answer::text("The kettle is hot."),
        Answer::text("The bath is full."),
    ]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("Look at the kettle in a second.");
    let told = expect_last(&bot, "The kettle is hot.");
    assert!(told.contains("Job “kettle”"), "{told}");
    bot.say("/cron add \"in 1 second\" Is the bath full?");
    expect_last(&bot, "The bath is full.");
    let texts = bot.texts(ALICE);
    let made = format!("origin (telegram:{ALICE})");
    assert!(texts.iter().any(|text| text.contains(&made)), "{texts:#?}");
    bot.say("/cron edit kettle schedule every day at 7");
    expect_last(&bot, "every day at 07:00");
    bot.say("/cron edit kettle weekly");
    expect_last(&bot, "/cron edit JOB WHAT VALUE");
    bot.say("/cron history");
    let history = expect_last(&bot, "succeeded");
    let target = format!("telegram:{ALICE} ");
    assert_eq!(history.matches(&target).count(), 2, "{history}");
    // What is made in a terminal stays there, and says so.
    let made = bot.setting.run(&["cron", "add", "every day at 9", "look"]);
    assert!(made.stdout.contains("deliver  local"), "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_run_without_a_gateway_arrives_too() {
    let mut bot = Bot::new(
        Script::always(Answer::text("All is well.")),
        &ALICE.to_string(),
    )
    .await;
    bot.kill();
    let target = format!("telegram:{ALICE}");
    let made = bot.setting.run(&[
        "cron",
        "add",
        "every day at 9",
        "look",
        "--name",
        "look",
        "--deliver",
        &target,
    ]);
    assert!(made.is_success(), "{made:?}");
    bot.setting.run(&["cron", "run", "look"]);
    let ran = bot.setting.run(&["cron", "tick"]);
    assert!(ran.stdout.contains("1 run"), "{ran:?}");
    expect_last(&bot, "All is well.");
    let history = bot.setting.run(&["cron", "history"]).stdout;
    assert!(
        history.contains(&format!("{target} delivered")),
        "{history}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn something_is_done_beside_the_conversation_and_told_there() {
    let busy = Answer::text("still here").headers_delay(std::time::Duration::from_secs(3));
    let script = Script::new([])
        .when("Count the sheep", [Answer::text("Seven sheep.")])
        .when("hello", [busy]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("/background");
    expect_last(&bot, "needs what is to be done");
    bot.say("/bg Count the sheep");
    expect_last(&bot, "beside our conversation");
    bot.say("hello");
    let told = bot.expect(ALICE, "both", |texts| {
        let has = |words: &str| texts.iter().any(|text| text.contains(words));
        has("Seven sheep.") && has("still here")
    });
    let told = told.iter().find(|text| text.contains("Seven")).unwrap();
    assert!(told.contains("Count the sheep"), "{told}");
    // The conversation does not have it as its own words.
    let asked = bot.requests();
    let asked = asked
        .iter()
        .find(|one| one.json.to_string().contains("hello"));
    assert!(!asked.unwrap().json.to_string().contains("Count the sheep"));
}
