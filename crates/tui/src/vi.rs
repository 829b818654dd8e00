//! vi keys: a state between the keys and the [`Editor`]. Letters of normal mode are gathered until they are a command
//! (`command.rs`); where its motion leads is computed from the text alone (`motion.rs`); here it is done.

mod command;
mod motion;
mod repetition;

use std::ops::Range;

use crate::editor::{Edit, Editor};
use crate::keymap::Key;
use command::{Command, Find, InsertAt, Parsed, Verb};
use motion::{Motion, Reach, Span};
use repetition::Repetition;

/// A vi keyboard. It begins in insert mode, as in a shell.
#[derive(Debug, Default)]
pub(crate) struct Vi {
    mode: Mode,
    /// The letters of a command that is not whole yet.
    typed: String,
    /// What `;` and `,` look for.
    found: Option<Find>,
    /// How much could be undone before the insertion that goes on.
    undo_depth: usize,
    /// What happens again with the insertion that goes on, when it ends.
    repetition: Option<Repetition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Insert,
    Normal,
}

/// What became of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// It means what it means without vi.
    Passed,
    Done,
    /// It is to be taken for another one, so many times.
    Means(Key, usize),
}

impl Vi {
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Begins anew: the next message is typed.
    pub(crate) fn reset(&mut self) {
        self.mode = Mode::Insert;
        self.undo_depth = 0;
        self.repetition = None;
        self.typed.clear();
    }

    pub(crate) fn key(&mut self, key: Key, editor: &mut Editor) -> Took {
        match (self.mode, key) {
            (Mode::Insert, Key::Cancel) => {
                self.end_insert(editor);
                Took::Done
            }
            (Mode::Insert, _) => Took::Passed,
            (Mode::Normal, Key::Cancel) if !self.typed.is_empty() => {
                self.typed.clear();
                Took::Done
            }
            (Mode::Normal, Key::Edit(Edit::Insert(letter))) => {
                self.typed.push(letter);
                self.read(editor)
            }
            (Mode::Normal, Key::SearchHistory) => {
                self.typed.clear();
                Took::Means(Key::Edit(Edit::Redo), 1)
            }
            (Mode::Normal, Key::Edit(Edit::Backspace)) => {
                self.typed.clear();
                Took::Means(Key::Edit(Edit::Left), 1)
            }
            (Mode::Normal, _) => {
                self.typed.clear();
                Took::Passed
            }
        }
    }

    /// In normal mode the cursor is on a character, not behind the last one of a line.
    pub(crate) fn settle(&self, editor: &mut Editor) {
        if self.mode == Mode::Normal {
            let (text, cursor) = (editor.text(), editor.cursor());
            let last = motion::last_of_line(text, cursor);
            if cursor > last {
                editor.move_to(last);
            }
        }
    }

    /// Does what the letters ask for as soon as they are a command; letters that are none are forgotten.
    fn read(&mut self, editor: &mut Editor) -> Took {
        let (count, command) = match command::parse(&self.typed) {
            Parsed::Unfinished => return Took::Done,
            Parsed::Nothing => {
                self.typed.clear();
                return Took::Done;
            }
            Parsed::Whole { count, command } => (count, command),
        };
        self.typed.clear();
        match command {
            Command::Move(Motion::Down) => return Took::Means(Key::Down, count.unwrap_or(1)),
            Command::Move(Motion::Up) => return Took::Means(Key::Up, count.unwrap_or(1)),
            Command::Search => return Took::Means(Key::SearchHistory, 1),
            Command::Undo => return Took::Means(Key::Edit(Edit::Undo), count.unwrap_or(1)),
            Command::Move(motion) => {
                if let Some(span) = self.span(motion, count, editor) {
                    editor.move_to(span.to);
                }
            }
            Command::Operate(verb, motion) => self.operate(verb, motion, count, editor),
            Command::Lines(verb) => {
                let down = count.unwrap_or(1) - 1;
                let lines = motion::lines_below(editor.text(), editor.cursor(), down);
                self.operate_lines(verb, lines, editor);
            }
            Command::Insert(place) => self.insert(place, count, editor),
            Command::Replace(letter) => replace(letter, count.unwrap_or(1), editor),
            Command::Put(place) => put(place, count.unwrap_or(1), editor),
        }
        self.settle(editor);
        Took::Done
    }

    fn span(&mut self, motion: Motion, count: Option<usize>, editor: &Editor) -> Option<Span> {
        let motion = match motion {
            Motion::Find(find) => {
                self.found = Some(find);
                motion
            }
            Motion::Again => Motion::Find(self.found?),
            Motion::AgainBack => Motion::Find(self.found?.turned()),
            motion => motion,
        };
        motion::span(editor.text(), editor.cursor(), motion, count)
    }

    fn operate(&mut self, verb: Verb, motion: Motion, count: Option<usize>, editor: &mut Editor) {
        let motion = match (verb, motion) {
            // Changing a word leaves the space behind it.
            (Verb::Change, Motion::Word)
                if !motion::is_on_space(editor.text(), editor.cursor()) =>
            {
                Motion::WordEnd
            }
            _ => motion,
        };
        let Some(span) = self.span(motion, count, editor) else {
            return;
        };
        let (text, cursor) = (editor.text(), editor.cursor());
        let (start, end) = (cursor.min(span.to), cursor.max(span.to));
        let range = match span.reach {
            Reach::Lines => {
                let lines = motion::lines_between(text, start, end);
                return self.operate_lines(verb, lines, editor);
            }
            Reach::Before if motion == Motion::Word => start..motion::in_line(text, start, end),
            Reach::Before => start..end,
            Reach::Through => start..motion::right(text, end),
        };
        self.operate_on(verb, range, editor);
    }

    /// Does something to characters, and keeps them.
    fn operate_on(&mut self, verb: Verb, range: Range<usize>, editor: &mut Editor) {
        let kept = editor.text()[range.clone()].to_owned();
        let (depth, start) = (editor.undo_depth(), range.start);
        match verb {
            Verb::Delete | Verb::Change if !range.is_empty() => editor.cut(range, kept),
            Verb::Delete | Verb::Change => {}
            Verb::Yank => editor.keep(kept),
        }
        editor.move_to(start);
        if verb == Verb::Change {
            self.begin_insert(depth);
        }
    }

    /// Does something to whole lines, given without the line break at their end, and keeps them with it.
    fn operate_lines(&mut self, verb: Verb, lines: Range<usize>, editor: &mut Editor) {
        let text = editor.text();
        let kept = format!("{}\n", &text[lines.clone()]);
        let depth = editor.undo_depth();
        match verb {
            Verb::Yank => editor.keep(kept),
            Verb::Change => {
                editor.cut(lines, kept);
                self.begin_insert(depth);
            }
            Verb::Delete => {
                let with_break = if lines.end == text.len() {
                    lines.start.saturating_sub(1)..lines.end
                } else {
                    lines.start..lines.end + 1
                };
                editor.cut(with_break, kept);
                let (text, cursor) = (editor.text(), editor.cursor());
                editor.move_to(motion::first_of_line(text, cursor));
            }
        }
    }

    fn insert(&mut self, place: InsertAt, count: Option<usize>, editor: &mut Editor) {
        let depth = editor.undo_depth();
        let (text, cursor) = (editor.text(), editor.cursor());
        let (start, end) = (
            motion::line_start(text, cursor),
            motion::line_end(text, cursor),
        );
        match place {
            InsertAt::Here => {}
            InsertAt::After => editor.move_to(motion::right(text, cursor).min(end)),
            InsertAt::LineStart => editor.move_to(motion::first_of_line(text, cursor)),
            InsertAt::LineEnd => editor.move_to(end),
            InsertAt::Above => {
                editor.put(start, "\n");
                editor.move_to(start);
            }
            InsertAt::Below => editor.put(end, "\n"),
        }
        self.begin_insert(depth);
        self.repetition = Repetition::begin(place, count, editor);
    }

    fn begin_insert(&mut self, undo_depth: usize) {
        self.mode = Mode::Insert;
        self.undo_depth = undo_depth;
        self.repetition = None;
    }

    /// Ends an insertion; all of it is undone as one.
    fn end_insert(&mut self, editor: &mut Editor) {
        self.mode = Mode::Normal;
        if let Some(repetition) = self.repetition.take() {
            repetition.finish(editor);
        }
        editor.join_undo(self.undo_depth);
        let (text, cursor) = (editor.text(), editor.cursor());
        let start = motion::line_start(text, cursor);
        editor.move_to(motion::left(text, cursor).max(start));
    }
}

/// Writes one letter in the place of as many, if the line has them.
fn replace(letter: char, count: usize, editor: &mut Editor) {
    let (text, cursor) = (editor.text(), editor.cursor());
    let Some(end) = motion::rights_in_line(text, cursor, count) else {
        return;
    };
    editor.move_to(end);
    editor.replace_back_to(cursor, &letter.to_string().repeat(count));
    let last = motion::left(editor.text(), editor.cursor());
    editor.move_to(last);
}

/// Puts what was kept before or behind the cursor; what ends with a line break, as lines above or below.
fn put(place: InsertAt, count: usize, editor: &mut Editor) {
    let kept = editor.kept().repeat(count);
    let (text, cursor) = (editor.text(), editor.cursor());
    let (start, end) = (
        motion::line_start(text, cursor),
        motion::line_end(text, cursor),
    );
    match (kept.strip_suffix('\n'), place) {
        (Some(lines), InsertAt::Below) => {
            editor.put(end, &format!("\n{lines}"));
            editor.move_to(end + 1);
        }
        (Some(_), _) => {
            editor.put(start, &kept);
            editor.move_to(start);
        }
        (None, _) if kept.is_empty() => {}
        (None, place) => {
            let at = match place {
                InsertAt::Below => motion::right(text, cursor).min(end),
                _ => cursor,
            };
            editor.put(at, &kept);
            let last = motion::left(editor.text(), editor.cursor());
            editor.move_to(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys on a text in normal mode; `|` is the cursor, `⎋` is Escape, `⏎` a line break, `←` the arrow,
    /// `⌫` Backspace, `↻` Ctrl-R. Returns the text, and whether letters are text at the end.
    fn pressed(text: &str, keys: &str) -> (String, Mode) {
        let mut editor = Editor::default();
        let cursor = text.find('|').unwrap();
        editor.insert(&text.replace('|', ""));
        editor.move_to(cursor);
        let mut vi = Vi {
            mode: Mode::Normal,
            ..Vi::default()
        };
        for key in keys.chars() {
            let key = match key {
                '⎋' => Key::Cancel,
                '⏎' => Key::Edit(Edit::Newline),
                '←' => Key::Edit(Edit::Left),
                '⌫' => Key::Edit(Edit::Backspace),
                '↻' => Key::SearchHistory,
                letter => Key::Edit(Edit::Insert(letter)),
            };
            let (key, times) = match vi.key(key, &mut editor) {
                Took::Done => continue,
                Took::Passed => (key, 1),
                Took::Means(key, times) => (key, times),
            };
            for _ in 0..times {
                match key {
                    Key::Edit(edit) => editor.apply(edit),
                    key => panic!("{key:?} is not for the text"),
                }
            }
            vi.settle(&mut editor);
        }
        let mut text = editor.text().to_owned();
        text.insert(editor.cursor(), '|');
        (text, vi.mode)
    }

    #[track_caller]
    fn check(cases: &[(&str, &str, &str)]) {
        for (text, keys, expected) in cases {
            let (shown, _) = pressed(text, keys);
            assert_eq!(shown, *expected, "`{keys}` on `{text}`");
        }
    }

    #[test]
    fn motions_go_by_characters_words_and_lines() {
        check(&[
            ("one| two", "h", "on|e two"),
            ("|one", "h", "|one"),
            ("a\n|b", "h", "a\n|b"),
            ("on|e", "l", "on|e"),
            ("|añ👨‍👩‍👧z", "3l", "añ👨‍👩‍👧|z"),
            ("|one two-three", "w", "one |two-three"),
            ("|one two-three", "3w", "one two-|three"),
            ("one |two", "w", "one tw|o"),
            ("|a\n\nb", "w", "a\n\n|b"),
            ("one two|-three", "b", "one |two-three"),
            ("one |two", "2b", "|one two"),
            ("|one two", "e", "on|e two"),
            ("on|e two", "e", "one tw|o"),
            ("  on|e", "0", "|  one"),
            ("  on|e", "^", "  |one"),
            ("|one\ntwo", "$", "on|e\ntwo"),
            ("one\ntw|o", "gg", "|one\ntwo"),
            ("o|ne\n  two", "G", "one\n  |two"),
            ("a\nb\n|c", "2G", "a\n|b\nc"),
            ("|find it", "fi", "f|ind it"),
            ("|find it", "2fi", "find |it"),
            ("|find it", "ti", "|find it"),
            ("|find it", "tt", "find |it"),
            ("find i|t", "Fi", "find |it"),
            ("find |it", "Fi", "f|ind it"),
            ("|a.b.c", "f.;", "a.b|.c"),
            ("|a.b.c", "f.;,", "a|.b.c"),
            ("|abc", "fz", "|abc"),
            ("ab|c", "9h", "|abc"),
        ]);
    }

    #[test]
    fn operators_take_motions_and_whole_lines() {
        check(&[
            ("|abc", "x", "|bc"),
            ("|abc", "2x", "|c"),
            ("ab|c", "x", "a|b"),
            ("ab|c", "X", "a|c"),
            ("|one two", "dw", "|two"),
            ("one |two\nx", "dw", "one| \nx"),
            ("|one two three", "d2w", "|three"),
            ("|one two three", "2dw", "|three"),
            ("one two |three", "db", "one |three"),
            ("|one two", "de", "| two"),
            ("one |two", "d$", "one| "),
            ("one |two", "D", "one| "),
            ("one |two", "d0", "|two"),
            ("|a(b)", "df(", "|b)"),
            ("|a(b)", "dt(", "|(b)"),
            ("a\nb|b\nc", "dd", "a\n|c"),
            ("a\n|b", "dd", "|a"),
            ("|only", "dd", "|"),
            ("|a\nb\nc", "2dd", "|c"),
            ("|a\nb\nc", "dj", "|c"),
            ("a\nb\n|c", "dk", "|a"),
            ("a\n|b\nc", "dG", "|a"),
            ("a\n|b\nc", "dgg", "|c"),
            ("|abc", "dz", "|abc"),
            ("|abc", "d⎋x", "|bc"),
        ]);
    }

    #[test]
    fn changes_go_on_with_typing() {
        check(&[
            ("|one two", "cwnew⎋", "ne|w two"),
            ("one| two", "cw-⎋", "one|-two"),
            ("a\n|bb\nc", "ccx⎋", "a\n|x\nc"),
            ("one |two", "Cx⎋", "one |x"),
            ("|ab", "sx⎋", "|xb"),
            ("a |b", "Sx⎋", "|x"),
            ("|abc", "rx", "|xbc"),
            ("|abc", "2rx", "x|xc"),
            ("|abc", "4rx", "|abc"),
            ("a|b", "ix⎋", "a|xb"),
            ("a|b", "ax⎋", "ab|x"),
            ("  a|b", "Ix⎋", "  |xab"),
            ("|ab", "Ax⎋", "ab|x"),
            ("a|b\nc", "ox⎋", "ab\n|x\nc"),
            ("a\n|b", "Ox⎋", "a\n|x\nb"),
            ("|a", "ox⏎y⎋", "a\nx\n|y"),
        ]);
        assert_eq!(pressed("|one", "cw").1, Mode::Insert);
        assert_eq!(pressed("|one", "cwx⎋").1, Mode::Normal);
    }

    #[test]
    fn a_count_repeats_an_insertion() {
        check(&[
            ("a|b", "3ix⎋", "axx|xb"),
            ("a|b", "2axy⎋", "abxyx|y"),
            ("  a|b", "2Ix⎋", "  x|xab"),
            ("|ab\nc", "2A!⎋", "ab!|!\nc"),
            ("|a\nb", "2ox⎋", "a\nx\n|x\nb"),
            ("a\n|b", "2Ox⎋", "a\nx\n|x\nb"),
            ("|a", "3o⎋", "a\n\n\n|"),
            ("|a", "2ix⏎y⎋", "x\nyx\n|ya"),
            ("|a", "3i⎋", "|a"),
            ("|a", "3ix⎋u", "|a"),
            ("|a", "3ix⎋u↻", "xx|xa"),
            ("|a", "2ix⎋iy⎋", "x|yxa"),
            ("|one two", "2cwx⎋", "|x"),
            // A slip of the finger.
            (
                "|",
                &format!("999i{}⎋", "x".repeat(101)),
                &format!("{}|x", "x".repeat(100)),
            ),
        ]);
    }

    #[test]
    fn an_insertion_is_not_repeated_when_the_cursor_went_elsewhere_meanwhile() {
        check(&[
            ("ab|c", "3ix←y⎋", "ab|yxc"),
            ("ab|c", "3ix⌫⌫y⎋", "a|yc"),
            ("ab|c", "3ixy⌫z⎋", "abxzxzx|zc"),
        ]);
    }

    #[test]
    fn what_was_deleted_or_yanked_is_put_back() {
        check(&[
            ("|ab", "xp", "b|a"),
            ("|one two", "dwP", "one| two"),
            ("|one two", "ywP", "one| one two"),
            ("|a\nb", "ddp", "b\n|a"),
            ("a\n|b", "ddP", "|b\na"),
            ("|a\nb", "yyp", "a\n|a\nb"),
            ("a|a", "Y2p", "aa\n|aa\naa"),
            ("|ab", "yl3p", "aaa|ab"),
            ("|", "p", "|"),
            ("o|ne", "yb", "|one"),
        ]);
    }

    #[test]
    fn undo_takes_back_a_whole_insertion_and_redo_brings_it_again() {
        check(&[
            ("|a", "ione two ⎋u", "|a"),
            ("|one two", "cwnew words⎋u", "|one two"),
            ("|one two", "cwnew words⎋u↻", "new word|s two"),
            ("|abcd", "xxu", "|bcd"),
            ("|abcd", "xx2u", "|abcd"),
            ("|abcd", "xuxu↻", "|bcd"),
            ("|abcd", "xux↻", "|bcd"),
        ]);
    }

    #[test]
    fn up_and_down_and_a_search_are_the_inputs_own() {
        let mut vi = Vi {
            mode: Mode::Normal,
            ..Vi::default()
        };
        let mut took = |keys: &str| {
            let mut editor = Editor::default();
            let keys = keys.chars().map(|c| Key::Edit(Edit::Insert(c)));
            keys.map(|key| vi.key(key, &mut editor)).last().unwrap()
        };
        assert_eq!(took("k"), Took::Means(Key::Up, 1));
        assert_eq!(took("3j"), Took::Means(Key::Down, 3));
        assert_eq!(took("/"), Took::Means(Key::SearchHistory, 1));
        assert_eq!(vi.key(Key::Cancel, &mut Editor::default()), Took::Passed);
        assert_eq!(vi.key(Key::Send, &mut Editor::default()), Took::Passed);
    }
}
