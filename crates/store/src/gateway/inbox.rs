//! What platforms said.

use hermes_core::{
    Accepted, Answers, Closed, InboxDepth, InboxEntry, InboxId, NewUpdate, NewUpdates, Taken,
    Timestamp, TurnId,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{from_json, json, leases};
use crate::failure::Failure;
use crate::sessions::{count, unsigned};

pub(super) fn accept(conn: &Connection, batch: &NewUpdates) -> Result<Vec<Accepted>, Failure> {
    let accepted: Result<Vec<_>, _> = batch
        .updates
        .iter()
        .map(|update| insert(conn, batch, update))
        .collect();
    if let Some(cursor) = &batch.cursor {
        conn.prepare_cached(
            "INSERT INTO cursors (platform, account, cursor) VALUES (?1, ?2, ?3)
             ON CONFLICT (platform, account) DO UPDATE SET cursor = excluded.cursor",
        )?
        .execute(params![batch.platform, batch.account, cursor])?;
    }
    accepted
}

fn insert(conn: &Connection, batch: &NewUpdates, update: &NewUpdate) -> Result<Accepted, Failure> {
    let inserted = conn
        .prepare_cached(
            "INSERT INTO inbox (platform, account, update_id, lane, received, sent, raw, incoming)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            batch.platform,
            batch.account,
            update.update,
            update.lane,
            batch.received.as_millis(),
            update.sent.map(Timestamp::as_millis),
            json(&update.raw)?,
            json(&update.incoming)?,
        ])?;
    Ok(match inserted {
        0 => Accepted::Known,
        _ => Accepted::New(InboxId(conn.last_insert_rowid().unsigned_abs())),
    })
}

pub(super) fn cursor(
    conn: &Connection,
    platform: &str,
    account: &str,
) -> Result<Option<String>, Failure> {
    let cursor = conn
        .prepare_cached("SELECT cursor FROM cursors WHERE platform = ?1 AND account = ?2")?
        .query_row([platform, account], |row| row.get(0));
    Ok(cursor.optional()?)
}

pub(super) fn open_lanes(conn: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT lane FROM inbox WHERE closed IS NULL GROUP BY lane ORDER BY min(number)",
    )?;
    let lanes = statement.query_map([], |row| row.get(0))?;
    Ok(lanes.collect::<Result<_, _>>()?)
}

pub(super) fn open_entries(
    conn: &Connection,
    lane: &str,
    max: usize,
) -> Result<Vec<InboxEntry>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT number, platform, account, lane, received, sent, incoming, session, turn
         FROM inbox WHERE lane = ?1 AND closed IS NULL ORDER BY number LIMIT ?2",
    )?;
    let mut rows = statement.query(params![lane, count(max as u64)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> Result<InboxEntry, Failure> {
    let incoming: String = row.get(6)?;
    let session: Option<String> = row.get(7)?;
    let turn: Option<String> = row.get(8)?;
    Ok(InboxEntry {
        id: InboxId(unsigned(row, 0)?),
        platform: row.get(1)?,
        account: row.get(2)?,
        lane: row.get(3)?,
        received: Timestamp::from_millis(row.get(4)?),
        sent: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
        incoming: from_json(&incoming, "an entry of the inbox")?,
        taken: session.zip(turn).map(|(session, turn)| Taken {
            session: session.into(),
            turn: turn.into(),
        }),
    })
}

/// Takes entries for a turn that begins with them. One that another turn has, or that is closed, refuses the whole commit.
pub(crate) fn take(
    conn: &Connection,
    entries: &[InboxId],
    session: i64,
    turn: &TurnId,
) -> Result<(), Failure> {
    let mut update = conn.prepare_cached(
        "UPDATE inbox SET session = (SELECT id FROM sessions WHERE number = ?2), turn = ?3
         WHERE number = ?1 AND closed IS NULL AND turn IS NULL",
    )?;
    for InboxId(id) in entries {
        if update.execute(params![count(*id), session, turn.as_str()])? == 0 {
            return Err(Failure::Refused(format!(
                "entry {id} of the inbox does not wait any more"
            )));
        }
    }
    Ok(())
}

/// The same for a lane, if it still has its lease.
pub(super) fn close_under(
    conn: &Connection,
    closing: &Answers,
    how: Closed,
    at: Timestamp,
) -> Result<(), Failure> {
    if let Some(lease) = &closing.lease {
        leases::require(conn, lease)?;
    }
    close(conn, &closing.entries, how, at)
}

pub(crate) fn close(
    conn: &Connection,
    entries: &[InboxId],
    how: Closed,
    at: Timestamp,
) -> Result<(), Failure> {
    let mut update = conn.prepare_cached(
        "UPDATE inbox SET closed = ?2, closed_at = ?3 WHERE number = ?1 AND closed IS NULL",
    )?;
    for InboxId(id) in entries {
        update.execute(params![count(*id), name_of(how), at.as_millis()])?;
    }
    Ok(())
}

fn name_of(how: Closed) -> &'static str {
    match how {
        Closed::Answered => "answered",
        Closed::Handled => "handled",
        Closed::Joined => "joined",
        Closed::Ignored => "ignored",
        Closed::Expired => "expired",
    }
}

pub(super) fn depth(conn: &Connection) -> Result<InboxDepth, Failure> {
    let depth = conn
        .prepare_cached("SELECT count(*), min(received) FROM inbox WHERE closed IS NULL")?
        .query_row([], |row| {
            Ok(InboxDepth {
                open: unsigned(row, 0)?,
                oldest: row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis),
            })
        });
    Ok(depth?)
}

pub(super) fn forget_raw(conn: &Connection, before: Timestamp) -> Result<u64, Failure> {
    let forgotten = conn
        .prepare_cached(
            "UPDATE inbox SET raw = NULL, incoming = '' WHERE closed IS NOT NULL AND raw IS NOT NULL
             AND closed_at < ?1",
        )?
        .execute([before.as_millis()])?;
    Ok(forgotten as u64)
}
