//! The list of sessions: creating, naming, finding, counting and removing them.

use std::path::PathBuf;

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{
    ModelName, NewSession, SessionFilter, SessionId, SessionRecord, StoreError, StoreStats,
    Timestamp, Usage,
};
use rusqlite::{Connection, OptionalExtension, Row, RowIndex, ToSql, params};

use crate::failure::Failure;
use crate::{claim, prefixes, search, title};

/// Sessions named when a beginning fits several: enough to choose from.
const CANDIDATES_MAX: usize = 10;

/// Sessions that may share a title but for its number. Beyond that it tells nobody anything.
const NUMBERED_MAX: u32 = 100;

/// Messages deleted in one transaction: about a tenth of a second of work.
const DELETED_MESSAGES: i64 = 1000;

/// The largest number stored for one count: more than any request has, and far from where sums overflow.
const COUNT_MAX: u64 = 1 << 40;

/// What [`record`] reads, by name.
pub(crate) const RECORD_COLUMNS: &str = "
    id, title, preview, source, cwd, provider, model, parent, created, updated, messages, calls, requests,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_micro_usd,
    open_turn IS NOT NULL AS has_open_turn";

pub(crate) fn create(conn: &Connection, session: &NewSession) -> Result<(), Failure> {
    if !claim::is_file_name(&session.id) {
        return Err(Failure::Refused(format!(
            "session id `{}` may hold only letters, digits, `_` and `-`",
            session.id
        )));
    }
    if number(conn, &session.id)?.is_some() {
        return Err(Failure::Refused(format!(
            "session `{}` exists already",
            session.id
        )));
    }
    let title = session.title.as_deref().and_then(title::clean);
    if let Some(title) = &title {
        require_free(conn, title, &session.id)?;
    }
    let cwd = session.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    let created = session.created.as_millis();
    let columns: &[(&str, &dyn ToSql)] = &[
        ("id", &session.id.as_str()),
        ("title", &title),
        ("source", &session.source),
        ("cwd", &cwd),
        ("provider", &session.model.provider),
        ("model", &session.model.model),
        ("parent", &session.parent.as_ref().map(SessionId::as_str)),
        ("created", &created),
        ("updated", &created),
    ];
    insert(conn, "sessions", columns)?;
    let number = conn.last_insert_rowid();
    prefixes::put(conn, number, 1, &session.prefix)
}

/// Writes a row: the values beside the names of their columns.
fn insert(conn: &Connection, table: &str, columns: &[(&str, &dyn ToSql)]) -> Result<(), Failure> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let marks = vec!["?"; columns.len()];
    let statement = format!(
        "INSERT INTO {table} ({}) VALUES ({})",
        names.join(", "),
        marks.join(", ")
    );
    let values: Vec<&dyn ToSql> = columns.iter().map(|(_, value)| *value).collect();
    conn.prepare_cached(&statement)?
        .execute(values.as_slice())?;
    Ok(())
}

pub(crate) fn rename(conn: &Connection, session: &SessionId, title: &str) -> Result<(), Failure> {
    let title = title::clean(title)
        .ok_or_else(|| Failure::Refused("a title needs at least one visible character".into()))?;
    require_free(conn, &title, session)?;
    let changed = conn.execute(
        "UPDATE sessions SET title = ?2 WHERE id = ?1",
        params![session.as_str(), title],
    )?;
    match changed {
        0 => Err(Failure::not_found(session.as_str())),
        _ => Ok(()),
    }
}

/// Gives a session a title if it has none. Returns whether it did.
pub(crate) fn suggest_title(
    conn: &Connection,
    session: &SessionId,
    title: &str,
) -> Result<bool, Failure> {
    let Some(title) = title::clean(title) else {
        return Ok(false);
    };
    let mut statement = conn.prepare_cached(
        "UPDATE OR IGNORE sessions SET title = ?2 WHERE id = ?1 AND title IS NULL",
    )?;
    for number in 1..=NUMBERED_MAX {
        let numbered = match number {
            1 => title.clone(),
            number => format!("{title} #{number}"),
        };
        if statement.execute(params![session.as_str(), numbered])? > 0 {
            return Ok(true);
        }
        if read_record(conn, session)?.title.is_some() {
            return Ok(false);
        }
    }
    Ok(false)
}

/// What is left after a step of deletion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Some,
    Nothing,
}

/// Deletes a part of a session: a very long one would keep every other writer waiting for seconds.
///
/// The newest turns go first, so that a crash on the way leaves a shorter but well-formed conversation, which can be
/// deleted again.
pub(crate) fn delete_some(conn: &Connection, session: &SessionId) -> Result<Left, Failure> {
    let number = require_number(conn, session)?;
    let Some(first) = first_to_delete(conn, number)? else {
        conn.execute("DELETE FROM sessions WHERE number = ?1", [number])?;
        prefixes::forget_unused(conn)?;
        return Ok(Left::Nothing);
    };
    search::forget(conn, number, first.message)?;
    conn.execute("DELETE FROM queued WHERE session = ?1", [number])?;
    let deleted = conn.execute(
        "DELETE FROM messages WHERE session = ?1 AND number >= ?2",
        [number, first.message],
    )?;
    conn.execute(
        "DELETE FROM turns WHERE session = ?1 AND number >= ?2",
        [number, first.turn],
    )?;
    conn.execute(
        "UPDATE sessions SET open_turn = NULL, messages = messages - ?2 WHERE number = ?1",
        params![number, deleted as i64],
    )?;
    Ok(Left::Some)
}

struct FirstToDelete {
    message: i64,
    turn: i64,
}

/// Returns where the last few turns of a session begin, or `None` if it has no messages.
fn first_to_delete(conn: &Connection, session: i64) -> Result<Option<FirstToDelete>, Failure> {
    let oldest = conn
        .query_row(
            "SELECT number, turn FROM (
                 SELECT number, turn FROM messages WHERE session = ?1 ORDER BY number DESC LIMIT ?2
             ) ORDER BY number LIMIT 1",
            params![session, DELETED_MESSAGES],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()?;
    let Some((message, turn)) = oldest else {
        return Ok(None);
    };
    let before: Option<i64> = conn
        .query_row(
            "SELECT number FROM messages WHERE session = ?1 AND number < ?2 AND turn <> ?3
             ORDER BY number DESC LIMIT 1",
            [session, message, turn],
            |row| row.get(0),
        )
        .optional()?;
    let message = before.map_or(0, |before| before + 1);
    Ok(Some(FirstToDelete { message, turn }))
}

pub(crate) fn list(
    conn: &Connection,
    filter: &SessionFilter,
) -> Result<Vec<SessionRecord>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {RECORD_COLUMNS} FROM sessions
         WHERE (source = ?1 OR (?1 IS NULL AND source <> ?4)) AND (?2 IS NULL OR cwd = ?2)
         ORDER BY updated DESC, number DESC LIMIT ?3"
    ))?;
    let limit = match filter.limit {
        0 => -1, // SQLite's word for all
        limit => i64::try_from(limit).unwrap_or(-1),
    };
    let cwd = filter.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    let records =
        statement.query_map(params![filter.source, cwd, limit, SUBAGENT_SOURCE], record)?;
    Ok(records.collect::<Result<_, _>>()?)
}

/// Whose parents they are is told by their source: a branch has a parent, too, and goes its own way.
pub(crate) fn subagents(
    conn: &Connection,
    session: &SessionId,
) -> Result<Vec<SessionRecord>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "WITH RECURSIVE family (id) AS (
             VALUES (?1)
             UNION
             SELECT s.id FROM sessions s JOIN family f ON s.parent = f.id WHERE s.source = ?2
         )
         SELECT {RECORD_COLUMNS} FROM sessions
         WHERE id IN family AND id <> ?1 ORDER BY number"
    ))?;
    let records = statement.query_map(params![session.as_str(), SUBAGENT_SOURCE], record)?;
    Ok(records.collect::<Result<_, _>>()?)
}

/// An exact id wins, then a title, then the beginning of an id: what was written in full before what was not.
pub(crate) fn find(conn: &Connection, name: &str) -> Result<SessionId, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::not_found(name));
    }
    let id = SessionId::from(name);
    if number(conn, &id)?.is_some() {
        return Ok(id);
    }
    if let Some(id) = find_title(conn, name)? {
        return Ok(id);
    }
    let mut candidates = find_beginning(conn, name)?;
    match candidates.len() {
        0 => Err(Failure::not_found(name)),
        1 => Ok(candidates.remove(0)),
        _ => Err(Failure::Told(StoreError::Ambiguous {
            name: name.into(),
            candidates,
        })),
    }
}

fn find_title(conn: &Connection, title: &str) -> Result<Option<SessionId>, Failure> {
    // `$` follows `#`, so the range holds exactly the titles that begin with `title #`.
    let mut statement = conn.prepare_cached(
        "SELECT id, title FROM sessions
         WHERE title = ?1 OR (title >= ?1 || ' #' AND title < ?1 || ' $')
         ORDER BY title = ?1, created DESC, number DESC",
    )?;
    let found = statement.query_map([title], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    for found in found {
        let (id, found) = found?;
        if found == title || title::is_numbered(&found, title) {
            return Ok(Some(id.into()));
        }
    }
    Ok(None)
}

fn find_beginning(conn: &Connection, beginning: &str) -> Result<Vec<SessionId>, Failure> {
    // `~` follows every character an id can have.
    let mut statement = conn.prepare_cached(
        "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT ?2",
    )?;
    let ids = statement.query_map(params![beginning, CANDIDATES_MAX as i64], |row| {
        Ok(row.get::<_, String>(0)?.into())
    })?;
    Ok(ids.collect::<Result<_, _>>()?)
}

pub(crate) fn unfinished(conn: &Connection) -> Result<Vec<SessionId>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT id, open_turn FROM sessions WHERE open_turn IS NOT NULL
         UNION SELECT s.id, s.open_turn FROM queued q JOIN sessions s ON s.number = q.session
         ORDER BY open_turn NULLS LAST",
    )?;
    let ids = statement.query_map([], |row| Ok(row.get::<_, String>(0)?.into()))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

pub(crate) fn stats(conn: &Connection) -> Result<StoreStats, Failure> {
    let stats = conn.query_row(
        "SELECT count(*), total(messages), total(calls), count(open_turn),
                total(input_tokens), total(output_tokens), total(cache_read_tokens),
                total(cache_write_tokens), total(reasoning_tokens),
                (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)
         FROM sessions",
        [],
        |row| {
            // `total` is a float, so that sums never overflow.
            let sum = |column| row.get::<_, f64>(column).map(|sum| sum as u64);
            Ok(StoreStats {
                sessions: unsigned(row, 0)?,
                messages: sum(1)?,
                calls: sum(2)?,
                unfinished_turns: unsigned(row, 3)?,
                usage: Usage {
                    input: sum(4)?,
                    output: sum(5)?,
                    cache_read: sum(6)?,
                    cache_write: sum(7)?,
                    reasoning: sum(8)?,
                },
                database_bytes: unsigned(row, 9)?,
            })
        },
    )?;
    Ok(stats)
}

pub(crate) fn read_record(
    conn: &Connection,
    session: &SessionId,
) -> Result<SessionRecord, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {RECORD_COLUMNS} FROM sessions WHERE id = ?1"
    ))?;
    let record = statement.query_row([session.as_str()], record).optional()?;
    record.ok_or_else(|| Failure::not_found(session.as_str()))
}

/// Returns the number rows below a session refer to it by.
pub(crate) fn number(conn: &Connection, session: &SessionId) -> Result<Option<i64>, Failure> {
    let mut statement = conn.prepare_cached("SELECT number FROM sessions WHERE id = ?1")?;
    let number = statement.query_row([session.as_str()], |row| row.get(0));
    Ok(number.optional()?)
}

pub(crate) fn require_number(conn: &Connection, session: &SessionId) -> Result<i64, Failure> {
    number(conn, session)?.ok_or_else(|| Failure::not_found(session.as_str()))
}

fn require_free(conn: &Connection, title: &str, session: &SessionId) -> Result<(), Failure> {
    let owner: Option<String> = conn
        .query_row(
            "SELECT id FROM sessions WHERE title = ?1 AND id <> ?2",
            [title, session.as_str()],
            |row| row.get(0),
        )
        .optional()?;
    match owner {
        None => Ok(()),
        Some(owner) => Err(Failure::Told(StoreError::TitleTaken {
            title: title.into(),
            session: owner.into(),
        })),
    }
}

pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        id: row.get::<_, String>("id")?.into(),
        title: row.get("title")?,
        preview: row.get("preview")?,
        source: row.get("source")?,
        cwd: row.get::<_, Option<String>>("cwd")?.map(PathBuf::from),
        model: ModelName {
            provider: row.get("provider")?,
            model: row.get("model")?,
        },
        parent: row.get::<_, Option<String>>("parent")?.map(SessionId::from),
        created: Timestamp::from_millis(row.get("created")?),
        updated: Timestamp::from_millis(row.get("updated")?),
        messages: unsigned(row, "messages")?,
        calls: unsigned(row, "calls")?,
        requests: unsigned(row, "requests")?,
        usage: Usage {
            input: unsigned(row, "input_tokens")?,
            output: unsigned(row, "output_tokens")?,
            cache_read: unsigned(row, "cache_read_tokens")?,
            cache_write: unsigned(row, "cache_write_tokens")?,
            reasoning: unsigned(row, "reasoning_tokens")?,
        },
        cost_micro_usd: row
            .get::<_, Option<i64>>("cost_micro_usd")?
            .map(i64::unsigned_abs),
        has_open_turn: row.get("has_open_turn")?,
    })
}

/// Reads a count. None is ever negative; SQLite just has no other integers.
pub(crate) fn unsigned(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

/// Makes a count fit a column.
pub(crate) fn count(count: u64) -> i64 {
    count.min(COUNT_MAX) as i64
}

/// [`Usage`] as columns take it.
pub(crate) struct TokenColumns {
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) cache_read: i64,
    pub(crate) cache_write: i64,
    pub(crate) reasoning: i64,
}

impl From<Usage> for TokenColumns {
    fn from(usage: Usage) -> Self {
        Self {
            input: count(usage.input),
            output: count(usage.output),
            cache_read: count(usage.cache_read),
            cache_write: count(usage.cache_write),
            reasoning: count(usage.reasoning),
        }
    }
}
