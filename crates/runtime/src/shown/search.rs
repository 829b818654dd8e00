//! Where something was said.

use hermes_core::{Clock as _, SearchHit, Timestamp};

use super::transcript::role_name;
use crate::clock::SystemClock;
use crate::layout::{age, one_line};
use crate::style::Style;

/// Matches stand between these in a snippet.
const MATCH_OPEN: &str = ">>>";
const MATCH_CLOSE: &str = "<<<";

/// The hits, with what was said around them.
pub fn text(words: &str, hits: &[SearchHit], style: Style) -> String {
    if hits.is_empty() {
        return format!("nothing found for `{}`", one_line(words));
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
