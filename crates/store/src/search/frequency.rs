//! How common a term is, estimated from a few places: counting all its matches would take longer than the search.

use rusqlite::{Connection, params};

use super::query::Index;
use crate::failure::Failure;

/// Matches that are counted one by one. A term with fewer needs no estimate.
const COUNTED_MAX: i64 = 48;

/// Places in the history that are looked at otherwise. A word that one conversation is full of is not common for that.
const PLACES: i64 = 4;

/// Matches that are read at each.
const MATCHES_PER_PLACE: i64 = 12;

/// The share of messages that is assumed to have a word with a certain beginning: to look at them all is dear.
const OF_BEGINNING: f64 = 0.01;

pub(super) fn of_beginning(newest: i64) -> f64 {
    (newest as f64 * OF_BEGINNING).max(1.0)
}

/// Returns in how many messages a term is, roughly; exactly 0 if it is in none.
pub(super) fn matches(
    conn: &Connection,
    index: Index,
    expression: &str,
    newest: i64,
) -> Result<f64, Failure> {
    let everywhere = Stretch {
        first: 1,
        last: newest,
    };
    let (counted, _) = everywhere.count(conn, index, expression, COUNTED_MAX)?;
    if counted < COUNTED_MAX {
        return Ok(counted as f64);
    }
    let mut total = 0.0;
    for place in 0..PLACES {
        let stretch = Stretch {
            first: newest * place / PLACES + 1,
            last: newest * (place + 1) / PLACES,
        };
        total += stretch.estimate(conn, index, expression)?;
    }
    Ok(total.max(counted as f64))
}

/// A part of the history, by the numbers of its messages.
struct Stretch {
    first: i64,
    last: i64,
}

impl Stretch {
    /// As many in the rest of it as in the part that is read.
    fn estimate(&self, conn: &Connection, index: Index, expression: &str) -> Result<f64, Failure> {
        let (found, furthest) = self.count(conn, index, expression, MATCHES_PER_PLACE)?;
        let length = self.last - self.first + 1;
        let read = if found < MATCHES_PER_PLACE {
            length
        } else {
            furthest - self.first + 1
        };
        Ok(found as f64 * length as f64 / read.max(1) as f64)
    }

    /// Counts the first matches, and says how far they reach.
    fn count(
        &self,
        conn: &Connection,
        index: Index,
        expression: &str,
        count_max: i64,
    ) -> Result<(i64, i64), Failure> {
        let table = index.table();
        let mut statement = conn.prepare_cached(&format!(
            "SELECT count(*), coalesce(max(number), 0) FROM (
                 SELECT rowid AS number FROM {table}
                 WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid LIMIT ?4
             )"
        ))?;
        let limits = params![expression, self.first, self.last, count_max];
        Ok(statement.query_row(limits, |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}
