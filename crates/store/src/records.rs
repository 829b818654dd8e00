//! What surfaces keep beside conversations. The one rule: of several who claim a key, one is the first.

use hermes_core::{Claimed, Mirrored, Record, RecordKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Failure;

pub(crate) fn claim(
    conn: &Connection,
    key: &RecordKey,
    record: &Record,
) -> Result<Claimed, Failure> {
    if let Some(held) = at(conn, key, record.created)? {
        return Ok(Claimed::Held(held));
    }
    put(conn, key, record)?;
    Ok(Claimed::New)
}

pub(crate) fn put(conn: &Connection, key: &RecordKey, record: &Record) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO records (scope, key, fingerprint, value, created, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
             created = excluded.created, expires = excluded.expires",
    )?
    .execute(params![
        key.scope,
        key.key,
        record.fingerprint,
        record.value,
        record.created.as_millis(),
        record.expires.as_millis(),
    ])?;
    Ok(())
}

pub(crate) fn at(
    conn: &Connection,
    key: &RecordKey,
    now: Timestamp,
) -> Result<Option<Record>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT fingerprint, value, created, expires FROM records WHERE scope = ?1 AND key = ?2 AND expires > ?3",
    )?;
    let record = statement.query_row(params![key.scope, key.key, now.as_millis()], read);
    Ok(record.optional()?)
}

pub(crate) fn in_scope(
    conn: &Connection,
    scope: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(String, Record)>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT fingerprint, value, created, expires, key FROM records WHERE scope = ?1 AND expires > ?2
         ORDER BY created, key LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![scope, now.as_millis(), limit], |row| {
        Ok((row.get(4)?, read(row)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Leaves of what was told that it was: nobody tells it again, and whoever claims it again is not the first.
pub(crate) fn empty(conn: &Connection, told: &Mirrored) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE records SET value = NULL WHERE scope = ?1 AND created <= ?2")?
        .execute(params![told.scope, told.until.as_millis()])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        fingerprint: row.get(0)?,
        value: row.get(1)?,
        created: Timestamp::from_millis(row.get(2)?),
        expires: Timestamp::from_millis(row.get(3)?),
    })
}

pub(crate) fn remove(conn: &Connection, key: &RecordKey) -> Result<bool, Failure> {
    let removed = conn
        .prepare_cached("DELETE FROM records WHERE scope = ?1 AND key = ?2")?
        .execute(params![key.scope, key.key])?;
    Ok(removed > 0)
}

pub(crate) fn forget_expired(conn: &Connection, now: Timestamp) -> Result<u64, Failure> {
    let removed = conn
        .prepare_cached("DELETE FROM records WHERE expires <= ?1")?
        .execute(params![now.as_millis()])?;
    Ok(removed as u64)
}
