//! Whether search finds what was meant, and how long that takes: 200 known questions to a history of 200,000 messages.
//! Prints one JSON object per figure; `scripts/bench` reads them. `--quick` takes a tenth of the history.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its figures")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hermes_core::{Archive as _, Role, SearchQuery};
use hermes_store::SqliteStore;
use hermes_testkit::corpus::{Corpus, Known};
use serde_json::json;

const MESSAGES: usize = 200_000;

/// Questions of which the first hit may be wrong, in percent.
const WRONG_MAX: f64 = 5.0;
const P50_MAX_MS: f64 = 5.0;
const P99_MAX_MS: f64 = 25.0;

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let folder = tempfile::tempdir().unwrap();
    let corpus = Corpus::new(if is_quick { MESSAGES / 10 } else { MESSAGES });
    let path = folder.path().join("hermes.db");
    let store = SqliteStore::open(&path, folder.path().join("locks")).unwrap();
    corpus.fill(&store).await;
    let started = Instant::now();
    // Indexes the last ones.
    store.search(query("the")).await.unwrap();
    eprintln!("first search after filling: {:.1?}", started.elapsed());

    let mut times = Vec::new();
    let mut slow: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut wrong: BTreeMap<&str, usize> = BTreeMap::new();
    for known in corpus.questions() {
        let started = Instant::now();
        let hits = store.search(query(&known.query)).await.unwrap();
        let took = started.elapsed();
        times.push(took);
        let slowest = slow.entry(known.kind).or_default();
        *slowest = took.max(*slowest);
        let first = match hits.first() {
            Some(hit) => store.message_at(hit.place).await.unwrap(),
            None => None,
        };
        if first.is_none_or(|first| first.message.text() != known.answer) {
            *wrong.entry(known.kind).or_default() += 1;
            show(known, &hits.first().map(|hit| hit.snippet.clone()));
        }
    }
    eprintln!("wrong by kind: {wrong:?}, slowest: {slow:.1?}");
    times.sort();
    let at = |percent: usize| millis(times[times.len() * percent / 100]);
    let share = wrong.values().sum::<usize>() as f64 / times.len() as f64 * 100.0;
    figure(
        "recall: questions with a wrong first hit",
        share,
        "%",
        WRONG_MAX,
    );
    figure(
        "recall: search in 200,000 messages, p50",
        at(50),
        "ms",
        P50_MAX_MS,
    );
    figure(
        "recall: search in 200,000 messages, p99",
        at(99),
        "ms",
        P99_MAX_MS,
    );
}

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.into(),
        roles: vec![Role::User, Role::Assistant],
        hides_subagents: true,
        limit: 300,
        ..SearchQuery::default()
    }
}

fn show(known: &Known, found: &Option<String>) {
    eprintln!(
        "{}: {:?} found {found:?} instead of {:?}",
        known.kind, known.query, known.answer
    );
}

fn figure(what: &str, value: f64, unit: &str, budget: f64) {
    println!(
        "{}",
        json!({ "what": what, "value": value, "unit": unit, "budget": budget })
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
