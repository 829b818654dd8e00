//! Databases of every released schema open and keep their contents.

use hermes_core::{
    Archive, Message, Origin, SearchQuery, SessionId, Store, StoreError, ToolStates,
};
use hermes_store::{Health, SqliteStore};
use rusqlite::Connection;
use serde_json::json;
use tempfile::tempdir;

use crate::{NOW, exchange, new_session, open};

/// What each released version wrote, as SQL: one session `s1`, titled `kept`, with one exchange. A new schema adds a
/// line; none is ever changed. The indexes are empty and are
/// filled on the way.
const RELEASED: &[(u32, &str)] = &[
    (1, include_str!("schemas/1.sql")),
    (2, include_str!("schemas/2.sql")),
    (3, include_str!("schemas/3.sql")),
    (4, include_str!("schemas/4.sql")),
    (5, include_str!("schemas/5.sql")),
    (6, include_str!("schemas/6.sql")),
    (7, include_str!("schemas/7.sql")),
    (8, include_str!("schemas/8.sql")),
    (9, include_str!("schemas/9.sql")),
    (10, include_str!("schemas/10.sql")),
    (11, include_str!("schemas/11.sql")),
    (12, include_str!("schemas/12.sql")),
    (13, include_str!("schemas/13.sql")),
    (14, include_str!("schemas/14.sql")),
    (15, include_str!("schemas/15.sql")),
    (16, include_str!("schemas/16.sql")),
    (17, include_str!("schemas/17.sql")),
    (18, include_str!("schemas/18.sql")),
];

#[tokio::test]
async fn every_released_schema_opens_and_goes_on() {
    for (schema, dump) in RELEASED {
        let folder = tempdir().unwrap();
        let path = folder.path().join("hermes.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(dump).unwrap();
        drop(conn);

        let store = open(folder.path());
        let session = store.find("kept").await.unwrap();
        assert_eq!(session, SessionId::from("s1"));
        let loaded = store.load(&session).await.unwrap();
        let texts: Vec<String> = loaded.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["a question", "an answer"], "schema {schema}");
        let entries = exchange("t2", "another question", "more");
        store.append(&session, NOW, entries).await.unwrap();
        let query = SearchQuery {
            text: "question".into(),
            session: None,
            limit: 10,
            ..SearchQuery::default()
        };
        assert_eq!(store.search(query).await.unwrap().len(), 2);
        assert_eq!(store.check().await, Ok(Health::Sound), "schema {schema}");
    }
}

/// What schema 7 had only in the text: a list of things to do, subagents that were sent and those that reported.
const TOLD_IN_TEXT: &str = r#"
INSERT INTO turns VALUES (2, 1, 't2', 10, NULL);
INSERT INTO messages VALUES
    (10, 1, 2, 'assistant', 1794777845000, '', '[]'),
    (11, 1, 2, 'tool', 1794777845000, '{"todos":[{"id":"1","content":"plan","status":"pending"}]}', NULL),
    (12, 1, 2, 'tool', 1794777845000, '[the result is in a file]', NULL),
    (13, 1, 2, 'tool', 1794777845000, '{"status":"dispatched","delegation_id":"d1","sessions":["sub-d1-1"]}', NULL),
    (14, 1, 2, 'tool', 1794777845000, '{"status":"dispatched","delegation_id":"d2","sessions":["sub-d2-1"]}', NULL),
    (15, 1, 2, 'tool', 1794777845000, '{"results":[]}', NULL);
INSERT INTO calls VALUES
    (10, 'c1', 'todo', 'read', NULL, 11),
    (10, 'c2', 'todo', 'read', NULL, 12),
    (10, 'c3', 'delegate_task', 'read', NULL, 13),
    (10, 'c4', 'delegate_task', 'read', NULL, 14),
    (10, 'c5', 'delegate_task', 'read', NULL, 15);
INSERT INTO turns VALUES (3, 1, 't3', NULL, NULL);
INSERT INTO messages VALUES (16, 1, 3, 'user', 1794777845000,
    '[Delegation d1: your background subagents have come to rest. The user did not write this.]
found', NULL);
"#;

#[tokio::test]
async fn what_older_schemas_had_in_the_text_becomes_state() {
    let folder = tempdir().unwrap();
    let conn = Connection::open(folder.path().join("hermes.db")).unwrap();
    let (_, dump) = RELEASED.iter().find(|(schema, _)| *schema == 7).unwrap();
    conn.execute_batch(dump).unwrap();
    conn.execute_batch(TOLD_IN_TEXT).unwrap();
    drop(conn);

    let loaded = open(folder.path()).load(&"s1".into()).await.unwrap();
    let origins = loaded
        .messages
        .iter()
        .filter_map(|said| said.origin.clone());
    let report = Origin::SubagentReport {
        delegation: "d1".into(),
    };
    assert_eq!(origins.collect::<Vec<_>>(), [Origin::person(), report]);
    let todos = json!({"todos": [{"id": "1", "content": "plan", "status": "pending"}]});
    let sent = json!([{"call": "c4", "delegation_id": "d2", "sessions": ["sub-d2-1"]}]);
    let kept = [
        ("todo".to_owned(), todos),
        ("delegate_task".to_owned(), sent),
    ];
    assert_eq!(loaded.tool_states, ToolStates::from(kept));
}

#[tokio::test]
async fn an_older_schema_can_be_looked_at_before_anything_is_written() {
    for (schema, dump) in RELEASED {
        let folder = tempdir().unwrap();
        let path = folder.path().join("hermes.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch(dump)
            .unwrap();
        let store = SqliteStore::open_read_only(&path).unwrap();
        let lines = store.transcript(&"s1".into()).await.unwrap();
        assert_eq!(lines.len(), 2, "schema {schema}");
    }
}

#[test]
fn the_newest_schema_is_among_the_released_ones() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let conn = Connection::open(store.path()).unwrap();
    let version = conn.pragma_query_value(None, "user_version", |row| row.get(0));
    let newest = RELEASED.iter().map(|(schema, _)| *schema).max();
    assert_eq!(version.ok(), newest);
}

#[test]
fn a_database_from_the_future_is_refused() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let path = store.path().to_owned();
    drop(store);
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    for outcome in [
        SqliteStore::open(&path, folder.path()),
        SqliteStore::open_read_only(&path),
    ] {
        match outcome.unwrap_err() {
            StoreError::TooNew { found, .. } => assert_eq!(found, 99),
            error => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn what_many_sessions_begin_with_is_stored_once_and_forgotten_with_the_last() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    for name in ["one", "two"] {
        store.create(new_session(name), Vec::new()).await.unwrap();
    }
    let count = || -> i64 {
        let conn = Connection::open(folder.path().join("hermes.db")).unwrap();
        let texts = "SELECT count(*) FROM prefix_texts";
        conn.query_row(texts, [], |row| row.get(0)).unwrap()
    };
    let before = count();
    assert_eq!(before, 2, "a prompt and its tools");
    let one = store.load(&SessionId::from("one")).await.unwrap();
    let two = store.load(&SessionId::from("two")).await.unwrap();
    assert_eq!(one.prefix, two.prefix);
    for name in ["one", "two"] {
        let session = SessionId::from(name);
        store.delete(&session).await.unwrap();
    }
    assert_eq!(count(), 0);
}
