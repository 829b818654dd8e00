//! What commands of a conversation show, as plain text.

use hermes_runtime::commands::Shown;

use crate::commands::{insights, mcp, sessions};
use crate::style::Style;

/// Everything as one text; none when there is nothing to show.
pub fn text(shown: &[Shown]) -> Option<String> {
    let parts: Vec<String> = shown.iter().map(part).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn part(shown: &Shown) -> String {
    match shown {
        Shown::Text(text) | Shown::Diff(text) => text.clone(),
        Shown::Sessions(records) => sessions::listed(records),
        Shown::Found { words, hits } => sessions::found(words, hits),
        Shown::Transcript { record, lines } => sessions::readable(record, lines),
        Shown::Servers { warnings, servers } => {
            let warnings = warnings
                .iter()
                .map(|warning| format!("warning: {warning}\n"));
            let servers = if servers.is_empty() {
                "no MCP servers; `hermes mcp add` adds one".to_owned()
            } else {
                mcp::status_table(servers)
            };
            format!("{}{servers}", warnings.collect::<String>())
        }
        Shown::Insights { days, insights } => {
            insights::told(*days, insights.as_ref().clone(), Style::PLAIN)
        }
    }
}
