//! `hermes insights`: what was used, as charts in the terminal or as a page.

mod chart;
mod page;
mod summary;

use std::io;
use std::path::Path;

use hermes_core::{Archive as _, Clock as _, Timestamp};
use hermes_store::SqliteStore;
use serde_json::json;

use super::layout::print_json;
use super::sessions::open_archive;
use crate::args::InsightsArgs;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use crate::style::Style;
use crate::wiring::SystemClock;
use chart::Canvas;
use summary::Summary;

const NOTHING_YET: &str = "nothing was asked in this time; `hermes` starts a conversation";

pub(crate) async fn run(base: &Base, args: InsightsArgs) -> Outcome<()> {
    let summary = match open_archive(base)? {
        Some(store) => gather(&store, args.days).await?,
        None => Summary::default(),
    };
    if let Some(path) = &args.html {
        return save(path, &page::html(&summary));
    }
    if args.json.json {
        return print_json(&json!(summary.insights));
    }
    println(&text(&summary, Style::of(&io::stdout(), &base.environment)))
}

/// The same, for a conversation that asks.
pub(crate) async fn told(store: &SqliteStore, days: u32) -> Outcome<String> {
    Ok(text(&gather(store, days).await?, Style::PLAIN))
}

async fn gather(store: &SqliteStore, days: u32) -> Outcome<Summary> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let since = SystemClock.now().as_millis() - i64::from(days) * DAY_MS;
    let insights = store.insights(Timestamp::from_millis(since)).await?;
    Ok(Summary { days, insights })
}

fn text(summary: &Summary, style: Style) -> String {
    if summary.is_empty() {
        NOTHING_YET.to_owned()
    } else {
        let columns = columns();
        chart::text(summary, Canvas { style, columns })
    }
}

/// How wide the terminal is; whatever tells no width is an ordinary one.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).unwrap_or(80)
}

fn save(path: &Path, page: &str) -> Outcome<()> {
    std::fs::write(path, page).map_err(|error| {
        Failure::new(format!("cannot write `{}`: {error}", path.display()))
            .hint("choose another place: hermes insights --html FILE")
    })?;
    println(&format!("wrote `{}`; open it in a browser", path.display()))
}
