//! Files that were cut, altered or left half done: they are noticed, said, and what can be read of them is saved.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_core::{
    Archive, Arguments, Effect, Entry, FinishReason, Message, Origin, Part, Random, ResultStatus,
    SessionFilter, SessionId, Store, StoreError, ToolCall, ToolResult,
};
use hermes_store::{Health, Salvage, SqliteStore};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::{NOW, exchange, model, new_session, open};

const SESSIONS: usize = 12;

/// Turns of one session: words, and calls with results.
fn entries(session: usize) -> Vec<Entry> {
    let mut entries = exchange("t1", &format!("question {session} ").repeat(100), "answer");
    let call = ToolCall {
        id: "c1".into(),
        name: "terminal".into(),
        arguments: Arguments::Json(json!({"command": "ls"})),
        signatures: Vec::new(),
    };
    let called = exchange("t2", "list the files", "there are many");
    let mut called = called.into_iter();
    entries.extend(called.next());
    entries.push(Entry::Replied {
        turn: "t2".into(),
        message: Message {
            parts: vec![Part::ToolCall(call.clone())],
            ..Message::assistant("")
        },
        reason: FinishReason::ToolCalls,
        usage: Default::default(),
        cost: hermes_core::Cost::Included,
        model: model(),
    });
    entries.push(Entry::CallIntended {
        turn: "t2".into(),
        call: "c1".into(),
        tool: "terminal".into(),
        effect: Effect::Read,
        arguments: json!({"command": "ls"}),
    });
    entries.push(Entry::CallFinished {
        turn: "t2".into(),
        result: ToolResult::new(&call, ResultStatus::Ok, "a.txt\n".repeat(400)),
    });
    entries.extend(called);
    entries
}

async fn fill(store: &SqliteStore, sessions: std::ops::Range<usize>) {
    for number in sessions {
        let id = format!("s{number}");
        store.create(new_session(&id), Vec::new()).await.unwrap();
        let entries = entries(number);
        store
            .append(&id.as_str().into(), NOW, entries)
            .await
            .unwrap();
    }
}

/// The files of a database as a kill leaves them.
struct Files(Vec<(&'static str, Vec<u8>)>);

impl Files {
    /// Sessions in the database, and as many in its log.
    async fn after_a_kill() -> Self {
        let folder = tempdir().unwrap();
        let store = open(folder.path());
        fill(&store, 0..SESSIONS / 2).await;
        drop(store);
        let store = open(folder.path());
        fill(&store, SESSIONS / 2..SESSIONS).await;
        let names = ["hermes.db", "hermes.db-wal", "hermes.db-shm"];
        Self(
            names
                .map(|name| (name, fs::read(folder.path().join(name)).unwrap()))
                .into(),
        )
    }

    /// One file, nothing beside it.
    async fn closed() -> Self {
        let folder = tempdir().unwrap();
        let store = open(folder.path());
        fill(&store, 0..SESSIONS).await;
        assert_eq!(store.check().await, Ok(Health::Sound));
        drop(store);
        let database = fs::read(folder.path().join("hermes.db")).unwrap();
        Self(vec![("hermes.db", database)])
    }

    fn bytes(&self, name: &str) -> &[u8] {
        &self.0.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// Writes the files into a folder, one of them altered.
    fn with(&self, name: &str, alter: impl FnOnce(&mut Vec<u8>)) -> (TempDir, PathBuf) {
        let folder = tempdir().unwrap();
        for (known, bytes) in &self.0 {
            fs::write(folder.path().join(known), bytes).unwrap();
        }
        let mut bytes = self.bytes(name).to_vec();
        alter(&mut bytes);
        fs::write(folder.path().join(name), bytes).unwrap();
        let path = folder.path().join("hermes.db");
        (folder, path)
    }
}

/// What is done to a file.
type Alteration = Box<dyn Fn(&mut Vec<u8>)>;

/// Opens a database and reads everything in it; returns its sessions.
async fn readable(folder: &Path) -> Result<usize, StoreError> {
    let store = SqliteStore::open(folder.join("hermes.db"), folder.join("locks"))?;
    match store.check().await? {
        Health::Sound => {}
        health => panic!("{health:?}"),
    }
    let sessions = store.list(SessionFilter::default()).await?;
    for session in &sessions {
        let loaded = store.load(&session.id).await?;
        let calls = loaded.messages.iter().flat_map(Message::calls).count();
        let results = loaded
            .messages
            .iter()
            .filter_map(Message::tool_result)
            .count();
        assert_eq!(calls, results, "{}", session.id);
        // A session that was saved goes on.
        let more = exchange("more", "and then?", "that was all");
        store.append(&session.id, NOW, more).await?;
    }
    Ok(sessions.len())
}

fn said(outcome: Result<SqliteStore, StoreError>, file: &str) -> String {
    match outcome {
        Err(StoreError::Damaged { path, detail }) => {
            assert!(path.ends_with(file), "{}", path.display());
            detail
        }
        other => panic!("{other:?}"),
    }
}

async fn salvaged(path: &Path) -> Salvage {
    let salvage = SqliteStore::salvage(path, NOW).await.unwrap();
    assert!(salvage.kept_as.exists(), "the damaged file is kept");
    let left = fs::read_dir(path.parent().unwrap()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let workshops = left.filter(|name| name.contains("recovering"));
    assert_eq!(workshops.count(), 0);
    salvage
}

#[tokio::test]
async fn a_first_run_that_was_killed_leaves_a_database_that_can_be_looked_at() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("began.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(
        "PRAGMA page_size = 16384; PRAGMA cache_size = 2; BEGIN; CREATE TABLE t (x);",
    )
    .unwrap();
    for _ in 0..20 {
        conn.execute("INSERT INTO t VALUES (zeroblob(16000))", [])
            .unwrap();
    }
    let (database, journal) = (
        fs::read(&path).unwrap(),
        fs::read(folder.path().join("began.db-journal")).unwrap(),
    );
    assert!(!database.is_empty() && !journal.is_empty());
    // A journal that waits to be undone; a file without anything; one without its schema; a log without a change.
    let empty = |journal_mode: &str| {
        let place = tempdir().unwrap();
        let conn = rusqlite::Connection::open(place.path().join("a")).unwrap();
        conn.execute_batch(&format!(
            "PRAGMA page_size = 16384; PRAGMA journal_mode = {journal_mode}; VACUUM"
        ))
        .unwrap();
        drop(conn);
        fs::read(place.path().join("a")).unwrap()
    };
    let states = [
        vec![
            ("hermes.db", database),
            ("hermes.db-journal", journal.clone()),
        ],
        vec![("hermes.db", Vec::new()), ("hermes.db-journal", journal)],
        vec![("hermes.db", Vec::new())],
        vec![("hermes.db", empty("DELETE"))],
        vec![
            ("hermes.db", empty("WAL")),
            ("hermes.db-wal", Vec::new()),
            ("hermes.db-shm", Vec::new()),
        ],
        vec![
            ("hermes.db", empty("WAL")),
            ("hermes.db-wal", vec![0; 32]),
            ("hermes.db-shm", vec![0; 32768]),
        ],
    ];
    for files in states {
        let folder = tempdir().unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|(name, bytes)| (*name, bytes.len()))
            .collect();
        for (name, bytes) in &files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let store = SqliteStore::open_read_only(folder.path().join("hermes.db"))
            .unwrap_or_else(|error| panic!("{names:?}: {error}"));
        let sessions = store.list(SessionFilter::default()).await.unwrap();
        assert!(sessions.is_empty(), "{names:?}");
        assert_eq!(readable(folder.path()).await, Ok(0), "{names:?}");
    }
}

#[tokio::test]
async fn a_log_that_was_cut_is_noticed_wherever_and_the_rest_is_saved() {
    let files = Files::after_a_kill().await;
    let whole = files.bytes("hermes.db-wal").len();
    let random = Random::seeded(7);
    let mut cuts = vec![
        0,
        1,
        31,
        32,
        33,
        56,
        32 + 16408,
        33 + 16408,
        whole - 1,
        whole - 16408,
    ];
    cuts.extend((0..12).map(|_| random.next_u64() as usize % whole));
    for cut in cuts {
        let (folder, path) = files.with("hermes.db-wal", |log| log.truncate(cut));
        for _ in 0..2 {
            let read_only = said(SqliteStore::open_read_only(&path), "hermes.db-wal");
            assert!(
                read_only.contains("what was saved last is lost"),
                "{cut}: {read_only}"
            );
            let detail = said(SqliteStore::open(&path, folder.path()), "hermes.db-wal");
            assert_eq!(detail, read_only, "{cut}");
        }
        let salvage = salvaged(&path).await;
        assert!(
            salvage.sessions >= SESSIONS as u64 / 2,
            "{cut}: {salvage:?}"
        );
        assert_eq!(salvage.unread_tables, Vec::<&str>::new(), "{cut}");
        let kept = fs::read(beside(&salvage.kept_as, "-wal")).unwrap();
        assert_eq!(kept.len(), cut, "the log is kept too");
        assert_eq!(
            readable(folder.path()).await,
            Ok(salvage.sessions as usize),
            "{cut}"
        );
    }
    let (folder, _) = files.with("hermes.db-wal", |_| {});
    assert_eq!(
        readable(folder.path()).await,
        Ok(SESSIONS),
        "a kill alone is no damage"
    );
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[tokio::test]
async fn an_altered_log_is_noticed() {
    let files = Files::after_a_kill().await;
    let whole = files.bytes("hermes.db-wal").len();
    let random = Random::seeded(8);
    for _ in 0..12 {
        let at = random.next_u64() as usize % whole;
        let (folder, path) = files.with("hermes.db-wal", |log| log[at] ^= 0x10);
        match SqliteStore::open_read_only(&path) {
            Err(StoreError::Damaged { .. }) => {
                let salvage = salvaged(&path).await;
                assert!(salvage.sessions >= SESSIONS as u64 / 2, "{at}: {salvage:?}");
                assert_eq!(readable(folder.path()).await, Ok(salvage.sessions as usize));
            }
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_log_whose_changes_were_copied_is_not_read_when_it_was_cut() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    fill(&store, 0..SESSIONS).await;
    let conn = rusqlite::Connection::open(store.path()).unwrap();
    conn.query_row("SELECT count(*) FROM sessions", [], |_| Ok(()))
        .unwrap();
    // Whoever closes last would remove the log.
    drop(store);
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .unwrap();
    let names = ["hermes.db", "hermes.db-wal", "hermes.db-shm"];
    let files = names.map(|name| (name, fs::read(folder.path().join(name)).unwrap()));
    let files = Files(files.into());
    let (folder, path) = files.with("hermes.db-wal", |log| log.truncate(32 + 2 * 16408));
    let detail = said(SqliteStore::open_read_only(&path), "hermes.db-wal");
    assert!(detail.contains("nothing is lost"), "{detail}");
    let salvage = salvaged(&path).await;
    assert_eq!(
        (salvage.sessions, salvage.incomplete_turns),
        (SESSIONS as u64, 0)
    );
    assert_eq!(readable(folder.path()).await, Ok(SESSIONS));
}

#[tokio::test]
async fn a_damaged_database_is_saved_around_its_holes() {
    const PAGE: usize = 16384;
    let files = Files::closed().await;
    let pages = files.bytes("hermes.db").len() / PAGE;
    let random = Random::seeded(9);
    let mut saved = 0;
    let mut alterations: Vec<(String, Alteration)> = Vec::new();
    for page in 0..pages {
        let zero = move |bytes: &mut Vec<u8>| bytes[page * PAGE..(page + 1) * PAGE].fill(0);
        alterations.push((format!("page {page} is zero"), Box::new(zero)));
    }
    for part in [2, 3, 5] {
        let cut = move |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() * (part - 1) / part);
        alterations.push((format!("a part of {part} is gone"), Box::new(cut)));
    }
    for _ in 0..10 {
        let at = 100 + random.next_u64() as usize % (pages * PAGE - 600);
        let flip = move |bytes: &mut Vec<u8>| {
            bytes[at..at + 500]
                .iter_mut()
                .for_each(|byte| *byte ^= 0xa5);
        };
        alterations.push((format!("other bytes at {at}"), Box::new(flip)));
    }
    let count = alterations.len();
    for (what, alter) in alterations {
        let (folder, path) = files.with("hermes.db", |bytes| alter(bytes));
        match SqliteStore::salvage(&path, NOW).await {
            Ok(salvage) => {
                saved += 1;
                let sessions = readable(folder.path()).await;
                assert_eq!(
                    sessions,
                    Ok(salvage.sessions as usize),
                    "{what}: {salvage:?}"
                );
            }
            Err(StoreError::Damaged { .. }) => {
                let mut altered = files.bytes("hermes.db").to_vec();
                alter(&mut altered);
                assert_eq!(
                    fs::read(&path).unwrap(),
                    altered,
                    "{what}: it stays as it was"
                );
                let left = fs::read_dir(folder.path()).unwrap().count();
                assert_eq!(left, 1, "{what}: nothing is left beside it");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    assert!(saved * 10 >= count * 8, "{saved} of {count}");
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("hermes.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(conn);
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::salvage(&path, NOW).await.unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let missing = SqliteStore::salvage(folder.path().join("none.db"), NOW).await;
    assert!(matches!(missing, Err(StoreError::Io { .. })), "{missing:?}");
}

#[tokio::test]
async fn a_session_of_which_only_messages_are_left_gets_a_name() {
    let files = Files::closed().await;
    let (folder, path) = files.with("hermes.db", |_| {});
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM sessions WHERE id = 's3'")
        .unwrap();
    drop(conn);
    let salvage = salvaged(&path).await;
    assert_eq!(
        (salvage.sessions, salvage.renamed_sessions),
        (SESSIONS as u64, 1)
    );
    let store = open(folder.path());
    let sessions = store.list(SessionFilter::default()).await.unwrap();
    let renamed = sessions
        .iter()
        .find(|session| session.source == "recovered")
        .unwrap();
    assert!(renamed.id.as_str().starts_with("recovered-"));
    let lines = store.transcript(&renamed.id).await.unwrap();
    assert_eq!(lines.len(), 6);
    assert!(store.find("s3").await.is_err());
    assert_eq!(SessionId::from("s4"), store.find("s4").await.unwrap());
}

#[tokio::test]
async fn a_compacted_session_is_saved_with_its_summary_its_prefix_and_what_tools_keep() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    fill(&store, 0..1).await;
    let id = SessionId::from("s0");
    let summary = Message {
        origin: Some(Origin::Summary),
        ..Message::user("so far")
    };
    let state = vec![
        Entry::ToolKept {
            turn: "t2".into(),
            tool: "todo".into(),
            state: json!({"todos": []}),
        },
        Entry::Compacted {
            summary: Some(summary),
            kept: 1,
            shortened: Vec::new(),
            prefix: None,
            used: None,
        },
    ];
    store.append(&id, NOW, state).await.unwrap();
    let before = store.load(&id).await.unwrap();
    assert_eq!(before.messages.len(), 2);
    let path = store.path().to_owned();
    drop(store);

    assert_eq!(salvaged(&path).await.unread_tables, [""; 0]);
    assert_eq!(open(folder.path()).load(&id).await.unwrap(), before);
    assert_eq!(readable(folder.path()).await, Ok(1));
}
