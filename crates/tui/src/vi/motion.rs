//! Where motions lead. Pure: a text, a cursor, a motion. Positions are bytes between two characters as a person sees
//! them; a *line* is what stands between two line breaks.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::command::Find;
use crate::editor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    Word,
    WordBack,
    WordEnd,
    LineStart,
    /// The first character of the line that is no space.
    LineText,
    LineEnd,
    FirstLine,
    LastLine,
    Find(Find),
    /// What was found last, again, or again the other way.
    Again,
    AgainBack,
}

/// Where a motion leads, and what an operator takes on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) to: usize,
    pub(super) reach: Reach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// What is before the farther end.
    Before,
    /// The character at the farther end too.
    Through,
    Lines,
}

/// Returns nothing where the motion leads nowhere.
pub(super) fn span(
    text: &str,
    cursor: usize,
    motion: Motion,
    count: Option<usize>,
) -> Option<Span> {
    let times = count.unwrap_or(1);
    let repeated = |step: fn(&str, usize) -> usize| (0..times).fold(cursor, |at, _| step(text, at));
    let (start, end) = (line_start(text, cursor), line_end(text, cursor));
    let (to, reach) = match motion {
        Motion::Left => (repeated(left).max(start), Reach::Before),
        Motion::Right => (repeated(right).min(end), Reach::Before),
        Motion::Word => (repeated(next_word), Reach::Before),
        Motion::WordBack => (repeated(word_back), Reach::Before),
        Motion::WordEnd => (repeated(word_end), Reach::Through),
        Motion::LineStart => (start, Reach::Before),
        Motion::LineText => (first_of_line(text, cursor), Reach::Before),
        Motion::LineEnd => (line_end_below(text, cursor, times - 1), Reach::Before),
        Motion::FirstLine => (nth_line(text, times), Reach::Lines),
        Motion::LastLine => (nth_line(text, count.unwrap_or(usize::MAX)), Reach::Lines),
        Motion::Down => (lines_below(text, cursor, times).end, Reach::Lines),
        Motion::Up => (start_above(text, cursor, times), Reach::Lines),
        Motion::Find(find) => return found(text, cursor, find, times),
        Motion::Again | Motion::AgainBack => return None,
    };
    Some(Span { to, reach })
}

pub(super) fn left(text: &str, at: usize) -> usize {
    let mut before = text[..at].grapheme_indices(true);
    before.next_back().map_or(0, |(at, _)| at)
}

pub(super) fn right(text: &str, at: usize) -> usize {
    at + text[at..].graphemes(true).next().map_or(0, str::len)
}

/// So many characters to the right, if the line has them.
pub(super) fn rights_in_line(text: &str, at: usize, count: usize) -> Option<usize> {
    let rest = &text[at..line_end(text, at)];
    let mut bytes = rest.graphemes(true).map(str::len);
    (0..count).try_fold(at, |at, _| Some(at + bytes.next()?))
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |more| at + more)
}

/// The first character of the line that is no space.
pub(super) fn first_of_line(text: &str, at: usize) -> usize {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let line = &text[start..end];
    start + line.len() - line.trim_start().len()
}

/// The last character of the line, which is where an empty one begins.
pub(super) fn last_of_line(text: &str, at: usize) -> usize {
    let (start, end) = (line_start(text, at), line_end(text, at));
    left(text, end).max(start)
}

/// The line of a position and so many below it, without the last line break.
pub(super) fn lines_below(text: &str, at: usize, down: usize) -> Range<usize> {
    line_start(text, at)..line_end_below(text, at, down)
}

/// All lines from one position to another, without the last line break.
pub(super) fn lines_between(text: &str, start: usize, end: usize) -> Range<usize> {
    line_start(text, start)..line_end(text, end)
}

pub(super) fn is_on_space(text: &str, at: usize) -> bool {
    text[at..].starts_with(char::is_whitespace)
}

/// A word that is the last of its line is taken without the line break.
pub(super) fn in_line(text: &str, start: usize, end: usize) -> usize {
    let words = text[start..end].trim_end();
    match text[start + words.len()..end].find('\n') {
        Some(_) if words.is_empty() => line_end(text, start),
        Some(at) => start + words.len() + at,
        None => end,
    }
}

fn line_end_below(text: &str, at: usize, down: usize) -> usize {
    let mut end = line_end(text, at);
    for _ in 0..down {
        if end == text.len() {
            break;
        }
        end = line_end(text, end + 1);
    }
    end
}

fn start_above(text: &str, at: usize, up: usize) -> usize {
    let mut start = line_start(text, at);
    for _ in 0..up {
        start = line_start(text, start.saturating_sub(1));
    }
    start
}

/// The first character of a line by its number; of the last one where there are not so many.
fn nth_line(text: &str, number: usize) -> usize {
    let mut breaks = text.match_indices('\n').map(|(at, _)| at + 1);
    let start = match number {
        0 | 1 => 0,
        number => match breaks.nth(number - 2) {
            Some(start) => start,
            None => line_start(text, text.len()),
        },
    };
    first_of_line(text, start)
}

/// What separates words from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Word,
    Sign,
}

fn class(c: char) -> Class {
    match c {
        c if c.is_whitespace() => Class::Space,
        c if editor::is_word(c) => Class::Word,
        _ => Class::Sign,
    }
}

fn class_at(text: &str, at: usize) -> Option<Class> {
    text[at..].chars().next().map(class)
}

fn next_word(text: &str, at: usize) -> usize {
    let Some(here) = class_at(text, at) else {
        return at;
    };
    let rest = text[at..].trim_start_matches(|c| class(c) == here);
    text.len() - rest.trim_start().len()
}

fn word_back(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end();
    let Some(last) = before.chars().next_back().map(class) else {
        return 0;
    };
    before.trim_end_matches(|c| class(c) == last).len()
}

/// The last character of the word, or of the next one.
fn word_end(text: &str, at: usize) -> usize {
    let next = right(text, at);
    let rest = text[next..].trim_start();
    let Some(here) = rest.chars().next().map(class) else {
        return last_of_line(text, text.len());
    };
    let behind = rest.trim_start_matches(|c| class(c) == here);
    left(text, text.len() - behind.len())
}

/// The letter in the line, or the place beside it.
fn found(text: &str, cursor: usize, find: Find, times: usize) -> Option<Span> {
    let (start, end) = (line_start(text, cursor), line_end(text, cursor));
    let to = if find.is_forward {
        let behind = right(text, cursor).min(end);
        let mut places = text[behind..end].match_indices(find.letter);
        behind + places.nth(times - 1)?.0
    } else {
        let mut places = text[start..cursor].rmatch_indices(find.letter);
        start + places.nth(times - 1)?.0
    };
    let to = match (find.is_till, find.is_forward) {
        (false, _) => to,
        (true, true) => left(text, to),
        (true, false) => right(text, to),
    };
    let reach = if find.is_forward {
        Reach::Through
    } else {
        Reach::Before
    };
    Some(Span { to, reach })
}
