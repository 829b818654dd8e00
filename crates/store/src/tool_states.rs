//! What tools keep for their next call in a session. It belongs to a turn, and goes when that is taken back.

use hermes_core::{ToolStates, TurnId};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::failure::Failure;

pub(crate) fn keep(
    conn: &Connection,
    session: i64,
    turn: &TurnId,
    tool: &str,
    state: &Value,
) -> Result<(), Failure> {
    let number: Option<i64> = conn
        .prepare_cached(
            "SELECT number FROM turns WHERE session = ?1 AND id = ?2 AND taken_back IS NULL",
        )?
        .query_row(params![session, turn.as_str()], |row| row.get(0))
        .optional()?;
    let number = number
        .ok_or_else(|| Failure::Refused(format!("turn `{turn}` is not one of the session")))?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO tool_states (session, tool, turn, state) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![session, tool, number, state.to_string()])?;
    Ok(())
}

/// Reads what counts now.
pub(crate) fn all(conn: &Connection, session: i64) -> Result<ToolStates, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT s.tool, s.state FROM tool_states s JOIN turns t ON t.number = s.turn
         WHERE s.session = ?1 AND t.taken_back IS NULL ORDER BY s.turn",
    )?;
    let mut rows = statement.query([session])?;
    let mut states = ToolStates::new();
    while let Some(row) = rows.next()? {
        // Later turns come later.
        states.insert(row.get(0)?, state(row.get(1)?)?);
    }
    Ok(states)
}

/// Reads what was kept in each turn that was not taken back.
pub(crate) fn by_turn(
    conn: &Connection,
    session: i64,
) -> Result<Vec<(TurnId, String, Value)>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT t.id, s.tool, s.state FROM tool_states s JOIN turns t ON t.number = s.turn
         WHERE s.session = ?1 AND t.taken_back IS NULL ORDER BY s.turn, s.tool",
    )?;
    let mut rows = statement.query([session])?;
    let mut kept = Vec::new();
    while let Some(row) = rows.next()? {
        let turn: String = row.get(0)?;
        kept.push((turn.into(), row.get(1)?, state(row.get(2)?)?));
    }
    Ok(kept)
}

fn state(json: String) -> Result<Value, Failure> {
    serde_json::from_str(&json)
        .map_err(|error| Failure::Unreadable(format!("the state of a tool: {error}")))
}
