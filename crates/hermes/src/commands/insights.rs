//! `hermes insights`: what was used, as charts in the terminal or as a page.

use std::io;
use std::path::Path;

use hermes_core::{Archive as _, Clock as _, Timestamp};
use hermes_store::SqliteStore;
use serde_json::json;

use super::layout::print_json;
use crate::args::InsightsArgs;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{columns, println};
use crate::style::Style;
use hermes_runtime::shown::insights::{Summary, html, text};
use hermes_runtime::{SystemClock, open_archive};

pub(crate) async fn run(base: &Base, args: InsightsArgs) -> Outcome<()> {
    let summary = match open_archive(base)? {
        Some(store) => gather(base, &store, args.days).await?,
        None => Summary::default(),
    };
    if let Some(path) = &args.html {
        return save(path, &html(&summary));
    }
    if args.json.json {
        let mut insights = json!(summary.insights);
        insights["skills"] = json!(summary.skills);
        return print_json(&insights);
    }
    let style = Style::of(&io::stdout(), &base.environment);
    println(&text(&summary, style, columns()))
}

async fn gather(base: &Base, store: &SqliteStore, days: u32) -> Outcome<Summary> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let since = SystemClock.now().as_millis() - i64::from(days) * DAY_MS;
    let insights = store.insights(Timestamp::from_millis(since)).await?;
    Ok(Summary {
        days,
        insights,
        skills: hermes_runtime::skills::uses(base)?,
    })
}

fn save(path: &Path, page: &str) -> Outcome<()> {
    std::fs::write(path, page).map_err(|error| {
        Failure::new(format!("cannot write `{}`: {error}", path.display()))
            .hint("choose another place: hermes insights --html FILE")
    })?;
    println(&format!("wrote `{}`; open it in a browser", path.display()))
}
