//! One conversation of a person on two platforms: `gateway.continuity: shared`.

use std::time::{Duration, Instant};

use hermes_testkit::discord::people::DIRECT;
use hermes_testkit::discord::{self, DiscordServer};
use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use hermes_testkit::telegram::{self, TelegramServer};
use serde_json::{Value, json};

use crate::setting::Setting;

const PATIENCE: Duration = Duration::from_secs(30);

/// Alice on both, as one person.
struct Both {
    setting: Setting,
    telegram: TelegramServer,
    discord: DiscordServer,
    running: Running,
}

impl Both {
    async fn new(script: Script) -> Self {
        let more = "approvals:\n  mode: manual\ngateway:\n  continuity: shared\n";
        let setting = Setting::with(script, more).await;
        let telegram = TelegramServer::start().await.with_chats();
        let discord = DiscordServer::start().await.with_channels();
        let env = format!(
            "TELEGRAM_BOT_TOKEN={}\nTELEGRAM_ALLOWED_USERS={ALICE}\nDISCORD_BOT_TOKEN={}\nDISCORD_ALLOWED_USERS={}\n",
            telegram::TOKEN,
            discord::TOKEN,
            discord::people::ALICE
        );
        std::fs::write(setting.hermes.home().join(".env"), env).unwrap();
        let file = setting.hermes.home().join("config.yaml");
        let mut config = std::fs::read_to_string(&file).unwrap();
        config.push_str(&format!(
            "telegram:\n  base_url: {}/bot\ndiscord:\n  api_base_url: {}\n",
            telegram.url(),
            discord.url()
        ));
        std::fs::write(file, config).unwrap();
        let mut running = setting.hermes.clone().args(["gateway", "run"]).spawn();
        running.expect_stdout("gateway: ready", PATIENCE);
        let both = Self {
            setting,
            telegram,
            discord,
            running,
        };
        both.wait("a session", |both| both.discord.sessions_count() > 0);
        both.link();
        both
    }

    fn link(&self) {
        self.say_on_telegram("/link");
        self.wait("a code", |both| !both.telegram_texts().is_empty());
        let shown = self.telegram_texts().concat();
        let code = shown.split("/link ").nth(1).unwrap();
        let code: String = code
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        self.say_on_discord(&format!("/link {code}"));
        self.expect_on_discord("one person now");
    }

    fn say_on_telegram(&self, text: &str) {
        self.telegram.say(ALICE, json!({"text": text}));
    }

    fn say_on_discord(&self, text: &str) {
        self.discord.say(DIRECT, json!({"content": text}));
    }

    fn telegram_texts(&self) -> Vec<String> {
        let text = |message: &Value| message["text"].as_str().unwrap_or_default().to_owned();
        self.telegram.ours(ALICE).iter().map(text).collect()
    }

    fn discord_texts(&self) -> Vec<String> {
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        self.discord.ours(DIRECT).iter().map(text).collect()
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(
                Instant::now() < deadline,
                "never: {what}\n{:#?}\n{:#?}\n{}",
                self.telegram_texts(),
                self.discord_texts(),
                self.running.stderr()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn expect_on_telegram(&self, words: &str) {
        self.wait(words, |both| has(&both.telegram_texts(), words));
    }

    fn expect_on_discord(&self, words: &str) {
        self.wait(words, |both| has(&both.discord_texts(), words));
    }

    /// How often a model was asked.
    fn requests_count(&self) -> usize {
        let requests = self.setting.server.requests();
        let asked = requests
            .iter()
            .filter(|request| request.path.ends_with("/chat/completions"));
        asked.count()
    }
}

fn has(texts: &[String], words: &str) -> bool {
    texts.iter().any(|text| text.contains(words))
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_answered_where_it_was_said_also_while_a_turn_runs_elsewhere() {
    let script = Script::new([
        Answer::text("thought through").headers_delay(Duration::from_secs(4)),
        Answer::text("heard here"),
    ]);
    let both = Both::new(script).await;
    both.say_on_telegram("think");
    both.wait("a question", |both| both.requests_count() == 1);
    both.say_on_discord("/status");
    both.expect_on_discord("turn ");
    assert!(!has(&both.telegram_texts(), "turn "));
    both.say_on_discord("/queue and this");
    both.expect_on_telegram("thought through");
    both.expect_on_discord("heard here");
    assert!(!has(&both.discord_texts(), "thought through"));
    assert!(!has(&both.telegram_texts(), "heard here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_its_person_on_whatever_platform() {
    let script = Script::new([
        Answer::call("c1", "terminal", json!({"command": "git reset --hard"})),
        Answer::text("left as it is"),
    ]);
    let both = Both::new(script).await;
    both.say_on_telegram("clean up");
    both.expect_on_telegram("May I run this?");
    both.say_on_discord("no");
    both.expect_on_telegram("left as it is");
    assert!(!has(&both.discord_texts(), "Only who asked"));
}
