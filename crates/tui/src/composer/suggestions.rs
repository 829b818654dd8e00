//! The suggestions below what is typed: when they come, which keys they take, and what they need to know for it. What is
//! suggested is the matter of [`crate::completion`].

use hermes_core::command::{Argument, List};
use hermes_core::quick::QuickCommands;
use hermes_core::skill::SkillNames;
use ratatui_core::text::Line;

use super::Composed;
use crate::completion::{self, Completion, Kind, Known};
use crate::editor::Editor;
use crate::host::Item;
use crate::keymap::Key;

#[derive(Debug)]
pub(super) struct Suggestions {
    completion: Option<Completion>,
    /// The word whose suggestions were sent away.
    dismissed: Option<usize>,
    known: Known,
    /// The list whose names are typed, and were asked for.
    asked: Option<List>,
}

impl Suggestions {
    pub(super) fn new(quick: QuickCommands) -> Self {
        Self {
            completion: None,
            dismissed: None,
            known: Known {
                quick,
                ..Known::default()
            },
            asked: None,
        }
    }

    /// Shows none until something is typed.
    pub(super) fn hide(&mut self) {
        self.completion = None;
    }

    /// Begins anew, with an empty input.
    pub(super) fn reset(&mut self) {
        self.completion = None;
        self.dismissed = None;
        self.asked = None;
    }

    /// Suggests what may be meant by the word before the cursor.
    pub(super) fn refresh(&mut self, editor: &Editor) -> Composed {
        let Some(word) = completion::word(before_cursor(editor)) else {
            self.reset();
            return Composed::Done;
        };
        if self.dismissed == Some(word.start) {
            return Composed::Done;
        }
        self.completion = completion::suggest(word, &self.known);
        let list = match word.kind {
            Kind::Argument(Argument::Of(list)) => Some(list),
            _ => None,
        };
        let is_new = std::mem::replace(&mut self.asked, list) != list;
        match (word.kind, list) {
            (Kind::File, _) if word.letters.is_empty() => Composed::WantsFiles,
            (_, Some(list)) if is_new => Composed::Wants(list),
            _ => Composed::Done,
        }
    }

    /// Takes the keys that are for suggestions, when there are any.
    pub(super) fn key(&mut self, key: Key, editor: &mut Editor) -> Option<Composed> {
        let completion = self.completion.as_mut()?;
        match key {
            Key::Up => completion.up(),
            Key::Down => completion.down(),
            Key::Cancel => {
                self.completion = None;
                self.dismissed = completion::word(before_cursor(editor)).map(|word| word.start);
            }
            Key::Send if completion.selected().is_none() => {
                self.completion = None;
                return None;
            }
            Key::Complete | Key::Send => return Some(self.accept(key, editor)),
            _ => return None,
        }
        Some(Composed::Done)
    }

    fn accept(&mut self, key: Key, editor: &mut Editor) -> Composed {
        let before = before_cursor(editor);
        let completion = self.completion.take();
        let (Some(word), Some(chosen)) = (
            completion::word(before),
            completion.as_ref().and_then(Completion::best),
        ) else {
            return Composed::Done;
        };
        let is_last = matches!(word.kind, Kind::Argument(_)) && chosen.is_complete;
        let is_whole = before[word.start..] == chosen.word;
        let sends = key == Key::Send && (chosen.is_complete || is_whole);
        let ending = if sends { "" } else { " " };
        let text = format!("{}{ending}", chosen.word);
        editor.replace_back_to(word.start, &text);
        if sends {
            Composed::Send
        } else if is_last {
            Composed::Done
        } else {
            self.refresh(editor)
        }
    }

    pub(super) fn know_files(&mut self, files: Vec<String>) {
        self.known.files = files;
    }

    pub(super) fn know_skills(&mut self, skills: SkillNames) {
        self.known.skills = skills;
    }

    pub(super) fn skills(&self) -> &SkillNames {
        &self.known.skills
    }

    /// Takes the names of a list. Says whether they are being typed.
    pub(super) fn know_list(&mut self, list: List, items: Vec<Item>) -> bool {
        self.known.lists.keep(list, items);
        self.asked == Some(list)
    }

    /// What is selected, to be found again among other suggestions.
    pub(super) fn selected(&self) -> Option<String> {
        let selected = self.completion.as_ref().and_then(Completion::selected);
        selected.map(|chosen| chosen.word.clone())
    }

    pub(super) fn select_again(&mut self, word: &str) {
        if let Some(completion) = &mut self.completion {
            completion.select_again(word);
        }
    }

    pub(super) fn rows(&self, columns: usize, rows_max: usize) -> Vec<Line<'static>> {
        let completion = self.completion.as_ref();
        completion.map_or(Vec::new(), |completion| completion.rows(columns, rows_max))
    }
}

fn before_cursor(editor: &Editor) -> &str {
    &editor.text()[..editor.cursor()]
}
