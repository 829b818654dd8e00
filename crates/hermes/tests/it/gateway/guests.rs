//! People who may ask and are not the owner: what they see of the home, and what they may decide.

use std::fs;

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use serde_json::{Value, json};

use super::platform::{Bot, ends_with};

const BOB: i64 = 1002;
const SECRET: &str = "keeps bees in the attic";

/// A gateway whose owner is Alice, and Bob's guest.
async fn served(script: Script, more: &str) -> Bot {
    let allowed = format!("{ALICE},{BOB}");
    let admin = format!(
        "    allow_admin_from: ['{ALICE}']\n    user_allowed_commands: [model, reasoning, status, sessions, resume, title, new, approve, deny]\n"
    );
    let bot = Bot::with_platform(script, &allowed, more, &admin).await;
    let home = bot.setting.hermes.home();
    for (folder, file) in [
        ("memories", "USER.md"),
        ("cache/documents", "doc_1_letter.txt"),
        ("results/s1", "r1.txt"),
        ("pending/skills", "p1.json"),
        ("logs", "agent.log"),
    ] {
        fs::create_dir_all(home.join(folder)).unwrap();
        fs::write(home.join(folder).join(file), SECRET).unwrap();
    }
    bot
}

fn ask(bot: &Bot, words: &str, answer: &str) -> Vec<String> {
    bot.telegram.say_as(BOB, "Bob", words);
    bot.expect(BOB, answer, |texts| ends_with(texts, answer))
}

fn read(path: &str) -> Answer {
    Answer::call("c1", "read_file", json!({"path": path}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_sees_nothing_of_the_home_that_is_not_theirs() {
    let folder = tempfile::tempdir().unwrap();
    // A way that leads there by another name.
    let link = folder.path().join("link");
    let at = |path: &str| format!("{}/{path}", link.display());
    let search = json!({"pattern": "bees", "path": link.display().to_string()});
    let command = format!(
        "cat {0}/memories/USER.md {0}/cache/documents/*",
        link.display()
    );
    let script = Script::new([
        read(&at("memories/USER.md")),
        read(&at("cache/documents/doc_1_letter.txt")),
        read(&at("results/s1/r1.txt")),
        read(&at("pending/skills/p1.json")),
        read(&at("logs/agent.log")),
        read(&at("hermes.db")),
        Answer::call("c2", "search_files", search),
        Answer::call("c3", "terminal", json!({"command": command})),
        Answer::text(format!(
            "Here.\nMEDIA:{}\nsaid",
            at("cache/documents/doc_1_letter.txt")
        )),
        Answer::text("read"),
    ]);
    let bot = served(script, "approvals:\n  mode: 'off'\n").await;
    std::os::unix::fs::symlink(bot.setting.hermes.home(), &link).unwrap();
    ask(&bot, "look around", "I cannot send");
    ask(
        &bot,
        &format!("what is in @{} ?", at("memories/USER.md")),
        "read",
    );
    let requests = bot.requests();
    assert_eq!(requests.len(), 10);
    let names: Vec<&str> = requests[0].json["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert!(
        names.contains(&"skill_view") && !names.contains(&"skill_manage"),
        "{names:?}"
    );
    for request in &requests {
        let text = request.json.to_string();
        assert!(!text.contains(SECRET), "{text}");
    }
    let told = requests[9].json.to_string();
    assert_eq!(told.matches("belongs to the owner").count(), 6, "{told}");
    assert!(bot.telegram.calls_of("sendDocument").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_guest_sends_goes_to_a_folder_of_their_own() {
    // Where two are named, neither is the owner.
    let allowed = format!("{ALICE},{BOB}");
    let bot = Bot::new(Script::always(Answer::text("seen")), &allowed).await;
    let file = bot.telegram.add_file(b"figures");
    let document =
        json!({"file_id": file, "file_unique_id": "u1", "file_name": "a.txt", "file_size": 7});
    bot.telegram
        .say(ALICE, json!({"document": document, "caption": "look"}));
    bot.expect_answers(&["seen"]);
    let asked = bot.requests()[0].json.to_string();
    assert!(
        asked.contains("/cache/people/telegram%3a1001/documents/"),
        "{asked}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_chooses_for_their_own_conversation_and_changes_no_settings() {
    let bot = served(Script::always(Answer::text("hi")), "").await;
    let config = bot.setting.hermes.home().join("config.yaml");
    let before = fs::read_to_string(&config).unwrap();
    for words in ["/model test-model --global", "/reasoning high --global"] {
        let texts = ask(&bot, words, "for the owner");
        let home = bot.setting.hermes.home().display().to_string();
        assert!(!texts.concat().contains(&home), "{texts:?}");
    }
    ask(&bot, "/model test-model", "answers from now on");
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
    let texts = ask(&bot, "/status", "waiting for you");
    assert!(!texts.concat().contains("folder"), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_agrees_for_their_conversation_at_most() {
    let call = |id: &str, command: &str| Answer::call(id, "terminal", json!({"command": command}));
    let outside = json!({"command": "ls", "outside_fence": true});
    let script = Script::new([
        call("c1", "git reset --hard"),
        Answer::text("done"),
        Answer::call("c2", "terminal", outside),
        Answer::text("not left"),
    ]);
    let bot = served(script, "approvals:\n  mode: manual\n").await;
    bot.telegram.say_as(BOB, "Bob", "clean up");
    let texts = bot.expect(BOB, "a question", |texts| {
        texts.iter().any(|text| text.contains("git reset"))
    });
    assert!(!texts.concat().contains("always"), "{texts:?}");
    let asked = bot.telegram.ours(BOB);
    let buttons = asked
        .iter()
        .find(|message| message["reply_markup"].is_object())
        .map(|message| message["reply_markup"].to_string())
        .unwrap_or_default();
    assert!(
        !buttons.contains("Always") && buttons.contains("Once"),
        "{buttons}"
    );
    ask(&bot, "/approve always", "not one of the answers");
    ask(&bot, "/approve session", "done");
    let config = fs::read_to_string(bot.setting.hermes.home().join("config.yaml")).unwrap();
    assert!(!config.contains("git reset"), "{config}");
    ask(&bot, "and now outside", "not left");
    let told = bot.requests().last().map(|one| one.json.to_string());
    assert!(
        told.clone()
            .unwrap_or_default()
            .contains("only the owner of this Hermes"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_goes_on_with_their_own_conversations_and_no_others() {
    let bot = served(Script::always(Answer::text("hi")), "").await;
    bot.say("the owner's secret plan");
    bot.expect_answers(&["hi"]);
    ask(&bot, "my first talk", "hi");
    ask(&bot, "/title mine", "mine");
    ask(&bot, "/new", "new conversation");
    ask(&bot, "my second talk", "hi");
    let texts = ask(&bot, "/sessions", "second talk");
    let listed = texts.last().cloned().unwrap_or_default();
    assert!(
        listed.contains("mine") && !listed.contains("secret plan"),
        "{listed}"
    );
    let all = bot.setting.run(&["sessions", "list", "--json"]).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let is_owners = |one: &&Value| one.to_string().contains("secret plan");
    let owners = all
        .as_array()
        .into_iter()
        .flatten()
        .find(is_owners)
        .unwrap();
    let id = owners["id"].as_str().unwrap();
    ask(&bot, &format!("/resume {id}"), "none of your conversations");
    ask(&bot, "/resume mine", "We go on");
    ask(&bot, "again", "hi");
    let asked = bot.requests().last().map(|one| one.json.to_string());
    assert!(asked.unwrap_or_default().contains("my first talk"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_let_in_after_the_owner_left_is_no_owner() {
    let bot = Bot::new(Script::always(Answer::text("welcome")), "").await;
    let let_in = |user: i64, name: &str| {
        bot.telegram.say_as(user, name, "hello?");
        let texts = bot.expect(user, "a code", |texts| texts.len() == 1);
        let code = texts[0].split("telegram ").nth(1).unwrap();
        let code: String = code
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(
            bot.setting
                .run(&["pairing", "approve", "telegram", &code])
                .is_success()
        );
        bot.telegram.say_as(user, name, "and now?");
        bot.expect(user, "an answer", |texts| {
            texts.last().is_some_and(|text| text == "welcome")
        });
    };
    let_in(ALICE, "Alice");
    assert!(
        bot.setting
            .run(&["pairing", "revoke", "telegram", "1001"])
            .is_success()
    );
    let_in(BOB, "Bob");
    ask(&bot, "/memory", "for the owner");
    assert!(
        !bot.setting
            .run(&["pairing", "owner", "telegram:77"])
            .is_success()
    );
    assert!(
        bot.setting
            .run(&["pairing", "owner", "telegram:1002"])
            .is_success()
    );
    let texts = ask(&bot, "/memory", "");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while bot.texts(BOB).len() == texts.len() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let last = bot.texts(BOB).last().cloned().unwrap_or_default();
    assert!(!last.contains("for the owner"), "{last}");
}
