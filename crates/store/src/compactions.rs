//! Which part of a conversation a summary stands for. A compaction opens an epoch of its session; nothing is deleted.

use hermes_core::{Message, Prefix};
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;

/// The compaction that counts now.
pub(crate) struct Current {
    pub(crate) summary: Message,
    /// The last message that the summary stands for.
    pub(crate) covers: i64,
}

/// Has a summary stand for everything but the last messages.
pub(crate) fn compact(
    conn: &Connection,
    session: i64,
    at: i64,
    summary: &Message,
    kept: u32,
) -> Result<i64, Failure> {
    let covers = covered(conn, session, kept)?;
    if current(conn, session)?.is_some_and(|current| current.covers >= covers) {
        return Err(Failure::Refused(
            "there is nothing new to compact: the last summary stands for all of it".into(),
        ));
    }
    let summary = serde_json::to_string(summary)
        .map_err(|error| Failure::Refused(format!("the summary cannot be written: {error}")))?;
    let epoch: i64 = conn
        .prepare_cached("SELECT coalesce(max(epoch), 1) + 1 FROM compactions WHERE session = ?1")?
        .query_row([session], |row| row.get(0))?;
    conn.prepare_cached(
        "INSERT INTO compactions (session, epoch, covers, summary, at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![session, epoch, covers, summary, at])?;
    set_epoch(conn, session, epoch)?;
    Ok(epoch)
}

/// Writes what requests begin with from an epoch on, where that has changed.
pub(crate) fn set_prefix(
    conn: &Connection,
    session: i64,
    epoch: i64,
    prefix: &Prefix,
) -> Result<(), Failure> {
    let tools = serde_json::to_string(&prefix.tools)
        .map_err(|error| Failure::Refused(format!("the tools cannot be written: {error}")))?;
    conn.prepare_cached(
        "INSERT INTO prefixes (session, epoch, system, tools) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![session, epoch, prefix.system, tools])?;
    Ok(())
}

/// Takes back what covers a message that was taken back, and goes on with the summary before it, if there is one.
pub(crate) fn revert(conn: &Connection, session: i64, at: i64, first: i64) -> Result<(), Failure> {
    let reverted = conn
        .prepare_cached(
            "UPDATE compactions SET reverted = ?3
             WHERE session = ?1 AND covers >= ?2 AND reverted IS NULL",
        )?
        .execute(params![session, first, at])?;
    if reverted == 0 {
        return Ok(());
    }
    let epoch: i64 = conn
        .prepare_cached(
            "SELECT coalesce(max(epoch), 1) FROM compactions
             WHERE session = ?1 AND reverted IS NULL",
        )?
        .query_row([session], |row| row.get(0))?;
    set_epoch(conn, session, epoch)
}

pub(crate) fn current(conn: &Connection, session: i64) -> Result<Option<Current>, Failure> {
    let found = conn
        .prepare_cached(
            "SELECT summary, covers FROM compactions
             WHERE session = ?1 AND reverted IS NULL ORDER BY epoch DESC LIMIT 1",
        )?
        .query_row([session], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .optional()?;
    let Some((summary, covers)) = found else {
        return Ok(None);
    };
    let summary = serde_json::from_str(&summary)
        .map_err(|error| Failure::Unreadable(format!("the summary of a conversation: {error}")))?;
    Ok(Some(Current { summary, covers }))
}

/// Returns the last message before the ones that are kept.
fn covered(conn: &Connection, session: i64, kept: u32) -> Result<i64, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT m.number, m.role FROM messages m JOIN turns t ON t.number = m.turn
         WHERE m.session = ?1 AND t.taken_back IS NULL ORDER BY m.number DESC LIMIT ?2",
    )?;
    let mut rows = statement.query(params![session, i64::from(kept) + 1])?;
    let mut first_kept: Option<String> = None;
    let mut covered = None;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen < kept {
            first_kept = Some(row.get(1)?);
        } else {
            covered = Some(row.get(0)?);
        }
        seen += 1;
    }
    if first_kept.as_deref() == Some("tool") {
        return Err(Failure::Refused(
            "what is kept begins with a result whose call would be gone".into(),
        ));
    }
    covered.ok_or_else(|| {
        Failure::Refused(format!(
            "{kept} messages cannot be kept and something be summarised: there are {seen}"
        ))
    })
}

fn set_epoch(conn: &Connection, session: i64, epoch: i64) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE sessions SET epoch = ?2 WHERE number = ?1")?
        .execute([session, epoch])?;
    Ok(())
}
