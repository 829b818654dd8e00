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
        let state: String = row.get(1)?;
        let state = serde_json::from_str(&state)
            .map_err(|error| Failure::Unreadable(format!("the state of a tool: {error}")))?;
        // Later turns come later.
        states.insert(row.get(0)?, state);
    }
    Ok(states)
}
