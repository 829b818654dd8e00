//! Applies hunks to a text. Pure.

use std::ops::Range;

use hermes_core::fuzzy::{self, Found, Grain, Strategy};

use super::v4a::{Hunk, HunkLine};

/// Why a hunk does not fit. The reason is written for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Line of the hunk in the patch.
    pub line: usize,
    pub reason: String,
}

/// Applies all hunks, each to what the earlier ones left.
pub fn apply(text: &str, hunks: &[Hunk]) -> Result<String, Misfit> {
    let mut text = text.to_owned();
    let mut cursor = 0;
    for hunk in hunks {
        let edit = edit(&text, hunk, cursor).map_err(|reason| Misfit {
            line: hunk.line,
            reason,
        })?;
        cursor = edit.range.start + edit.new.len();
        text.replace_range(edit.range, &edit.new);
    }
    Ok(text)
}

struct Edit {
    range: Range<usize>,
    new: String,
}

/// Finds out what a hunk does to a text; `cursor` is where the previous one ended.
fn edit(text: &str, hunk: &Hunk, cursor: usize) -> Result<Edit, String> {
    let old = old_lines(hunk);
    if old.is_empty() {
        return insertion(text, hunk);
    }
    let old = old.join("\n");
    // An empty line is found as two breaks, but there is nothing else to search for.
    let found = fuzzy::find(text, &old, Grain::WholeLines).ok_or_else(|| not_found(text, &old))?;
    let range = choose(text, &found, hunk, cursor)?;
    let region = &text[range.clone()];
    if found.strategy.is_loose() && !removes_what_it_quotes(region, hunk) {
        return Err(not_found(text, &old));
    }
    let new = new_lines(hunk).join("\n");
    if fuzzy::has_escape_drift(found.strategy, region, &old, &new) {
        return Err(super::answer::ESCAPE_DRIFT.to_owned());
    }
    Ok(match replacement(found.strategy, region, hunk, &old) {
        Some(new) => Edit { range, new },
        None => removal(text, range),
    })
}

fn old_lines(hunk: &Hunk) -> Vec<&str> {
    let old = hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Context(text) | HunkLine::Removed(text) => Some(text.as_str()),
        HunkLine::Added(_) => None,
    });
    old.collect()
}

fn new_lines(hunk: &Hunk) -> Vec<&str> {
    let new = hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Context(text) | HunkLine::Added(text) => Some(text.as_str()),
        HunkLine::Removed(_) => None,
    });
    new.collect()
}

/// Returns whether the lines that a hunk takes out of a region are those it quotes. Context around them may be enough to
/// find the place, but not to delete whatever is there.
fn removes_what_it_quotes(region: &str, hunk: &Hunk) -> bool {
    let quoted = hunk
        .lines
        .iter()
        .filter(|line| !matches!(line, HunkLine::Added(_)));
    quoted
        .zip(region.split('\n'))
        .all(|(quoted, line)| match quoted {
            HunkLine::Removed(text) => fuzzy::resembles(text, line),
            HunkLine::Context(_) | HunkLine::Added(_) => true,
        })
}

/// Returns what comes into the place of the region; `None` if no line is left. Lines of context stay as the file has
/// them, however the hunk quotes them.
fn replacement(strategy: Strategy, region: &str, hunk: &Hunk, old: &str) -> Option<String> {
    if new_lines(hunk).is_empty() {
        return None;
    }
    let region_lines: Vec<&str> = region.split('\n').collect();
    if region_lines.len() != old_lines(hunk).len() {
        let new = new_lines(hunk).join("\n");
        return Some(fuzzy::adapted(strategy, region, old, &new));
    }
    let (from, to) = match strategy {
        Strategy::Exact => ("", ""),
        _ => (fuzzy::indent_of(old), fuzzy::indent_of(region)),
    };
    let ending = if region_lines.iter().all(|line| line.ends_with('\r')) {
        "\r"
    } else {
        ""
    };
    let mut theirs = region_lines.into_iter();
    let mut lines = Vec::new();
    for line in &hunk.lines {
        match line {
            HunkLine::Context(_) => lines.extend(theirs.next().map(str::to_owned)),
            HunkLine::Removed(_) => _ = theirs.next(),
            HunkLine::Added(text) => lines.push(fuzzy::reindented(text, from, to) + ending),
        }
    }
    Some(lines.join("\n"))
}

/// Takes whole lines out, with the break that ends them or, for the last ones, the break before them.
fn removal(text: &str, range: Range<usize>) -> Edit {
    let range = if text[range.end..].starts_with('\n') {
        range.start..range.end + 1
    } else {
        range.start.saturating_sub(1)..range.end
    };
    Edit {
        range,
        new: String::new(),
    }
}

/// Adds lines after the one that the hint names, or at the end.
fn insertion(text: &str, hunk: &Hunk) -> Result<Edit, String> {
    let mut new = new_lines(hunk).join("\n");
    new.push('\n');
    if hunk.hints.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            new.insert(0, '\n');
        }
        return Ok(Edit {
            range: text.len()..text.len(),
            new,
        });
    }
    let line = hinted_line(text, &hunk.hints)?;
    let at = if text[line.end..].starts_with('\n') {
        line.end + 1
    } else {
        new.insert(0, '\n');
        new.pop();
        line.end
    };
    Ok(Edit { range: at..at, new })
}

/// Finds the line that the hints name, each below the one before.
fn hinted_line(text: &str, hints: &[String]) -> Result<Range<usize>, String> {
    let mut from = 0;
    let mut found = 0..0;
    for hint in hints {
        let places = lines_with(&text[from..], hint);
        let [place] = places.as_slice() else {
            return Err(match places.len() {
                0 => format!("no line contains the hint `{hint}`; quote a line above the place"),
                several => {
                    format!("{several} lines contain the hint `{hint}`; quote one that is unique")
                }
            });
        };
        found = from + place.start..from + place.end;
        from = found.end;
    }
    Ok(found)
}

fn lines_with(text: &str, hint: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = text.split('\n').filter_map(|line| {
        let range = at..at + line.len();
        at = range.end + 1;
        line.contains(hint).then_some(range)
    });
    lines.collect()
}

/// Chooses the place that is meant: the only one, the first below the hint, or the only one that is still to come.
fn choose(text: &str, found: &Found, hunk: &Hunk, cursor: usize) -> Result<Range<usize>, String> {
    if let [only] = found.ranges.as_slice() {
        return Ok(only.clone());
    }
    if !hunk.hints.is_empty() {
        let hint = hinted_line(text, &hunk.hints)?;
        // The hint may be the first line of the place itself.
        let below = found.ranges.iter().find(|range| range.start >= hint.start);
        return below
            .cloned()
            .ok_or_else(|| "the lines are above the hint, not below it".to_owned());
    }
    let ahead: Vec<&Range<usize>> = found
        .ranges
        .iter()
        .filter(|range| range.start >= cursor)
        .collect();
    match ahead.as_slice() {
        [only] if cursor > 0 => Ok((*only).clone()),
        _ => Err(super::answer::ambiguous(
            "these lines",
            &fuzzy::line_numbers(text, &found.ranges),
            "add lines of context, or a hint such as `@@ fn name`",
        )),
    }
}

fn not_found(text: &str, old: &str) -> String {
    format!(
        "its context and removed lines are not in the file{}",
        super::answer::near_lines(text, old)
    )
}

#[cfg(test)]
mod tests;
