//! Opening files: new ones, read-only, damaged, somebody else's.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hermes_core::{
    Archive, KnownOffer, KnownOffers, SearchQuery, SessionFilter, SessionId, Store, StoreError,
    Timestamp,
};
use hermes_store::{Health, SqliteStore};
use tempfile::tempdir;

use crate::{NOW, exchange, new_session, open};

#[tokio::test]
async fn a_new_database_is_readable_by_its_owner_only() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    for name in ["hermes.db", "hermes.db-wal"] {
        let mode = fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_missing_folder_is_said_and_not_made() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("missing/hermes.db");
    let error = SqliteStore::open(&path, folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn a_damaged_file_is_said_and_not_touched() {
    for garbage in [1, 10, 99, 100, 511, 4096, 100_000] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("hermes.db");
        let contents = b"not a database. ".repeat(garbage / 16 + 1)[..garbage].to_vec();
        fs::write(&path, &contents).unwrap();
        for outcome in [
            SqliteStore::open(&path, folder.path()),
            SqliteStore::open_read_only(&path),
        ] {
            match outcome.unwrap_err() {
                StoreError::Damaged { path: named, .. } => assert_eq!(named, path),
                error => panic!("{garbage} bytes: {error}"),
            }
        }
        assert_eq!(fs::read(&path).unwrap(), contents, "{garbage} bytes");
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_found_by_the_examination() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    for i in 0..50 {
        let entries = exchange(&format!("t{i}"), &"question ".repeat(200), "answer");
        store.append(&"s1".into(), NOW, entries).await.unwrap();
    }
    assert_eq!(store.check().await, Ok(Health::Sound));
    drop(store);

    let path = folder.path().join("hermes.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let examined = match SqliteStore::open(&path, folder.path()) {
        Ok(store) => store.check().await,
        Err(error) => Err(error),
    };
    assert!(
        matches!(
            examined,
            Ok(Health::Damaged { .. }) | Err(StoreError::Damaged { .. })
        ),
        "{examined:?}"
    );
}

#[tokio::test]
async fn a_broken_index_is_found_and_rebuilt() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let session = SessionId::from("s1");
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let entries = exchange("t", "a question", "an answer");
    store.append(&session, NOW, entries).await.unwrap();
    assert_eq!(store.check().await, Ok(Health::Sound));
    let conn = rusqlite::Connection::open(store.path()).unwrap();
    conn.execute_batch("INSERT INTO words (words) VALUES ('delete-all')")
        .unwrap();
    let hits = async || {
        let query = SearchQuery {
            text: "an".into(),
            session: None,
            limit: 5,
            ..SearchQuery::default()
        };
        store.search(query).await.unwrap().len()
    };
    assert_eq!(hits().await, 0);
    let health = store.check().await.unwrap();
    assert!(matches!(health, Health::IndexBroken { .. }), "{health:?}");
    store.rebuild_index().await.unwrap();
    assert_eq!(store.check().await, Ok(Health::Sound));
    assert_eq!(hits().await, 1);
}

#[tokio::test]
async fn a_session_longer_than_one_transaction_is_deleted_whole() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    for id in ["long", "other"] {
        store.create(new_session(id), Vec::new()).await.unwrap();
    }
    for part in 0..4 {
        for (id, turns) in [("long", 400), ("other", 3)] {
            let turns = (0..turns).map(|i| format!("{part}-{i}"));
            let entries = turns.flat_map(|turn| exchange(&turn, "a question", "an answer"));
            let entries = entries.collect();
            store.append(&id.into(), NOW, entries).await.unwrap();
        }
    }
    store.delete(&"long".into()).await.unwrap();
    assert_eq!(store.check().await, Ok(Health::Sound));
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.sessions, stats.messages), (1, 24));
    let query = SearchQuery {
        text: "question".into(),
        session: None,
        limit: 100,
        ..SearchQuery::default()
    };
    assert_eq!(store.search(query).await.unwrap().len(), 12);
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("hermes.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(conn);
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(&path, folder.path()).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_read_only_store_sees_what_another_writes_and_changes_nothing() {
    let folder = tempdir().unwrap();
    let writing = open(folder.path());
    let reading = SqliteStore::open_read_only(writing.path()).unwrap();
    writing.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = exchange("t", "hello", "hi");
    writing.append(&session, NOW, entries).await.unwrap();

    let listed = reading.list(SessionFilter::default()).await.unwrap();
    assert_eq!(listed[0].messages, 2);
    assert_eq!(reading.transcript(&session).await.unwrap().len(), 2);
    let query = SearchQuery {
        text: "hello".into(),
        session: None,
        limit: 5,
        ..SearchQuery::default()
    };
    let hits = reading.search(query).await.unwrap();
    assert_eq!(
        hits[0].snippet, ">>>hello<<<",
        "found though not indexed yet"
    );
    for refused in [
        reading.create(new_session("s2"), Vec::new()).await,
        reading.rename(&session, "x").await,
        reading.delete(&session).await,
        reading.claim(&session).await.map(drop),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("read-only"), "{error}");
    }
}

#[tokio::test]
async fn a_read_only_store_works_after_the_writer_has_gone() {
    let folder = tempdir().unwrap();
    let writing = open(folder.path());
    writing.create(new_session("s1"), Vec::new()).await.unwrap();
    let path = writing.path().to_owned();
    drop(writing);
    let reading = SqliteStore::open_read_only(path).unwrap();
    assert_eq!(reading.find("s").await, Ok("s1".into()));
}

#[test]
fn looking_creates_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("hermes.db");
    assert!(SqliteStore::open_read_only(&path).is_err());
    assert!(!path.exists());
}

#[tokio::test]
async fn what_a_server_offered_last_is_kept_by_its_settings() {
    let folder = tempdir().unwrap();
    let offer = |settings: &str, offer: &str| KnownOffer {
        server: "tickets".into(),
        settings: settings.into(),
        offer: offer.into(),
    };
    let at = |millis| Timestamp::from_millis(NOW.as_millis() + millis);
    let store = open(folder.path());
    for (millis, settings, text) in [(0, "a", "1"), (1, "b", "2"), (2, "a", "3")] {
        let offer = offer(settings, text);
        store.remember_offer(offer, at(millis)).await.unwrap();
    }
    drop(store);
    let store = open(folder.path());
    let known = store.known_offers().await.unwrap();
    assert_eq!(known, [offer("a", "3"), offer("b", "2")]);
    for (millis, settings) in ["c", "d", "e", "f"].into_iter().enumerate() {
        let offer = offer(settings, "4");
        store
            .remember_offer(offer, at(10 + millis as i64))
            .await
            .unwrap();
    }
    let known = store.known_offers().await.unwrap();
    let settings: Vec<_> = known.iter().map(|known| known.settings.as_str()).collect();
    assert_eq!(
        settings,
        ["c", "d", "e", "f"],
        "only the newest few are kept"
    );
}
