//! Full-text search over all messages.
//!
//! The indexes (in `index`) name candidates, newest first; their text decides the rest: which of them fit, in which
//! order (`rank`), and what is shown (`snippet`). Words go to the words index; parts of words and scripts without
//! spaces to the trigram index; what is too short for that is looked for in the newest messages themselves.

mod index;
mod query;
mod rank;
mod snippet;

pub(crate) use index::{
    backlog, check as check_index, forget, index_some, rebuild as rebuild_index,
};

use hermes_core::{SearchHit, SearchQuery, Timestamp};
use rusqlite::{Connection, Params, Row, params};

use crate::failure::Failure;
use crate::sessions;
use crate::stored::role_from;
use query::{Query, Route};
use rank::{Candidate, WeightedTerm, rank, weight};
use snippet::{CUT, Edges, MATCH_CLOSE, MATCH_OPEN, Needle, snippet};

/// Hits of one search. People read ten; a program that groups them by session reads a few hundred.
const HITS_MAX: usize = 300;

/// Newest matches that are ranked. Ranking all matches of a common word would mean to read all of them; the index walks
/// from the newest backwards at no cost, so the best of the newest come in a few milliseconds, however many there are.
const RANKED_MAX: usize = 300;

/// Text read for ranking. Some messages are files.
const RANKED_BYTES_MAX: usize = 2 << 20;

/// Newest matches of a term from which is estimated how common it is.
const SAMPLE_MAX: i64 = 64;

/// Candidates of the trigram index that are compared with the query.
const CANDIDATES_MAX: usize = 2000;

/// Messages looked at when no index helps: the newest ones, a few milliseconds of reading.
const SCANNED_MAX: usize = 20_000;

/// Words around a match.
const SNIPPET_WORDS: usize = 40;

/// Which messages `m` were not taken back: the few turns that were are read once per search.
const STANDS: &str = "m.turn NOT IN (SELECT number FROM turns WHERE taken_back IS NOT NULL)";

/// Which messages to look at.
struct Scope {
    /// Where in all messages they lie. Narrows the walk through an index before any row is read.
    first: i64,
    last: i64,
    session: Option<i64>,
}

pub(crate) fn search(conn: &Connection, search: &SearchQuery) -> Result<Vec<SearchHit>, Failure> {
    let query = Query::parse(&search.text);
    let route = query.route();
    if route == Route::Nothing {
        return Ok(Vec::new());
    }
    let scope = Scope::of(conn, search)?;
    let limit = search.limit.clamp(1, HITS_MAX);
    if route == Route::Scan {
        return by_scan(conn, &query, &scope, limit);
    }
    // Usually nothing: only a read-only store has messages that are not indexed.
    let mut hits = by_scan(conn, &query, &scope.unindexed(conn)?, limit)?;
    match route {
        Route::Trigrams => hits.extend(by_trigrams(conn, &query, &scope, limit)?),
        _ => hits.extend(by_words(conn, &query, &scope, limit)?),
    }
    if hits.is_empty() && route == Route::WordsOrTrigrams && has_unknown_word(conn, &query)? {
        hits = by_trigrams(conn, &query, &scope, limit)?;
    }
    hits.truncate(limit);
    Ok(hits)
}

/// Returns whether a term is in no message as a word, and so perhaps as a part of one.
fn has_unknown_word(conn: &Connection, query: &Query) -> Result<bool, Failure> {
    for term in query.wanted() {
        if sample(conn, &term.to_word())?.matches == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Scope {
    fn of(conn: &Connection, search: &SearchQuery) -> Result<Self, Failure> {
        let Some(session) = &search.session else {
            return Ok(Self {
                first: 0,
                last: i64::MAX,
                session: None,
            });
        };
        let session = sessions::require_number(conn, session)?;
        let (first, last): (Option<i64>, Option<i64>) = conn
            .prepare_cached(
                "SELECT (SELECT min(number) FROM messages WHERE session = ?1),
                        (SELECT max(number) FROM messages WHERE session = ?1)",
            )?
            .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self {
            first: first.unwrap_or(0),
            last: last.unwrap_or(0),
            session: Some(session),
        })
    }

    fn unindexed(&self, conn: &Connection) -> Result<Self, Failure> {
        Ok(Self {
            first: self.first.max(index::indexed(conn)? + 1),
            ..*self
        })
    }
}

fn by_words(
    conn: &Connection,
    query: &Query,
    scope: &Scope,
    limit: usize,
) -> Result<Vec<SearchHit>, Failure> {
    let mut terms = Vec::new();
    for term in query.wanted() {
        terms.push(WeightedTerm {
            weight: estimate_weight(conn, &term.to_word())?,
            text: term.text().into(),
            edges: term.edges(),
        });
    }
    let groups = query.to_words();
    // Each alternative has its own share, so that a common one does not crowd out a rare one.
    let share = RANKED_MAX.div_ceil(groups.len().max(1));
    let mut candidates = Vec::new();
    for group in &groups {
        read_candidates(conn, group, scope, share, &terms, &mut candidates)?;
    }
    rank(&mut candidates, &terms);
    candidates.dedup_by_key(|candidate| candidate.message);
    let words = groups.join(" OR ");
    let needles: Vec<Needle> = query
        .wanted()
        .map(|term| term.to_needle(term.edges()))
        .collect();
    let shown = candidates.iter().take(limit);
    let hits = shown.map(|candidate| {
        if candidate.is_literal() {
            literal_hit(conn, candidate.message, &needles)
        } else {
            word_hit(conn, candidate.message, &words)
        }
    });
    hits.collect()
}

/// Estimates how much a term says, from how far back its newest matches reach.
fn estimate_weight(conn: &Connection, word: &str) -> Result<f64, Failure> {
    let newest = index::indexed(conn)?.max(1);
    let Sample { matches, oldest } = sample(conn, word)?;
    let reach = if matches < SAMPLE_MAX {
        newest
    } else {
        newest - oldest + 1
    };
    // Of as many messages as there are, so that the weights of terms compare.
    let messages = newest as f64;
    let matches = matches as f64 * messages / reach.max(1) as f64;
    Ok(weight(matches, messages))
}

/// The newest matches of a term.
struct Sample {
    matches: i64,
    oldest: i64,
}

fn sample(conn: &Connection, word: &str) -> Result<Sample, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT count(*), coalesce(min(number), 0) FROM (
             SELECT rowid AS number FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2
         )",
    )?;
    let sample = statement.query_row(params![word, SAMPLE_MAX], |row| {
        Ok(Sample {
            matches: row.get(0)?,
            oldest: row.get(1)?,
        })
    })?;
    Ok(sample)
}

fn read_candidates(
    conn: &Connection,
    group: &str,
    scope: &Scope,
    count_max: usize,
    terms: &[WeightedTerm],
    candidates: &mut Vec<Candidate>,
) -> Result<(), Failure> {
    // CROSS JOIN keeps the index in the outer loop, where it delivers newest first and stops early.
    let mut statement = conn.prepare_cached(&format!(
        "SELECT m.number, m.text
         FROM words CROSS JOIN messages m ON m.number = words.rowid
         WHERE words MATCH ?1 AND words.rowid BETWEEN ?2 AND ?3 AND (?4 IS NULL OR m.session = ?4)
             AND {STANDS}
         ORDER BY words.rowid DESC LIMIT ?5"
    ))?;
    let params = params![
        group,
        scope.first,
        scope.last,
        scope.session,
        count_max as i64
    ];
    let mut rows = statement.query(params)?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let text = text(row, 1)?;
        candidates.push(Candidate::new(row.get(0)?, text, terms));
        bytes += text.len();
        if bytes > RANKED_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

fn literal_hit(conn: &Connection, message: i64, needles: &[Needle]) -> Result<SearchHit, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id, s.title, m.at, m.role, m.text
         FROM messages m CROSS JOIN sessions s ON s.number = m.session
         WHERE m.number = ?1",
    )?;
    statement.query_row([message], |row| {
        Ok(text(row, 4).and_then(|text| hit(row, snippet(text, needles))))
    })?
}

/// Lets the index say what matched: it knows about accents, but must look the message up in each term's list.
fn word_hit(conn: &Connection, message: i64, words: &str) -> Result<SearchHit, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id, s.title, m.at, m.role, snippet(words, 0, ?3, ?4, ?5, ?6)
         FROM words
         CROSS JOIN messages m ON m.number = words.rowid
         CROSS JOIN sessions s ON s.number = m.session
         WHERE words MATCH ?1 AND words.rowid = ?2",
    )?;
    let words_max = SNIPPET_WORDS as i64;
    let params = params![words, message, MATCH_OPEN, MATCH_CLOSE, CUT, words_max];
    statement.query_row(params, |row| Ok(hit(row, row.get(4)?)))?
}

fn by_trigrams(
    conn: &Connection,
    query: &Query,
    scope: &Scope,
    limit: usize,
) -> Result<Vec<SearchHit>, Failure> {
    let sql = format!(
        "SELECT s.id, s.title, m.at, m.role, m.text
         FROM trigrams
         CROSS JOIN messages m ON m.number = trigrams.rowid
         CROSS JOIN sessions s ON s.number = m.session
         WHERE trigrams MATCH ?1 AND trigrams.rowid BETWEEN ?2 AND ?3 AND (?4 IS NULL OR m.session = ?4)
             AND {STANDS}
         ORDER BY trigrams.rowid DESC LIMIT ?5"
    );
    let params = params![
        query.to_trigrams(),
        scope.first,
        scope.last,
        scope.session,
        CANDIDATES_MAX as i64
    ];
    fitting(conn, &sql, params, query, limit)
}

fn by_scan(
    conn: &Connection,
    query: &Query,
    scope: &Scope,
    limit: usize,
) -> Result<Vec<SearchHit>, Failure> {
    let sql = format!(
        "SELECT s.id, s.title, m.at, m.role, m.text
         FROM messages m CROSS JOIN sessions s ON s.number = m.session
         WHERE m.number BETWEEN ?1 AND ?2 AND (?3 IS NULL OR m.session = ?3) AND {STANDS}
         ORDER BY m.number DESC LIMIT ?4"
    );
    let params = params![scope.first, scope.last, scope.session, SCANNED_MAX as i64];
    fitting(conn, &sql, params, query, limit)
}

/// Keeps the rows whose text, in the fifth column, fits the query, until there are enough.
fn fitting(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    query: &Query,
    limit: usize,
) -> Result<Vec<SearchHit>, Failure> {
    let needles: Vec<Needle> = query
        .wanted()
        .map(|term| term.to_needle(Edges::Anywhere))
        .collect();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let text = text(row, 4)?;
        if query.fits(text) {
            hits.push(hit(row, snippet(text, &needles))?);
        }
        if hits.len() == limit {
            break;
        }
    }
    Ok(hits)
}

/// Reads a hit from the columns session id, title, time and role, which come first.
fn hit(row: &Row<'_>, snippet: String) -> Result<SearchHit, Failure> {
    Ok(SearchHit {
        session: row.get::<_, String>(0)?.into(),
        title: row.get(1)?,
        at: Timestamp::from_millis(row.get(2)?),
        role: role_from(&row.get::<_, String>(3)?)?,
        snippet,
    })
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str, Failure> {
    let text = row.get_ref(column)?.as_str();
    Ok(text.map_err(rusqlite::Error::from)?)
}
