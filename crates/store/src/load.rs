//! Reads a session back: as the turn loop needs it, as a transcript, as what was said since, and its end.

use hermes_core::history::in_call_order;
use hermes_core::{
    CallId, Effect, Ending, Intent, LoadedSession, Message, OpenTurn, SessionId, Spoken,
    SpokenFrom, SpokenQuery, Timestamp, TranscriptLine, TurnEnd,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;
use crate::stored::{Columns, decode};
use crate::{compactions, prefixes, queued, sessions, tool_states};

pub(crate) fn load(conn: &Connection, session: &SessionId) -> Result<LoadedSession, Failure> {
    let number = sessions::require_number(conn, session)?;
    Ok(LoadedSession {
        record: sessions::read_record(conn, session)?,
        prefix: prefixes::get(conn, number)?,
        messages: seen_by_model(conn, number)?,
        tool_states: tool_states::all(conn, number)?,
        queued: queued::all(conn, number)?,
        open_turn: open_turn(conn, number)?,
        last_end: last_end(conn, number)?,
    })
}

/// Reads what a model sees: everything, or the summary and what came after it.
fn seen_by_model(conn: &Connection, session: i64) -> Result<Vec<Message>, Failure> {
    let Some(mut compaction) = compactions::current(conn, session)? else {
        return Ok(in_call_order(messages(conn, session, 0)?));
    };
    let rest = numbered(conn, session, compaction.covers + 1)?;
    let as_seen = rest.into_iter().map(|(number, message)| {
        let shortened = compaction.shortened.remove(&number);
        shortened.unwrap_or(message)
    });
    let rest = in_call_order(as_seen.collect());
    Ok(compaction.summary.into_iter().chain(rest).collect())
}

/// Lines stand as they were stored: results in the order they came.
pub(crate) fn transcript(
    conn: &Connection,
    session: &SessionId,
) -> Result<Vec<TranscriptLine>, Failure> {
    let number = sessions::require_number(conn, session)?;
    let mut statement = conn.prepare_cached(
        "SELECT m.role, m.text, m.parts, m.origin, m.at, t.id
         FROM messages m LEFT JOIN turns t ON t.number = m.turn
         WHERE m.session = ?1 AND t.taken_back IS NULL ORDER BY m.number",
    )?;
    let mut rows = statement.query([number])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.push(TranscriptLine {
            at: Timestamp::from_millis(row.get(4)?),
            turn: row.get::<_, Option<String>>(5)?.map(Into::into),
            message: message(row)?,
        });
    }
    Ok(lines)
}

pub(crate) fn spoken(conn: &Connection, query: &SpokenQuery) -> Result<Vec<Spoken>, Failure> {
    let session = match &query.session {
        Some(session) => Some(sessions::require_number(conn, session)?),
        None => None,
    };
    let place = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
    let (after, before, order) = match query.from {
        SpokenFrom::After(after) => (place(after), i64::MAX, "ASC"),
        SpokenFrom::Before(before) => (0, place(before), "DESC"),
        SpokenFrom::End => (0, i64::MAX, "DESC"),
    };
    // Two statements, so that each finds its rows by an index.
    let scope = match session {
        Some(_) => "m.session = ?1",
        None => "?1 IS NULL",
    };
    let roles = if query.with_results {
        "TRUE"
    } else {
        "m.role <> 'tool'"
    };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT m.role, m.text, m.parts, m.origin, m.at, m.number, s.id
         FROM messages m
             JOIN sessions s ON s.number = m.session
             LEFT JOIN turns t ON t.number = m.turn
         WHERE {scope} AND m.number > ?2 AND m.number < ?3 AND {roles} AND t.taken_back IS NULL
         ORDER BY m.number {order} LIMIT ?4"
    ))?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![session, after, before, limit])?;
    let mut spoken = Vec::new();
    while let Some(row) = rows.next()? {
        spoken.push(one_spoken(row)?);
    }
    if order == "DESC" {
        spoken.reverse();
    }
    Ok(spoken)
}

pub(crate) fn message_at(conn: &Connection, place: u64) -> Result<Option<Spoken>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT m.role, m.text, m.parts, m.origin, m.at, m.number, s.id
         FROM messages m
             JOIN sessions s ON s.number = m.session
             LEFT JOIN turns t ON t.number = m.turn
         WHERE m.number = ?1 AND t.taken_back IS NULL",
    )?;
    let mut rows = statement.query([i64::try_from(place).unwrap_or(i64::MAX)])?;
    rows.next()?.map(one_spoken).transpose()
}

/// Reads the columns of [`message`], then time, number and session.
fn one_spoken(row: &rusqlite::Row<'_>) -> Result<Spoken, Failure> {
    Ok(Spoken {
        place: row.get::<_, i64>(5)?.unsigned_abs(),
        session: row.get::<_, String>(6)?.into(),
        at: Timestamp::from_millis(row.get(4)?),
        message: message(row)?,
    })
}

pub(crate) fn ending(
    conn: &Connection,
    session: &SessionId,
    exchanges: usize,
) -> Result<Ending, Failure> {
    let number = sessions::require_number(conn, session)?;
    let record = sessions::read_record(conn, session)?;
    let messages = match start_of_last(conn, number, exchanges)? {
        Some(first) => in_call_order(messages(conn, number, first)?),
        None => Vec::new(),
    };
    let earlier = record.messages.saturating_sub(messages.len() as u64);
    Ok(Ending {
        record,
        messages,
        earlier,
    })
}

/// Finds the message that the last exchanges begin with: as many as there are, up to so many.
fn start_of_last(
    conn: &Connection,
    session: i64,
    exchanges: usize,
) -> Result<Option<i64>, Failure> {
    let first = conn
        .prepare_cached(
            "SELECT min(number) FROM (
                 SELECT m.number FROM messages m LEFT JOIN turns t ON t.number = m.turn
                 WHERE m.session = ?1 AND m.role = 'user' AND t.taken_back IS NULL
                 ORDER BY m.number DESC LIMIT ?2)",
        )?
        .query_row(
            params![session, i64::try_from(exchanges).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )?;
    Ok(first)
}

/// Finds what the turn began with that is so many from the end, or the first there is.
pub(crate) fn turn_from_end(
    conn: &Connection,
    session: &SessionId,
    turns: u32,
) -> Result<Option<(u32, Message)>, Failure> {
    let number = sessions::require_number(conn, session)?;
    let (count, turn): (u32, Option<i64>) = conn
        .prepare_cached(
            "SELECT count(*), min(number) FROM (
                 SELECT number FROM turns WHERE session = ?1 AND taken_back IS NULL
                 ORDER BY number DESC LIMIT ?2)",
        )?
        .query_row(params![number, turns], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut statement = conn.prepare_cached(
        "SELECT role, text, parts, origin FROM messages
         WHERE session = ?1 AND turn = ?2 ORDER BY number LIMIT 1",
    )?;
    let mut rows = statement.query(params![number, turn])?;
    match rows.next()? {
        Some(row) => Ok(Some((count, message(row)?))),
        None => Ok(None),
    }
}

/// Reads the messages from a number on.
fn messages(conn: &Connection, session: i64, first: i64) -> Result<Vec<Message>, Failure> {
    let numbered = numbered(conn, session, first)?;
    Ok(numbered.into_iter().map(|(_, message)| message).collect())
}

/// Reads so many messages from the end, oldest first.
pub(crate) fn last(conn: &Connection, session: i64, count: u64) -> Result<Vec<Message>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT role, text, parts, origin FROM messages
         WHERE session = ?1
             AND turn NOT IN (SELECT number FROM turns WHERE session = ?1 AND taken_back IS NOT NULL)
         ORDER BY number DESC LIMIT ?2",
    )?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let mut rows = statement.query([session, count])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(message(row)?);
    }
    messages.reverse();
    Ok(messages)
}

/// The same with their numbers.
pub(crate) fn numbered(
    conn: &Connection,
    session: i64,
    first: i64,
) -> Result<Vec<(i64, Message)>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT role, text, parts, origin, number FROM messages
         WHERE session = ?1 AND number >= ?2
             AND turn NOT IN (SELECT number FROM turns WHERE session = ?1 AND taken_back IS NOT NULL)
         ORDER BY number",
    )?;
    let mut rows = statement.query([session, first])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push((row.get(4)?, message(row)?));
    }
    Ok(messages)
}

/// Reads a message from the columns `role`, `text`, `parts` and `origin`, which come first.
fn message(row: &rusqlite::Row<'_>) -> Result<Message, Failure> {
    let text = |column| -> Result<Option<&str>, Failure> {
        row.get_ref(column)?
            .as_str_or_null()
            .map_err(|error| Failure::Unreadable(format!("a message: {error}")))
    };
    decode(Columns {
        role: text(0)?.unwrap_or_default(),
        text: text(1)?.unwrap_or_default(),
        parts: text(2)?,
        origin: text(3)?,
    })
}

pub(crate) fn open_turn(conn: &Connection, session: i64) -> Result<Option<OpenTurn>, Failure> {
    let found = conn
        .prepare_cached(
            "SELECT t.number, t.id, t.reply FROM sessions s
             JOIN turns t ON t.number = s.open_turn WHERE s.number = ?1",
        )?
        .query_row([session], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((number, turn, reply)) = found else {
        return Ok(None);
    };
    let (resumed, steps, replies) = conn
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE kind = 'turn_resumed'),
                    count(*) FILTER (WHERE kind = 'model_asked'),
                    count(*) FILTER (WHERE kind = 'replied')
             FROM steps WHERE turn = ?1",
        )?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(Some(OpenTurn {
        turn: turn.into(),
        resumed,
        steps,
        replies,
        intents: intents(conn, reply)?,
    }))
}

fn last_end(conn: &Connection, session: i64) -> Result<Option<TurnEnd>, Failure> {
    let data: Option<String> = conn
        .prepare_cached(
            "SELECT s.data FROM turns t JOIN steps s ON s.turn = t.number AND s.kind = 'turn_ended'
             WHERE t.session = ?1 ORDER BY t.number DESC LIMIT 1",
        )?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let end = data.map(|data| serde_json::from_str(&data)).transpose();
    end.map_err(|error| Failure::Unreadable(format!("how a turn ended: {error}")))
}

/// Returns the calls of a reply that were about to run and have no result, in that order.
fn intents(conn: &Connection, reply: Option<i64>) -> Result<Vec<Intent>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT id, tool, effect FROM calls
         WHERE reply = ?1 AND effect IS NOT NULL AND result IS NULL ORDER BY intended",
    )?;
    let mut rows = statement.query([reply])?;
    let mut intents = Vec::new();
    while let Some(row) = rows.next()? {
        intents.push(Intent {
            call: CallId::from(row.get::<_, String>(0)?),
            tool: row.get(1)?,
            effect: effect_from(&row.get::<_, String>(2)?)?,
        });
    }
    Ok(intents)
}

fn effect_from(name: &str) -> Result<Effect, Failure> {
    [Effect::Read, Effect::Idempotent, Effect::Effect]
        .into_iter()
        .find(|effect| effect.as_str() == name)
        .ok_or_else(|| Failure::Unreadable(format!("a call with effect `{name}`")))
}
