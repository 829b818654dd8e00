//! Databases of every released schema open and keep their contents.

use hermes_core::{Archive, Message, SearchQuery, SessionId, Store, StoreError};
use hermes_store::{Health, SqliteStore};
use rusqlite::Connection;
use tempfile::tempdir;

use crate::{NOW, exchange, open};

/// What each released version wrote, as SQL: one session `s1`, titled `kept`, with one exchange. A new schema adds a
/// line; none is ever changed. The indexes are empty and are
/// filled on the way.
const RELEASED: &[(u32, &str)] = &[
    (1, include_str!("schemas/1.sql")),
    (2, include_str!("schemas/2.sql")),
    (3, include_str!("schemas/3.sql")),
    (4, include_str!("schemas/4.sql")),
    (5, include_str!("schemas/5.sql")),
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
        };
        assert_eq!(store.search(query).await.unwrap().len(), 2);
        assert_eq!(store.check().await, Ok(Health::Sound), "schema {schema}");
    }
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
