//! Words that wait for the turn that runs. What waits is taken once: a second taking is refused with its whole commit.

use hermes_core::{QueuedId, QueuedMessage, UserMessage, WaitsFor};
use rusqlite::{Connection, params};

use crate::failure::Failure;

pub(crate) fn add(
    conn: &Connection,
    session: i64,
    at: i64,
    queued: &QueuedMessage,
) -> Result<(), Failure> {
    let message = serde_json::to_string(&queued.message)
        .map_err(|error| Failure::Refused(format!("a message cannot be written: {error}")))?;
    conn.prepare_cached(
        "INSERT INTO queued (session, id, waits_for, at, message) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        session,
        queued.id.as_str(),
        name_of(queued.waits_for),
        at,
        message
    ])?;
    Ok(())
}

pub(crate) fn take(conn: &Connection, session: i64, queued: &[QueuedId]) -> Result<(), Failure> {
    let mut delete = conn.prepare_cached("DELETE FROM queued WHERE session = ?1 AND id = ?2")?;
    for id in queued {
        if delete.execute(params![session, id.as_str()])? == 0 {
            return Err(Failure::Refused(format!("no words `{id}` wait")));
        }
    }
    Ok(())
}

pub(crate) fn all(conn: &Connection, session: i64) -> Result<Vec<QueuedMessage>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT id, waits_for, message FROM queued WHERE session = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([session])?;
    let mut queued = Vec::new();
    while let Some(row) = rows.next()? {
        let message: String = row.get(2)?;
        let message: UserMessage = serde_json::from_str(&message)
            .map_err(|error| Failure::Unreadable(format!("words that wait: {error}")))?;
        queued.push(QueuedMessage {
            id: row.get::<_, String>(0)?.into(),
            waits_for: waits_for(&row.get::<_, String>(1)?)?,
            message,
        });
    }
    Ok(queued)
}

fn name_of(waits_for: WaitsFor) -> &'static str {
    match waits_for {
        WaitsFor::NextTurn => "next_turn",
        WaitsFor::ToolResult => "tool_result",
    }
}

fn waits_for(name: &str) -> Result<WaitsFor, Failure> {
    [WaitsFor::NextTurn, WaitsFor::ToolResult]
        .into_iter()
        .find(|one| name_of(*one) == name)
        .ok_or_else(|| Failure::Unreadable(format!("words that wait for `{name}`")))
}
