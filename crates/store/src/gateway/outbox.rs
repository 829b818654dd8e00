//! What is to be said on platforms. The rules of an entry are [`OutboxEntry::apply`]; here it is read and written.

use hermes_core::{
    Address, Answers, Closed, DeadAddress, NewOutboxEntry, OutboxChange, OutboxDepth, OutboxEntry,
    OutboxId, OutboxStep, Stage, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{from_json, inbox, json};
use crate::failure::Failure;
use crate::sessions::{count, unsigned};

pub(super) fn put(
    conn: &Connection,
    new: &NewOutboxEntry,
    answers: &Answers,
) -> Result<OutboxId, Failure> {
    inbox::close_under(conn, answers, Closed::Answered, new.at)?;
    if let Some(known) = by_key(conn, &new.key)? {
        return Ok(known.id);
    }
    // Its number is part of it, and known only once it is there.
    conn.prepare_cached(
        "INSERT INTO outbox (key, platform, stage, updated, entry) VALUES (?1, ?2, '', 0, '')",
    )?
    .execute(params![new.key, new.to.platform])?;
    let id = OutboxId(conn.last_insert_rowid().unsigned_abs());
    write(conn, &new.clone().begin(id))?;
    Ok(id)
}

pub(super) fn step(
    conn: &Connection,
    id: OutboxId,
    step: &OutboxStep,
    answers: &Answers,
) -> Result<OutboxEntry, Failure> {
    let mut entry =
        entry(conn, id)?.ok_or_else(|| Failure::Refused(format!("no entry {}", id.0)))?;
    inbox::close_under(conn, answers, Closed::Answered, step.at)?;
    entry.apply(step.clone()).map_err(Failure::Refused)?;
    write(conn, &entry)?;
    remember_life(conn, &entry, step)?;
    Ok(entry)
}

/// An address is dead once it refuses us, and alive again once something arrives.
fn remember_life(conn: &Connection, entry: &OutboxEntry, step: &OutboxStep) -> Result<(), Failure> {
    let address = json(&entry.to)?;
    match &step.what {
        OutboxChange::GiveUp {
            error,
            is_dead: true,
        } => {
            conn.prepare_cached(
                "INSERT INTO dead_addresses (address, since, error) VALUES (?1, ?2, ?3)
                 ON CONFLICT (address) DO UPDATE SET error = excluded.error",
            )?
            .execute(params![address, step.at.as_millis(), error])?;
        }
        OutboxChange::Arrived { .. } => {
            conn.prepare_cached("DELETE FROM dead_addresses WHERE address = ?1")?
                .execute([address])?;
        }
        _ => {}
    }
    Ok(())
}

/// An address lives again; what died with it since then goes on.
pub(super) fn revive(
    conn: &Connection,
    to: &Address,
    since: Timestamp,
    at: Timestamp,
) -> Result<Vec<OutboxEntry>, Failure> {
    conn.prepare_cached("DELETE FROM dead_addresses WHERE address = ?1")?
        .execute([json(to)?])?;
    let mut statement = conn.prepare_cached(
        "SELECT entry FROM outbox WHERE stage IN ('sent', 'failed') AND stage = 'failed' AND updated >= ?1 AND platform = ?2
         ORDER BY number",
    )?;
    let failed = entries(statement.query(params![since.as_millis(), to.platform])?)?;
    let died = failed
        .into_iter()
        .filter(|entry| entry.is_dead && entry.to == *to);
    let mut revived = Vec::new();
    for mut entry in died {
        entry.revive(at);
        write(conn, &entry)?;
        revived.push(entry);
    }
    Ok(revived)
}

fn write(conn: &Connection, entry: &OutboxEntry) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE outbox SET stage = ?2, updated = ?3, entry = ?4 WHERE number = ?1",
    )?
    .execute(params![
        count(entry.id.0),
        entry.stage.name(),
        entry.updated.as_millis(),
        json(entry)?
    ])?;
    Ok(())
}

pub(super) fn entry(conn: &Connection, id: OutboxId) -> Result<Option<OutboxEntry>, Failure> {
    let text = conn
        .prepare_cached("SELECT entry FROM outbox WHERE number = ?1")?
        .query_row([count(id.0)], |row| row.get::<_, String>(0));
    text.optional()?.as_deref().map(read).transpose()
}

pub(super) fn by_key(conn: &Connection, key: &str) -> Result<Option<OutboxEntry>, Failure> {
    let text = conn
        .prepare_cached("SELECT entry FROM outbox WHERE key = ?1")?
        .query_row([key], |row| row.get::<_, String>(0));
    text.optional()?.as_deref().map(read).transpose()
}

fn read(text: &str) -> Result<OutboxEntry, Failure> {
    from_json(text, "an entry of the outbox")
}

pub(super) fn open(
    conn: &Connection,
    platform: &str,
    max: usize,
) -> Result<Vec<OutboxEntry>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT entry FROM outbox WHERE platform = ?1 AND stage IN ('writing', 'pending', 'sending')
         ORDER BY number LIMIT ?2",
    )?;
    let rows = statement.query(params![platform, count(max as u64)])?;
    entries(rows)
}

pub(super) fn next(conn: &Connection, platform: &str) -> Result<Vec<OutboxEntry>, Failure> {
    // The index of what is open names all three stages: it is used only where they all stand.
    let mut statement = conn.prepare_cached(
        "SELECT entry FROM outbox WHERE number IN (
             SELECT min(number) FROM outbox
             WHERE platform = ?1 AND stage IN ('writing', 'pending', 'sending') AND stage != 'writing'
             GROUP BY json_extract(entry, '$.to'), json_extract(entry, '$.account'))
         ORDER BY number",
    )?;
    entries(statement.query([platform])?)
}

fn entries(mut rows: rusqlite::Rows<'_>) -> Result<Vec<OutboxEntry>, Failure> {
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(read(&row.get::<_, String>(0)?)?);
    }
    Ok(entries)
}

pub(super) fn dead_addresses(conn: &Connection) -> Result<Vec<DeadAddress>, Failure> {
    let mut statement =
        conn.prepare_cached("SELECT address, since, error FROM dead_addresses ORDER BY since")?;
    let mut rows = statement.query([])?;
    let mut dead = Vec::new();
    while let Some(row) = rows.next()? {
        let to: Address = from_json(&row.get::<_, String>(0)?, "an address")?;
        dead.push(DeadAddress {
            to,
            since: Timestamp::from_millis(row.get(1)?),
            error: row.get(2)?,
        });
    }
    Ok(dead)
}

pub(super) fn depth(conn: &Connection) -> Result<OutboxDepth, Failure> {
    let open = conn
        .prepare_cached(
            "SELECT count(*), min(updated) FROM outbox WHERE stage IN ('writing', 'pending', 'sending')",
        )?
        .query_row([], |row| {
            Ok((unsigned(row, 0)?, row.get::<_, Option<i64>>(1)?))
        })?;
    let failed = conn
        .prepare_cached(
            "SELECT count(*) FROM outbox
             WHERE stage = ?1 OR (stage = 'sent' AND json_extract(entry, '$.refused') IS NOT NULL)",
        )?
        .query_row([Stage::Failed.name()], |row| unsigned(row, 0))?;
    Ok(OutboxDepth {
        open: open.0,
        failed,
        oldest: open.1.map(Timestamp::from_millis),
    })
}

pub(super) fn forget(conn: &Connection, before: Timestamp) -> Result<u64, Failure> {
    let forgotten = conn
        .prepare_cached("DELETE FROM outbox WHERE stage IN ('sent', 'failed') AND updated < ?1")?
        .execute([before.as_millis()])?;
    Ok(forgotten as u64)
}
