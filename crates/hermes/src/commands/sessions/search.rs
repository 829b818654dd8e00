//! `hermes sessions search`: where something was said.

use std::io;
use std::sync::Arc;

use hermes_core::text::printable;
use hermes_core::{Archive as _, Clock as _, Role, SearchHit, SearchQuery, Timestamp};
use hermes_learning::recall::{Sort, Wanted};
use hermes_runtime::models::Models;
use hermes_runtime::recall::recall_for_people;
use serde_json::json;

use super::transcript::role_name;
use super::{NONE_YET, open_archive};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{age, one_line, print_json};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::SystemClock;

/// Matches stand between these in a snippet.
const MATCH_OPEN: &str = ">>>";
const MATCH_CLOSE: &str = "<<<";

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
        return if json.json {
            println("[]")
        } else {
            println(NONE_YET)
        };
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
    println(&hits_text(
        text,
        &hits,
        Style::of(&io::stdout(), &base.environment),
    ))
}

/// What conversations say about something, in the words of a cheap model.
pub(super) async fn summaries(
    base: &Base,
    text: &str,
    limit: usize,
    json: &JsonFlag,
) -> Outcome<()> {
    let Some(store) = open_archive(base)? else {
        return if json.json {
            println("[]")
        } else {
            println(NONE_YET)
        };
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

/// Where something was said, as plain text.
pub(super) fn text(words: &str, hits: &[SearchHit]) -> String {
    hits_text(words, hits, Style::PLAIN)
}

fn hits_text(text: &str, hits: &[SearchHit], style: Style) -> String {
    if hits.is_empty() {
        return format!("nothing found for `{}`", one_line(text));
    }
    let now = SystemClock.now();
    let hits: Vec<String> = hits.iter().map(|hit| shown(hit, now, style)).collect();
    hits.join("\n")
}

fn shown(hit: &SearchHit, now: Timestamp, style: Style) -> String {
    let title = one_line(hit.title.as_deref().unwrap_or_default());
    let heading = format!(
        "{}  {}  {}  {title}",
        style.bold(&hit.session),
        age(hit.at, now),
        role_name(hit.role)
    );
    let snippet = highlighted(&one_line(&hit.snippet), style);
    format!("{}\n    {snippet}", heading.trim_end())
}

/// Colours the matches; without colour their marks stay.
fn highlighted(snippet: &str, style: Style) -> String {
    if !style.is_coloured() {
        return snippet.to_owned();
    }
    let mut text = String::new();
    let mut rest = snippet;
    while let Some((before, from_match)) = rest.split_once(MATCH_OPEN) {
        let (matched, after) = from_match
            .split_once(MATCH_CLOSE)
            .unwrap_or((from_match, ""));
        text.push_str(before);
        text.push_str(&style.yellow(matched));
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_where_there_is_no_colour() {
        let snippet = "use >>>docker<<< here";
        assert_eq!(highlighted(snippet, Style::PLAIN), snippet);
    }
}
