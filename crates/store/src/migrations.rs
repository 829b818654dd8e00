//! Brings a database file to the schema this build knows. Forward only: one numbered file per schema, never edited
//! after its release.

use std::path::Path;

use hermes_core::StoreError;
use rusqlite::Connection;

use crate::failure::Failure;

/// `MIGRATIONS[n]` leads from schema `n` to `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_sessions.sql"),
    include_str!("migrations/0002_rewind.sql"),
    include_str!("migrations/0003_approvals.sql"),
    include_str!("migrations/0004_approval_tool.sql"),
    include_str!("migrations/0005_approval_preview.sql"),
    include_str!("migrations/0006_mcp_offers.sql"),
    include_str!("migrations/0007_approval_code.sql"),
    include_str!("migrations/0008_state.sql"),
    include_str!("migrations/0009_queued.sql"),
    include_str!("migrations/0010_shortened.sql"),
    include_str!("migrations/0011_learning.sql"),
    include_str!("migrations/0012_search.sql"),
    include_str!("migrations/0013_gateway.sql"),
    include_str!("migrations/0014_records.sql"),
    include_str!("migrations/0015_user_models.sql"),
    include_str!("migrations/0016_schedules.sql"),
    include_str!("migrations/0017_people.sql"),
    include_str!("migrations/0018_prefix_texts.sql"),
];

/// The schema this build reads and writes.
pub(crate) const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// Marks the file as ours, so that another program's database is never taken for an empty one of our own.
const APPLICATION_ID: i64 = 0x4865_726d;

/// Reads the schema number of a file: 0 for an empty one. Refuses files that are not ours or too new. Writes nothing.
pub(crate) fn schema_of(conn: &Connection, path: &Path) -> Result<u32, Failure> {
    let found = pragma(conn, "user_version")? as u32;
    let is_empty = !conn.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| {
        row.get::<_, bool>(0)
    })?;
    if is_empty && found == 0 {
        return Ok(0);
    }
    if pragma(conn, "application_id")? != APPLICATION_ID {
        return Err(Failure::Unreadable(
            "it is the database of another program".into(),
        ));
    }
    if found > SCHEMA {
        return Err(Failure::Told(StoreError::TooNew {
            path: path.to_owned(),
            found,
            known: SCHEMA,
        }));
    }
    Ok(found)
}

/// Runs what is missing, all in one transaction.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), Failure> {
    if schema_of(conn, path)? == SCHEMA {
        return Ok(());
    }
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let found = schema_of(&transaction, path)?;
    for migration in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(&without_comments(migration))?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    Ok(transaction.commit()?)
}

/// SQLite keeps the text of every statement. Without what is said and laid out for people all of it is on the first page of a file: whatever
/// happens to the others, what they hold is still known.
fn without_comments(sql: &str) -> String {
    let lines = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or(line));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<String> = words.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}
