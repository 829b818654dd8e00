//! The input: an [`Editor`] with history, search in it, and suggestions.

mod layout;
mod search;
mod suggestions;

use std::path::{Path, PathBuf};

use hermes_core::command::List;
use hermes_core::quick::QuickCommands;
use hermes_core::skill::SkillNames;
use ratatui_core::text::Line;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::editor::{Edit, Editor, image_words};
use crate::history::History;
use crate::host::{EditMode, Item};
use crate::keymap::Key;
use crate::screen::Position;
use crate::vi::{Mode, Took, Vi};
use crate::wrap;
pub(crate) use layout::layout;
use search::{Search, Searched};
use suggestions::Suggestions;

/// A text of so many lines is not edited here, but in an editor: it is shown as a chip.
const RECALLED_LINES_MAX: usize = 100;
/// As much of a found message as is shown while one looks for it: more than fits around the cursor.
const FOUND_BYTES_MAX: usize = 2_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct PasteLimits {
    pub(crate) lines_max: usize,
    pub(crate) chars_max: usize,
}

/// What became of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Composed {
    Done,
    /// Not ours.
    Passed,
    Send,
    /// The files of the folder are wanted, for suggestions.
    WantsFiles,
    /// The names of this list are wanted, for suggestions.
    Wants(List),
}

#[derive(Debug)]
pub(crate) struct Composer {
    pub(crate) editor: Editor,
    history: History,
    /// What was written before the history was looked through.
    draft: Option<Editor>,
    search: Option<Search>,
    suggestions: Suggestions,
    limits: PasteLimits,
    /// None with emacs keys.
    vi: Option<Vi>,
    /// Images that were attached, so that a message which comes back has them again.
    attached: Vec<PathBuf>,
}

impl Composer {
    pub(crate) fn new(history: Vec<String>, limits: PasteLimits, quick: QuickCommands) -> Self {
        Self {
            editor: Editor::default(),
            history: History::new(history),
            draft: None,
            search: None,
            suggestions: Suggestions::new(quick),
            limits,
            vi: None,
            attached: Vec::new(),
        }
    }

    pub(crate) fn edited_with(mut self, mode: EditMode) -> Self {
        self.vi = (mode == EditMode::Vi).then(Vi::default);
        self
    }

    /// The mode of vi keys, where they are used.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.vi.as_ref().map(Vi::mode)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// Whether nothing is written and nothing is searched for.
    pub(crate) fn is_resting(&self) -> bool {
        self.is_empty() && self.search.is_none()
    }

    pub(crate) fn key(&mut self, key: Key) -> Composed {
        let composed = if self.search.is_some() {
            self.search_key(key)
        } else {
            self.vi_key(key)
        };
        if let Some(vi) = &self.vi {
            vi.settle(&mut self.editor);
        }
        composed
    }

    /// Gives a key to vi first, where its keys are used.
    fn vi_key(&mut self, key: Key) -> Composed {
        let Some(vi) = &mut self.vi else {
            return self.usual_key(key);
        };
        match vi.key(key, &mut self.editor) {
            Took::Passed => self.usual_key(key),
            Took::Done => {
                self.suggestions.hide();
                self.history.leave();
                Composed::Done
            }
            Took::Means(key, times) => {
                (0..times).for_each(|_| _ = self.usual_key(key));
                Composed::Done
            }
        }
    }

    fn usual_key(&mut self, key: Key) -> Composed {
        if let Some(composed) = self.suggestions.key(key, &mut self.editor) {
            return composed;
        }
        match key {
            Key::Edit(edit) => {
                self.editor.apply(edit);
                self.history.leave();
                return self.suggest();
            }
            Key::Send if self.editor.ends_in_backslash() => {
                self.editor.apply(Edit::Backspace);
                self.editor.apply(Edit::Newline);
            }
            Key::Send => return Composed::Send,
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::SearchHistory => self.search = Some(Search::default()),
            _ => return Composed::Passed,
        }
        Composed::Done
    }

    /// Inserts pasted text; much of it as one chip.
    pub(crate) fn paste(&mut self, text: &str) -> Composed {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = hermes_core::text::printable(&text);
        let PasteLimits {
            lines_max,
            chars_max,
        } = self.limits;
        if text.lines().count() > lines_max || text.chars().count() > chars_max {
            self.editor.insert_chip(&text);
        } else {
            self.editor.insert(&text);
        }
        self.suggest()
    }

    /// Attaches an image, as one chip.
    pub(crate) fn attach(&mut self, path: &Path) {
        self.suggestions.hide();
        self.editor.insert_image(path);
        if !self.attached.iter().any(|known| known == path) {
            self.attached.push(path.to_owned());
        }
    }

    /// Puts text before what is typed: it was taken back, or comes from a command.
    pub(crate) fn give_back(&mut self, text: &str) {
        let typed = self.editor.expanded();
        let text = if typed.is_empty() {
            text.to_owned()
        } else {
            format!("{text}\n\n{typed}")
        };
        self.replace(&text);
    }

    /// Replaces everything that is typed.
    pub(crate) fn replace(&mut self, text: &str) {
        self.suggestions.hide();
        let mut attached = self.attached.iter();
        let has_images = attached.any(|path| text.contains(&image_words(path)));
        if text.lines().count() > RECALLED_LINES_MAX && !has_images {
            self.editor.clear();
            self.editor.insert_chip(text);
        } else {
            self.editor.set(text);
            self.editor.restore_images(&self.attached);
        }
    }

    /// Empties the input. Returns what was in it if it should be remembered.
    pub(crate) fn take(&mut self) -> Option<String> {
        let text = self.editor.expanded();
        self.editor.clear();
        self.draft = None;
        self.suggestions.reset();
        self.vi.iter_mut().for_each(Vi::reset);
        (!text.trim().is_empty() && self.history.add(&text)).then_some(text)
    }

    pub(crate) fn files(&mut self, files: Vec<String>) {
        self.suggestions.know_files(files);
        self.suggest();
    }

    pub(crate) fn skills(&self) -> &SkillNames {
        self.suggestions.skills()
    }

    pub(crate) fn know_skills(&mut self, skills: SkillNames) {
        self.suggestions.know_skills(skills);
    }

    /// Takes the names of a list. Whoever chooses from it meanwhile keeps what is selected.
    pub(crate) fn listed(&mut self, list: List, items: Vec<Item>) {
        if !self.suggestions.know_list(list, items) {
            return;
        }
        let selected = self.suggestions.selected();
        self.suggest();
        if let Some(selected) = selected {
            self.suggestions.select_again(&selected);
        }
    }

    /// What is below the input: suggestions, or the search.
    pub(crate) fn popup(&self, columns: usize, rows_max: usize) -> Vec<Line<'static>> {
        match &self.search {
            Some(search) => vec![wrap::cut(search.row(), columns)],
            None => self.suggestions.rows(columns, rows_max),
        }
    }

    /// The rows of the input and where its cursor is, as many as fit around the cursor.
    pub(crate) fn rows(&self, columns: usize, rows_max: usize) -> (Vec<Line<'static>>, Position) {
        let search = self.search.as_ref();
        if let Some(found) = search.and_then(|search| search.found(&self.history)) {
            let mut editor = Editor::default();
            editor.set(hermes_core::text::head(found, FOUND_BYTES_MAX));
            return layout(&editor, columns, rows_max);
        }
        layout(&self.editor, columns, rows_max)
    }

    fn up(&mut self) {
        if self.move_line(-1) {
            return;
        }
        let is_own = !self.history.is_shown();
        let Some(earlier) = self.history.earlier().map(str::to_owned) else {
            return;
        };
        if is_own {
            self.draft = Some(std::mem::take(&mut self.editor));
        }
        self.replace(&earlier);
    }

    fn down(&mut self) {
        if self.move_line(1) || !self.history.is_shown() {
            return;
        }
        match self.history.later().map(str::to_owned) {
            Some(later) => self.replace(&later),
            None => self.editor = self.draft.take().unwrap_or_default(),
        }
    }

    /// Moves to the line above or below, if there is one.
    fn move_line(&mut self, by: isize) -> bool {
        let (text, cursor) = (self.editor.text(), self.editor.cursor());
        let start = text[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let target_start = match by {
            ..0 => match start.checked_sub(1) {
                Some(end) => text[..end].rfind('\n').map_or(0, |at| at + 1),
                None => return false,
            },
            _ => match text[cursor..].find('\n') {
                Some(at) => cursor + at + 1,
                None => return false,
            },
        };
        let column = text[start..cursor].graphemes(true).count();
        let line = text[target_start..].split('\n').next().unwrap_or_default();
        let offset: usize = line.graphemes(true).take(column).map(str::len).sum();
        self.editor.move_to(target_start + offset);
        true
    }

    /// Suggests something, except where letters are commands.
    fn suggest(&mut self) -> Composed {
        if self.mode() == Some(Mode::Normal) {
            self.suggestions.hide();
            return Composed::Done;
        }
        self.suggestions.refresh(&self.editor)
    }

    fn search_key(&mut self, key: Key) -> Composed {
        let Some(search) = &mut self.search else {
            return Composed::Passed;
        };
        let found = match search.key(key, &self.history) {
            Searched::GoesOn => return Composed::Done,
            Searched::GivenUp => None,
            Searched::Taken(found) => found,
        };
        self.search = None;
        if let Some(found) = found {
            self.replace(&found);
        }
        Composed::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::Edit;

    fn composer(history: &[&str]) -> Composer {
        let history = history.iter().map(|text| (*text).to_owned()).collect();
        let limits = PasteLimits {
            lines_max: 5,
            chars_max: 2_000,
        };
        Composer::new(history, limits, QuickCommands::default())
    }

    fn type_in(composer: &mut Composer, text: &str) {
        for c in text.chars() {
            composer.key(Key::Edit(Edit::Insert(c)));
        }
    }

    fn text(composer: &Composer) -> String {
        composer.editor.expanded()
    }

    #[test]
    fn a_draft_survives_a_look_into_the_history() {
        let mut composer = composer(&["first", "second"]);
        type_in(&mut composer, "draft");
        composer.key(Key::Up);
        composer.key(Key::Up);
        assert_eq!(text(&composer), "first");
        composer.key(Key::Down);
        composer.key(Key::Down);
        assert_eq!(text(&composer), "draft");
    }

    #[test]
    fn a_search_shows_what_it_finds_and_takes_it() {
        let mut composer = composer(&["cargo build", "ls", "cargo test"]);
        composer.key(Key::SearchHistory);
        type_in(&mut composer, "cargo");
        composer.key(Key::SearchHistory);
        assert_eq!(composer.rows(40, 5).0[0].to_string(), "› cargo build");
        composer.key(Key::Send);
        assert_eq!(text(&composer), "cargo build");
    }

    #[test]
    fn a_long_paste_is_a_chip_and_a_short_one_is_text() {
        let mut composer = composer(&[]);
        composer.paste("a\r\nb");
        assert_eq!(text(&composer), "a\nb");
        composer.paste(&"line\n".repeat(5_000));
        assert_eq!(
            composer.rows(60, 5).0[1].to_string(),
            "  b[pasted 5000 lines]"
        );
        assert_eq!(text(&composer).lines().count(), 5_001);
    }

    #[test]
    fn enter_takes_a_suggestion_and_sends_what_needs_nothing_more() {
        let mut composer = composer(&[]);
        type_in(&mut composer, "/he");
        assert_eq!(composer.key(Key::Send), Composed::Send);
        assert_eq!(text(&composer), "/help");
        composer.take();
        type_in(&mut composer, "/stee");
        assert_eq!(composer.key(Key::Send), Composed::Done);
        assert_eq!(text(&composer), "/steer ");
    }

    #[test]
    fn suggestions_that_were_sent_away_stay_away() {
        let mut composer = composer(&[]);
        type_in(&mut composer, "/st");
        composer.key(Key::Cancel);
        type_in(&mut composer, "a");
        assert!(composer.popup(40, 5).is_empty());
    }

    #[test]
    fn the_cursor_is_where_one_writes_also_in_narrow_terminals() {
        let mut composer = composer(&[]);
        type_in(&mut composer, "abcdefgh");
        let (rows, cursor) = composer.rows(6, 5);
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(rows, ["› abcd", "  efgh", "  "]);
        assert_eq!((cursor.row, cursor.column), (2, 2));
        assert_eq!(composer.rows(6, 1).0.len(), 1);
        assert_eq!(composer.rows(1, 1).1.column, 0);
    }

    #[test]
    fn vi_keys_edit_look_through_the_history_and_begin_anew_after_a_message() {
        let mut composer = composer(&["first", "second"]).edited_with(EditMode::Vi);
        type_in(&mut composer, "/st");
        assert!(!composer.popup(40, 5).is_empty());
        composer.key(Key::Cancel);
        assert!(composer.popup(40, 5).is_empty());
        type_in(&mut composer, "0xA!");
        assert_eq!(text(&composer), "st!");
        composer.key(Key::Cancel);
        type_in(&mut composer, "kk");
        assert_eq!(text(&composer), "first");
        type_in(&mut composer, "jj");
        assert_eq!(text(&composer), "st!");
        type_in(&mut composer, "/firs");
        composer.key(Key::Send);
        assert_eq!(text(&composer), "first");
        assert_eq!(composer.key(Key::Cancel), Composed::Passed);
        assert_eq!(composer.key(Key::Send), Composed::Send);
        composer.take();
        assert_eq!(composer.mode(), Some(Mode::Insert));
    }

    #[test]
    fn what_comes_back_goes_before_what_is_typed() {
        let mut composer = composer(&[]);
        type_in(&mut composer, "new");
        composer.give_back("old");
        assert_eq!(text(&composer), "old\n\nnew");
    }
}
