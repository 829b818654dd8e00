//! Kills the real binary at random instants and checks a ledger: nothing acknowledged is lost, no effect happens twice,
//! every turn ends, and words that waited for a turn are said once.
//!
//! `HERMES_TORTURE_KILLS` and `HERMES_TORTURE_SEED` choose how long and which; the seed is printed, so that a failing run
//! can be repeated. `scripts/torture` runs 200 kills with each of three seeds.

#![expect(
    clippy::print_stdout,
    reason = "the seed and the counts are what a reader wants"
)]

mod gateway;
mod learning;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_core::{
    Archive as _, Message, Origin, Random, ResultStatus, Role, SessionFilter, Store as _,
};
use hermes_store::SqliteStore;
use hermes_testkit::process::Hermes;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::json;

const KILLS_BY_DEFAULT: usize = 15;
const COMPACTION_KILLS_MIN: u64 = 3;
/// Words for one conversation.
const WORDS_MAX: usize = 4;
/// Longer than the program takes lines for one paste.
const WORDS_GAP: Duration = Duration::from_millis(40);

#[tokio::test]
async fn nothing_is_lost_and_nothing_happens_twice_under_kill_9() {
    let kills_wanted = setting("HERMES_TORTURE_KILLS").unwrap_or(KILLS_BY_DEFAULT as u64) as usize;
    let seed =
        setting("HERMES_TORTURE_SEED").unwrap_or_else(|| Random::from_system().next_u64() >> 32);
    println!("torture: {kills_wanted} kills, seed {seed}");
    let mut torture = Torture::begin(seed).await;
    while torture.kills < kills_wanted {
        if torture.random.below(2) == 0 {
            torture.one_job();
        } else {
            torture.one_talk();
        }
    }
    torture.recover_everything();
    torture.check().await;
}

/// A conversation in a small window is continued again and again, and killed at random instants, most of them while it is
/// being compacted: everything acknowledged is in it once, and it goes on.
#[tokio::test]
async fn a_conversation_that_is_being_compacted_loses_nothing_under_kill_9() {
    let kills_wanted = setting("HERMES_TORTURE_KILLS").unwrap_or(KILLS_BY_DEFAULT as u64);
    // Each takes seconds: a long conversation goes on before and after it.
    let kills_wanted = (kills_wanted / 20).max(COMPACTION_KILLS_MIN);
    let seed =
        setting("HERMES_TORTURE_SEED").unwrap_or_else(|| Random::from_system().next_u64() >> 32);
    println!("torture: {kills_wanted} kills around compactions, seed {seed}");
    let slow = Duration::from_millis(15);
    let summary = "## Goal\nnote what is said\n## State\nall of it is noted, one after the other\n";
    let script = Script::default()
        .when(
            "Write the summary now",
            [Answer::text(summary).chunk_delay(slow)],
        )
        .when(
            "note-",
            [Answer::text("noted").chunk_delay(Duration::from_millis(2))],
        )
        .by_step();
    let server = ScriptedServer::start(script).await;
    let hermes = Hermes::new(env!("CARGO_BIN_EXE_hermes")).deadline(Duration::from_secs(60));
    write_settings(&hermes, &server, "  context_length: 8192\n");
    let mut long = LongTalk {
        hermes,
        random: Random::seeded(seed),
        said: Vec::new(),
    };
    long.say_in_peace();
    let mut kills = 0;
    while kills < kills_wanted {
        kills += u64::from(long.say_and_kill());
        long.say_in_peace();
    }
    long.check(kills).await;
}

struct LongTalk {
    hermes: Hermes,
    random: Random,
    /// Words, each with whether the program said that it has them.
    said: Vec<(String, bool)>,
}

impl LongTalk {
    /// The next words, long enough to fill the window soon.
    fn command(&mut self) -> Hermes {
        let word = format!("note-{}.", self.said.len() + 1);
        let words = format!("{word} {}", "and more of the same sand ".repeat(120));
        let mut arguments = vec!["--json".to_owned()];
        if !self.said.is_empty() {
            arguments.push("-c".into());
        }
        arguments.extend(["-z".into(), words]);
        self.said.push((word, false));
        self.hermes.clone().args(arguments)
    }

    fn say_in_peace(&mut self) {
        let recovered = self.hermes.clone().args(["sessions", "recover"]).run();
        let was_closed = recovered.stdout.contains("closed: given up");
        assert!(recovered.code == Some(0) || was_closed, "{recovered:?}");
        let output = self.command().run();
        assert_eq!(output.code, Some(0), "{output:?}");
        self.note(&output.stdout);
    }

    /// Returns whether it was still at work when it was killed.
    fn say_and_kill(&mut self) -> bool {
        let wait = Duration::from_millis(self.random.below(700));
        let running = self.command().spawn();
        std::thread::sleep(wait);
        let output = running.kill_9();
        self.note(&output.stdout);
        output.signal == Some(9)
    }

    fn note(&mut self, stdout: &str) {
        if let Some((_, is_acknowledged)) = self.said.last_mut() {
            *is_acknowledged |= stdout.contains("\"turn_started\"");
        }
    }

    async fn check(&self, kills: u64) {
        let home = self.hermes.home();
        let store = SqliteStore::open(home.join("hermes.db"), home.join("locks"))
            .expect("the database opens");
        assert_eq!(store.check().await, Ok(hermes_store::Health::Sound));
        assert!(store.unfinished().await.expect("readable").is_empty());
        let sessions = store
            .list(SessionFilter::default())
            .await
            .expect("readable");
        assert_eq!(sessions.len(), 1, "it is one conversation");
        let id = &sessions[0].id;
        let lines = store.transcript(id).await.expect("readable");
        let said: String = lines.iter().map(|line| line.message.text() + " ").collect();
        for (word, is_acknowledged) in &self.said {
            let times = said.matches(word.as_str()).count();
            assert!(times <= 1, "`{word}` was said {times} times");
            assert!(times == 1 || !is_acknowledged, "`{word}` is gone");
        }
        let seen = store.load(id).await.expect("it loads").messages;
        check_conversation(&seen);
        assert_eq!(seen[0].origin, Some(Origin::Summary), "it was compacted");
        println!(
            "torture: {kills} kills over {} turns; {} messages said, {} of them seen by the model",
            self.said.len(),
            lines.len(),
            seen.len()
        );
    }
}

fn write_settings(hermes: &Hermes, server: &ScriptedServer, more: &str) {
    let config = format!(
        "model:\n  provider: custom\n  default: test-model\n  base_url: {}\n  api_key: test\n{more}agent:\n  api_max_retries: 3\ndisplay:\n  busy_input_mode: queue\n",
        server.url()
    );
    std::fs::write(hermes.home().join("config.yaml"), config).expect("the settings are written");
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test's own setting")]
    std::env::var(name).ok()?.parse().ok()
}

struct Torture {
    hermes: Hermes,
    random: Random,
    server: ScriptedServer,
    /// How long a job takes when nobody kills it: kills are spread over it.
    job_time: Duration,
    jobs: usize,
    kills: usize,
    /// What the program acknowledged, by job.
    acknowledged: HashMap<usize, Acknowledged>,
    /// Words that were sent while turns ran, each with whether the program said that it has them.
    words: HashMap<String, bool>,
}

#[derive(Debug, Default)]
struct Acknowledged {
    started: bool,
    ended: bool,
}

/// Two effects, an idempotent write and an answer. Each request is answered by how far the turn has come, so that a
/// restarted client gets the same answer to the same question.
fn script() -> Script {
    let effect = |id: &str, word: &str| {
        Answer::call(
            id,
            "terminal",
            json!({ "command": format!("echo {word}-$(cat job.txt) >> ledger.txt") }),
        )
        .chunk_delay(Duration::from_millis(2))
    };
    let turn = [
        effect("first", "a"),
        effect("second", "b").also_call(
            "write",
            "write_file",
            json!({ "path": "note.txt", "content": "written\n" }),
        ),
        Answer::text("the job is done, all of it").chunk_delay(Duration::from_millis(2)),
    ];
    let noted = Answer::text("noted, and gone on with").chunk_delay(Duration::from_millis(2));
    Script::default()
        .when("job", turn)
        .when("more-", [noted])
        .by_step()
}

impl Torture {
    async fn begin(seed: u64) -> Self {
        let server = ScriptedServer::start(script()).await;
        let hermes = Hermes::new(env!("CARGO_BIN_EXE_hermes")).deadline(Duration::from_secs(60));
        write_settings(&hermes, &server, "");
        let mut torture = Self {
            hermes,
            random: Random::seeded(seed),
            server,
            job_time: Duration::ZERO,
            jobs: 0,
            kills: 0,
            acknowledged: HashMap::new(),
            words: HashMap::new(),
        };
        torture.job_time = torture.one_job_in_peace();
        println!("torture: one job takes {:?}", torture.job_time);
        torture
    }

    fn one_job_in_peace(&mut self) -> Duration {
        let job = self.next_job();
        let started = Instant::now();
        let output = self.job_command(job).run();
        assert_eq!(output.code, Some(0), "{output:?}");
        self.note(job, &output.stdout);
        started.elapsed()
    }

    /// Starts a job, kills it at a random instant, and recovers: sometimes killing the recovery, too.
    fn one_job(&mut self) {
        let job = self.next_job();
        let command = self.job_command(job);
        self.run_and_kill(command, Some(job));
        while self.random.below(4) == 0 {
            self.run_and_kill(self.hermes.clone().args(["sessions", "recover"]), None);
        }
        self.recover_everything();
    }

    /// Starts a job in a conversation, sends more words while its turn runs, and kills it at a random instant.
    fn one_talk(&mut self) {
        let job = self.next_job();
        let command = self.hermes.clone().current_folder(self.folder(job)).args([
            "--json",
            "--yolo",
            &format!("job {job}, please"),
        ]);
        let span = self.job_time.as_millis() as u64 * 2;
        let wait = Duration::from_millis(self.random.below(span.max(1)));
        let started = Instant::now();
        let terminal = command.spawn_in_terminal();
        let mut sent = 0;
        while started.elapsed() < wait {
            // Lines that come closer together are one message.
            let pause = WORDS_GAP + Duration::from_millis(self.random.below(60));
            std::thread::sleep(pause.min(wait.saturating_sub(started.elapsed())));
            if sent < WORDS_MAX && terminal.output().contains("\"turn_started\"") {
                sent += 1;
                let word = format!("more-{job}-{sent}.");
                let manner = if self.random.below(3) == 0 {
                    "/steer "
                } else {
                    ""
                };
                terminal.send(&format!("{manner}{word}\n"));
                self.words.insert(word, false);
            }
        }
        let output = terminal.output();
        terminal.kill_9();
        self.kills += 1;
        self.note(job, &output);
        self.note_words(&output);
        while self.random.below(4) == 0 {
            self.run_and_kill(self.hermes.clone().args(["sessions", "recover"]), None);
        }
        self.recover_everything();
    }

    /// Notes which words the program said that it has: they wait in the store, or a turn began with them.
    fn note_words(&mut self, output: &str) {
        for line in output.lines() {
            let Some(start) = line.find('{') else {
                continue;
            };
            let Ok(event) = serde_json::from_str::<serde_json::Value>(line[start..].trim()) else {
                continue;
            };
            if event["event"] != "queued" && event["event"] != "turn_started" {
                continue;
            }
            let text = event["text"].as_str().unwrap_or_default();
            for (word, is_acknowledged) in &mut self.words {
                *is_acknowledged |= text.contains(word.as_str());
            }
        }
    }

    fn run_and_kill(&mut self, command: Hermes, job: Option<usize>) {
        let span = self.job_time.as_millis() as u64 * 11 / 10;
        let wait = Duration::from_millis(self.random.below(span.max(1)));
        let running = command.spawn();
        std::thread::sleep(wait);
        let output = running.kill_9();
        if output.signal == Some(9) {
            self.kills += 1;
        }
        if let Some(job) = job {
            self.note(job, &output.stdout);
        }
    }

    fn recover_everything(&self) {
        let output = self.hermes.clone().args(["sessions", "recover"]).run();
        // 1 says that a turn was closed rather than finished: it was killed three times.
        let was_closed = output.code == Some(1) && output.stdout.contains("closed: given up");
        assert!(output.code == Some(0) || was_closed, "{output:?}");
    }

    fn next_job(&mut self) -> usize {
        self.jobs += 1;
        let folder = self.folder(self.jobs);
        std::fs::create_dir_all(&folder).expect("a folder for the job");
        std::fs::write(folder.join("job.txt"), self.jobs.to_string()).expect("the job's number");
        self.jobs
    }

    fn folder(&self, job: usize) -> std::path::PathBuf {
        self.hermes.work_folder().join(format!("job{job}"))
    }

    fn job_command(&self, job: usize) -> Hermes {
        self.hermes.clone().current_folder(self.folder(job)).args([
            "--json",
            "--yolo",
            "-z",
            &format!("job {job}, please"),
        ])
    }

    fn note(&mut self, job: usize, stdout: &str) {
        let acknowledged = self.acknowledged.entry(job).or_default();
        acknowledged.started |= stdout.contains("\"turn_started\"");
        acknowledged.ended |= stdout.contains("\"turn_ended\"");
    }

    async fn check(&self) {
        let home = self.hermes.home();
        let store = SqliteStore::open(home.join("hermes.db"), home.join("locks"))
            .expect("the database opens");
        let health = store.check().await.expect("the check runs");
        assert_eq!(health, hermes_store::Health::Sound);
        assert!(
            store.unfinished().await.expect("readable").is_empty(),
            "every turn ended"
        );
        let sessions = store
            .list(SessionFilter::default())
            .await
            .expect("readable");
        let mut jobs_stored = HashMap::new();
        let mut unknown = 0;
        let mut said = String::new();
        for record in sessions {
            let messages = store
                .load(&record.id)
                .await
                .expect("the session loads")
                .messages;
            unknown += check_conversation(&messages);
            for message in &messages {
                said.push_str(&message.text());
                let result = message.tool_result();
                said.push_str(result.map_or("", |result| &result.text));
            }
            let job = job_of(&messages);
            assert!(
                jobs_stored.insert(job, record.id).is_none(),
                "job {job} has one session"
            );
        }
        for (job, acknowledged) in &self.acknowledged {
            assert!(
                !acknowledged.started || jobs_stored.contains_key(job),
                "job {job} was acknowledged and is gone"
            );
        }
        for (word, is_acknowledged) in &self.words {
            let times = said.matches(word.as_str()).count();
            assert!(times <= 1, "`{word}` was said {times} times");
            assert!(
                times == 1 || !is_acknowledged,
                "`{word}` was acknowledged and is gone"
            );
        }
        let waited = self
            .words
            .values()
            .filter(|is_acknowledged| **is_acknowledged);
        println!(
            "torture: {} words sent while turns ran, {} of them acknowledged before the kill",
            self.words.len(),
            waited.count()
        );
        let ended = self
            .acknowledged
            .values()
            .filter(|acknowledged| acknowledged.ended)
            .count();
        for job in 1..=self.jobs {
            check_effects(&self.folder(job), job);
        }
        println!(
            "torture: {} kills over {} jobs; {} sessions stored, {ended} ended before their kill, {unknown} calls ended \
             as outcome_unknown, {} requests answered",
            self.kills,
            self.jobs,
            jobs_stored.len(),
            self.server.requests().len(),
        );
    }
}

/// Every call has exactly one result, in order, and the assistant has the last word. Returns how many are unknown.
fn check_conversation(messages: &[Message]) -> usize {
    let last = messages.last().expect("a session has messages");
    assert_eq!(last.role, Role::Assistant, "{messages:?}");
    for (position, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.calls().map(|call| call.id.clone()).collect();
        let results = messages[position + 1..]
            .iter()
            .map_while(Message::tool_result);
        let results: Vec<_> = results.map(|result| result.call.clone()).collect();
        if message.role == Role::Assistant {
            assert_eq!(calls, results, "each call has its one result: {messages:?}");
        }
    }
    let statuses = messages
        .iter()
        .filter_map(Message::tool_result)
        .map(|result| result.status);
    statuses
        .filter(|status| *status == ResultStatus::OutcomeUnknown)
        .count()
}

fn job_of(messages: &[Message]) -> usize {
    let text = messages[0].text();
    let number = text
        .strip_prefix("job ")
        .and_then(|rest| rest.split(',').next());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("not a job: {text}"))
}

fn check_effects(folder: &Path, job: usize) {
    let ledger = std::fs::read_to_string(folder.join("ledger.txt")).unwrap_or_default();
    for effect in [format!("a-{job}"), format!("b-{job}")] {
        let times = ledger.lines().filter(|line| **line == effect).count();
        assert!(times <= 1, "effect {effect} happened {times} times");
    }
}
