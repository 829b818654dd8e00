//! `hermes gateway setup`, as a newcomer meets it: a token, a message, an answer.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_channels::PLATFORMS;
use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use hermes_testkit::telegram::{BOT_NAME, TOKEN, TelegramServer};
use serde_json::{Value, json};

use super::background::Ended;
use crate::setting::{Setting, bare};

const SOON: Duration = Duration::from_secs(30);

/// A person at the terminal, whose answers are counted.
struct Newcomer {
    terminal: Terminal,
    answers: usize,
}

impl Newcomer {
    fn begin(hermes: &Hermes) -> Self {
        let hermes = hermes.clone().args(["gateway", "setup"]);
        Self {
            terminal: hermes.spawn_in_terminal(),
            answers: 0,
        }
    }

    fn answer(&mut self, question: &str, answer: &str) {
        self.terminal.expect(question, SOON);
        self.terminal.send(&format!("{answer}\n"));
        self.answers += 1;
    }

    /// As soon as there are several.
    fn choose_telegram(&mut self) {
        let at = PLATFORMS.iter().position(|one| one.name == "telegram");
        if PLATFORMS.len() > 1 {
            self.answer("choose", &(at.unwrap() + 1).to_string());
        }
    }
}

async fn home(script: Script) -> (Setting, TelegramServer) {
    let setting = Setting::new(script).await;
    let telegram = TelegramServer::start().await.with_chats();
    let file = setting.hermes.home().join("config.yaml");
    let mut config = std::fs::read_to_string(&file).unwrap();
    config.push_str(&format!(
        "platforms:\n  telegram:\n    base_url: {}/bot\n",
        telegram.url()
    ));
    std::fs::write(file, config).unwrap();
    (setting, telegram)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_comes_from_a_token_to_an_answer_in_at_most_ten_answers() {
    let (setting, telegram) = home(Script::always(Answer::text("welcome"))).await;
    let hermes = &setting.hermes;
    let _ended = Ended(hermes.clone());
    let mut newcomer = Newcomer::begin(hermes);
    newcomer.choose_telegram();
    // A slip of the hand is told with what to do, and asked again.
    newcomer.answer("Bot token", "nonsense");
    newcomer.terminal.expect("copy it from @BotFather", SOON);
    newcomer.answer("Bot token", "42:AAF-not_the_token");
    newcomer.terminal.expect("TELEGRAM_BOT_TOKEN", SOON);
    newcomer.answer("Bot token", TOKEN);
    newcomer.terminal.expect("is saved in", SOON);
    newcomer.terminal.expect(BOT_NAME, SOON);
    newcomer.terminal.expect("write something to it now", SOON);
    telegram.say(ALICE, json!({"text": "hello?"}));
    newcomer
        .terminal
        .expect("Alice Example (id 1001) wrote: hello?", SOON);
    newcomer.answer("choose", "1");
    newcomer.terminal.expect("may ask", SOON);
    newcomer.terminal.expect("Start it?", SOON);
    let start = if Path::new("/run/systemd/system").exists() {
        "2"
    } else {
        "1"
    };
    newcomer.answer("choose", start);
    newcomer.terminal.expect("the gateway serves (pid", SOON);
    let screen = newcomer.terminal.output();
    assert_eq!(newcomer.terminal.wait(SOON), Some(0));
    assert!(newcomer.answers <= 10, "{}", newcomer.answers);
    assert!(!screen.contains(TOKEN), "the token is not shown: {screen}");
    // The very message that let her in is answered.
    let deadline = Instant::now() + SOON;
    let answered = || {
        let ours: Vec<Value> = telegram.ours(ALICE);
        ours.len() == 1 && ours[0]["text"] == "welcome"
    };
    while !answered() {
        assert!(Instant::now() < deadline, "{:?}", telegram.ours(ALICE));
        std::thread::sleep(Duration::from_millis(10));
    }
    let file = hermes.home().join(".env");
    let mode = file.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let variables = std::fs::read_to_string(file).unwrap();
    assert!(variables.contains(TOKEN), "{variables}");
    assert!(
        variables.contains("TELEGRAM_HOME_CHANNEL=1001"),
        "{variables}"
    );
    let status = setting.run(&["gateway", "status"]).stdout;
    assert!(status.contains("connected as"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_is_not_let_in() {
    let (setting, telegram) = home(Script::always(Answer::text("welcome"))).await;
    telegram.say(ALICE, json!({"text": "let me in"}));
    let mut newcomer = Newcomer::begin(&setting.hermes);
    newcomer.choose_telegram();
    newcomer.answer("Bot token", TOKEN);
    newcomer.terminal.expect("wrote: let me in", SOON);
    newcomer.answer("choose", "2");
    newcomer.terminal.expect("write something to it now", SOON);
    newcomer.terminal.send("\x03");
    newcomer.terminal.expect("what was saved stays saved", SOON);
    newcomer.answer("choose", "q");
    newcomer.terminal.wait(SOON);
    let listed = setting.run(&["pairing", "list"]).stdout;
    assert!(listed.contains("nobody was let in"), "{listed}");
}

#[test]
fn without_anybody_to_ask_it_says_what_to_do_instead() {
    let output = bare().args(["gateway", "setup"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
    for words in [
        "nobody is there to answer",
        "TELEGRAM_BOT_TOKEN",
        "hermes gateway start",
        "hermes pairing approve",
    ] {
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
}
