//! `hermes gateway run` as people meet it on a chat platform: a strict server of the Bot API, a real process, a scripted model.

use std::time::{Duration, Instant};

use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::{ALICE, GROUP};
use hermes_testkit::telegram::{BOT_NAME, TOKEN, TelegramServer};
use serde_json::{Value, json};

use crate::setting::Setting;

const PATIENCE: Duration = Duration::from_secs(30);

/// Whether a chat ends with a message that holds these words, and is no preview of one: while that stands there, its turn runs.
pub(super) fn ends_with(texts: &[String], words: &str) -> bool {
    let is_whole = |text: &String| text.contains(words) && !text.ends_with('▉');
    texts.last().is_some_and(is_whole)
}

pub(super) struct Bot {
    pub(super) setting: Setting,
    pub(super) telegram: TelegramServer,
    pub(super) running: Option<Running>,
}

impl Bot {
    pub(super) async fn new(script: Script, allowed: &str) -> Self {
        Self::with(script, allowed, "approvals:\n  mode: manual\n").await
    }

    pub(super) async fn with(script: Script, allowed: &str, more: &str) -> Self {
        Self::with_platform(script, allowed, more, "").await
    }

    /// With more settings of the platform.
    pub(super) async fn with_platform(
        script: Script,
        allowed: &str,
        more: &str,
        of_platform: &str,
    ) -> Self {
        let setting = Setting::with(script, more).await;
        let telegram = TelegramServer::start().await.with_chats();
        let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS={allowed}\n");
        std::fs::write(setting.hermes.home().join(".env"), env).unwrap();
        let mut config =
            std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
        config.push_str(&format!(
            "platforms:\n  telegram:\n    base_url: {}/bot\n{of_platform}",
            telegram.url()
        ));
        std::fs::write(setting.hermes.home().join("config.yaml"), config).unwrap();
        let mut bot = Self {
            setting,
            telegram,
            running: None,
        };
        bot.start();
        bot
    }

    pub(super) fn start(&mut self) {
        let mut running = self.setting.hermes.clone().args(["gateway", "run"]).spawn();
        running.expect_stdout("gateway: ready", PATIENCE);
        self.running = Some(running);
    }

    pub(super) fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill_9();
        }
    }

    pub(super) fn say(&self, text: &str) -> i64 {
        self.telegram.say(ALICE, json!({"text": text}))
    }

    /// What the model was asked.
    pub(super) fn requests(&self) -> Vec<hermes_testkit::server::Request> {
        let mut requests = self.setting.server.requests();
        requests.retain(|request| request.path.ends_with("/chat/completions"));
        requests
    }

    pub(super) fn texts(&self, chat: i64) -> Vec<String> {
        let ours = self.telegram.ours(chat);
        let text = |message: &Value| message["text"].as_str().unwrap_or_default().to_owned();
        ours.iter().map(text).collect()
    }

    /// Waits until the chat looks right.
    pub(super) fn expect(
        &self,
        chat: i64,
        what: &str,
        is_right: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let texts = self.texts(chat);
            if is_right(&texts) {
                return texts;
            }
            let told = self
                .running
                .as_ref()
                .map(|one| one.stdout() + &one.stderr());
            assert!(Instant::now() < deadline, "{what}: {texts:#?}\n{told:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn expect_answers(&self, answers: &[&str]) {
        self.expect(ALICE, &format!("{answers:?}"), |texts| texts == answers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_ask_is_answered_in_order() {
    let script = Script::new([Answer::text("first answer"), Answer::text("second answer")]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("one");
    bot.expect_answers(&["first answer"]);
    bot.say("two");
    bot.expect_answers(&["first answer", "second answer"]);
    // One conversation: the second request has the first exchange in it.
    let requests = bot.requests();
    assert!(requests[1].json.to_string().contains("first answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_a_code_and_is_answered_once_it_is_approved() {
    let bot = Bot::new(Script::always(Answer::text("welcome")), "").await;
    bot.say("hello?");
    let texts = bot.expect(ALICE, "a code", |texts| texts.len() == 1);
    assert_eq!(bot.requests().len(), 0, "no model was asked");
    let code = texts[0].split("telegram ").nth(1).unwrap();
    let code: String = code
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    // Asking again at once shows no second code.
    bot.say("hello??");
    let wrong = bot
        .setting
        .run(&["pairing", "approve", "telegram", "WRONGONE"]);
    assert!(!wrong.is_success());
    assert!(wrong.stderr.contains("4 more tries"), "{}", wrong.stderr);
    let listed = bot.setting.run(&["pairing", "list"]).stdout;
    assert!(
        listed.contains("1001") && listed.contains("asks"),
        "{listed}"
    );
    assert!(
        !listed.contains(&code),
        "codes are shown to strangers alone"
    );
    let approved = bot
        .setting
        .run(&["pairing", "approve", "telegram", &code.to_lowercase()]);
    assert!(approved.is_success(), "{}", approved.stderr);
    bot.say("and now?");
    let texts = bot.expect(ALICE, "an answer", |texts| {
        texts.last().is_some_and(|text| text == "welcome")
    });
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        bot.setting
            .run(&["pairing", "revoke", "telegram", "1001"])
            .is_success()
    );
    bot.say("still there?");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bot.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_while_it_was_down_is_answered_once() {
    // Complaints 2 and 21: messages lost at a cold start, and answered again after one.
    let script = Script::new([
        Answer::text("one"),
        Answer::text("two"),
        Answer::text("three"),
    ]);
    let mut bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("first");
    bot.expect_answers(&["one"]);
    bot.kill();
    bot.say("second");
    bot.start();
    bot.expect_answers(&["one", "two"]);
    // The platform sends the last one again.
    bot.telegram.repeat_last();
    bot.say("third");
    bot.expect_answers(&["one", "two", "three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_crash_cut_short_is_answered_once() {
    let slow = Answer::text("the answer").headers_delay(Duration::from_millis(600));
    let script = Script::always(slow);
    let mut bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("think");
    let deadline = Instant::now() + PATIENCE;
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    bot.kill();
    bot.start();
    bot.expect_answers(&["the answer"]);
    std::thread::sleep(Duration::from_millis(500));
    bot.expect_answers(&["the answer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_in_a_group_are_for_us_only_when_they_name_us() {
    let more = "telegram:\n  require_mention: true\n";
    let script = Script::always(Answer::text("yes?"));
    let bot = Bot::with(script, &ALICE.to_string(), more).await;
    bot.telegram.say(GROUP, json!({"text": "nice weather"}));
    let name = format!("@{BOT_NAME}");
    let entity = json!({"type": "mention", "offset": 0, "length": name.len()});
    let mention = json!({"text": format!("{name} hello"), "entities": [entity]});
    bot.telegram.say(GROUP, mention);
    bot.expect(GROUP, "one answer", |texts| texts == ["yes?"]);
    let requests = bot.requests();
    assert_eq!(requests.len(), 1);
    assert!(!requests[0].json.to_string().contains("nice weather"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_answered_unless_it_wants_to_name_us_and_replies_point_where_settings_say() {
    let more =
        "telegram:\n  reply_to_mode: 'off'\n  channel_prompts: {'-100200': Speak like a pirate.}\n";
    let more = more.replace("-100200", &GROUP.to_string());
    let script = Script::always(Answer::text("lovely"));
    let bot = Bot::with(script, &ALICE.to_string(), &more).await;
    bot.telegram.say(GROUP, json!({"text": "nice weather"}));
    bot.expect(GROUP, "an answer", |texts| texts == ["lovely"]);
    assert!(bot.telegram.ours(GROUP)[0]["reply_to_message"].is_null());
    let asked = bot.requests()[0].json.to_string();
    assert!(asked.contains("Speak like a pirate."), "{asked}");
    // Strangers are not answered, whatever they say.
    let stranger =
        json!({"text": "and me?", "from": {"id": 666, "is_bot": false, "first_name": "Eve"}});
    bot.telegram.say(GROUP, stranger);
    bot.say("still there?");
    bot.expect_answers(&["lovely"]);
    assert_eq!(bot.texts(GROUP).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_shown_as_a_draft_where_that_is_wanted() {
    let more = "streaming:\n  transport: draft\n";
    let slow = Answer::text("one two three four").pieces(4);
    let slow = slow.chunk_delay(Duration::from_millis(40));
    let bot = Bot::with(Script::always(slow), &ALICE.to_string(), more).await;
    bot.say("count");
    bot.expect_answers(&["one two three four"]);
    let drafts = bot.telegram.calls_of("sendMessageDraft");
    assert!(!drafts.is_empty());
    assert_eq!(bot.telegram.calls_of("editMessageText").len(), 0);
    assert_eq!(bot.telegram.calls_of("sendMessage").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_done_and_not_asked_of_the_model() {
    let bot = Bot::new(Script::always(Answer::text("hi")), &ALICE.to_string()).await;
    bot.say("/version");
    bot.expect(ALICE, "the version", |texts| {
        texts.iter().any(|text| text.contains("hermes"))
    });
    bot.say("/nonsense");
    bot.expect(ALICE, "unknown", |texts| {
        texts.iter().any(|text| text.contains("no /nonsense"))
    });
    assert_eq!(bot.requests().len(), 0);
    bot.say("hello");
    bot.expect(ALICE, "an answer", |texts| {
        texts.last().is_some_and(|text| text == "hi")
    });
    bot.say("/new");
    bot.expect(ALICE, "a new conversation", |texts| {
        texts
            .last()
            .is_some_and(|text| text.contains("new conversation"))
    });
    bot.say("again");
    bot.expect(ALICE, "an answer", |texts| {
        texts.iter().filter(|text| *text == "hi").count() == 2
    });
    let requests = bot.requests();
    assert!(
        !requests[1].json.to_string().contains("\"hello\""),
        "nothing of before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_is_asked_in_the_chat_and_given_with_a_button() {
    let call = Answer::call("c1", "terminal", json!({"command": "git reset --hard"}));
    let bot = Bot::new(
        Script::new([call, Answer::text("done")]),
        &ALICE.to_string(),
    )
    .await;
    bot.say("clean up");
    bot.expect(ALICE, "a question", |texts| {
        texts.iter().any(|text| text.contains("git reset"))
    });
    let ours = bot.telegram.ours(ALICE);
    let asked = ours
        .iter()
        .find(|message| message["reply_markup"].is_object())
        .unwrap();
    let no = asked["reply_markup"]["inline_keyboard"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|row| row.as_array().into_iter().flatten())
        .find(|button| button["text"] == "No")
        .unwrap();
    let (message, data) = (
        asked["message_id"].as_i64().unwrap(),
        no["callback_data"].as_str().unwrap(),
    );
    bot.telegram.press(ALICE, message, data);
    bot.expect(ALICE, "the end", |texts| {
        texts.last().is_some_and(|text| text == "done")
    });
    assert_eq!(bot.telegram.acknowledged().len(), 1);
    let told = bot.requests()[1].json.to_string();
    assert!(told.contains("did not allow this"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_the_owner_sees_nothing_of_other_conversations() {
    let script = Script::always(Answer::text("hi"));
    let bot = Bot::new(script, &format!("{ALICE},77")).await;
    bot.say("hello");
    bot.expect_answers(&["hi"]);
    let asked = bot.requests()[0].json.to_string();
    for tool in ["session_search", "cronjob"] {
        assert!(!asked.contains(&format!("\"name\":\"{tool}\"")), "{tool}");
    }
    for command in ["/cron", "/insights", "/memory"] {
        bot.say(command);
    }
    bot.expect(ALICE, "refusals", |texts| {
        texts
            .iter()
            .filter(|text| text.contains("for the owner"))
            .count()
            == 3
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_it_works_stops_it_or_waits_as_set() {
    for (mode, answers) in [("interrupt", 1), ("queue", 2)] {
        let slow = Answer::text("an answer").headers_delay(Duration::from_millis(800));
        let more = format!("approvals:\n  mode: manual\ndisplay:\n  busy_input_mode: {mode}\n");
        let bot = Bot::with(Script::always(slow), &ALICE.to_string(), &more).await;
        bot.say("one");
        let deadline = Instant::now() + PATIENCE;
        while bot.requests().is_empty() {
            assert!(Instant::now() < deadline, "{mode}: the model was not asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        bot.say("two");
        bot.expect(ALICE, mode, |texts| texts.len() == answers);
        std::thread::sleep(Duration::from_millis(300));
        // Complaint 5: late output of a turn that was stopped is never sent.
        assert_eq!(bot.texts(ALICE).len(), answers, "{mode}");
        assert_eq!(bot.requests().len(), 2, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_conversation_begins_also_while_one_works() {
    let slow = Answer::text("late").headers_delay(Duration::from_secs(20));
    let script = Script::new([slow, Answer::text("fresh")]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("one");
    let deadline = Instant::now() + PATIENCE;
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    bot.say("/new");
    bot.expect(ALICE, "a word", |texts| texts.len() == 1);
    bot.say("two");
    bot.expect(ALICE, "an answer", |texts| {
        texts.last().is_some_and(|text| text == "fresh")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_told_with_what_to_do() {
    let mut bot = Bot::new(Script::always(Answer::text("hi")), &ALICE.to_string()).await;
    bot.kill();
    bot.telegram.rotate_token();
    bot.start();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let told = bot
            .running
            .as_ref()
            .map(Running::stderr)
            .unwrap_or_default();
        if told.contains("not connected") && told.contains("TELEGRAM_BOT_TOKEN") {
            break;
        }
        assert!(Instant::now() < deadline, "{told}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
