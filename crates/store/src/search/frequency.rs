//! How common a term is, estimated from a few places: counting all its matches would take longer than the search.

use rusqlite::{Connection, params};

use super::query::{Index, Term};
use crate::failure::Failure;

/// Places in the history that are looked at. A word that one conversation is full of is not common for that.
const PLACES: i64 = 8;

/// Matches that are read at each.
const MATCHES_PER_PLACE: i64 = 12;

/// The share of messages that is assumed to have a word with a certain beginning: to look at them all is dear.
const OF_BEGINNING: f64 = 0.01;

/// Returns in how many messages a term is, roughly; exactly 0 if it is in none.
pub(super) fn matches_of(
    conn: &Connection,
    index: Index,
    term: &Term,
    newest: i64,
) -> Result<f64, Failure> {
    if term.is_beginning() {
        return Ok((newest as f64 * OF_BEGINNING).max(1.0));
    }
    matches(conn, index, &term.to_match(index), newest)
}

pub(super) fn matches(
    conn: &Connection,
    index: Index,
    expression: &str,
    newest: i64,
) -> Result<f64, Failure> {
    let table = index.table();
    let mut statement = conn.prepare_cached(&format!(
        "SELECT count(*), coalesce(max(number), 0) FROM (
             SELECT rowid AS number FROM {table}
             WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid LIMIT ?4
         )"
    ))?;
    let mut total = 0.0;
    for place in 0..PLACES {
        let (first, last) = (newest * place / PLACES + 1, newest * (place + 1) / PLACES);
        let limits = params![expression, first, last, MATCHES_PER_PLACE];
        let (found, furthest): (i64, i64) =
            statement.query_row(limits, |row| Ok((row.get(0)?, row.get(1)?)))?;
        // As many in the rest of the stretch as in the part of it that was read.
        let read = if found < MATCHES_PER_PLACE {
            last - first + 1
        } else {
            furthest - first + 1
        };
        total += found as f64 * (last - first + 1) as f64 / read.max(1) as f64;
    }
    Ok(total)
}
