//! The last row: which model, how full its context is, what it cost, where we are.

use std::path::{Path, PathBuf};

use hermes_core::wording::thousands;
use ratatui_core::text::{Line, Span};

use crate::conversation::Conversation;
use crate::host::Around;
use crate::vi::Mode;
use crate::{theme, wrap};

/// A context as full as this is worth a warning, in percent.
const NEARLY_FULL: u64 = 80;

pub(crate) struct Status<'a> {
    pub(crate) conversation: &'a Conversation,
    pub(crate) around: Around,
    pub(crate) user_home: Option<&'a PathBuf>,
    pub(crate) shows_cost: bool,
    /// Where vi keys are used.
    pub(crate) mode: Option<Mode>,
}

impl Status<'_> {
    /// As many facts as fit, the most important first.
    pub(crate) fn row(&self, columns: usize) -> Line<'static> {
        let mut row = Line::from(Span::raw("  "));
        for fact in self.facts() {
            let separator = if row.spans.len() > 1 { " · " } else { "" };
            if row.width() + separator.len() + fact.width() <= columns {
                row.push_span(Span::styled(separator, theme::DIM));
                row.push_span(fact);
            }
        }
        wrap::cut(row, columns)
    }

    fn facts(&self) -> Vec<Span<'static>> {
        let Some(opened) = &self.conversation.opened else {
            return Vec::new();
        };
        let dim = |text: String| Span::styled(wrap::clean(&text), theme::DIM);
        let mut facts: Vec<_> = self.mode().into_iter().collect();
        facts.extend(opened.is_unasked.then(|| Span::styled("yolo", theme::BAD)));
        facts.extend(
            opened
                .mode
                .map(|mode| Span::styled(mode.name(), theme::WARNING)),
        );
        facts.push(dim(opened.model.clone()));
        facts.extend(self.context(opened.context_window));
        facts.extend(self.cost().map(dim));
        facts.extend(self.servers());
        facts.extend(self.processes().map(dim));
        facts.extend(self.around.fence.map(|fence| dim(fence.to_owned())));
        facts.push(dim(shorten_home(
            &opened.cwd,
            self.user_home.map(PathBuf::as_path),
        )));
        let title = opened.title.clone();
        facts.push(dim(title.unwrap_or_else(|| opened.id.to_string())));
        facts
    }

    fn mode(&self) -> Option<Span<'static>> {
        Some(match self.mode? {
            Mode::Insert => Span::styled("insert", theme::DIM),
            Mode::Normal => Span::styled("normal", theme::HEADING),
        })
    }

    fn context(&self, window: Option<u64>) -> Option<Span<'static>> {
        let used = self.conversation.spent.context_tokens;
        if used == 0 {
            return None;
        }
        let percent_of = |window| used.saturating_mul(100).checked_div(window);
        let Some((window, percent)) = window.and_then(|all| Some((all, percent_of(all)?))) else {
            return Some(Span::styled(
                format!("{} tokens", thousands(used)),
                theme::DIM,
            ));
        };
        let text = format!("{}/{} ({percent} %)", thousands(used), thousands(window));
        let style = match percent {
            0..NEARLY_FULL => theme::DIM,
            _ => theme::WARNING,
        };
        Some(Span::styled(text, style))
    }

    /// How many MCP servers work; a warning when one of them does not.
    fn servers(&self) -> Option<Span<'static>> {
        let Around {
            servers,
            servers_ready,
            ..
        } = self.around;
        match (servers, servers_ready) {
            (0, _) => None,
            (servers, ready) if ready == servers => {
                Some(Span::styled(format!("MCP {servers}"), theme::DIM))
            }
            _ => {
                let text = format!("MCP {servers_ready}/{servers}");
                Some(Span::styled(text, theme::WARNING))
            }
        }
    }

    fn processes(&self) -> Option<String> {
        match self.around.processes {
            0 => None,
            count => Some(format!("{count} in the background")),
        }
    }

    fn cost(&self) -> Option<String> {
        let spent = self.conversation.spent;
        let is_known = spent.micro_usd > 0;
        (self.shows_cost && is_known).then(|| {
            let more = if spent.is_partly_unknown { "+" } else { "" };
            format!("${:.2}{more}", spent.micro_usd as f64 / 1e6)
        })
    }
}

/// A folder as people write it, with `~` for their own.
pub(crate) fn shorten_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let short = [950, 12_345, 200_000, 1_048_576].map(thousands);
        assert_eq!(short, ["950", "12.3k", "200k", "1.0M"]);
    }

    #[test]
    fn homes_are_tildes() {
        let short = |path: &str| shorten_home(Path::new(path), Some(Path::new("/home/me")));
        assert_eq!(
            [short("/home/me"), short("/home/me/a"), short("/srv")],
            ["~", "~/a", "/srv"]
        );
    }
}
