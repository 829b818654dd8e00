//! Search through what was written before, from the last message back.

use ratatui_core::text::{Line, Span};

use crate::editor::Edit;
use crate::history::History;
use crate::keymap::Key;
use crate::theme;

#[derive(Debug, Default)]
pub(super) struct Search {
    words: String,
    found: Option<usize>,
}

/// What a key did to a search.
pub(super) enum Searched {
    GoesOn,
    GivenUp,
    /// What was found is wanted, if anything was.
    Taken(Option<String>),
}

impl Search {
    pub(super) fn key(&mut self, key: Key, history: &History) -> Searched {
        match key {
            Key::Edit(Edit::Insert(c)) => {
                self.words.push(c);
                self.found = history.find(&self.words, None);
            }
            Key::Edit(Edit::Backspace) => {
                self.words.pop();
                self.found = history.find(&self.words, None);
            }
            Key::SearchHistory | Key::Up => {
                let older = history.find(&self.words, self.found);
                self.found = older.or(self.found);
            }
            Key::Cancel | Key::Interrupt | Key::OpenEditor => return Searched::GivenUp,
            _ => return Searched::Taken(self.found(history).map(str::to_owned)),
        }
        Searched::GoesOn
    }

    pub(super) fn found<'a>(&self, history: &'a History) -> Option<&'a str> {
        self.found.and_then(|at| history.entry(at))
    }

    pub(super) fn row(&self) -> Line<'static> {
        Line::from(vec![
            Span::styled("search: ", theme::ACCENT),
            Span::raw(self.words.clone()),
            Span::styled("  Enter takes it, Ctrl-R goes back further", theme::DIM),
        ])
    }
}
