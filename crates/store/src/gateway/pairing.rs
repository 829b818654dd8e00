//! Who was let in, and who asks to be.

use hermes_core::{AskRules, Asked, PairedPerson, PairingRequest, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{from_json, json};
use crate::failure::Failure;
use crate::sessions::unsigned;

pub(super) fn ask(
    conn: &Connection,
    request: &PairingRequest,
    rules: AskRules,
) -> Result<Asked, Failure> {
    conn.prepare_cached("DELETE FROM pairing_requests WHERE at < ?1")?
        .execute([rules.valid_since.as_millis()])?;
    if asked_last(conn, request)?.is_some_and(|at| at >= rules.asked_since.as_millis()) {
        return Ok(Asked::TooSoon);
    }
    conn.prepare_cached(
        "INSERT INTO pairing_asked (platform, user, at) VALUES (?1, ?2, ?3)
         ON CONFLICT (platform, user) DO UPDATE SET at = excluded.at",
    )?
    .execute(params![
        request.platform,
        request.user,
        request.at.as_millis()
    ])?;
    conn.prepare_cached("DELETE FROM pairing_requests WHERE platform = ?1 AND user = ?2")?
        .execute([&request.platform, &request.user])?;
    let pending = conn
        .prepare_cached("SELECT count(*) FROM pairing_requests WHERE platform = ?1")?
        .query_row([&request.platform], |row| unsigned(row, 0))?;
    if pending >= rules.pending_max as u64 {
        return Ok(Asked::TooMany);
    }
    conn.prepare_cached(
        "INSERT INTO pairing_requests (id, platform, user, at, request) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        request.id,
        request.platform,
        request.user,
        request.at.as_millis(),
        json(request)?
    ])?;
    Ok(Asked::Kept)
}

fn asked_last(conn: &Connection, request: &PairingRequest) -> Result<Option<i64>, Failure> {
    let at = conn
        .prepare_cached("SELECT at FROM pairing_asked WHERE platform = ?1 AND user = ?2")?
        .query_row([&request.platform, &request.user], |row| row.get(0));
    Ok(at.optional()?)
}

pub(super) fn requests(
    conn: &Connection,
    platform: Option<&str>,
    since: Timestamp,
) -> Result<Vec<PairingRequest>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT request FROM pairing_requests WHERE (?1 IS NULL OR platform = ?1) AND at >= ?2
         ORDER BY at, id",
    )?;
    let mut rows = statement.query(params![platform, since.as_millis()])?;
    let mut requests = Vec::new();
    while let Some(row) = rows.next()? {
        requests.push(from_json(&row.get::<_, String>(0)?, "a pairing request")?);
    }
    Ok(requests)
}

pub(super) fn approve(
    conn: &Connection,
    request: &str,
    at: Timestamp,
) -> Result<Option<PairedPerson>, Failure> {
    let found = conn
        .prepare_cached("DELETE FROM pairing_requests WHERE id = ?1 RETURNING request")?
        .query_row([request], |row| row.get::<_, String>(0))
        .optional()?;
    let Some(found) = found else {
        return Ok(None);
    };
    let request: PairingRequest = from_json(&found, "a pairing request")?;
    let person = PairedPerson {
        platform: request.platform,
        user: request.user,
        name: request.name,
        at,
    };
    pair(conn, &person)?;
    Ok(Some(person))
}

pub(super) fn pair(conn: &Connection, person: &PairedPerson) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO paired_people (platform, user, name, at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (platform, user) DO UPDATE SET name = coalesce(excluded.name, name)",
    )?
    .execute(params![
        person.platform,
        person.user,
        person.name,
        person.at.as_millis()
    ])?;
    Ok(())
}

pub(super) fn paired(
    conn: &Connection,
    platform: Option<&str>,
) -> Result<Vec<PairedPerson>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT platform, user, name, at FROM paired_people WHERE ?1 IS NULL OR platform = ?1
         ORDER BY at, platform, user",
    )?;
    let people = statement.query_map([platform], person)?;
    Ok(people.collect::<Result<_, _>>()?)
}

fn person(row: &Row<'_>) -> rusqlite::Result<PairedPerson> {
    Ok(PairedPerson {
        platform: row.get(0)?,
        user: row.get(1)?,
        name: row.get(2)?,
        at: Timestamp::from_millis(row.get(3)?),
    })
}

pub(super) fn is_paired(conn: &Connection, platform: &str, user: &str) -> Result<bool, Failure> {
    let is_paired = conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM paired_people WHERE platform = ?1 AND user = ?2)",
        )?
        .query_row([platform, user], |row| row.get(0));
    Ok(is_paired?)
}

pub(super) fn revoke(conn: &Connection, platform: &str, user: &str) -> Result<bool, Failure> {
    let revoked = conn
        .prepare_cached("DELETE FROM paired_people WHERE platform = ?1 AND user = ?2")?
        .execute([platform, user])?;
    Ok(revoked > 0)
}

pub(super) fn clear_requests(conn: &Connection, platform: Option<&str>) -> Result<u64, Failure> {
    let cleared = conn
        .prepare_cached("DELETE FROM pairing_requests WHERE ?1 IS NULL OR platform = ?1")?
        .execute([platform])?;
    Ok(cleared as u64)
}

pub(super) fn note_failure(
    conn: &Connection,
    platform: &str,
    at: Timestamp,
    since: Timestamp,
) -> Result<u64, Failure> {
    conn.prepare_cached("DELETE FROM pairing_failures WHERE at < ?1")?
        .execute([since.as_millis()])?;
    conn.prepare_cached("INSERT INTO pairing_failures (platform, at) VALUES (?1, ?2)")?
        .execute(params![platform, at.as_millis()])?;
    failures(conn, platform, since)
}

pub(super) fn failures(
    conn: &Connection,
    platform: &str,
    since: Timestamp,
) -> Result<u64, Failure> {
    let failures = conn
        .prepare_cached("SELECT count(*) FROM pairing_failures WHERE platform = ?1 AND at >= ?2")?
        .query_row(params![platform, since.as_millis()], |row| unsigned(row, 0));
    Ok(failures?)
}
