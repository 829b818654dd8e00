//! Which conversations are a guest's own: those that were opened for them.

use std::time::Duration;

use hermes_core::{
    Archive as _, Clock, Record, RecordKey, Records as _, SessionId, SessionRecord, StoreError,
};
use hermes_store::SqliteStore;

/// Before the name of the person.
const SCOPE: &str = "person.sessions/";

/// A conversation is theirs for so long: longer than anybody goes back.
const KEPT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Conversations of one person that are looked at: more than anybody has in ten years of days.
const LOOKED_AT: usize = 4_000;

/// Notes that a conversation is somebody's.
pub(crate) async fn note(
    store: &SqliteStore,
    clock: &dyn Clock,
    person: &str,
    session: &SessionId,
) -> Result<(), StoreError> {
    let now = clock.now();
    let record = Record {
        fingerprint: String::new(),
        value: None,
        created: now,
        expires: now.plus(KEPT),
    };
    let key = RecordKey::new(format!("{SCOPE}{person}"), session.as_str());
    store.claim_record(key, record).await.map(|_| ())
}

/// The conversations of somebody, the last that was spoken in first.
pub(crate) async fn of(
    store: &SqliteStore,
    clock: &dyn Clock,
    person: &str,
) -> Result<Vec<SessionRecord>, StoreError> {
    let scope = format!("{SCOPE}{person}");
    let noted = store.records_in(&scope, clock.now(), LOOKED_AT).await?;
    let mut sessions = Vec::new();
    for (session, _) in noted {
        match store.record(&SessionId::from(session.as_str())).await {
            Ok(record) => sessions.push(record),
            // Nothing was said in it, or it was deleted.
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    sessions.sort_by_key(|record| std::cmp::Reverse(record.updated));
    Ok(sessions)
}

/// The one of them that is meant by an id, its beginning, or a title.
pub(crate) fn named(sessions: Vec<SessionRecord>, name: &str) -> Option<SessionRecord> {
    let is_exactly = |record: &SessionRecord| {
        record.id.as_str() == name || record.title.as_deref() == Some(name)
    };
    let at = sessions.iter().position(is_exactly).or_else(|| {
        let begins = |record: &SessionRecord| record.id.as_str().starts_with(name);
        let is_one = sessions.iter().filter(|record| begins(record)).count() == 1;
        sessions.iter().position(begins).filter(|_| is_one)
    })?;
    sessions.into_iter().nth(at)
}
