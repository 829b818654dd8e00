//! The indexes: filling them, emptying them, and seeing whether they are right.

use rusqlite::{Connection, params};

use super::script::pieces_to_index;
use super::spelling::Spellings;
use crate::failure::Failure;

/// Messages indexed in one transaction: large enough to be worth one, small enough that nobody notices the wait.
const BATCH_MESSAGES: i64 = 256;

/// Text indexed in one transaction. Some messages are files.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The newest message that each index has; all before it are there too.
struct Progress {
    /// Words and trigrams.
    words: i64,
    /// Scripts without spaces, and spellings.
    unspaced: i64,
}

impl Progress {
    fn of(conn: &Connection) -> Result<Self, Failure> {
        let mut statement = conn.prepare_cached("SELECT indexed, unspaced FROM search_progress")?;
        let progress = statement.query_row([], |row| {
            Ok(Self {
                words: row.get(0)?,
                unspaced: row.get(1)?,
            })
        })?;
        Ok(progress)
    }

    fn of_all(&self) -> i64 {
        self.words.min(self.unspaced)
    }
}

/// Returns the newest message that is indexed; all before it are too.
pub(super) fn indexed(conn: &Connection) -> Result<i64, Failure> {
    Ok(Progress::of(conn)?.of_all())
}

/// Returns how many messages wait to be indexed, or a little more.
pub(crate) fn backlog(conn: &Connection) -> Result<i64, Failure> {
    let mut statement = conn.prepare_cached("SELECT coalesce(max(number), 0) FROM messages")?;
    let newest: i64 = statement.query_row([], |row| row.get(0))?;
    Ok((newest - indexed(conn)?).max(0))
}

/// Indexes the oldest messages that wait. Returns how many that were.
pub(crate) fn index_some(conn: &Connection) -> Result<usize, Failure> {
    let progress = Progress::of(conn)?;
    let mut waiting = conn.prepare_cached(
        "SELECT number, text, role FROM messages WHERE number > ?1 ORDER BY number LIMIT ?2",
    )?;
    let mut spellings = Spellings::default();
    let mut rows = waiting.query([progress.of_all(), BATCH_MESSAGES])?;
    let (mut count, mut bytes, mut last) = (0, 0, None);
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let text = super::text(row, 1)?;
        add(conn, &progress, number, text)?;
        if number > progress.unspaced && super::text(row, 2)? != "tool" {
            spellings.read(text);
        }
        count += 1;
        bytes += text.len();
        last = Some(number);
        if bytes > BATCH_BYTES_MAX {
            break;
        }
    }
    spellings.keep(conn)?;
    if let Some(last) = last {
        conn.prepare_cached(
            "UPDATE search_progress SET indexed = max(indexed, ?1), unspaced = max(unspaced, ?1)",
        )?
        .execute([last])?;
    }
    Ok(count)
}

/// Brings a message into the indexes that do not have it.
fn add(conn: &Connection, progress: &Progress, number: i64, text: &str) -> Result<(), Failure> {
    if number > progress.words {
        for sql in [
            "INSERT INTO words (rowid, text) VALUES (?1, ?2)",
            "INSERT INTO trigrams (rowid, text) VALUES (?1, ?2)",
        ] {
            conn.prepare_cached(sql)?.execute(params![number, text])?;
        }
    }
    if number > progress.unspaced
        && let Some(pieces) = pieces_to_index(text)
    {
        conn.prepare_cached("INSERT INTO unspaced (rowid, text) VALUES (?1, ?2)")?
            .execute(params![number, pieces])?;
    }
    Ok(())
}

/// Takes the messages of a session from `first` on out of the indexes. Must come before the rows go: the indexes need
/// their text for it.
pub(crate) fn forget(conn: &Connection, session: i64, first: i64) -> Result<(), Failure> {
    let Progress { words, unspaced } = Progress::of(conn)?;
    let spellings = spellings_of(conn, session, first, unspaced)?;
    for (indexed, sql) in [
        (
            words,
            "INSERT INTO words (words, rowid, text)
             SELECT 'delete', number, text FROM messages
             WHERE session = ?1 AND number BETWEEN ?2 AND ?3",
        ),
        (
            words,
            "INSERT INTO trigrams (trigrams, rowid, text)
             SELECT 'delete', number, text FROM messages
             WHERE session = ?1 AND number BETWEEN ?2 AND ?3",
        ),
        (
            unspaced,
            "DELETE FROM unspaced WHERE rowid IN (
                 SELECT number FROM messages WHERE session = ?1 AND number BETWEEN ?2 AND ?3)",
        ),
    ] {
        conn.prepare_cached(sql)?
            .execute([session, first, indexed])?;
    }
    spellings.forget_unused(conn)
}

/// The words that a session said from `first` on.
fn spellings_of(
    conn: &Connection,
    session: i64,
    first: i64,
    last: i64,
) -> Result<Spellings, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT text FROM messages
         WHERE session = ?1 AND number BETWEEN ?2 AND ?3 AND role <> 'tool'",
    )?;
    let mut spellings = Spellings::default();
    let mut rows = statement.query([session, first, last])?;
    while let Some(row) = rows.next()? {
        spellings.read(super::text(row, 0)?);
    }
    Ok(spellings)
}

/// Compares the indexes with the messages, which must all be indexed. `SQLITE_CORRUPT` means that they differ.
pub(crate) fn check(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "INSERT INTO words (words, rank) VALUES ('integrity-check', 1);
         INSERT INTO trigrams (trigrams, rank) VALUES ('integrity-check', 1);
         INSERT INTO unspaced (unspaced) VALUES ('integrity-check');",
    )
}

/// Builds all anew from the messages.
pub(crate) fn rebuild(conn: &Connection) -> Result<(), Failure> {
    conn.execute_batch(
        "INSERT INTO words (words) VALUES ('rebuild');
         INSERT INTO trigrams (trigrams) VALUES ('rebuild');
         INSERT INTO unspaced (unspaced) VALUES ('delete-all');
         DELETE FROM spellings;
         UPDATE search_progress
         SET indexed = (SELECT coalesce(max(number), 0) FROM messages), unspaced = 0;",
    )?;
    while index_some(conn)? > 0 {}
    Ok(())
}
