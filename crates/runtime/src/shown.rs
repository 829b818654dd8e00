//! What commands show, as text: for every surface that has no better way.

pub mod insights;
pub mod search;
pub mod servers;
pub mod sessions;
pub mod transcript;

use crate::commands::Shown;
use crate::style::Style;

/// Everything as one text, charts as wide as this many columns allow; none when there is nothing to show.
pub fn text(shown: &[Shown], columns: usize) -> Option<String> {
    let parts: Vec<String> = shown.iter().map(|shown| part(shown, columns)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn part(shown: &Shown, columns: usize) -> String {
    match shown {
        Shown::Text(text) | Shown::Diff(text) => text.clone(),
        Shown::Sessions(records) => sessions::text(records),
        Shown::Found { words, hits } => search::text(words, hits, Style::PLAIN),
        Shown::Transcript { record, lines } => {
            let text = transcript::readable(record, lines, Style::PLAIN);
            text.trim_end().to_owned()
        }
        Shown::Servers { warnings, servers } => {
            let warnings = warnings
                .iter()
                .map(|warning| format!("warning: {warning}\n"));
            let servers = if servers.is_empty() {
                "no MCP servers; `hermes mcp add` adds one".to_owned()
            } else {
                servers::table(servers, Style::PLAIN)
            };
            format!("{}{servers}", warnings.collect::<String>())
        }
        Shown::Insights(summary) => insights::text(summary, Style::PLAIN, columns),
    }
}
