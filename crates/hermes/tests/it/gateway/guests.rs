//! People who may ask and are not the owner: what they see of the home, and what they may decide.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_testkit::mcp::FaultyMcp;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::CallFault;
use hermes_testkit::telegram::people::{ALICE, GROUP};
use serde_json::{Value, json};

use super::platform::{Bot, ends_with};

const BOB: i64 = 1002;
const SECRET: &str = "keeps bees in the attic";

/// A gateway whose owner is Alice, and Bob's guest.
async fn served(script: Script, more: &str) -> Bot {
    filled(Bot::with_platform(script, &allowed(), more, &admin()).await)
}

/// The same, working in a folder.
async fn served_in(script: Script, more: &str, folder: &Path) -> Bot {
    let mut bot = served(script, more).await;
    bot.kill();
    bot.setting.hermes = bot.setting.hermes.clone().current_folder(folder);
    bot.setting.hermes = bot.setting.hermes.clone().env("HOME", folder);
    bot.start();
    bot
}

fn allowed() -> String {
    format!("{ALICE},{BOB}")
}

fn admin() -> String {
    format!(
        "    allow_admin_from: ['{ALICE}']\n    user_allowed_commands: [model, reasoning, status, sessions, resume, title, new, approve, deny]\n"
    )
}

/// With something in its home that is nobody else's.
fn filled(bot: Bot) -> Bot {
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

fn run(id: &str, command: &str) -> Answer {
    Answer::call(id, "terminal", json!({"command": command}))
}

/// What the model was told in all.
fn told(bot: &Bot) -> String {
    let requests = bot.requests();
    requests.iter().map(|one| one.json.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_has_the_servers_that_are_for_guests_and_no_others() {
    let (mail, weather) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let more = format!(
        "approvals:\n  mode: 'off'\nmcp_servers:\n  mail: {{url: '{}'}}\n  weather: {{url: '{}', guests: true}}\n",
        mail.url(),
        weather.url()
    );
    let call = |id: &str, server: &str, word: &str| {
        Answer::call(id, format!("mcp__{server}__append"), json!({"word": word}))
    };
    let script = Script::new([
        call("c1", "mail", "owner"),
        Answer::text("sent"),
        call("c2", "mail", "guest"),
        call("c3", "weather", "guest"),
        Answer::text("tried"),
        call("c4", "mail", "group"),
        Answer::text("tried here"),
    ]);
    let bot = served(script, &format!("group_sessions_per_user: false\n{more}")).await;
    bot.say("send it");
    bot.expect(ALICE, "sent", |texts| ends_with(texts, "sent"));
    ask(&bot, "send it for me", "tried");
    // Where several talk, the owner among them, nobody is the owner.
    bot.telegram
        .say(GROUP, json!({"text": "send it, all of you"}));
    bot.expect(GROUP, "an answer", |texts| ends_with(texts, "tried here"));
    let ran = |word: &str| (mail.executions(word), weather.executions(word));
    assert_eq!(
        (ran("owner"), ran("guest"), ran("group")),
        ((1, 0), (0, 1), (0, 0))
    );
    let requests = bot.requests();
    for (at, has_mail) in [(0, true), (2, false), (5, false)] {
        let offered = requests[at].json["tools"].to_string();
        assert_eq!(offered.contains("mcp__mail__"), has_mail, "{at}: {offered}");
        assert!(offered.contains("mcp__weather__"), "{at}: {offered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_reads_nothing_of_the_machine_but_what_is_shared() {
    let script = |at: &dyn Fn(&str) -> String| {
        let all = format!(
            "cat {} {} ~/Documents/taxes.txt",
            at("Documents/taxes.txt"),
            at("link")
        );
        Script::new([
            read(&at("Documents/taxes.txt")),
            read("Documents/taxes.txt"),
            Answer::call(
                "c2",
                "search_files",
                json!({"pattern": "bees", "path": at("Documents")}),
            ),
            run(
                "c3",
                &format!(
                    "{all}; ln -s {} here; cat here; ls -la; pwd",
                    at("Documents/taxes.txt")
                ),
            ),
            read("here"),
            run(
                "c4",
                &format!(
                    "cat {}; printf 'm%s' ine > own.txt; cat own.txt",
                    at("shared/a.txt")
                ),
            ),
            read("own.txt"),
            read(&at("shared/a.txt")),
            Answer::text("I looked"),
            Answer::text("I read"),
        ])
    };
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    for name in ["Documents", "shared"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    fs::write(home.path().join("Documents/taxes.txt"), SECRET).unwrap();
    fs::write(home.path().join("Documents/AGENTS.md"), SECRET).unwrap();
    fs::write(home.path().join("shared/a.txt"), "for everybody").unwrap();
    std::os::unix::fs::symlink(at("Documents/taxes.txt"), at("link")).unwrap();
    let more = format!(
        "approvals:\n  mode: 'off'\ngateway:\n  guest_folders: ['{}']\n",
        at("shared")
    );
    // As a service runs: in the home of its user.
    let bot = served_in(script(&at), &more, home.path()).await;
    ask(&bot, "look around", "I looked");
    ask(
        &bot,
        &format!("what is in @{} ?", at("Documents/taxes.txt")),
        "I read",
    );
    let told = told(&bot);
    assert!(!told.contains(SECRET), "{told}");
    let results = bot.requests()[8].json["messages"].to_string();
    assert_eq!(results.matches("for everybody").count(), 2, "{results}");
    assert_eq!(results.matches("mine").count(), 2, "{results}");
    assert!(
        results.contains("/cache/people/telegram%3a1002/work"),
        "{results}"
    );
    let said = bot.requests()[9].json["messages"].to_string();
    assert!(said.contains("belongs to the owner"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_sent_as_it_was_when_it_was_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    let swap = |secret: &std::path::Path| {
        // What is left running ends with a link where the file was.
        let (out, secret) = (out.display(), secret.display());
        format!("echo fine > {out}; (sleep 1; ln -sfn {secret} {out}) > /dev/null 2>&1 &")
    };
    let setting = tempfile::tempdir().unwrap();
    let token = setting.path().join("token");
    fs::write(&token, "a token that is much longer than that").unwrap();
    let script = Script::new([
        run("c1", &swap(&token)),
        Answer::text(format!("Here.\nMEDIA:{}", out.display())),
    ]);
    let bot = served(script, "approvals:\n  mode: 'off'\n").await;
    // Telegram wants it later: by then the name leads elsewhere.
    bot.telegram.fail("sendDocument", CallFault::Throttle(3));
    bot.telegram.say_as(BOB, "Bob", "make me a file");
    let deadline = Instant::now() + Duration::from_secs(30);
    while bot.telegram.calls_of("sendDocument").len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", bot.texts(BOB));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(out.is_symlink(), "the name was to lead elsewhere by now");
    let sent = bot.telegram.calls_of("sendDocument");
    let files = &sent.last().unwrap().files;
    assert_eq!(files, &[("out.txt".to_owned(), "fine\n".len())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_offers_the_tools_that_are_chosen_for_it() {
    let more = "platform_toolsets:\n  cli: [file, terminal]\n  telegram: [todo]\n";
    let bot = served(Script::always(Answer::text("hi")), more).await;
    let offered = |at: usize| bot.requests()[at].json["tools"].to_string();
    bot.say("hello");
    bot.expect(ALICE, "hi", |texts| ends_with(texts, "hi"));
    assert!(offered(0).contains("\"todo\"") && !offered(0).contains("\"terminal\""));
    // And what is switched here is switched for it, not for the terminal.
    bot.say("/tools enable file");
    bot.expect(ALICE, "what is saved", |texts| {
        ends_with(texts, "telegram offers")
    });
    let config = fs::read_to_string(bot.setting.hermes.home().join("config.yaml")).unwrap();
    assert!(config.contains("cli: [file, terminal]"), "{config}");
    // What was read of the settings counts for a second.
    std::thread::sleep(Duration::from_millis(1_100));
    bot.say("/new");
    bot.expect(ALICE, "a new conversation", |texts| {
        ends_with(texts, "new conversation")
    });
    bot.say("hello again");
    bot.expect(ALICE, "hi", |texts| ends_with(texts, "hi"));
    let last = offered(bot.requests().len() - 1);
    assert!(
        last.contains("\"read_file\"") && !last.contains("\"terminal\""),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_chosen_for_a_platform_it_has_the_tools_of_the_terminal() {
    let more = "platform_toolsets:\n  cli: [todo]\n";
    let bot = served(Script::always(Answer::text("hi")), more).await;
    bot.say("hello");
    bot.expect(ALICE, "hi", |texts| ends_with(texts, "hi"));
    let offered = bot.requests()[0].json["tools"].to_string();
    assert!(
        offered.contains("\"todo\"") && !offered.contains("\"terminal\""),
        "{offered}"
    );
}
