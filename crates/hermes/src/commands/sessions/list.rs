//! `hermes sessions list`: the newest sessions, one per line.

use std::io;
use std::path::{Path, PathBuf};

use hermes_core::text::shorten;
use hermes_core::{Archive as _, Clock as _, SessionFilter, SessionRecord, Timestamp};
use hermes_store::SqliteStore;
use serde_json::json;

use super::{NONE_YET, open_archive};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{Table, age, count, one_line, print_json};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use crate::wiring::SystemClock;

/// Sessions of programs that use us as a tool; listed only when asked for.
pub(crate) const HIDDEN_SOURCE: &str = "tool";
/// Enough of a title to recognise it, and short enough for a line.
const TITLE_CHARS_MAX: usize = 60;

pub(super) async fn run(
    base: &Base,
    source: Option<String>,
    workspace: Option<PathBuf>,
    limit: usize,
    json: &JsonFlag,
) -> Outcome<()> {
    let nothing = if source.is_some() || workspace.is_some() {
        "no sessions fit"
    } else {
        NONE_YET
    };
    let records = match open_archive(base)? {
        Some(store) => records(&store, source, workspace, limit).await?,
        None if json.json => Vec::new(),
        None => return println(NONE_YET),
    };
    if json.json {
        return print_json(&json!(records));
    }
    if records.is_empty() {
        return println(nothing);
    }
    let style = Style::of(&io::stdout(), &base.environment);
    println(&table_text(&records, SystemClock.now(), style))
}

/// The newest sessions, for a conversation that asks about others.
pub(super) async fn newest(store: &SqliteStore, limit: usize) -> Outcome<String> {
    let records = records(store, None, None, limit).await?;
    Ok(if records.is_empty() {
        NONE_YET.to_owned()
    } else {
        table_text(&records, SystemClock.now(), Style::PLAIN)
    })
}

async fn records(
    store: &SqliteStore,
    source: Option<String>,
    workspace: Option<PathBuf>,
    limit: usize,
) -> Outcome<Vec<SessionRecord>> {
    let hides_some = source.is_none();
    let filter = SessionFilter {
        source,
        cwd: workspace.map(|folder| resolved(&folder)),
        // Which are hidden is known only afterwards.
        limit: if hides_some { 0 } else { limit },
    };
    let mut records = store.list(filter).await?;
    if hides_some {
        records.retain(|record| record.source != HIDDEN_SOURCE);
        records.truncate(if limit == 0 { usize::MAX } else { limit });
    }
    Ok(records)
}

/// The folder as sessions remember it: absolute, without links.
fn resolved(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder)
        .or_else(|_| std::path::absolute(folder))
        .unwrap_or_else(|_| folder.to_path_buf())
}

fn table_text(records: &[SessionRecord], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(["ID", "WHEN", "MESSAGES", "MODEL", "TITLE"]);
    for record in records {
        table.row([
            record.id.to_string(),
            format!(
                "{} ({})",
                age(record.updated, now),
                record.updated.date_text()
            ),
            record.messages.to_string(),
            record.model.to_string(),
            title(record),
        ]);
    }
    let mut text = table.styled(style);
    let unfinished = records.iter().filter(|record| record.has_open_turn).count() as u64;
    if unfinished > 0 {
        let what = count(unfinished, "session");
        let note = format!(
            "! {what} with a turn that is still running or was cut short; `hermes sessions recover` finishes those"
        );
        text.push_str(&format!("\n\n{}", style.yellow(note)));
    }
    text
}

fn title(record: &SessionRecord) -> String {
    let name = record.title.as_deref().unwrap_or(&record.preview);
    let name = shorten(&one_line(name), TITLE_CHARS_MAX);
    if record.has_open_turn {
        format!("! {name}")
    } else {
        name
    }
}
