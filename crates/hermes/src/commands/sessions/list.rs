//! `hermes sessions list`: the newest sessions, one per line.

use std::io;
use std::path::{Path, PathBuf};

use hermes_core::{Archive as _, Clock as _, SessionFilter, SessionRecord};
use hermes_store::SqliteStore;
use serde_json::json;

use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::print_json;
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::commands::HIDDEN_SOURCE;
use hermes_runtime::shown::sessions::{NONE_YET, table};
use hermes_runtime::{SystemClock, open_archive};

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
    println(&table(&records, SystemClock.now(), style))
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
