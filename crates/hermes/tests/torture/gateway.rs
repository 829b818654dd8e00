//! The gateway under SIGKILL at random instants: on a strict server of the Bot API every message is answered once, in order,
//! or says what happened; over HTTP a request that is repeated under its key is one turn.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hermes_core::{Archive as _, Random, Role, SessionFilter};
use hermes_store::SqliteStore;
use hermes_testkit::process::{Hermes, Running};
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use hermes_testkit::telegram::people::ALICE;
use hermes_testkit::telegram::{TOKEN, TelegramServer};
use serde_json::json;

use super::{setting, write_settings};

const KILLS_BY_DEFAULT: u64 = 12;
const KEY: &str = "torture-key-0123456789";
const SESSION: &str = "torture-api";
const MAY_BE_DOUBLE: &str = "(This may be a duplicate";
/// How it is told that something waits for its turn.
const WAITS: &str = "I am still at work; this comes next.";
/// What is said of a turn that was killed too often.
const GIVEN_UP: [&str; 2] = ["given up:", "[Given up:"];
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_answered_once_and_in_order_under_kill_9() {
    let kills_wanted = setting("HERMES_TORTURE_KILLS").unwrap_or(KILLS_BY_DEFAULT);
    let seed =
        setting("HERMES_TORTURE_SEED").unwrap_or_else(|| Random::from_system().next_u64() >> 32);
    println!("torture: {kills_wanted} kills of the gateway, seed {seed}");
    let mut torture = GatewayTorture::begin(seed, kills_wanted).await;
    while torture.kills < kills_wanted {
        torture.one_life();
    }
    torture.come_to_rest();
    torture.check().await;
}

struct GatewayTorture {
    hermes: Hermes,
    random: Random,
    telegram: TelegramServer,
    _server: ScriptedServer,
    kills: u64,
    /// Messages that were written in the chat, and requests that were sent.
    written: usize,
    asked: usize,
}

impl GatewayTorture {
    async fn begin(seed: u64, kills: u64) -> Self {
        let pause = Duration::from_millis(3);
        let mut script = Script::default().by_step();
        for number in 0..kills * 3 + 10 {
            let reply = format!("This is answer-{number}.");
            let words = Answer::text(reply).chunk_delay(pause);
            script = script.when(format!("word-{number}."), [words]);
        }
        let script = script.turn([Answer::text("Taken.").chunk_delay(pause)]);
        let server = ScriptedServer::start(script.repeating_last()).await;
        let telegram = TelegramServer::start().await.with_chats();
        let hermes = Hermes::new(env!("CARGO_BIN_EXE_hermes")).deadline(PATIENCE);
        let more = "auxiliary: {title_generation: {enabled: false}}\n";
        write_settings(&hermes, &server, "");
        let path = hermes.home().join("config.yaml");
        let mut config = std::fs::read_to_string(&path).expect("settings");
        let address = telegram.url();
        config.push_str(&format!(
            "{more}platforms:\n  telegram:\n    base_url: {address}/bot\n"
        ));
        std::fs::write(&path, config).expect("settings");
        let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS={ALICE}\n");
        std::fs::write(hermes.home().join(".env"), env).expect("settings");
        Self {
            hermes,
            random: Random::seeded(seed),
            telegram,
            _server: server,
            kills: 0,
            written: 0,
            asked: 0,
        }
    }

    fn start(&self) -> Running {
        self.hermes
            .clone()
            .env("API_SERVER_KEY", KEY)
            .env("API_SERVER_PORT", "0")
            .args(["gateway", "run"])
            .spawn()
    }

    /// Something is written before or while it runs, and it dies some time after its start.
    fn one_life(&mut self) {
        let running = self.start();
        for _ in 0..=self.random.below(2) {
            let text = format!("word-{}.", self.written);
            self.written += 1;
            self.telegram.say(ALICE, json!({"text": text}));
        }
        let mut lives_for = Duration::from_millis(self.random.below(900));
        if self.random.below(2) == 0
            && let Some(address) = ready(&running, Duration::from_secs(5))
        {
            let number = self.asked;
            self.asked += 1;
            let wait = Duration::from_millis(1 + self.random.below(300));
            _ = self.ask(&address, number, wait);
            lives_for = Duration::from_millis(self.random.below(300));
        }
        std::thread::sleep(lives_for);
        let output = running.kill_9();
        assert_eq!(output.signal, Some(9), "it ended by itself: {output:?}");
        self.kills += 1;
    }

    /// Asks over HTTP, and waits so long for the answer.
    fn ask(&self, address: &str, number: usize, wait: Duration) -> Option<String> {
        let body = json!({
            "model": "hermes-agent",
            "messages": [{"role": "user", "content": format!("word-{}.", 1_000_000 + number)}],
        })
        .to_string();
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(wait)).ok()?;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             authorization: Bearer {KEY}\r\nx-hermes-session-id: {SESSION}\r\nidempotency-key: key-{number}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// The answers in the chat. That something waits is told besides, and answers nothing.
    fn texts(&self) -> Vec<String> {
        let ours = self.telegram.ours(ALICE).into_iter();
        ours.map(|message| message["text"].as_str().unwrap_or_default().to_owned())
            .filter(|text| !text.starts_with(WAITS))
            .collect()
    }

    /// Nobody kills it any more: everything that waits is answered, and every request is sent once more.
    fn come_to_rest(&mut self) {
        let running = self.start();
        let address = ready(&running, PATIENCE).expect("it starts");
        for number in 0..self.asked {
            let answer = self.ask(&address, number, PATIENCE);
            assert!(answer.is_some(), "key-{number} gets no answer");
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let texts = self.texts();
            let is_answered = |number: &usize| {
                let words = format!("answer-{number}.");
                texts.iter().any(|text| text.contains(&words))
            };
            let open = (0..self.written)
                .filter(|number| !is_answered(number))
                .count();
            let closed = given_up(&texts);
            let is_quiet = texts
                .windows(2)
                .all(|two| is_final(&two[0], Some(two[1].as_str())))
                && texts.last().is_none_or(|text| is_final(text, None));
            if open <= closed && is_quiet {
                break;
            }
            assert!(Instant::now() < until, "{open} messages wait: {texts:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        running.kill_9();
    }

    async fn check(&self) {
        let texts = self.texts();
        let mut before = 0;
        let mut marked = 0;
        for number in 0..self.written {
            let words = format!("answer-{number}.");
            let with = || {
                texts
                    .iter()
                    .enumerate()
                    .filter(|(_, text)| text.contains(&words))
            };
            let is_marked = |text: &str| text.starts_with(MAY_BE_DOUBLE);
            marked += with().filter(|(_, text)| is_marked(text)).count();
            let plain: Vec<usize> = with()
                .filter(|(_, text)| !is_marked(text))
                .map(|(at, _)| at)
                .collect();
            assert!(plain.len() <= 1, "{words} is there {} times", plain.len());
            if let Some((at, _)) = with().next() {
                assert!(at >= before, "{words} came too early: {texts:#?}");
                before = at;
            }
        }
        let closed = given_up(&texts);
        for text in texts
            .iter()
            .filter(|text| GIVEN_UP.iter().any(|words| text.contains(words)))
        {
            println!("torture: closed with: {text}");
        }
        self.check_requests().await;
        println!(
            "torture: {} kills of the gateway; {} messages in {} chat messages, {marked} marked, {closed} given up; {} requests",
            self.kills,
            self.written,
            texts.len(),
            self.asked
        );
    }

    /// However often a request was sent under its key, it was said once.
    async fn check_requests(&self) {
        let home = self.hermes.home();
        let store = SqliteStore::open(home.join("hermes.db"), home.join("locks"))
            .expect("the database opens");
        assert_eq!(store.check().await, Ok(hermes_store::Health::Sound));
        let sessions = store.list(SessionFilter::default()).await;
        let mut said = String::new();
        for session in sessions.expect("readable") {
            let lines = store.transcript(&session.id).await.expect("readable");
            let lines = lines.iter().filter(|line| line.message.role == Role::User);
            said.extend(lines.map(|line| line.message.text() + "\n"));
        }
        for number in 0..self.asked {
            let words = format!("word-{}.", 1_000_000 + number);
            let times = said.matches(&words).count();
            assert_eq!(times, 1, "`{words}` was said {times} times");
        }
        for number in 0..self.written {
            let words = format!("word-{number}.");
            let times = said.matches(&words).count();
            assert_eq!(times, 1, "`{words}` was said {times} times");
        }
    }
}

/// A preview that arrived in the instant of a kill, so that nobody knows its number, stays; what follows it says so.
fn is_final(text: &str, next: Option<&str>) -> bool {
    !text.ends_with('▉') || next.is_some_and(|next| next.starts_with(MAY_BE_DOUBLE))
}

fn given_up(texts: &[String]) -> usize {
    let is_closed = |text: &&String| GIVEN_UP.iter().any(|words| text.contains(words));
    texts.iter().filter(is_closed).count()
}

/// Where its API is, once it says so.
fn ready(running: &Running, patience: Duration) -> Option<String> {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        let told = running.stdout();
        if let Some((_, rest)) = told.split_once("API on http://") {
            let address = rest.split_whitespace().next()?;
            return Some(address.trim_end_matches(',').to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}
