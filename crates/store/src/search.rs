//! Full-text search over all messages.
//!
//! The indexes (in `index`) name candidates, newest first; their text decides the rest: which of them fit, in which
//! order (`rank`), and what is shown (`snippet`). Messages that have everything are looked for first; if there are none,
//! those that have it as parts of words; and for a question in plain words what comes closest (`relaxed`). What no index has
//! yet is looked for in the messages themselves.

mod frequency;
mod index;
mod query;
mod rank;
mod relaxed;
mod scope;
mod script;
mod snippet;
mod spelling;

pub(crate) use index::{
    backlog, check as check_index, forget, index_some, rebuild as rebuild_index,
};

use std::cell::RefCell;
use std::collections::HashMap;

use hermes_core::{SearchHit, SearchQuery, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::failure::Failure;
use crate::stored::role_from;
use query::{Index, Query, Term};
use rank::{Candidate, Form, Named, Wanted, WeightedTerm, in_a_row, rank, weight};
use scope::Scope;
use snippet::{CUT, Edges, MATCH_CLOSE, MATCH_OPEN, Needle, snippet};
use spelling::corrections;

/// Hits of one search. People read ten; a program that groups them by session reads a few hundred.
const HITS_MAX: usize = 300;

/// Newest matches that are ranked. Ranking all matches of a common word would mean to read all of them; the index walks
/// from the newest backwards at no cost, so the best of the newest come in a few milliseconds, however many there are.
const RANKED_MAX: usize = 300;

/// Text read for ranking. Some messages are files.
const RANKED_BYTES_MAX: usize = 2 << 20;

/// Words between which others may stand where matches are looked for that have all words close together.
const NEAR_WORDS: usize = 8;

/// How common the rarest word may be for that: each of its matches is looked at.
const NEAR_MATCHES_MAX: f64 = 4000.0;

/// The share of messages above which a word is not asked of an index: whether a message has it only counts for the order.
const EMPTY_SHARE: f64 = 0.2;

/// In a short history every word is common by that measure, and all are asked for.
const EMPTY_MATCHES_MIN: f64 = 1000.0;

/// Candidates that are compared with the query where an index knows only a part of it.
const CANDIDATES_MAX: usize = 2000;

/// Words of a query of which some may be parts of words. A question in many words is none.
const PARTS_TERMS_MAX: usize = 3;

/// Messages looked at that no index has yet: the newest ones, a few milliseconds of reading.
const SCANNED_MAX: usize = 20_000;

/// Words around a match.
const SNIPPET_WORDS: usize = 40;

pub(crate) fn search(conn: &Connection, search: &SearchQuery) -> Result<Vec<SearchHit>, Failure> {
    let query = Query::parse(&search.text);
    let Some(index) = query.index() else {
        return Ok(Vec::new());
    };
    let looking = Looking {
        conn,
        scope: Scope::of(conn, search)?,
        limit: search.limit.clamp(1, HITS_MAX),
        newest: index::indexed(conn)?.max(1),
        now_millis: newest_at(conn)?,
        in_a_row: in_a_row(&search.text),
        frequencies: RefCell::default(),
    };
    // Usually nothing: only a read-only store has messages that are not indexed.
    let mut hits = looking.by_scan(&query)?;
    hits.extend(looking.by_index(&query, index)?);
    if hits.is_empty() {
        hits = looking.by_parts_of_words(&query, index)?;
    }
    if hits.is_empty()
        && let Some(terms) = query.plain()
    {
        hits = looking.closest(terms, index)?;
    }
    hits.truncate(looking.limit);
    Ok(hits)
}

fn newest_at(conn: &Connection) -> Result<i64, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT coalesce((SELECT at FROM messages ORDER BY number DESC LIMIT 1), 0)",
    )?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// One search.
struct Looking<'a> {
    conn: &'a Connection,
    scope: Scope,
    limit: usize,
    /// The number of the newest message that is indexed, about as many as there are.
    newest: i64,
    now_millis: i64,
    in_a_row: Option<String>,
    /// What was found out about terms on the way.
    frequencies: RefCell<HashMap<String, f64>>,
}

impl Looking<'_> {
    /// Messages that have everything the query asks for.
    fn by_index(&self, query: &Query, index: Index) -> Result<Vec<SearchHit>, Failure> {
        let terms: Vec<&Term> = query.wanted().collect();
        let mut matches = Vec::new();
        for term in &terms {
            matches.push(self.matches_of(index, term)?);
        }
        let empty = (self.newest as f64 * EMPTY_SHARE).max(EMPTY_MATCHES_MIN);
        let is_empty = |term: &Term| {
            let at = terms.iter().position(|one| *one == term);
            at.is_some_and(|at| matches[at] > empty)
        };
        let checked = query.short_beginnings();
        let is_checked = !checked.is_empty();
        let groups = query.to_match(index, |term| {
            is_empty(term) || is_checked && term.is_short_beginning()
        });
        let wanted = self.wanted(&terms, &matches);
        if query.is_short_beginnings() {
            let mut newest = self.newest_candidates(&wanted)?;
            if newest.len() >= self.limit {
                rank(&mut newest, &wanted.terms);
                return self.literal_hits(&newest, &wanted.needles());
            }
        }
        // Each alternative has its own share, so that a common one does not crowd out a rare one.
        let share = if is_checked {
            CANDIDATES_MAX
        } else {
            RANKED_MAX.div_ceil(groups.len().max(1))
        };
        let mut candidates = Vec::new();
        for group in &groups {
            self.read_candidates(index, group, share, &wanted, &mut candidates)?;
        }
        candidates.retain(|candidate| candidate.has_all(&checked));
        let rarest = matches.iter().copied().fold(f64::INFINITY, f64::min);
        if candidates.len() >= RANKED_MAX
            && rarest <= NEAR_MATCHES_MAX
            && let Some(near) = near(query, index)
        {
            self.read_candidates(index, &near, share, &wanted, &mut candidates)?;
        }
        rank(&mut candidates, &wanted.terms);
        let words = groups.join(" OR ");
        let needles = wanted.needles();
        let shown = candidates.iter().take(self.limit);
        let hits = shown.map(|candidate| {
            if candidate.is_literal() || index == Index::Unspaced {
                self.literal_hit(candidate.message, &needles)
            } else {
                self.word_hit(candidate.message, &words)
            }
        });
        hits.collect()
    }

    fn wanted(&self, terms: &[&Term], matches: &[f64]) -> Wanted {
        let weighted = terms
            .iter()
            .zip(matches)
            .map(|(term, matches)| WeightedTerm {
                forms: vec![term.to_form()],
                weight: weight(*matches, self.newest as f64),
            });
        Wanted {
            terms: weighted.collect(),
            in_a_row: self.in_a_row.clone(),
            now_millis: self.now_millis,
        }
    }

    /// Messages that have all terms somewhere, inside words too. Only when there is a term that is no word.
    fn by_parts_of_words(&self, query: &Query, index: Index) -> Result<Vec<SearchHit>, Failure> {
        let terms: Vec<&Term> = query.wanted().collect();
        let is_worth_it = query.has_trigrams() && terms.len() <= PARTS_TERMS_MAX;
        if !is_worth_it || !self.has_odd_word(&terms, index)? {
            return Ok(Vec::new());
        }
        let forms = terms
            .iter()
            .map(|term| Form::new(term.text(), Edges::Anywhere));
        let weighted = forms.map(|form| WeightedTerm {
            forms: vec![form],
            weight: 1.0,
        });
        let wanted = Wanted {
            terms: weighted.collect(),
            in_a_row: self.in_a_row.clone(),
            now_millis: self.now_millis,
        };
        let mut candidates = self.fitting_candidates(query, &wanted)?;
        rank(&mut candidates, &wanted.terms);
        self.literal_hits(&candidates, &wanted.needles())
    }

    /// Returns whether a term is in no message as a word, and so perhaps as a part of one: alone, or like no other word.
    fn has_odd_word(&self, terms: &[&Term], index: Index) -> Result<bool, Failure> {
        for term in terms {
            let is_unknown = self.matches_of(index, term)? == 0.0;
            if is_unknown && (terms.len() == 1 || corrections(self.conn, term.text())?.is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns in how many messages a term is, roughly; exactly 0 if it is in none.
    fn matches_of(&self, index: Index, term: &Term) -> Result<f64, Failure> {
        if term.is_beginning() {
            return Ok(frequency::of_beginning(self.newest));
        }
        self.matches(index, &term.to_match(index))
    }

    fn matches(&self, index: Index, expression: &str) -> Result<f64, Failure> {
        if let Some(known) = self.frequencies.borrow().get(expression) {
            return Ok(*known);
        }
        let matches = frequency::matches(self.conn, index, expression, self.newest)?;
        let mut frequencies = self.frequencies.borrow_mut();
        frequencies.insert(expression.to_owned(), matches);
        Ok(matches)
    }

    fn fitting_candidates(
        &self,
        query: &Query,
        wanted: &Wanted,
    ) -> Result<Vec<Candidate>, Failure> {
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT m.number, m.role, m.at, m.text
             FROM trigrams CROSS JOIN messages m ON m.number = trigrams.rowid
             WHERE trigrams MATCH ?1 AND trigrams.rowid BETWEEN ?2 AND ?3 AND {}
             ORDER BY trigrams.rowid DESC LIMIT ?4",
            self.scope.condition
        ))?;
        let mut rows = statement.query(params![
            query.to_trigrams(),
            self.scope.first,
            self.scope.last,
            CANDIDATES_MAX as i64
        ])?;
        let mut candidates = Vec::new();
        while let Some(row) = rows.next()? {
            let named = named(row)?;
            if query.fits(named.text) {
                candidates.push(Candidate::new(&named, wanted));
            }
            if candidates.len() == RANKED_MAX {
                break;
            }
        }
        Ok(candidates)
    }

    /// Messages that have most of what a question in plain words asks for.
    fn closest(&self, terms: &[Term], index: Index) -> Result<Vec<SearchHit>, Failure> {
        let clues = relaxed::clues(self, index, terms)?;
        let ways = relaxed::ways(&clues, self.newest);
        let wanted = Wanted {
            terms: clues.into_iter().map(|clue| clue.term).collect(),
            in_a_row: self.in_a_row.clone(),
            now_millis: self.now_millis,
        };
        let mut candidates = Vec::new();
        // What has one word less may have others that say more.
        let mut led_somewhere = 0;
        for way in ways {
            let before = candidates.len();
            self.read_candidates(index, &way, RANKED_MAX, &wanted, &mut candidates)?;
            led_somewhere += usize::from(candidates.len() > before);
            if led_somewhere == 2 || candidates.len() >= RANKED_MAX {
                break;
            }
        }
        rank(&mut candidates, &wanted.terms);
        self.literal_hits(&candidates, &wanted.needles())
    }

    fn read_candidates(
        &self,
        index: Index,
        expression: &str,
        count_max: usize,
        wanted: &Wanted,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        let table = index.table();
        // CROSS JOIN keeps the index in the outer loop, where it delivers newest first and stops early.
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT m.number, m.role, m.at, m.text
             FROM {table} CROSS JOIN messages m ON m.number = {table}.rowid
             WHERE {table} MATCH ?1 AND {table}.rowid BETWEEN ?2 AND ?3 AND {}
             ORDER BY {table}.rowid DESC LIMIT ?4",
            self.scope.condition
        ))?;
        let mut rows = statement.query(params![
            expression,
            self.scope.first,
            self.scope.last,
            count_max as i64
        ])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let named = named(row)?;
            candidates.push(Candidate::new(&named, wanted));
            bytes += named.text.len();
            if bytes > RANKED_BYTES_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Reads the newest messages for those that have everything. An index would put together the lists of all words that
    /// begin so before it names the first message.
    fn newest_candidates(&self, wanted: &Wanted) -> Result<Vec<Candidate>, Failure> {
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT m.number, m.role, m.at, m.text FROM messages m
             WHERE m.number BETWEEN ?1 AND ?2 AND {}
             ORDER BY m.number DESC LIMIT ?3",
            self.scope.condition
        ))?;
        let mut rows = statement.query(params![
            self.scope.first,
            self.scope.last.min(self.newest),
            CANDIDATES_MAX as i64
        ])?;
        let all: Vec<usize> = (0..wanted.terms.len()).collect();
        let mut candidates = Vec::new();
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let named = named(row)?;
            bytes += named.text.len();
            let candidate = Candidate::new(&named, wanted);
            if candidate.has_all(&all) {
                candidates.push(candidate);
            }
            if candidates.len() == RANKED_MAX || bytes > RANKED_BYTES_MAX {
                break;
            }
        }
        Ok(candidates)
    }

    fn by_scan(&self, query: &Query) -> Result<Vec<SearchHit>, Failure> {
        let scope = self.scope.unindexed(self.conn)?;
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {HIT_COLUMNS}, m.text
             FROM messages m CROSS JOIN sessions s ON s.number = m.session
             WHERE m.number BETWEEN ?1 AND ?2 AND {}
             ORDER BY m.number DESC LIMIT ?3",
            scope.condition
        ))?;
        let needles: Vec<Needle> = query
            .wanted()
            .map(|term| Form::new(term.text(), Edges::Anywhere).to_needle())
            .collect();
        let mut rows = statement.query(params![scope.first, scope.last, SCANNED_MAX as i64])?;
        let mut hits = Vec::new();
        while let Some(row) = rows.next()? {
            let text = text(row, HIT_COLUMN_COUNT)?;
            if query.fits(text) {
                hits.push(hit(row, snippet(text, &needles))?);
            }
            if hits.len() == self.limit {
                break;
            }
        }
        Ok(hits)
    }

    fn literal_hits(
        &self,
        candidates: &[Candidate],
        needles: &[Needle],
    ) -> Result<Vec<SearchHit>, Failure> {
        let shown = candidates.iter().take(self.limit);
        shown
            .map(|candidate| self.literal_hit(candidate.message, needles))
            .collect()
    }

    fn literal_hit(&self, message: i64, needles: &[Needle]) -> Result<SearchHit, Failure> {
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {HIT_COLUMNS}, m.text
             FROM messages m CROSS JOIN sessions s ON s.number = m.session
             WHERE m.number = ?1"
        ))?;
        statement.query_row([message], |row| {
            let text = text(row, HIT_COLUMN_COUNT);
            Ok(text.and_then(|text| hit(row, snippet(text, needles))))
        })?
    }

    /// Lets the index say what matched: it knows about accents, but must look the message up in each term's list.
    fn word_hit(&self, message: i64, words: &str) -> Result<SearchHit, Failure> {
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {HIT_COLUMNS}, snippet(words, 0, ?3, ?4, ?5, ?6)
             FROM words
             CROSS JOIN messages m ON m.number = words.rowid
             CROSS JOIN sessions s ON s.number = m.session
             WHERE words MATCH ?1 AND words.rowid = ?2"
        ))?;
        let words_max = SNIPPET_WORDS as i64;
        let params = params![words, message, MATCH_OPEN, MATCH_CLOSE, CUT, words_max];
        statement.query_row(params, |row| Ok(hit(row, row.get(HIT_COLUMN_COUNT)?)))?
    }
}

/// Asks for all words close together, where a query is nothing but a few words.
fn near(query: &Query, index: Index) -> Option<String> {
    let terms = query.plain().filter(|terms| terms.len() > 1)?;
    let terms: Vec<String> = terms.iter().map(|term| term.to_match(index)).collect();
    let is_closed = terms.iter().all(|term| !term.ends_with('*'));
    is_closed.then(|| format!("NEAR({}, {NEAR_WORDS})", terms.join(" ")))
}

/// What [`hit`] reads, of a message `m` and its session `s`.
const HIT_COLUMNS: &str = "s.id, s.title, m.at, m.role, m.number";
const HIT_COLUMN_COUNT: usize = 5;

/// Reads a hit from [`HIT_COLUMNS`], which come first.
fn hit(row: &Row<'_>, snippet: String) -> Result<SearchHit, Failure> {
    Ok(SearchHit {
        session: row.get::<_, String>(0)?.into(),
        title: row.get(1)?,
        at: Timestamp::from_millis(row.get(2)?),
        role: role_from(&row.get::<_, String>(3)?)?,
        place: row.get::<_, i64>(4)?.unsigned_abs(),
        snippet,
    })
}

/// Reads number, role, time and text.
fn named<'row>(row: &'row Row<'_>) -> Result<Named<'row>, Failure> {
    Ok(Named {
        message: row.get(0)?,
        role: role_from(text(row, 1)?)?,
        at_millis: row.get(2)?,
        text: text(row, 3)?,
    })
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str, Failure> {
    let text = row.get_ref(column)?.as_str();
    Ok(text.map_err(rusqlite::Error::from)?)
}
