//! The text being written: a buffer, a cursor, undo and a kill ring. Knows no keys and no screen.
//!
//! A long paste or an image is one character of the buffer, its *chip*, from a private plane of Unicode: the cursor,
//! undo and deletion treat it like any other. It is spelt out when the text is sent.

use std::ops::Range;
use std::path::{Path, PathBuf};

use unicode_segmentation::UnicodeSegmentation as _;

/// The characters that stand for pastes and images.
const CHIPS: std::ops::RangeInclusive<char> = '\u{f0000}'..='\u{ffffd}';
/// Steps back that are kept.
const UNDO_MAX: usize = 500;

/// A change or a move, whatever key it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Insert(char),
    Newline,
    Backspace,
    Delete,
    KillWordBack,
    KillWord,
    KillToLineEnd,
    KillToLineStart,
    Yank,
    Undo,
    Redo,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
}

/// What a chip stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chip {
    Paste(String),
    Image(PathBuf),
}

#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte of `text`, always between two characters as a person sees them.
    cursor: usize,
    chips: Vec<Chip>,
    killed: String,
    undo: Vec<(String, usize)>,
    /// What was undone, until something else is changed.
    redo: Vec<(String, usize)>,
    /// The last edit, so that a run of typing is undone as one.
    last: Option<Edit>,
}

impl Editor {
    /// The text with chips in it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a backslash stands before the cursor, at the end of the text.
    pub(crate) fn ends_in_backslash(&self) -> bool {
        self.cursor == self.text.len() && self.text.ends_with('\\')
    }

    /// The text with every paste spelt out, and every image named.
    pub(crate) fn expanded(&self) -> String {
        self.spelt_out(&self.text)
    }

    fn spelt_out(&self, text: &str) -> String {
        let mut spelt = String::with_capacity(text.len());
        for c in text.chars() {
            match self.chip(c) {
                Some(Chip::Paste(paste)) => spelt.push_str(paste),
                Some(Chip::Image(path)) => spelt.push_str(&image_words(path)),
                None => spelt.push(c),
            }
        }
        spelt
    }

    /// What a character stands for, if it is a chip.
    pub(crate) fn chip(&self, c: char) -> Option<&Chip> {
        self.chips.get(chip_number(c)?)
    }

    /// The images in the text, in their order.
    pub(crate) fn images(&self) -> Vec<PathBuf> {
        let chips = self.text.chars().filter_map(|c| self.chip(c));
        let images = chips.filter_map(|chip| match chip {
            Chip::Image(path) => Some(path.clone()),
            Chip::Paste(_) => None,
        });
        images.collect()
    }

    /// Replaces everything; can be undone.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember(None);
        self.text = without_chips(text);
        self.cursor = self.text.len();
    }

    pub(crate) fn clear(&mut self) {
        // Chips are numbered anew.
        let killed = without_chips(&self.spelt_out(&self.killed));
        *self = Self {
            killed,
            ..Self::default()
        };
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.remember(None);
        self.insert_raw(&without_chips(text));
    }

    /// Replaces the text between a byte and the cursor.
    pub(crate) fn replace_back_to(&mut self, start: usize, text: &str) {
        self.remember(None);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
        self.insert_raw(text);
    }

    /// Inserts a paste as one chip.
    pub(crate) fn insert_chip(&mut self, paste: &str) {
        self.remember(None);
        let paste = without_chips(paste);
        match self.new_chip(Chip::Paste(paste.clone())) {
            Some(chip) => self.insert_raw(chip.encode_utf8(&mut [0; 4])),
            None => self.insert_raw(&paste),
        }
    }

    /// Inserts an image as one chip.
    pub(crate) fn insert_image(&mut self, path: &Path) {
        self.remember(None);
        match self.new_chip(Chip::Image(path.to_owned())) {
            Some(chip) => self.insert_raw(chip.encode_utf8(&mut [0; 4])),
            None => self.insert_raw(&image_words(path)),
        }
    }

    /// Makes chips again of images that the text names.
    pub(crate) fn restore_images(&mut self, images: &[PathBuf]) {
        for path in images {
            let words = image_words(path);
            if self.text.contains(&words)
                && let Some(chip) = self.new_chip(Chip::Image(path.clone()))
            {
                self.text = self.text.replace(&words, chip.encode_utf8(&mut [0; 4]));
                self.cursor = self.text.len();
            }
        }
    }

    /// Returns nothing when all characters for chips are used up.
    fn new_chip(&mut self, chip: Chip) -> Option<char> {
        let number = u32::try_from(self.chips.len()).ok()?;
        let letter = char::from_u32((*CHIPS.start() as u32).checked_add(number)?)?;
        CHIPS.contains(&letter).then(|| {
            self.chips.push(chip);
            letter
        })
    }

    pub(crate) fn apply(&mut self, edit: Edit) {
        match edit {
            Edit::Undo => return self.undo(),
            Edit::Redo => return self.redo(),
            _ => {}
        }
        if edit.changes() {
            self.remember(Some(edit));
        }
        self.last = Some(edit);
        match edit {
            Edit::Insert(c) if CHIPS.contains(&c) => {}
            Edit::Insert(c) => self.insert_raw(c.encode_utf8(&mut [0; 4])),
            Edit::Newline => self.insert_raw("\n"),
            Edit::Backspace => self.remove(self.left(), self.cursor),
            Edit::Delete => self.remove(self.cursor, self.right()),
            Edit::KillWordBack => self.kill(self.word_left(), self.cursor),
            Edit::KillWord => self.kill(self.cursor, self.word_right()),
            Edit::KillToLineEnd => self.kill(self.cursor, self.line_end_or_next()),
            Edit::KillToLineStart => self.kill(self.line_start(), self.cursor),
            Edit::Yank => self.insert_raw(&self.killed.clone()),
            Edit::Undo | Edit::Redo => {}
            Edit::Left => self.cursor = self.left(),
            Edit::Right => self.cursor = self.right(),
            Edit::WordLeft => self.cursor = self.word_left(),
            Edit::WordRight => self.cursor = self.word_right(),
            Edit::LineStart => self.cursor = self.line_start(),
            Edit::LineEnd => self.cursor = self.line_end(),
            Edit::TextStart => self.cursor = 0,
            Edit::TextEnd => self.cursor = self.text.len(),
        }
    }

    /// Moves to a byte that is known to be between two characters.
    pub(crate) fn move_to(&mut self, cursor: usize) {
        self.cursor = cursor.min(self.text.len());
        self.last = None;
    }

    /// Takes a piece of the text out, and keeps something to put back.
    pub(crate) fn cut(&mut self, range: Range<usize>, kept: String) {
        self.remember(None);
        self.killed = kept;
        self.remove(range.start, range.end);
    }

    /// Keeps something to put back.
    pub(crate) fn keep(&mut self, kept: String) {
        self.killed = kept;
    }

    /// What was cut or kept last.
    pub(crate) fn kept(&self) -> &str {
        &self.killed
    }

    /// Puts a piece of this text, chips included, somewhere else; the cursor is behind it.
    pub(crate) fn put(&mut self, at: usize, text: &str) {
        self.remember(None);
        self.cursor = at;
        self.insert_raw(text);
    }

    /// How many steps can be undone.
    pub(crate) fn undo_depth(&self) -> usize {
        self.undo.len()
    }

    /// Makes one step of all that were taken since there were so many.
    pub(crate) fn join_undo(&mut self, depth: usize) {
        self.undo.truncate(depth + 1);
        self.last = None;
    }

    fn insert_raw(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn kill(&mut self, start: usize, end: usize) {
        if start < end {
            self.killed = self.text[start..end].to_owned();
            self.remove(start, end);
        }
    }

    fn remember(&mut self, edit: Option<Edit>) {
        let goes_on = matches!(
            (edit, self.last),
            (Some(Edit::Insert(c)), Some(Edit::Insert(_))) if c != ' '
        );
        self.last = edit;
        self.redo.clear();
        if goes_on {
            return;
        }
        if self.undo.len() == UNDO_MAX {
            self.undo.remove(0);
        }
        self.undo.push((self.text.clone(), self.cursor));
    }

    fn undo(&mut self) {
        self.last = None;
        if let Some(before) = self.undo.pop() {
            self.redo.push((self.text.clone(), self.cursor));
            (self.text, self.cursor) = before;
        }
    }

    fn redo(&mut self) {
        self.last = None;
        if let Some(after) = self.redo.pop() {
            self.undo.push((self.text.clone(), self.cursor));
            (self.text, self.cursor) = after;
        }
    }

    fn left(&self) -> usize {
        let mut before = self.text[..self.cursor].grapheme_indices(true);
        before.next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c| !is_word(c));
        before.trim_end_matches(is_word).len()
    }

    fn word_right(&self) -> usize {
        let after = self.text[self.cursor..].trim_start_matches(|c| !is_word(c));
        let rest = after.trim_start_matches(is_word);
        self.text.len() - rest.len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.text[self.cursor..].find('\n');
        end.map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The end of the line; at the end of it, the start of the next, so that killing goes on.
    fn line_end_or_next(&self) -> usize {
        match self.line_end() {
            end if end == self.cursor => self.right(),
            end => end,
        }
    }
}

impl Edit {
    fn changes(self) -> bool {
        !matches!(
            self,
            Self::Undo
                | Self::Redo
                | Self::Left
                | Self::Right
                | Self::WordLeft
                | Self::WordRight
                | Self::LineStart
                | Self::LineEnd
                | Self::TextStart
                | Self::TextEnd
        )
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || CHIPS.contains(&c)
}

fn chip_number(c: char) -> Option<usize> {
    let number = (c as u32).checked_sub(*CHIPS.start() as u32)?;
    CHIPS.contains(&c).then_some(number as usize)
}

/// An image as it is named in a text.
pub(crate) fn image_words(path: &Path) -> String {
    without_chips(&format!("[image: {}]", path.display()))
}

fn without_chips(text: &str) -> String {
    text.replace(|c| CHIPS.contains(&c), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::default();
        for c in text.chars() {
            match c {
                '\n' => editor.apply(Edit::Newline),
                c => editor.apply(Edit::Insert(c)),
            }
        }
        editor
    }

    fn after(text: &str, edits: &[Edit]) -> String {
        let mut editor = editor(text);
        edits.iter().for_each(|edit| editor.apply(*edit));
        let (before, behind) = editor.text.split_at(editor.cursor);
        format!("{before}|{behind}")
    }

    #[test]
    fn moves_and_kills_go_by_characters_words_and_lines() {
        assert_eq!(after("añ👨‍👩‍👧", &[Edit::Backspace, Edit::Left]), "a|ñ");
        assert_eq!(after("one two-three", &[Edit::KillWordBack]), "one two-|");
        assert_eq!(
            after("one two", &[Edit::TextStart, Edit::KillWord]),
            "| two"
        );
        assert_eq!(
            after("a\nbc", &[Edit::LineStart, Edit::KillToLineEnd]),
            "a\n|"
        );
        assert_eq!(
            after("a\nbc", &[Edit::KillToLineStart, Edit::Yank, Edit::Yank]),
            "a\nbcbc|"
        );
        assert_eq!(
            after(
                "a\nb",
                &[Edit::TextStart, Edit::LineEnd, Edit::KillToLineEnd]
            ),
            "a|b"
        );
    }

    #[test]
    fn undo_takes_back_a_word_at_a_time() {
        assert_eq!(after("one two", &[Edit::Undo]), "one|");
        assert_eq!(after("one two", &[Edit::Undo, Edit::Undo, Edit::Undo]), "|");
        assert_eq!(after("one", &[Edit::KillToLineStart, Edit::Undo]), "one|");
    }

    #[test]
    fn a_chip_is_one_character_and_spelt_out_in_the_end() {
        let mut editor = editor("see ");
        editor.insert_chip("a\nb\nc");
        editor.insert("!");
        assert_eq!(editor.text().chars().count(), 6);
        assert_eq!(editor.expanded(), "see a\nb\nc!");
        editor.apply(Edit::Backspace);
        editor.apply(Edit::Backspace);
        assert_eq!(editor.expanded(), "see ");
        editor.apply(Edit::Undo);
        assert_eq!(editor.expanded(), "see a\nb\nc");
    }

    #[test]
    fn what_was_cut_with_a_chip_in_it_is_the_same_after_the_text_was_sent() {
        let mut editor = editor("see ");
        editor.insert_chip("a\nb");
        editor.apply(Edit::KillToLineStart);
        editor.clear();
        editor.insert_chip("another");
        editor.apply(Edit::Yank);
        assert_eq!(editor.expanded(), "anothersee a\nb");
    }

    #[test]
    fn an_image_is_a_chip_that_is_named_in_the_text_and_can_be_made_of_it_again() {
        let mut editor = editor("see ");
        let images = [PathBuf::from("/a/b.png")];
        editor.insert_image(&images[0]);
        assert_eq!(editor.expanded(), "see [image: /a/b.png]");
        assert_eq!(editor.images(), images);
        let text = editor.expanded();
        editor.set(&text);
        assert!(editor.images().is_empty());
        editor.restore_images(&images);
        assert_eq!(editor.images(), images);
        assert_eq!(editor.expanded(), text);
        editor.apply(Edit::Backspace);
        assert!(editor.images().is_empty());
    }

    #[test]
    fn typed_text_cannot_pretend_to_be_a_chip() {
        let mut editor = editor("\u{f0000}x");
        editor.insert_chip("secret");
        editor.insert("\u{f0000}");
        assert_eq!(editor.expanded(), "xsecret");
    }
}
