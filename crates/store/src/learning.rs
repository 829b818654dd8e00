//! The learning log: what was changed, from what into what, and by whom.

use hermes_core::{Author, ChangeFilter, ChangeId, LearnedChange, NewLearnedChange, Subject};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::sessions::{count, unsigned};

/// Everything of a change, in the order [`read`] takes it.
const SELECT: &str = "
    SELECT c.number, c.at, c.subject, c.author, c.session, c.turn, c.summary, c.before, c.after, c.undoes, c.finished,
           (SELECT max(u.number) FROM learned_changes u
            WHERE u.undoes = c.number AND u.finished
              AND NOT EXISTS (SELECT 1 FROM learned_changes r WHERE r.undoes = u.number AND r.finished))
    FROM learned_changes c";

pub(crate) fn begin(conn: &Connection, change: &NewLearnedChange) -> Result<ChangeId, Failure> {
    conn.prepare_cached(
        "INSERT INTO learned_changes (at, kind, subject, author, session, turn, summary, before, after, undoes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        change.at.as_millis(),
        change.subject.kind(),
        to_json(&change.subject)?,
        to_json(&change.author)?,
        change.session.as_ref().map(|session| session.as_str()),
        change.turn.as_ref().map(|turn| turn.as_str()),
        change.summary,
        change.before,
        change.after,
        change.undoes.map(|undoes| count(undoes.0)),
    ])?;
    Ok(ChangeId(conn.last_insert_rowid().unsigned_abs()))
}

pub(crate) fn finish(conn: &Connection, id: ChangeId) -> Result<(), Failure> {
    let changed = conn
        .prepare_cached("UPDATE learned_changes SET finished = 1 WHERE number = ?1")?
        .execute([count(id.0)])?;
    if changed == 0 {
        return Err(Failure::not_found(&format!("change {id}")));
    }
    Ok(())
}

pub(crate) fn abandon(conn: &Connection, id: ChangeId) -> Result<(), Failure> {
    conn.prepare_cached("DELETE FROM learned_changes WHERE number = ?1 AND NOT finished")?
        .execute([count(id.0)])?;
    Ok(())
}

pub(crate) fn change(conn: &Connection, id: ChangeId) -> Result<Option<LearnedChange>, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT} WHERE c.number = ?1"))?;
    let raw = statement.query_row([count(id.0)], raw).optional()?;
    raw.map(Raw::read).transpose()
}

pub(crate) fn changes(
    conn: &Connection,
    filter: &ChangeFilter,
) -> Result<Vec<LearnedChange>, Failure> {
    let mut wanted = Wanted::default();
    wanted.with("c.kind = ?", filter.kind.clone());
    wanted.with(
        "c.subject = ?",
        filter.subject.as_ref().map(to_json).transpose()?,
    );
    wanted.with(
        "c.session = ?",
        filter.session.as_ref().map(ToString::to_string),
    );
    wanted.with(
        "c.author = ?",
        filter.author.as_ref().map(to_json).transpose()?,
    );
    wanted.with("c.at >= ?", filter.since.map(|since| since.as_millis()));
    let limit = match filter.limit {
        0 => String::new(),
        limit => format!("LIMIT {limit}"),
    };
    let conditions = wanted.conditions();
    let select = format!("{SELECT} {conditions} ORDER BY c.number DESC {limit}");
    let mut statement = conn.prepare_cached(&select)?;
    let rows = statement.query_map(params_from_iter(wanted.values), raw)?;
    rows.map(|row| row?.read()).collect()
}

/// The conditions that a filter has.
#[derive(Default)]
struct Wanted {
    conditions: Vec<&'static str>,
    values: Vec<Value>,
}

impl Wanted {
    fn with(&mut self, condition: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.conditions.push(condition);
            self.values.push(value.into());
        }
    }

    fn conditions(&self) -> String {
        if self.conditions.is_empty() {
            return String::new();
        }
        format!("WHERE {}", self.conditions.join(" AND "))
    }
}

/// A row whose JSON is still text.
struct Raw {
    change: LearnedChange,
    subject: String,
    author: String,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    let id = |column: usize| -> rusqlite::Result<Option<ChangeId>> {
        let number: Option<i64> = row.get(column)?;
        Ok(number.map(|number| ChangeId(number.unsigned_abs())))
    };
    let change = NewLearnedChange {
        at: hermes_core::Timestamp::from_millis(row.get(1)?),
        // Read from their JSON afterwards.
        subject: Subject::UserModel { person: None },
        author: Author::Person,
        session: row.get::<_, Option<String>>(4)?.map(Into::into),
        turn: row.get::<_, Option<String>>(5)?.map(Into::into),
        summary: row.get(6)?,
        before: row.get(7)?,
        after: row.get(8)?,
        undoes: id(9)?,
    };
    Ok(Raw {
        change: LearnedChange {
            id: ChangeId(unsigned(row, 0)?),
            change,
            is_finished: row.get(10)?,
            undone_by: id(11)?,
        },
        subject: row.get(2)?,
        author: row.get(3)?,
    })
}

impl Raw {
    fn read(self) -> Result<LearnedChange, Failure> {
        let mut change = self.change;
        change.change.subject = from_json(&self.subject)?;
        change.change.author = from_json(&self.author)?;
        Ok(change)
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("a change cannot be written: {error}")))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::Unreadable(format!("a change of something learned: {error}")))
}
