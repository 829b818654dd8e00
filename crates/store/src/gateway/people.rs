//! Which accounts are one person, and what people had.

use hermes_core::{Had, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;
use crate::sessions::unsigned;

/// What people had longer ago counts for no limit.
const KEPT_MS: i64 = 2 * 24 * 3600 * 1000;

pub(super) fn person(conn: &Connection, account: &str) -> Result<Option<String>, Failure> {
    let person = conn
        .prepare_cached(
            "SELECT person FROM links WHERE account = ?1
             UNION ALL SELECT person FROM links WHERE person = ?1 LIMIT 1",
        )?
        .query_row([account], |row| row.get(0));
    Ok(person.optional()?)
}

pub(super) fn link(
    conn: &Connection,
    account: &str,
    person: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    // Whoever was linked to the account goes with it.
    conn.prepare_cached("UPDATE links SET person = ?2 WHERE person = ?1")?
        .execute([account, person])?;
    conn.prepare_cached(
        "INSERT INTO links (account, person, at) VALUES (?1, ?2, ?3)
         ON CONFLICT (account) DO UPDATE SET person = excluded.person, at = excluded.at",
    )?
    .execute(params![account, person, at.as_millis()])?;
    conn.prepare_cached("DELETE FROM links WHERE account = person")?
        .execute([])?;
    Ok(())
}

pub(super) fn unlink(conn: &Connection, account: &str) -> Result<bool, Failure> {
    let gone = conn
        .prepare_cached("DELETE FROM links WHERE account = ?1 OR person = ?1")?
        .execute([account])?;
    Ok(gone > 0)
}

pub(super) fn accounts(conn: &Connection, person: &str) -> Result<Vec<String>, Failure> {
    let mut accounts = vec![person.to_owned()];
    let mut statement =
        conn.prepare_cached("SELECT account FROM links WHERE person = ?1 ORDER BY at, account")?;
    for account in statement.query_map([person], |row| row.get(0))? {
        accounts.push(account?);
    }
    Ok(accounts)
}

pub(super) fn note_use(
    conn: &Connection,
    person: &str,
    at: Timestamp,
    had: Had,
) -> Result<(), Failure> {
    let at = at.as_millis();
    conn.prepare_cached("DELETE FROM person_use WHERE person = ?1 AND at < ?2")?
        .execute(params![person, at.saturating_sub(KEPT_MS)])?;
    conn.prepare_cached(
        "INSERT INTO person_use (person, at, turns, micro_usd) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        person,
        at,
        had.turns.cast_signed(),
        had.micro_usd.cast_signed()
    ])?;
    Ok(())
}

pub(super) fn had(conn: &Connection, person: &str, since: Timestamp) -> Result<Had, Failure> {
    let had = conn
        .prepare_cached(
            "SELECT coalesce(sum(turns), 0), coalesce(sum(micro_usd), 0) FROM person_use
             WHERE person = ?1 AND at >= ?2",
        )?
        .query_row(params![person, since.as_millis()], |row| {
            Ok(Had {
                turns: unsigned(row, 0)?,
                micro_usd: unsigned(row, 1)?,
            })
        })?;
    Ok(had)
}
