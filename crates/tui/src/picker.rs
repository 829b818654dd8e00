//! A list to choose from: type to narrow it down, arrows and Enter to choose.

use hermes_core::command::Command;
use ratatui_core::text::{Line, Span};

use crate::editor::Edit;
use crate::host::{Choice, Item};
use crate::keymap::Key;
use crate::{fuzzy, theme, wrap};

#[derive(Debug)]
pub(crate) struct Picker {
    choice: Choice,
    letters: String,
    /// Indices of the items that fit the letters, best first.
    fitting: Vec<usize>,
    selected: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    Nothing,
    Chosen(String),
    Cancelled,
}

impl Picker {
    pub(crate) fn command(&self) -> &'static Command {
        self.choice.command
    }

    pub(crate) fn new(choice: Choice) -> Self {
        let mut picker = Self {
            choice,
            letters: String::new(),
            fitting: Vec::new(),
            selected: 0,
        };
        picker.narrow();
        picker
    }

    pub(crate) fn key(&mut self, key: Key) -> Picked {
        match key {
            Key::Edit(Edit::Insert(c)) => {
                self.letters.push(c);
                self.narrow();
            }
            Key::Edit(Edit::Backspace) => {
                self.letters.pop();
                self.narrow();
            }
            Key::Edit(Edit::KillToLineStart | Edit::KillWordBack) => {
                self.letters.clear();
                self.narrow();
            }
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => {
                let last = self.fitting.len().saturating_sub(1);
                self.selected = (self.selected + 1).min(last);
            }
            Key::Cancel | Key::Interrupt | Key::End => return Picked::Cancelled,
            Key::Send => {
                if let Some(item) = self.item(self.selected) {
                    return Picked::Chosen(item.value.clone());
                }
            }
            _ => {}
        }
        Picked::Nothing
    }

    fn item(&self, row: usize) -> Option<&Item> {
        self.choice.items.get(*self.fitting.get(row)?)
    }

    fn narrow(&mut self) {
        let texts: Vec<_> = self
            .choice
            .items
            .iter()
            .map(|item| format!("{} {}", item.label, item.detail))
            .collect();
        self.fitting = fuzzy::matching(&self.letters, texts.iter().map(String::as_str));
        self.selected = 0;
    }

    pub(crate) fn rows(&self, columns: usize, rows_max: usize) -> Vec<Line<'static>> {
        let mut rows = vec![wrap::cut(
            Line::from(vec![
                Span::styled(wrap::clean(&self.choice.title), theme::HEADING),
                Span::raw("  "),
                Span::raw(self.letters.clone()),
                Span::styled("▏", theme::ACCENT),
            ]),
            columns,
        )];
        let shown = rows_max.saturating_sub(2).max(1);
        let first = (self.selected + 1).saturating_sub(shown);
        let last = self.fitting.len().min(first + shown);
        for row in first..last {
            rows.extend(
                self.item(row)
                    .map(|item| item_row(item, row == self.selected, columns)),
            );
        }
        if self.fitting.is_empty() {
            rows.push(Line::styled("  nothing fits", theme::DIM));
        }
        let count = format!(
            "  {} of {} · Enter chooses, Esc leaves",
            self.fitting.len(),
            self.choice.items.len()
        );
        rows.push(wrap::cut(Line::styled(count, theme::DIM), columns));
        rows.truncate(rows_max.max(1));
        rows
    }
}

fn item_row(item: &Item, is_selected: bool, columns: usize) -> Line<'static> {
    let (mark, style) = match is_selected {
        true => ("› ", theme::HEADING),
        false => ("  ", theme::PLAIN),
    };
    let row = Line::from(vec![
        Span::styled(mark, theme::ACCENT),
        Span::styled(wrap::clean(&item.label), style),
        Span::styled(format!("  {}", wrap::clean(&item.detail)), theme::DIM),
    ]);
    wrap::cut(row, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_narrow_the_list_and_enter_chooses() {
        let item = |value: &str, label: &str| Item {
            value: value.into(),
            label: label.into(),
            detail: String::new(),
        };
        let mut picker = Picker::new(Choice {
            command: &hermes_core::command::COMMANDS[0],
            title: "Sessions".into(),
            items: vec![
                item("1", "fix the build"),
                item("2", "write docs"),
                item("3", "docker"),
            ],
        });
        "doc"
            .chars()
            .for_each(|c| _ = picker.key(Key::Edit(Edit::Insert(c))));
        picker.key(Key::Down);
        let chosen = picker.key(Key::Send);
        assert_eq!(chosen, Picked::Chosen("2".into()));
        assert_eq!(picker.key(Key::Cancel), Picked::Cancelled);
        assert!(picker.rows(20, 2).len() <= 2);
    }
}
