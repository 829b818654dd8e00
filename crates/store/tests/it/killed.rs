//! `kill -9` at any moment: what was acknowledged is there, and nothing is torn.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermes_core::{Message, Random, SessionId, Store, StoreError};
use hermes_store::{Health, SqliteStore};
use tempfile::tempdir;

use crate::{NOW, exchange, new_session, open};

const ROUNDS: u64 = 20;

/// Longest life of a child after its first acknowledged append.
const LIFE_MILLIS_MAX: u64 = 120;

/// Turns a test process into the child that is killed: the folder of its store.
const CHILD_FOLDER: &str = "HERMES_STORE_KILLED_CHILD";

#[tokio::test]
async fn every_acknowledged_append_survives_kill_9() {
    let seed = Random::from_system().next_u64();
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let folder = tempdir().unwrap();
    for round in 0..ROUNDS {
        let session = SessionId::from(format!("round-{round}"));
        let acknowledged = run_and_kill(folder.path(), &session, &random);
        let store = open(folder.path());
        let loaded = store.load(&session).await.unwrap();
        let found = loaded.messages.len() / 2;
        assert!(
            found >= acknowledged,
            "round {round}: {acknowledged} acknowledged, {found} found"
        );
        for (i, pair) in loaded.messages.chunks(2).enumerate() {
            let expected = [Message::user(question(i)), Message::assistant("noted")];
            assert_eq!(pair, expected, "round {round}");
        }
        assert_eq!(store.check().await, Ok(Health::Sound), "round {round}");
        drop(store.claim(&session).await.expect("the lock died with it"));
    }
}

#[tokio::test]
async fn the_owner_of_a_busy_session_is_named() {
    let folder = tempdir().unwrap();
    let session = SessionId::from("busy");
    let mut child = start_child(folder.path());
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{session}").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    acknowledgement(&mut lines).expect("a first append");
    let store = open(folder.path());
    let busy = StoreError::Busy {
        session: session.clone(),
        owner: Some(child.id()),
    };
    assert_eq!(store.claim(&session).await.unwrap_err(), busy);
    child.kill().unwrap();
    child.wait().unwrap();
    store.claim(&session).await.expect("free after the kill");
}

#[tokio::test]
async fn a_database_that_another_process_has_open_is_not_set_aside() {
    let folder = tempdir().unwrap();
    let mut child = start_child(folder.path());
    writeln!(child.stdin.take().unwrap(), "s").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    acknowledgement(&mut lines).expect("a first append");
    let error = SqliteStore::salvage(folder.path().join("hermes.db"), NOW).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("another process has it open"), "{error}");
    let salvage = SqliteStore::salvage(folder.path().join("hermes.db"), NOW).await;
    assert_eq!(salvage.unwrap().sessions, 1, "alone, it is");
}

/// Returns how many appends the child saw acknowledged.
fn run_and_kill(folder: &Path, session: &SessionId, random: &Random) -> usize {
    let mut child = start_child(folder);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{session}").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = acknowledgement(&mut lines).expect("a first append");
    std::thread::sleep(Duration::from_millis(random.below(LIFE_MILLIS_MAX)));
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    while let Some(number) = acknowledgement(&mut lines) {
        last = number;
    }
    last + 1
}

/// Reads on to the next line that is an acknowledgement: the test harness prints lines of its own.
fn acknowledgement(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Option<usize> {
    lines.find_map(|line| line.ok()?.strip_prefix("acknowledged ")?.parse().ok())
}

#[expect(clippy::disallowed_methods, reason = "runs this test binary again")]
fn start_child(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::append_until_killed", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The child. Does nothing when run as an ordinary test.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "told by its parent where to write"
)]
async fn append_until_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else {
        return;
    };
    let mut session = String::new();
    std::io::stdin().read_line(&mut session).unwrap();
    let session = SessionId::from(session.trim());
    let store = open(Path::new(&folder));
    store
        .create(new_session(session.as_str()), Vec::new())
        .await
        .unwrap();
    let _claim = store.claim(&session).await.unwrap();
    for i in 0.. {
        let entries = exchange(&format!("t{i}"), &question(i), "noted");
        store.append(&session, NOW, entries).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nacknowledged {i}").unwrap();
        out.flush().unwrap();
    }
}

/// Of many lengths, so that pages fill and overflow in different places.
fn question(i: usize) -> String {
    format!("question {i} {}", "and so on ".repeat(i * 37 % 900))
}
