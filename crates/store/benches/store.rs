//! What the store costs: durable appends, alone and in company; search in 200,000 messages; loading a long session;
//! opening; and how large the file is beside its text.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` is a failed benchmark"
)]

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use hermes_core::{
    Archive, Arguments, Cost, Entry, FinishReason, Message, ModelName, NewSession, Part, Prefix,
    Random, ResultStatus, Role, SearchQuery, SessionId, Store, Timestamp, ToolCall, ToolResult,
    TurnEnd, TurnId, Usage,
};
use hermes_store::SqliteStore;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const NOW: Timestamp = Timestamp::from_millis(1_794_777_845_000);
const CONCURRENT: usize = 64;
const SEARCHED_MESSAGES: usize = 200_000;
const LOADED_MESSAGES: usize = 50_000;
const MESSAGES_PER_TURN: usize = 4;
/// Turns in one append while filling: only the result matters, not how it came there.
const TURNS_PER_APPEND: usize = 250;
const TURNS_PER_SESSION: usize = 500;

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    targets = append, search, load
}
criterion_main!(benches);

fn append(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let sessions: Vec<SessionId> = (0..CONCURRENT).map(|i| format!("s{i}").into()).collect();
    for session in &sessions {
        runtime
            .block_on(store.create(new_session(session), Vec::new()))
            .unwrap();
    }
    let mut turns = 0;
    criterion.bench_function("append/one at a time", |bencher| {
        bencher.iter(|| {
            turns += 1;
            let entries = short_turn(turns);
            runtime
                .block_on(store.append(&sessions[0], NOW, entries))
                .unwrap();
        });
    });
    criterion.bench_function("append/64 at once", |bencher| {
        bencher.iter(|| {
            turns += 1;
            runtime.block_on(append_to_all(&store, &sessions, turns));
        });
    });
    let (stored, started) = (turns, Instant::now());
    while started.elapsed() < Duration::from_secs(3) {
        turns += 1;
        runtime.block_on(append_to_all(&store, &sessions, turns));
    }
    let rate = ((turns - stored) * CONCURRENT) as f64 / started.elapsed().as_secs_f64();
    report(&format!("group commit: {rate:.0} durable appends/s"));
}

async fn append_to_all(store: &Arc<SqliteStore>, sessions: &[SessionId], turn: usize) {
    let mut appends = JoinSet::new();
    for session in sessions {
        let (store, session) = (Arc::clone(store), session.clone());
        appends.spawn(async move { store.append(&session, NOW, short_turn(turn)).await });
    }
    for outcome in appends.join_all().await {
        outcome.unwrap();
    }
}

fn search(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut corpus = Corpus::new();
    let started = Instant::now();
    let store = open(folder.path());
    let turns = SEARCHED_MESSAGES / MESSAGES_PER_TURN;
    for session in 0..turns / TURNS_PER_SESSION {
        let session = SessionId::from(format!("s{session}"));
        runtime.block_on(fill(&store, &session, TURNS_PER_SESSION, &mut corpus));
    }
    runtime
        .block_on(store.search(query("indexes the last ones")))
        .unwrap();
    let filled = started.elapsed();
    drop(store);
    let bytes = std::fs::metadata(folder.path().join("hermes.db"))
        .unwrap()
        .len();
    report(&format!(
        "{SEARCHED_MESSAGES} messages, {} MB of text, file {:.2} times that, filled in {filled:.1?}",
        corpus.bytes / 1_000_000,
        bytes as f64 / corpus.bytes as f64,
    ));

    criterion.bench_function("open/existing file", |bencher| {
        bencher.iter(|| open(folder.path()));
    });
    let store = open(folder.path());
    for (name, text) in [
        ("a word in every message", "everywhere"),
        ("two common words", "everywhere ba"),
        ("a rare word", "needle"),
        ("no such word", "xyzzyx"),
        ("part of a word", "verywher"),
        ("Chinese", "容器部署"),
        ("Chinese, two characters", "容器"),
    ] {
        criterion.bench_function(&format!("search/{name}"), |bencher| {
            bencher.iter(|| runtime.block_on(store.search(query(text))).unwrap());
        });
    }
    report_percentiles(&runtime, &store, &corpus);
}

/// A mixture: one to three words, as common as they are in the text.
fn report_percentiles(runtime: &Runtime, store: &SqliteStore, corpus: &Corpus) {
    let mut times: Vec<Duration> = (0..500)
        .map(|i| {
            let words: Vec<&str> = (0..1 + i % 3).map(|_| corpus.word()).collect();
            let started = Instant::now();
            runtime
                .block_on(store.search(query(&words.join(" "))))
                .unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100];
    report(&format!(
        "search, 500 mixed queries: p50 {:.2?}, p99 {:.2?}",
        at(50),
        at(99)
    ));
}

fn load(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let session = SessionId::from("long");
    let turns = LOADED_MESSAGES / MESSAGES_PER_TURN;
    runtime.block_on(fill(&store, &session, turns, &mut Corpus::new()));
    criterion.bench_function("load/50,000 messages", |bencher| {
        bencher.iter(|| runtime.block_on(store.load(&session)).unwrap());
    });
    let started = Instant::now();
    runtime.block_on(store.delete(&session)).unwrap();
    report(&format!(
        "deleted 50,000 messages in {:.1?}",
        started.elapsed()
    ));
}

#[expect(
    clippy::print_stderr,
    reason = "figures that criterion has no place for"
)]
fn report(text: &str) {
    eprintln!("{text}");
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("hermes.db"), folder.join("locks")).unwrap()
}

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.into(),
        session: None,
        limit: 20,
        ..SearchQuery::default()
    }
}

async fn fill(store: &SqliteStore, session: &SessionId, turns: usize, corpus: &mut Corpus) {
    store
        .create(new_session(session), Vec::new())
        .await
        .unwrap();
    for first in (0..turns).step_by(TURNS_PER_APPEND) {
        let entries = (first..first + TURNS_PER_APPEND).flat_map(|i| corpus.turn(i));
        store.append(session, NOW, entries.collect()).await.unwrap();
    }
}

/// Text with few common and many rare words, like real text.
struct Corpus {
    random: Random,
    vocabulary: Vec<String>,
    bytes: usize,
    messages: usize,
}

impl Corpus {
    fn new() -> Self {
        const SYLLABLES: [&str; 16] = [
            "ba", "co", "di", "fu", "ga", "he", "ji", "ko", "lu", "ma", "ne", "po", "ra", "si",
            "to", "vu",
        ];
        let vocabulary = (0..30_000usize).map(|mut rank| {
            let mut word = String::new();
            loop {
                word.push_str(SYLLABLES[rank % 16]);
                rank /= 16;
                if rank == 0 {
                    return word;
                }
            }
        });
        Self {
            random: Random::seeded(1),
            vocabulary: vocabulary.collect(),
            bytes: 0,
            messages: 0,
        }
    }

    /// The word at rank `size ^ u`, `u` even in 0..1: rank n is about n times as rare as the first (Zipf's law).
    fn word(&self) -> &str {
        let u = self.random.below(1 << 32) as f64 / (1u64 << 32) as f64;
        let rank = (self.vocabulary.len() as f64).powf(u) as usize - 1;
        &self.vocabulary[rank]
    }

    /// Half of a text is about its topic: real texts repeat their words.
    fn text(&mut self, words_max: u64) -> String {
        const TOPIC_WORDS: u64 = 25;
        let mut text = String::from("everywhere");
        let topic: Vec<&str> = (0..TOPIC_WORDS).map(|_| self.word()).collect();
        for _ in 0..5 + self.random.below(words_max) {
            let word = match self.random.below(2) {
                0 => self.word(),
                _ => topic[self.random.below(TOPIC_WORDS) as usize],
            };
            write!(text, " {word}").unwrap();
        }
        self.messages += 1;
        match self.messages {
            n if n % 5000 == 0 => text.push_str(" needle"),
            n if n % 1000 == 1 => text.push_str(" 我们用容器部署服务。"),
            _ => {}
        }
        self.bytes += text.len();
        text
    }

    fn turn(&mut self, turn: usize) -> Vec<Entry> {
        let turn = TurnId::from(format!("{turn:020x}"));
        let call = ToolCall {
            id: "call_0123456789abcdef".into(),
            name: "read_file".into(),
            arguments: Arguments::Json(serde_json::json!({"path": "src/main.rs"})),
            signatures: vec![],
        };
        let result = ToolResult::new(&call, ResultStatus::Ok, self.text(900));
        let calling = Message {
            role: Role::Assistant,
            origin: None,
            parts: vec![Part::text(self.text(40)), Part::ToolCall(call)],
        };
        let question = Message::user(self.text(60));
        vec![
            Entry::TurnStarted {
                turn: turn.clone(),
                message: question,
            },
            asked(&turn),
            replied(&turn, calling),
            Entry::CallFinished {
                turn: turn.clone(),
                result,
            },
            asked(&turn),
            replied(&turn, Message::assistant(self.text(150))),
            ended(&turn),
        ]
    }
}

fn short_turn(turn: usize) -> Vec<Entry> {
    let turn = TurnId::from(format!("{turn:020x}"));
    vec![
        Entry::TurnStarted {
            turn: turn.clone(),
            message: Message::user("Which file holds the settings of the web server?"),
        },
        ended(&turn),
    ]
}

fn asked(turn: &TurnId) -> Entry {
    Entry::ModelAsked {
        turn: turn.clone(),
        model: model(),
    }
}

fn replied(turn: &TurnId, message: Message) -> Entry {
    Entry::Replied {
        turn: turn.clone(),
        message,
        reason: FinishReason::Stop,
        usage: Usage::default(),
        cost: Cost::Included,
        model: model(),
    }
}

fn ended(turn: &TurnId) -> Entry {
    Entry::TurnEnded {
        turn: turn.clone(),
        end: TurnEnd::Finished,
        closing: None,
    }
}

fn model() -> ModelName {
    ModelName {
        provider: "test".into(),
        model: "scripted".into(),
    }
}

fn new_session(id: &SessionId) -> NewSession {
    NewSession {
        id: id.clone(),
        created: NOW,
        source: "bench".into(),
        title: None,
        cwd: None,
        model: model(),
        parent: None,
        prefix: Prefix::default(),
    }
}
