//! The nine ways to look for a text.

use std::collections::BTreeMap;
use std::ops::Range;

use super::mapped::Mapped;
use super::similarity::{Comparer, is_hopeless};
use super::{Strategy, unescaped};

/// What is between the anchors must be at least this alike when there is one candidate, or several.
const BLOCK_RATIO_MIN: f64 = 0.5;
const BLOCK_RATIO_MIN_OF_SEVERAL: f64 = 0.7;

/// A line counts as the same when it is this alike.
const LINE_RATIO_MIN: f64 = 0.8;

/// Files with more lines are searched only for texts that are quoted well: likeness is slow.
const ALIKE_LINES_MAX: usize = 100_000;

/// A text and what is looked for in it.
pub(super) struct Search<'a> {
    text: &'a str,
    old: &'a str,
}

impl<'a> Search<'a> {
    pub(super) fn new(text: &'a str, old: &'a str) -> Self {
        Self { text, old }
    }

    /// Returns where the strategy finds the text: in order, not overlapping.
    pub(super) fn ranges(&self, strategy: Strategy) -> Vec<Range<usize>> {
        match strategy {
            Strategy::Exact => exact(self.text, self.old),
            Strategy::LineTrimmed => trimmed_lines(self.text, self.old),
            Strategy::WhitespaceNormalized => self.with_single_blanks(),
            Strategy::IndentationFlexible => without_empty_lines(self.text, self.old),
            Strategy::EscapeNormalized => self.without_escapes(),
            Strategy::TrimmedBoundary => trimmed_lines(self.text, self.old.trim()),
            Strategy::UnicodeNormalized => self.with_plain_characters(),
            Strategy::BlockAnchor => block_between_anchors(self.text, self.old),
            Strategy::ContextAware => similar_lines(self.text, self.old),
        }
    }

    fn with_single_blanks(&self) -> Vec<Range<usize>> {
        let text = Mapped::with_single_blanks(self.text);
        let old = Mapped::with_single_blanks(self.old);
        originals(&text, &exact(&text.text, &old.text))
    }

    fn without_escapes(&self) -> Vec<Range<usize>> {
        let old = unescaped(self.old);
        if old == self.old {
            Vec::new()
        } else {
            exact(self.text, &old)
        }
    }

    fn with_plain_characters(&self) -> Vec<Range<usize>> {
        let text = Mapped::with_plain_characters(self.text);
        let old = Mapped::with_plain_characters(self.old);
        if text.text == self.text && old.text == self.old {
            return Vec::new();
        }
        let ranges = match exact(&text.text, &old.text) {
            ranges if ranges.is_empty() => trimmed_lines(&text.text, &old.text),
            ranges => ranges,
        };
        originals(&text, &ranges)
    }
}

fn originals(mapped: &Mapped, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    ranges
        .iter()
        .filter_map(|range| mapped.original(range))
        .collect()
}

fn exact(text: &str, old: &str) -> Vec<Range<usize>> {
    let places = text.match_indices(old);
    places.map(|(at, _)| at..at + old.len()).collect()
}

/// A line without its break, and where it is.
struct Line<'a> {
    range: Range<usize>,
    trimmed: &'a str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut at = 0;
    let lines = text.split('\n').map(|line| {
        let range = at..at + line.len();
        at = range.end + 1;
        Line {
            range,
            trimmed: line.trim(),
        }
    });
    lines.collect()
}

/// The lines that are looked for. One line break at the end of the text belongs to its last line.
struct Wanted<'a> {
    lines: Vec<&'a str>,
    has_last_break: bool,
}

impl<'a> Wanted<'a> {
    fn new(old: &'a str) -> Self {
        let body = old.strip_suffix('\n');
        Self {
            lines: body.unwrap_or(old).split('\n').map(str::trim).collect(),
            has_last_break: body.is_some(),
        }
    }

    /// Returns what the window of lines covers.
    fn cover(&self, text: &str, window: &[Line]) -> Range<usize> {
        let (Some(first), Some(last)) = (window.first(), window.last()) else {
            return 0..0;
        };
        let takes_break = self.has_last_break && last.range.end < text.len();
        first.range.start..last.range.end + usize::from(takes_break)
    }
}

fn trimmed_lines(text: &str, old: &str) -> Vec<Range<usize>> {
    same_lines(text, &lines(text), &Wanted::new(old))
}

fn without_empty_lines(text: &str, old: &str) -> Vec<Range<usize>> {
    let mut wanted = Wanted::new(old);
    let is_empty = |line: Option<&&str>| line.is_none_or(|line| line.is_empty());
    if is_empty(wanted.lines.first()) || is_empty(wanted.lines.last()) {
        return Vec::new();
    }
    wanted.lines.retain(|line| !line.is_empty());
    let mut lines = lines(text);
    lines.retain(|line| !line.trimmed.is_empty());
    same_lines(text, &lines, &wanted)
}

/// Returns where the wanted lines are, one after the other.
fn same_lines(text: &str, lines: &[Line], wanted: &Wanted) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(window) = lines.get(at..at + wanted.lines.len()) {
        let mut pairs = window.iter().zip(&wanted.lines);
        if pairs.all(|(line, wanted)| line.trimmed == *wanted) {
            ranges.push(wanted.cover(text, window));
            at += wanted.lines.len();
        } else {
            at += 1;
        }
    }
    ranges
}

fn block_between_anchors(text: &str, old: &str) -> Vec<Range<usize>> {
    let wanted = Wanted::new(old);
    let [first, middle @ .., last] = wanted.lines.as_slice() else {
        return Vec::new();
    };
    if middle.is_empty() || first.is_empty() || last.is_empty() {
        return Vec::new();
    }
    let lines = lines(text);
    if lines.len() > ALIKE_LINES_MAX {
        return Vec::new();
    }
    let is_anchored =
        |window: &&[Line]| window[0].trimmed == *first && window[window.len() - 1].trimmed == *last;
    let candidates: Vec<&[Line]> = lines
        .windows(wanted.lines.len())
        .filter(is_anchored)
        .collect();
    let ratio_min = match candidates.len() {
        1 => BLOCK_RATIO_MIN,
        _ => BLOCK_RATIO_MIN_OF_SEVERAL,
    };
    let mut comparer = Comparer::new();
    let scored = candidates.into_iter().filter_map(|window| {
        let inside = &window[1..window.len() - 1];
        let ratio = likeness(inside, middle, &mut comparer);
        (ratio >= ratio_min).then(|| (ratio, wanted.cover(text, window)))
    });
    best_apart(scored.collect())
}

/// Returns how alike two blocks of as many lines are, line by line.
fn likeness(block: &[Line], wanted: &[&str], comparer: &mut Comparer) -> f64 {
    let (mut shared, mut total) = (0, 0);
    for (line, wanted) in block.iter().zip(wanted) {
        shared += comparer.shared(line.trimmed, wanted);
        total += line.trimmed.chars().count() + wanted.chars().count();
    }
    match total {
        0 => 1.0,
        _ => 2.0 * shared as f64 / total as f64,
    }
}

/// A single line that is only similar is more often another line than a slip, so two are the least.
fn similar_lines(text: &str, old: &str) -> Vec<Range<usize>> {
    let wanted = Wanted::new(old);
    let lines = lines(text);
    if wanted.lines.len() < 2 || lines.len() > ALIKE_LINES_MAX {
        return Vec::new();
    }
    let mut comparer = Comparer::new();
    let scored = lines.windows(wanted.lines.len()).filter_map(|window| {
        let share = similar_share(window, &wanted.lines, &mut comparer);
        (share >= 0.5).then(|| (share, wanted.cover(text, window)))
    });
    best_apart(scored.collect())
}

/// Returns the share of lines that are alike. Empty lines are alike everywhere and say nothing.
fn similar_share(window: &[Line], wanted: &[&str], comparer: &mut Comparer) -> f64 {
    let total = wanted.iter().filter(|line| !line.is_empty()).count();
    let (mut alike, mut seen) = (0, 0);
    for (line, wanted) in window.iter().zip(wanted) {
        if wanted.is_empty() {
            continue;
        }
        seen += 1;
        let is_alike = !is_hopeless(line.trimmed, wanted, LINE_RATIO_MIN)
            && comparer.is_alike(line.trimmed, wanted, LINE_RATIO_MIN);
        alike += usize::from(is_alike);
        if (alike + total - seen) * 2 < total {
            return 0.0;
        }
    }
    match total {
        0 => 0.0,
        _ => f64::from(u32::try_from(alike).unwrap_or(u32::MAX)) / total as f64,
    }
}

/// Keeps the best of the ranges that overlap, in the order of the text.
fn best_apart(mut scored: Vec<(f64, Range<usize>)>) -> Vec<Range<usize>> {
    // Stable: of equals the first stays first.
    scored.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, range) in scored {
        let before = kept.range(..range.end).next_back();
        if before.is_none_or(|(_, end)| *end <= range.start) {
            kept.insert(range.start, range.end);
        }
    }
    kept.into_iter().map(|(start, end)| start..end).collect()
}
