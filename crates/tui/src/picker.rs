//! A list to choose from: type to narrow it down, arrows and Enter to choose. What is in an item is asked for when it is
//! looked at, and the words that are typed are looked for in all of them.

use std::collections::BTreeMap;

use hermes_core::command::Command;
use ratatui_core::text::{Line, Span};

use crate::editor::Edit;
use hermes_core::choice::Depth;

use crate::host::{Choice, Item, ToHost};
use crate::keymap::Key;
use crate::wrap::Margin;
use crate::{fuzzy, theme, wrap};

/// Rows for what is in the selected item, and of how many rows a list leaves room for them.
const PREVIEW_ROWS: usize = 6;
const ROWS_FOR_PREVIEW: usize = 13;
/// One letter is in everything.
const SEARCHED_LETTERS_MIN: usize = 2;

#[derive(Debug)]
pub(crate) struct Picker {
    choice: Choice,
    letters: String,
    /// Indices of the items that fit the letters, best first.
    fitting: Vec<usize>,
    /// Items that fit because of what is in them; they come last.
    found: Vec<Item>,
    /// The letters that were looked for last.
    searched: String,
    /// What is in the items that were looked at, as far as it is known.
    previews: BTreeMap<String, Option<String>>,
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
            found: Vec::new(),
            searched: String::new(),
            previews: BTreeMap::new(),
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
                let last = self.count().saturating_sub(1);
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

    /// What it does not know yet of the item that is selected and of the letters that were typed.
    pub(crate) fn requests(&mut self) -> Vec<ToHost> {
        if self.choice.depth == Depth::Flat {
            return Vec::new();
        }
        let mut requests = Vec::new();
        let is_long = self.letters.chars().count() >= SEARCHED_LETTERS_MIN;
        if is_long && self.searched != self.letters {
            self.searched.clone_from(&self.letters);
            requests.push(ToHost::Search(self.letters.clone()));
        }
        if let Some(value) = self.item(self.selected).map(|item| item.value.clone())
            && !self.previews.contains_key(&value)
        {
            self.previews.insert(value.clone(), None);
            requests.push(ToHost::Look(value));
        }
        requests
    }

    pub(crate) fn looked(&mut self, value: &str, text: &str) {
        let text = wrap::clean(text);
        self.previews.insert(value.to_owned(), Some(text));
    }

    /// Takes what was found, unless other letters were typed meanwhile.
    pub(crate) fn found(&mut self, words: &str, items: &[Item]) {
        if words != self.letters {
            return;
        }
        let fits = |item: &Item| {
            let mut fitting = self.fitting.iter().map(|at| &self.choice.items[*at]);
            fitting.any(|known| known.value == item.value)
        };
        self.found = items.iter().filter(|item| !fits(item)).cloned().collect();
    }

    fn item(&self, row: usize) -> Option<&Item> {
        match self.fitting.get(row) {
            Some(at) => self.choice.items.get(*at),
            None => self.found.get(row.checked_sub(self.fitting.len())?),
        }
    }

    fn count(&self) -> usize {
        self.fitting.len() + self.found.len()
    }

    fn narrow(&mut self) {
        let texts: Vec<_> = self
            .choice
            .items
            .iter()
            .map(|item| format!("{} {}", item.label, item.detail))
            .collect();
        self.fitting = fuzzy::matching(&self.letters, texts.iter().map(String::as_str));
        self.found.clear();
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
        let preview = if rows_max >= ROWS_FOR_PREVIEW {
            self.preview(columns)
        } else {
            Vec::new()
        };
        let shown = rows_max.saturating_sub(2 + preview.len()).max(1);
        let first = (self.selected + 1).saturating_sub(shown);
        let last = self.count().min(first + shown);
        for row in first..last {
            rows.extend(
                self.item(row)
                    .map(|item| item_row(item, row == self.selected, columns)),
            );
        }
        if self.count() == 0 {
            rows.push(Line::styled("  nothing fits", theme::DIM));
        }
        rows.extend(preview);
        rows.push(wrap::cut(Line::styled(self.summary(), theme::DIM), columns));
        rows.truncate(rows_max.max(1));
        rows
    }

    fn summary(&self) -> String {
        let (count, all) = (self.fitting.len(), self.choice.items.len());
        let found = match self.found.len() {
            0 => String::new(),
            found => format!(", {found} by what is in them"),
        };
        format!("  {count} of {all}{found} · Enter chooses, Esc leaves")
    }

    /// What is in the selected item, below a line; the same number of rows for every item of a list, so that nothing
    /// jumps.
    fn preview(&self, columns: usize) -> Vec<Line<'static>> {
        if self.choice.depth == Depth::Flat {
            return Vec::new();
        }
        let item = self.item(self.selected);
        let text = item.and_then(|item| self.previews.get(&item.value)?.as_deref());
        let mut rows: Vec<_> = text
            .unwrap_or_default()
            .lines()
            .flat_map(|line| {
                wrap::words(&[Span::raw(line.to_owned())], columns, &Margin::indent(2))
            })
            .take(PREVIEW_ROWS)
            .collect();
        rows.resize(PREVIEW_ROWS, Line::default());
        rows.insert(0, Line::styled("─".repeat(columns), theme::DIM));
        rows
    }
}

fn item_row(item: &Item, is_selected: bool, columns: usize) -> Line<'static> {
    let (mark, style) = if is_selected {
        ("› ", theme::HEADING)
    } else {
        ("  ", theme::PLAIN)
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

    fn item(value: &str, label: &str) -> Item {
        Item {
            value: value.into(),
            label: label.into(),
            detail: String::new(),
        }
    }

    fn picker(depth: Depth) -> Picker {
        Picker::new(Choice {
            command: &hermes_core::command::COMMANDS[0],
            title: "Sessions".into(),
            items: vec![
                item("1", "fix the build"),
                item("2", "write docs"),
                item("3", "docker"),
            ],
            depth,
        })
    }

    fn typed(picker: &mut Picker, letters: &str) {
        letters
            .chars()
            .for_each(|c| _ = picker.key(Key::Edit(Edit::Insert(c))));
    }

    fn shown(picker: &Picker) -> String {
        let rows = picker.rows(60, 20);
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    #[test]
    fn what_is_in_an_item_is_asked_for_once_and_shown() {
        let mut picker = picker(Depth::Deep);
        let requests = picker.requests();
        assert!(matches!(requests.as_slice(), [ToHost::Look(value)] if value == "1"));
        assert!(picker.requests().is_empty());
        picker.looked("1", "you: why \u{1b}[2Jred?");
        assert!(shown(&picker).contains("you: why red?"));
    }

    #[test]
    fn what_is_found_inside_comes_after_what_fits_and_only_for_these_letters() {
        let mut picker = picker(Depth::Deep);
        picker.requests();
        typed(&mut picker, "doc");
        let requests = picker.requests();
        assert!(matches!(requests.first(), Some(ToHost::Search(words)) if words == "doc"));
        picker.found("do", &[item("8", "too late")]);
        picker.found(
            "doc",
            &[item("2", "write docs"), item("9", "a talk on doctors")],
        );
        let shown = shown(&picker);
        assert!(shown.contains("a talk on doctors") && !shown.contains("too late"));
        assert!(shown.contains("2 of 3, 1 by what is in them"), "{shown}");
        picker.key(Key::Down);
        picker.key(Key::Down);
        assert_eq!(picker.key(Key::Send), Picked::Chosen("9".into()));
    }

    #[test]
    fn letters_narrow_the_list_and_enter_chooses() {
        let mut picker = picker(Depth::Flat);
        typed(&mut picker, "doc");
        assert!(picker.requests().is_empty());
        picker.key(Key::Down);
        let chosen = picker.key(Key::Send);
        assert_eq!(chosen, Picked::Chosen("2".into()));
        assert_eq!(picker.key(Key::Cancel), Picked::Cancelled);
        assert!(picker.rows(20, 2).len() <= 2);
    }
}
