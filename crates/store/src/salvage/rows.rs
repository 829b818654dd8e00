//! Copies the rows of a table around the pages that cannot be read.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::failure::Failure;

/// A table, and the number its rows are ordered by.
pub(super) struct Table {
    pub(super) name: &'static str,
    key: &'static str,
}

/// Every table that holds something of its own; parents first.
pub(super) const TABLES: &[Table] = &[
    table("sessions", "number"),
    table("prefix_texts", "number"),
    table("prefixes", "rowid"),
    table("turns", "number"),
    table("messages", "number"),
    table("calls", "reply"),
    table("steps", "turn"),
    table("requests", "reply"),
    table("tool_states", "session"),
    table("compactions", "session"),
    table("queued", "number"),
    table("learned_changes", "number"),
    table("reviews", "session"),
    table("learning_use", "number"),
    table("jobs", "number"),
    table("job_runs", "number"),
    table("job_deliveries", "run"),
    table("imported_jobs", "rowid"),
    table("inbox", "number"),
    table("outbox", "number"),
    table("cursors", NO_KEY),
    table("chats", NO_KEY),
    table("paired_people", NO_KEY),
    table("links", NO_KEY),
    table("person_use", NO_KEY),
    table("records", "rowid"),
    table("user_models", "number"),
    table("hearings", "session"),
    // Its key is a text, and what it holds is over soon: it is read from its beginning as far as it goes.
    table("approvals", NO_KEY),
];

const NO_KEY: &str = "0";

const fn table(name: &'static str, key: &'static str) -> Table {
    Table { name, key }
}

/// No table has larger numbers.
const KEY_MAX: i64 = 1 << 40;

/// Copies what can be read. Returns whether that was everything.
pub(super) fn copy(
    source: &Connection,
    target: &Connection,
    table: &Table,
) -> Result<bool, Failure> {
    let columns = match columns(source, table.name) {
        Ok(columns) if !columns.is_empty() => columns,
        // An older file may not have the table.
        Ok(_) => return Ok(true),
        Err(_) => return Ok(false),
    };
    let order = match table.key {
        NO_KEY => String::new(),
        key => format!("ORDER BY {key}"),
    };
    let mut copying = Copying {
        source,
        target,
        select: format!(
            "SELECT {0}, {1} FROM {2} WHERE {0} >= ?1 {order}",
            table.key,
            columns.join(", "),
            table.name
        ),
        insert: format!(
            "INSERT OR IGNORE INTO {} ({}) VALUES ({})",
            table.name,
            columns.join(", "),
            vec!["?"; columns.len()].join(", ")
        ),
        columns: columns.len(),
        is_complete: true,
    };
    let mut next = Some(i64::MIN);
    while let Some(from) = next {
        next = match copying.from(from)? {
            Read::ToTheEnd => None,
            Read::UntilDamage { .. } if table.key == NO_KEY => None,
            Read::UntilDamage { last } => copying.readable_after(last.unwrap_or(0).max(0)),
        };
    }
    Ok(copying.is_complete)
}

fn columns(source: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = source.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}

/// How far a reading came.
enum Read {
    ToTheEnd,
    UntilDamage { last: Option<i64> },
}

struct Copying<'a> {
    source: &'a Connection,
    target: &'a Connection,
    select: String,
    insert: String,
    columns: usize,
    is_complete: bool,
}

impl Copying<'_> {
    /// Copies rows from a key on until there are none, or one cannot be read.
    fn from(&mut self, from: i64) -> Result<Read, Failure> {
        let mut last = None;
        let mut insert = self.target.prepare_cached(&self.insert)?;
        let Ok(mut select) = self.source.prepare_cached(&self.select) else {
            self.is_complete = false;
            return Ok(Read::UntilDamage { last });
        };
        let mut rows = select.query([from])?;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Read::ToTheEnd),
                Err(_) => {
                    self.is_complete = false;
                    return Ok(Read::UntilDamage { last });
                }
            };
            last = row.get(0).ok().or(last);
            let values: Result<Vec<Value>, _> = (1..=self.columns).map(|at| row.get(at)).collect();
            // A row with something in it that does not belong there is damaged too.
            let is_copied =
                values.is_ok_and(|values| insert.execute(params_from_iter(values)).is_ok());
            self.is_complete &= is_copied;
        }
    }

    /// Finds the first key behind a hole from which rows can be read again: first by leaps, then by halves.
    fn readable_after(&self, last: i64) -> Option<i64> {
        let mut leap = 1;
        while !self.is_readable(last + leap) {
            leap *= 2;
            if leap > KEY_MAX {
                return None;
            }
        }
        let (mut unreadable, mut readable) = (last + leap / 2, last + leap);
        while unreadable + 1 < readable {
            let middle = unreadable + (readable - unreadable) / 2;
            if self.is_readable(middle) {
                readable = middle;
            } else {
                unreadable = middle;
            }
        }
        Some(readable)
    }

    /// Returns whether the first row from a key on can be read, or there is none.
    fn is_readable(&self, key: i64) -> bool {
        let read = || -> rusqlite::Result<()> {
            let mut select = self.source.prepare_cached(&self.select)?;
            let mut rows = select.query([key])?;
            if let Some(row) = rows.next()? {
                (0..=self.columns).try_for_each(|at| row.get::<_, Value>(at).map(drop))?;
            }
            Ok(())
        };
        read().is_ok()
    }
}
