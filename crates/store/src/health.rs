//! Examines the file, and mends what can be mended: the search indexes, which hold nothing of their own.

use rusqlite::{Connection, ErrorCode};

use crate::failure::Failure;
use crate::search;

/// What an examination found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Sound,
    /// Messages are whole, but searching may miss some. `rebuild_index` mends it.
    IndexBroken {
        detail: String,
    },
    Damaged {
        problems: Vec<String>,
    },
}

/// Problems told at most: the first ones matter.
const PROBLEMS_MAX: usize = 20;

pub(crate) fn check(conn: &Connection) -> Result<Health, Failure> {
    let (of_index, problems): (Vec<_>, Vec<_>) =
        problems(conn)?.into_iter().partition(|p| is_of_index(p));
    if !problems.is_empty() {
        return Ok(Health::Damaged { problems });
    }
    if let Some(detail) = of_index.into_iter().next() {
        return Ok(Health::IndexBroken { detail });
    }
    while search::index_some(conn)? > 0 {}
    match search::check_index(conn) {
        Ok(()) => Ok(Health::Sound),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Ok(Health::IndexBroken {
                detail: error.to_string(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// SQLite's own examination looks into the indexes too, though it does not compare them with the messages.
fn is_of_index(problem: &str) -> bool {
    problem.to_ascii_lowercase().contains("fts5")
}

fn problems(conn: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({PROBLEMS_MAX})"))?;
    let told = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut problems: Vec<String> = told.collect::<Result<_, _>>()?;
    problems.retain(|problem| problem != "ok");
    let mut statement = conn.prepare("PRAGMA foreign_key_check")?;
    let orphans = statement.query_map([], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of `{table}` refers to none of `{parent}`"))
    })?;
    for orphan in orphans.take(PROBLEMS_MAX) {
        problems.push(orphan?);
    }
    Ok(problems)
}
