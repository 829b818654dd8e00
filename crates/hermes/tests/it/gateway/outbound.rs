//! What goes to chats that nobody asked for there: `hermes send`, files, the model's own messages, conversations that move.

use std::time::{Duration, Instant};

use hermes_testkit::process::Output;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use serde_json::{Value, json};

use super::platform::Bot;

const PATIENCE: Duration = Duration::from_secs(30);

fn allowed() -> String {
    ALICE.to_string()
}

/// Says `/sethome` in the chat, and waits for the answer.
fn set_home(bot: &Bot) {
    bot.say("/sethome");
    bot.expect(ALICE, "home", |texts| {
        texts
            .last()
            .is_some_and(|text| text.contains("is home now"))
    });
}

fn send(bot: &Bot, args: &[&str]) -> Output {
    let mut all = vec!["send"];
    all.extend(args);
    bot.setting.run(&all)
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_sent_by_the_gateway_or_without_one() {
    let mut bot = Bot::new(Script::always(Answer::text("yes")), &allowed()).await;
    let unknown = send(&bot, &["telegram", "hello"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("no home chat"), "{unknown:?}");
    set_home(&bot);
    let env = std::fs::read_to_string(bot.setting.hermes.home().join(".env")).unwrap();
    assert!(
        env.contains(&format!("TELEGRAM_HOME_CHANNEL={ALICE}")),
        "{env}"
    );
    // The running gateway delivers.
    let sent = send(&bot, &["telegram", "the", "disk", "is", "full"]);
    assert!(sent.is_success(), "{sent:?}");
    assert!(
        sent.stdout.starts_with("sent to telegram (message "),
        "{sent:?}"
    );
    bot.expect(ALICE, "the words", |texts| {
        texts.last().is_some_and(|text| text == "the disk is full")
    });
    // And while none runs, the command does itself.
    bot.kill();
    let target = format!("telegram:{ALICE}");
    let sent = send(
        &bot,
        &["-t", &target, "-s", "Report", "all is well", "--json"],
    );
    assert!(sent.is_success(), "{sent:?}");
    let told: Value = serde_json::from_str(&sent.stdout).unwrap();
    assert_eq!(
        (&told["state"], &told["target"]),
        (&json!("sent"), &json!(target))
    );
    let texts = bot.texts(ALICE);
    assert!(texts.last().unwrap().ends_with("all is well"), "{texts:?}");
    let list = send(&bot, &["--list"]).stdout;
    assert!(
        list.contains(&target) && list.contains("(dm, home)"),
        "{list}"
    );
    let nobody = send(&bot, &["irc:#x", "hello"]);
    assert!(nobody.stderr.contains("no such platform"), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_can_be_named_as_people_call_it() {
    let bot = Bot::new(Script::always(Answer::text("yes")), &allowed()).await;
    bot.say("hello");
    bot.expect_answers(&["yes"]);
    let list = send(&bot, &["--list", "--json"]).stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let name = list[0]["name"].as_str().unwrap();
    let sent = send(
        &bot,
        &[&format!("telegram:{}", name.to_lowercase()), "by name"],
    );
    assert!(sent.is_success(), "{sent:?} {list}");
    bot.expect_answers(&["yes", "by name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_hands_over_files_and_keeps_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.txt");
    std::fs::write(&report, "figures").unwrap();
    let (report, keys) = (report.display(), folder.path().join("keys"));
    let answer = format!(
        "Here you are.\nMEDIA:{report}\nMEDIA:{}\nMEDIA:/etc/passwd",
        keys.display()
    );
    let bot = Bot::new(Script::always(Answer::text(&answer)), &allowed()).await;
    // A link to what nobody is sent.
    std::os::unix::fs::symlink(bot.setting.hermes.home().join(".env"), keys).unwrap();
    bot.say("send me the report");
    let deadline = Instant::now() + PATIENCE;
    while bot.telegram.calls_of("sendDocument").is_empty() {
        assert!(Instant::now() < deadline, "{:?}", bot.texts(ALICE));
        std::thread::sleep(Duration::from_millis(10));
    }
    let texts = bot.expect(ALICE, "refusals", |texts| {
        texts
            .iter()
            .filter(|text| text.contains("I cannot send"))
            .count()
            == 2
    });
    assert_eq!(texts[0], "Here you are.");
    assert_eq!(bot.telegram.calls_of("sendDocument").len(), 1);
    assert!(
        !texts.iter().any(|text| text.contains("MEDIA:")),
        "{texts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_writes_home_without_asking_and_elsewhere_with_consent() {
    let elsewhere = json!({"target": "telegram:4711", "message": "hi there"});
    let script = Script::new([
        Answer::call(
            "c1",
            "send_message",
            json!({"target": "telegram", "message": "note to self"}),
        ),
        Answer::text("done"),
        Answer::call("c2", "send_message", elsewhere),
        Answer::text("they were not told"),
    ]);
    let bot = Bot::new(script, &allowed()).await;
    set_home(&bot);
    bot.say("remind me");
    bot.expect(ALICE, "both", |texts| {
        texts.iter().any(|text| text == "note to self")
            && texts.last().is_some_and(|text| text == "done")
    });
    bot.say("tell 4711");
    bot.expect(ALICE, "a question", |texts| {
        texts
            .last()
            .is_some_and(|text| text.contains("speaks in your name"))
    });
    bot.say("no");
    bot.expect(ALICE, "an end", |texts| {
        texts
            .last()
            .is_some_and(|text| text == "they were not told")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_moves_from_the_terminal_to_a_chat_and_back() {
    let script = Script::new([
        Answer::text("hello, chat"),
        Answer::text("a plan in the terminal"),
        Answer::text("going on in the chat"),
        Answer::text("back at the desk"),
    ]);
    let bot = Bot::new(script, &allowed()).await;
    bot.say("hi");
    bot.expect_answers(&["hello, chat"]);
    let mut terminal = bot.setting.talk_plainly();
    terminal.expect("› ", PATIENCE);
    terminal.send("let us plan\r");
    terminal.expect("a plan in the terminal", PATIENCE);
    terminal.send("/handoff telegram\r");
    terminal.expect("goes on with this conversation", PATIENCE);
    terminal.send("/quit\r");
    assert_eq!(terminal.wait(PATIENCE), Some(0));
    bot.expect(ALICE, "a word about it", |texts| texts.len() == 2);
    bot.say("and now?");
    bot.expect(ALICE, "an answer", |texts| {
        texts
            .last()
            .is_some_and(|text| text == "going on in the chat")
    });
    let asked = bot.requests().last().unwrap().json.to_string();
    assert!(asked.contains("a plan in the terminal"), "{asked}");
    let back = bot
        .setting
        .run(&["-c", "--from", "telegram", "-z", "what was said?"]);
    assert_eq!(back.stdout.trim(), "back at the desk", "{back:?}");
    let asked = bot.requests().last().unwrap().json.to_string();
    assert!(asked.contains("going on in the chat"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_never_handed_to_a_guest() {
    let script = Script::always(Answer::text("as you say"));
    // Where two are named and none is an admin, neither is the owner.
    let bot = Bot::new(script, &format!("{ALICE},1002")).await;
    bot.say("hi");
    bot.expect_answers(&["as you say"]);
    let mut terminal = bot.setting.talk_plainly();
    terminal.expect("› ", PATIENCE);
    terminal.send("let us plan\r");
    terminal.expect("as you say", PATIENCE);
    terminal.send("/handoff telegram\r");
    terminal.expect("no private chat of yours", PATIENCE);
}
