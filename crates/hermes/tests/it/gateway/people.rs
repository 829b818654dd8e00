//! Several people on one gateway, and one person with several accounts.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::{ALICE, GROUP};
use serde_json::json;

use super::Gateway;
use super::platform::{Bot, ends_with};
use crate::setting::Setting;

const BOB: i64 = 1002;

fn last(bot: &Bot, chat: i64, words: &str) -> String {
    let texts = bot.expect(chat, words, |texts| ends_with(texts, words));
    texts.last().cloned().unwrap_or_default()
}

/// The code in `/link CODE`.
fn code(text: &str) -> String {
    let code = text.split("/link ").nth(1).unwrap();
    code.chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_more_turns_than_the_limit_also_after_a_restart() {
    let more = "gateway:\n  limits: {turns_per_hour: 2}\n";
    let allowed = format!("{ALICE},{BOB}");
    let mut bot = Bot::with(Script::always(Answer::text("yes")), &allowed, more).await;
    bot.say("one");
    bot.expect_answers(&["yes"]);
    bot.say("two");
    bot.expect_answers(&["yes", "yes"]);
    bot.say("three");
    last(&bot, ALICE, "2 times within an hour");
    bot.kill();
    bot.start();
    bot.say("four");
    // Killed right behind the message, the next process may send that once more, marked.
    bot.expect(ALICE, "told again", |texts| {
        let told = texts
            .iter()
            .filter(|text| text.starts_with("You have asked"));
        told.count() == 2
    });
    // Somebody else is served, and commands are no turns.
    bot.telegram.say_as(BOB, "Bob", "and me?");
    last(&bot, BOB, "yes");
    bot.say("/version");
    last(&bot, ALICE, "hermes");
    assert_eq!(bot.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn linked_accounts_are_one_person_with_one_conversation() {
    let more = "gateway:\n  continuity: shared\n";
    let allowed = format!("{ALICE},{BOB}");
    let script = Script::new([
        Answer::text("noted"),
        Answer::text("you said: blue"),
        Answer::text("and again"),
    ]);
    let bot = Bot::with(script, &allowed, more).await;
    bot.say("/link");
    let code = code(&last(&bot, ALICE, "/link "));
    bot.telegram.say_as(BOB, "Alice at work", "/link WRONGONE");
    last(&bot, BOB, "wrong");
    bot.telegram
        .say_as(BOB, "Alice at work", &format!("/link {code}"));
    let told = last(&bot, BOB, "one person now");
    assert!(told.contains("telegram:1001, telegram:1002"), "{told}");
    bot.say("my colour is blue");
    last(&bot, ALICE, "noted");
    bot.telegram.say_as(BOB, "Alice at work", "which colour?");
    last(&bot, BOB, "you said: blue");
    let asked = bot.requests()[1].json.to_string();
    assert!(asked.contains("my colour is blue"), "{asked}");
    // A code is used up.
    bot.telegram
        .say_as(BOB, "Alice at work", &format!("/link {code}"));
    last(&bot, BOB, "wrong");
    let listed = bot.setting.run(&["pairing", "list"]).stdout;
    assert!(!listed.contains("link"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_others_from_linking_their_accounts() {
    let everybody: Vec<i64> = (2001..2007).collect();
    let allowed = everybody
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let bot = Bot::new(Script::always(Answer::text("hi")), &allowed).await;
    let say = |user: i64, words: &str, answer: &str| {
        let before = bot.texts(user).len();
        bot.telegram.say_as(user, "Somebody", words);
        let texts = bot.expect(user, words, |texts| texts.len() > before);
        let told = texts.last().cloned().unwrap_or_default();
        assert!(told.contains(answer), "{user} {words}: {told}");
        told
    };
    let codes: Vec<String> = everybody[..4]
        .iter()
        .map(|user| code(&say(*user, "/link", "/link ")))
        .collect();
    // One guesses, and is kept from guessing on; the others are not.
    for _ in 0..4 {
        say(2005, "/link WRONGONE", "wrong, or too old");
    }
    say(2005, "/link WRONGONE", "Too many codes");
    say(2005, &format!("/link {}", codes[0]), "Too many codes");
    say(2005, "/link", "Too many codes");
    say(2006, &format!("/link {}", codes[0]), "one person now");
    say(2002, "/link", "a moment ago");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_lets_somebody_in_from_their_own_chat() {
    let more = "telegram:\n  unauthorized_dm_behavior: pair\n";
    let script = Script::always(Answer::text("welcome"));
    let bot = Bot::with(script, &ALICE.to_string(), more).await;
    bot.telegram.say_as(BOB, "Bob", "may I?");
    let shown = last(&bot, BOB, "pairing approve telegram ");
    let code = shown.split("approve telegram ").nth(1).unwrap();
    let code: String = code.chars().take(8).collect();
    bot.say("/pairing");
    last(&bot, ALICE, "telegram 1002 Bob: asks");
    bot.say("/pairing approve WRONGONE");
    last(&bot, ALICE, "4 more tries");
    bot.say(&format!("/pairing approve {}", code.to_lowercase()));
    last(&bot, ALICE, "1002 Bob on telegram may talk to me now");
    bot.telegram.say_as(BOB, "Bob", "hello");
    last(&bot, BOB, "welcome");
    // Who was let in lets nobody in.
    bot.telegram.say_as(BOB, "Bob", "/pairing list");
    last(&bot, BOB, "is for the owner");
    bot.say("/pairing revoke 1002");
    last(&bot, ALICE, "has to ask again");
    bot.telegram.say_as(BOB, "Bob", "still there?");
    bot.say("/pairing");
    last(&bot, ALICE, "Nobody was let in");
    assert_eq!(bot.requests().len(), 1);
}

/// Looks back after every message, at once.
const LEARNS: &str =
    "memory:\n  nudge_interval: 1\nlearning:\n  rest: 0\nuser_model:\n  turns: 1\n";

/// Answers conversations, reviews and hearings; what was said is looked through in this order.
fn learning(facts: &[(&str, &str)]) -> Script {
    let note = |(fact, _): &(&str, &str)| {
        let note = json!({"action": "add", "target": "user", "content": fact});
        [
            Answer::call("m1", "memory", note),
            Answer::text("nothing to keep"),
        ]
    };
    let derived = |(fact, quote): &(&str, &str)| {
        let premise = json!({"text": fact, "kind": "attribute", "message": 1, "quote": quote, "confidence": 90});
        Answer::text(json!({"premises": [premise], "conclusions": []}).to_string())
    };
    Script::always(Answer::text("I see"))
        .when("moment to look back", facts.iter().flat_map(note))
        .when("\"known\":", facts.iter().map(derived))
}

/// Waits until a command says something.
fn wait_for(setting: &Setting, args: &[&str], words: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let told = setting.run(args).stdout;
        if told.contains(words) {
            return told;
        }
        assert!(Instant::now() < deadline, "{args:?}: {told}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_in_their_chats_is_learned_for_them_alone() {
    let script = learning(&[
        ("Lives in Lyon", "I live in Lyon"),
        ("Lives in Oslo", "I live in Oslo"),
    ]);
    let bot = Bot::with_platform(
        script,
        &format!("{ALICE},{BOB}"),
        LEARNS,
        &format!("    allow_admin_from: ['{ALICE}']\n"),
    )
    .await;
    bot.say("I live in Lyon");
    bot.expect(ALICE, "an answer", |texts| {
        texts.first().is_some_and(|text| text == "I see")
    });
    wait_for(&bot.setting, &["memory"], "Lives in Lyon");
    wait_for(&bot.setting, &["user"], "Lives in Lyon");
    bot.telegram.say_as(BOB, "Bob", "I live in Oslo");
    bot.expect(BOB, "an answer", |texts| {
        texts.first().is_some_and(|text| text == "I see")
    });
    let person = format!("telegram:{BOB}");
    wait_for(
        &bot.setting,
        &["memory", "--person", &person],
        "Lives in Oslo",
    );
    let known = wait_for(
        &bot.setting,
        &["user", "--person", &person],
        "Lives in Oslo",
    );
    assert!(!known.contains("Lyon"), "{known}");
    let owners = bot.setting.run(&["memory"]).stdout;
    assert!(!owners.contains("Oslo"), "{owners}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_several_talk_nobodys_words_are_learned() {
    let said = "I live in Lyon with seven hungry cats";
    let script = learning(&[(said, said)]);
    let more = format!("{LEARNS}group_sessions_per_user: false\n");
    let bot = Bot::with_platform(
        script,
        &ALICE.to_string(),
        &more,
        "    require_mention: false\n",
    )
    .await;
    bot.telegram.say(GROUP, json!({"text": said}));
    bot.expect(GROUP, "an answer", |texts| texts == ["I see"]);
    // The review asked for a note, and was told why not.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let asked = bot.requests();
        let refused = |text: &str| text.contains("not kept: this comes from");
        if asked.iter().any(|one| refused(&one.json.to_string())) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", asked.len());
        std::thread::sleep(Duration::from_millis(20));
    }
    for person in [None, Some(format!("telegram:chat:{GROUP}"))] {
        let mut args = vec!["memory"];
        args.extend(
            person
                .iter()
                .flat_map(|person| ["--person", person.as_str()]),
        );
        let notes = bot.setting.run(&args).stdout;
        assert!(!notes.contains("Lyon"), "{notes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_over_the_api_is_learned_also_under_a_key() {
    let script = learning(&[
        ("Lives in Lyon", "I live in Lyon"),
        ("Lives in Oslo", "I live in Oslo"),
    ]);
    let setting = Setting::with(script, LEARNS).await;
    let gateway = Gateway::start(&setting.hermes);
    for (key, person, words) in [
        ("k1", None, "I live in Lyon"),
        ("k2", Some("anna"), "I live in Oslo"),
    ] {
        let body = json!({"messages": [{"role": "user", "content": words}]});
        let mut headers = vec![("Idempotency-Key", key)];
        headers.extend(person.map(|person| ("X-Hermes-Session-Key", person)));
        let answer = gateway.client.chat_with(&headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut args = vec!["memory"];
        args.extend(person.iter().flat_map(|person| ["--person", person]));
        wait_for(&setting, &args, words.trim_start_matches("I live "));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_heard_also_after_something_was_learned() {
    let script = learning(&[("Lives in Lyon", "I live in Lyon")]);
    let bot = Bot::with(script, &ALICE.to_string(), LEARNS).await;
    bot.say("I live in Lyon");
    bot.expect(ALICE, "that it was learned", |texts| {
        texts.iter().any(|text| text.contains("Lives in Lyon"))
    });
    bot.say("are you there?");
    bot.expect(ALICE, "an answer", |texts| {
        texts.iter().filter(|text| *text == "I see").count() == 2
    });
}

/// Somebody says something in the group, where all talk in one conversation.
fn say_in_group(bot: &Bot, user: i64, number: i64, text: &str) {
    bot.telegram.tell(
        "message",
        json!({"message_id": 9_000 + number, "date": 1_900_000_000, "text": text,
            "from": {"id": user, "is_bot": false, "first_name": format!("User {user}")},
            "chat": {"id": GROUP, "type": "group", "title": "Friends"}}),
    );
}

fn has(texts: &[String], words: &str) -> bool {
    texts.iter().any(|text| text.contains(words))
}

fn expect_asked(bot: &Bot, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while bot.requests().len() < count {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_stop_a_turn_of_their_writer_or_of_an_admins_and_no_other() {
    let slow = Duration::from_secs(3);
    for (admins, is_overruled) in [(String::new(), false), (BOB.to_string(), true)] {
        let script = Script::default()
            .when(
                "asked by Alice",
                [Answer::text("for Alice").headers_delay(slow)],
            )
            .when("asked by Bob", [Answer::text("for Bob")])
            .by_step();
        let more = "group_sessions_per_user: false\n";
        let allowed = format!("{ALICE},{BOB}");
        let of_platform = format!("    allow_admin_from: [{admins}]\n");
        let bot = Bot::with_platform(script, &allowed, more, &of_platform).await;
        say_in_group(&bot, ALICE, 1, "asked by Alice");
        expect_asked(&bot, 1);
        say_in_group(&bot, BOB, 2, "asked by Bob");
        let texts = bot.expect(GROUP, "an answer for Bob", |texts| has(texts, "for Bob"));
        assert_eq!(has(&texts, "for Alice"), !is_overruled, "{texts:?}");
        // Nobody's words are dropped in silence.
        assert_eq!(
            has(&texts, "I stopped what was asked"),
            is_overruled,
            "{texts:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_count_for_each_of_those_who_talk_in_one_conversation() {
    let more = "group_sessions_per_user: false\ngateway:\n  limits: {turns_per_hour: 1}\n";
    let allowed = format!("{ALICE},{BOB}");
    let bot = Bot::with(Script::always(Answer::text("yes")), &allowed, more).await;
    say_in_group(&bot, ALICE, 1, "one");
    bot.expect(GROUP, "an answer", |texts| texts == ["yes"]);
    say_in_group(&bot, BOB, 2, "two");
    bot.expect(GROUP, "an answer for Bob", |texts| texts == ["yes", "yes"]);
    say_in_group(&bot, ALICE, 3, "three");
    last(&bot, GROUP, "1 times within an hour");
    assert_eq!(bot.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_question_keeps_nobody_else_waiting() {
    let script = Script::new([
        Answer::call("c1", "terminal", json!({"command": "git reset --hard"})),
        Answer::text("for Bob"),
        Answer::text("left as it is"),
    ]);
    let more = "approvals:\n  mode: manual\nmax_concurrent_sessions: 1\n";
    let bot = Bot::with(script, &format!("{ALICE},{BOB}"), more).await;
    bot.say("clean up");
    bot.expect(ALICE, "a question", |texts| has(texts, "May I run this?"));
    bot.telegram.say_as(BOB, "Bob", "and me?");
    last(&bot, BOB, "for Bob");
    bot.say("no");
    last(&bot, ALICE, "left as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_room_is_told_so() {
    let slow = Answer::text("for Alice").headers_delay(Duration::from_secs(8));
    let script = Script::new([slow, Answer::text("for Bob")]);
    let more = "approvals:\n  mode: manual\nmax_concurrent_sessions: 1\n";
    let bot = Bot::with(script, &format!("{ALICE},{BOB}"), more).await;
    bot.say("think");
    expect_asked(&bot, 1);
    bot.telegram.say_as(BOB, "Bob", "and me?");
    bot.expect(BOB, "a sign", |texts| {
        has(texts, "as soon as there is room")
    });
    assert!(bot.texts(ALICE).is_empty(), "it runs");
    last(&bot, BOB, "for Bob");
}
