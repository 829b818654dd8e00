//! Finds text in a file although it was not quoted to the letter, and replaces it in the file's own style.
//!
//! A chain of nine strategies, strictest first; the first that finds anything decides, also when it finds too much.
//! Pure and total: any input gives an answer in bounded time. Start at [`replace`].

use std::borrow::Cow;
use std::ops::Range;

mod adapt;
mod mapped;
mod near;
mod similarity;
mod strategies;

pub use adapt::{adapted, indent_of, reindented};
pub use near::{Near, nearest_lines};

/// How much of a line a careless quote has at least.
const RESEMBLANCE_MIN: f64 = 0.5;

/// How a text was found, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// To the letter.
    Exact,
    /// Lines without the white space at both ends.
    LineTrimmed,
    /// Any run of blanks and tabs counts as one blank.
    WhitespaceNormalized,
    /// Like `LineTrimmed`, and empty lines inside the text may differ.
    IndentationFlexible,
    /// `\n`, `\t` and `\r` written as two characters are the real ones.
    EscapeNormalized,
    /// Without the empty lines before and after the text.
    TrimmedBoundary,
    /// Typographic quotes, dashes, dots and blanks count as plain ones.
    UnicodeNormalized,
    /// First and last line agree, and what is between them is similar.
    BlockAnchor,
    /// At least half of the lines are similar.
    ContextAware,
}

impl Strategy {
    pub const CHAIN: [Self; 9] = [
        Self::Exact,
        Self::LineTrimmed,
        Self::WhitespaceNormalized,
        Self::IndentationFlexible,
        Self::EscapeNormalized,
        Self::TrimmedBoundary,
        Self::UnicodeNormalized,
        Self::BlockAnchor,
        Self::ContextAware,
    ];

    /// Whether a line of the text may be a wholly different one in the file.
    pub fn is_loose(self) -> bool {
        matches!(self, Self::BlockAnchor | Self::ContextAware)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "line_trimmed",
            Self::WhitespaceNormalized => "whitespace_normalized",
            Self::IndentationFlexible => "indentation_flexible",
            Self::EscapeNormalized => "escape_normalized",
            Self::TrimmedBoundary => "trimmed_boundary",
            Self::UnicodeNormalized => "unicode_normalized",
            Self::BlockAnchor => "block_anchor",
            Self::ContextAware => "context_aware",
        }
    }
}

/// Where a text may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    Anywhere,
    WholeLines,
}

/// Places of a text: at least one, in order, not overlapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub strategy: Strategy,
    pub ranges: Vec<Range<usize>>,
}

/// Which occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    TheOnlyOne,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub text: String,
    pub count: usize,
    pub strategy: Strategy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplaceError {
    EmptyOld,
    OldEqualsNew,
    NotFound,
    /// Line numbers of the occurrences.
    Ambiguous {
        lines: Vec<usize>,
    },
    /// Both texts have quotes with a backslash before them, and the file has not.
    EscapeDrift,
}

/// Replaces `old` by `new` in `text`.
pub fn replace(
    text: &str,
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> Result<Replaced, ReplaceError> {
    if old.is_empty() {
        return Err(ReplaceError::EmptyOld);
    }
    if old == new {
        return Err(ReplaceError::OldEqualsNew);
    }
    let found = find(text, old, Grain::Anywhere).ok_or(ReplaceError::NotFound)?;
    if found.ranges.len() > 1 && occurrences == Occurrences::TheOnlyOne {
        return Err(ReplaceError::Ambiguous {
            lines: line_numbers(text, &found.ranges),
        });
    }
    let mut result = String::with_capacity(text.len() + new.len());
    let mut end = 0;
    for range in &found.ranges {
        if has_escape_drift(found.strategy, &text[range.clone()], old, new) {
            return Err(ReplaceError::EscapeDrift);
        }
        result.push_str(&text[end..range.start]);
        result.push_str(&adapted(found.strategy, &text[range.clone()], old, new));
        end = range.end;
    }
    result.push_str(&text[end..]);
    Ok(Replaced {
        text: result,
        count: found.ranges.len(),
        strategy: found.strategy,
    })
}

/// Finds `old` with the first strategy that finds it at all.
pub fn find(text: &str, old: &str, grain: Grain) -> Option<Found> {
    if old.is_empty() {
        return None;
    }
    // White space alone is everywhere once it is normalised.
    let chain = if old.trim().is_empty() {
        &Strategy::CHAIN[..1]
    } else {
        &Strategy::CHAIN[..]
    };
    let search = strategies::Search::new(text, old);
    chain.iter().find_map(|strategy| {
        let mut ranges = search.ranges(*strategy);
        if *strategy != Strategy::Exact {
            let mut end = 0;
            for range in &mut ranges {
                range.start = with_indentation(text, range.start).max(end);
                end = range.end;
            }
        }
        if grain == Grain::WholeLines {
            ranges.retain(|range| is_whole_lines(text, range));
        }
        let found = Found {
            strategy: *strategy,
            ranges,
        };
        (!found.ranges.is_empty()).then_some(found)
    })
}

/// Returns whether two lines are so alike that one may be a careless quote of the other.
pub fn resembles(quoted: &str, line: &str) -> bool {
    let mut comparer = similarity::Comparer::new();
    comparer.is_alike(quoted.trim(), line.trim(), RESEMBLANCE_MIN)
}

/// Returns the start of the line if only white space is before `at` on it.
fn with_indentation(text: &str, at: usize) -> usize {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_indentation = text[line..at].chars().all(|c| matches!(c, ' ' | '\t'));
    if is_indentation { line } else { at }
}

fn is_whole_lines(text: &str, range: &Range<usize>) -> bool {
    let before = &text[..range.start];
    let starts = before.is_empty() || before.ends_with('\n');
    let after = &text[range.end..];
    starts && (after.is_empty() || after.starts_with('\n') || text[..range.end].ends_with('\n'))
}

/// Returns the number of the line on which each range begins.
pub fn line_numbers(text: &str, ranges: &[Range<usize>]) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let numbers = ranges.iter().map(|range| {
        line += text[at..range.start].matches('\n').count();
        at = range.start;
        line
    });
    numbers.collect()
}

/// Returns whether quotes were escaped once too often in both texts.
pub fn has_escape_drift(strategy: Strategy, region: &str, old: &str, new: &str) -> bool {
    let drifts =
        |quote: &str| old.contains(quote) && new.contains(quote) && !region.contains(quote);
    strategy != Strategy::Exact && (drifts("\\'") || drifts("\\\""))
}

/// Turns escapes written as two characters into the characters they mean.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\\n", "\n").replace("\\t", "\t");
    Cow::Owned(text.replace("\\r", "\r"))
}

#[cfg(test)]
mod tests;
