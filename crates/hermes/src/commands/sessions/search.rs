//! `hermes sessions search`: where something was said.

use std::io;
use std::sync::Arc;

use hermes_core::text::printable;
use hermes_core::{Archive as _, Clock as _, Role, SearchQuery};
use hermes_learning::recall::{Sort, Wanted};
use hermes_runtime::SystemClock;
use hermes_runtime::layout::{age, one_line};
use hermes_runtime::models::Models;
use hermes_runtime::recall::recall_for_people;
use serde_json::json;

use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::print_json;
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::open_archive;
use hermes_runtime::shown::search;
use hermes_runtime::shown::sessions::NONE_YET;

/// Conversations that are summarised at most: each is a request.
const SUMMARIES_MAX: usize = 10;

pub(super) async fn run(
    base: &Base,
    text: &str,
    session: Option<&str>,
    limit: usize,
    json: &JsonFlag,
) -> Outcome<()> {
    let Some(store) = open_archive(base)? else {
        return nothing_yet(json);
    };
    let session = match session {
        Some(name) => Some(store.find(name).await?),
        None => None,
    };
    let query = SearchQuery {
        text: text.to_owned(),
        session,
        limit,
        ..SearchQuery::default()
    };
    let hits = store.search(query).await?;
    if json.json {
        return print_json(&json!(hits));
    }
    let style = Style::of(&io::stdout(), &base.environment);
    println(&search::text(text, &hits, style))
}

fn nothing_yet(json: &JsonFlag) -> Outcome<()> {
    if json.json {
        println("[]")
    } else {
        println(NONE_YET)
    }
}

/// What conversations say about something, in the words of a cheap model.
pub(super) async fn summaries(
    base: &Base,
    text: &str,
    limit: usize,
    json: &JsonFlag,
) -> Outcome<()> {
    let Some(store) = open_archive(base)? else {
        return nothing_yet(json);
    };
    let models = Models::default();
    let recall = recall_for_people(base, Arc::new(store), &models).await?;
    let wanted = Wanted {
        query: text.to_owned(),
        roles: vec![Role::User, Role::Assistant],
        limit: limit.clamp(1, SUMMARIES_MAX),
        sort: Sort::default(),
        current: None,
    };
    let found = recall.discover(&wanted).await?;
    let (summaries, _) = recall.summarise(&"search".into(), text, &found).await;
    let both = found.iter().zip(summaries);
    if json.json {
        let told = both.map(|(found, summary)| {
            let (summary, error) = match summary {
                Ok(summary) => (Some(summary), None),
                Err(error) => (None, Some(error)),
            };
            json!({
                "hit": found.best,
                "summary": summary.as_ref().map(|summary| &summary.text),
                "messages": summary.as_ref().map(|summary| &summary.messages),
                "error": error,
            })
        });
        return print_json(&told.collect());
    }
    if found.is_empty() {
        return println(&format!("nothing found for `{}`", one_line(text)));
    }
    let (now, style) = (
        SystemClock.now(),
        Style::of(&io::stdout(), &base.environment),
    );
    for (found, summary) in both {
        let told = match summary {
            Ok(summary) => printable(&summary.text).into_owned(),
            Err(error) => {
                format!("{}\n(no summary: {error})", one_line(&found.best.snippet))
            }
        };
        let title = one_line(found.record.title.as_deref().unwrap_or_default());
        let heading = format!(
            "{}  {}  {title}",
            style.bold(&found.best.session),
            age(found.best.at, now)
        );
        println(&format!("{}\n{told}\n", heading.trim_end()))?;
    }
    Ok(())
}
