//! What every request of a session begins with, per epoch. Many sessions begin with the same: each text is stored once.

use hermes_core::Prefix;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::failure::Failure;

/// Writes what requests begin with from an epoch on.
pub(crate) fn put(
    conn: &Connection,
    session: i64,
    epoch: i64,
    prefix: &Prefix,
) -> Result<(), Failure> {
    let tools = serde_json::to_string(&prefix.tools)
        .map_err(|error| Failure::Refused(format!("the tools cannot be written: {error}")))?;
    let (system, tools) = (text(conn, &prefix.system)?, text(conn, &tools)?);
    conn.prepare_cached(
        "INSERT INTO prefixes (session, epoch, system, tools) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![session, epoch, system, tools])?;
    Ok(())
}

/// What requests begin with in the session's epoch.
pub(crate) fn get(conn: &Connection, session: i64) -> Result<Prefix, Failure> {
    let (system, tools): (String, String) = conn
        .prepare_cached(
            "SELECT system.text, tools.text FROM prefixes p
             JOIN sessions s ON s.number = p.session AND s.epoch >= p.epoch
             JOIN prefix_texts system ON system.number = p.system
             JOIN prefix_texts tools ON tools.number = p.tools
             WHERE s.number = ?1 ORDER BY p.epoch DESC LIMIT 1",
        )?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tools = serde_json::from_str(&tools)
        .map_err(|error| Failure::Unreadable(format!("the tools of a session: {error}")))?;
    Ok(Prefix { system, tools })
}

/// Forgets texts that no session begins with any more.
pub(crate) fn forget_unused(conn: &Connection) -> Result<(), Failure> {
    conn.execute(
        "DELETE FROM prefix_texts WHERE number NOT IN
             (SELECT system FROM prefixes UNION ALL SELECT tools FROM prefixes)",
        [],
    )?;
    Ok(())
}

/// The number of a text, which is written when it is new.
fn text(conn: &Connection, text: &str) -> Result<i64, Failure> {
    let known = conn
        .prepare_cached("SELECT number FROM prefix_texts WHERE text = ?1")?
        .query_row([text], |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    conn.prepare_cached("INSERT INTO prefix_texts (text) VALUES (?1)")?
        .execute([text])?;
    Ok(conn.last_insert_rowid())
}
