//! What a file has instead of the text that was not found in it.

use super::similarity::{Comparer, is_hopeless};

/// Less alike than this is no help.
const RATIO_MIN: f64 = 0.5;

const SHOWN_MAX: usize = 3;

/// Lines that are looked at; the beginning of a huge file is enough for a hint.
const LINES_MAX: usize = 20_000;

/// A line that could have been meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near<'a> {
    pub number: usize,
    pub line: &'a str,
}

/// Returns the lines most like the first line of `old` that is not empty, in the order of the text.
pub fn nearest_lines<'a>(text: &'a str, old: &str) -> Vec<Near<'a>> {
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return Vec::new();
    };
    let mut comparer = Comparer::new();
    let lines = text.lines().enumerate().take(LINES_MAX);
    let mut scored: Vec<(f64, Near)> = lines
        .filter_map(|(index, line)| {
            if is_hopeless(line.trim(), wanted, RATIO_MIN) {
                return None;
            }
            let ratio = comparer.ratio(line.trim(), wanted);
            let near = Near {
                number: index + 1,
                line,
            };
            (ratio >= RATIO_MIN).then_some((ratio, near))
        })
        .collect();
    scored.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    scored.truncate(SHOWN_MAX);
    scored.sort_by_key(|(_, near)| near.number);
    scored.into_iter().map(|(_, near)| near).collect()
}
