//! `hermes sessions search`: where something was said.

use std::io;

use hermes_core::{Archive as _, Clock as _, SearchHit, SearchQuery, Timestamp};
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
