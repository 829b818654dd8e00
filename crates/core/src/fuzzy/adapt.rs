//! Gives new text the style of the text it replaces.

use std::borrow::Cow;

use similar::{DiffOp, capture_diff_slices};

use super::mapped::plain;
use super::{Strategy, unescaped};

/// Texts with more characters keep the typography they are given: comparing them letter by letter is slow.
const TYPOGRAPHY_CHARS_MAX: usize = 10_000;

/// Returns what to put in the place of `region`, where `old` was found.
pub fn adapted(strategy: Strategy, region: &str, old: &str, new: &str) -> String {
    let new = match strategy {
        Strategy::Exact => Cow::Borrowed(new),
        Strategy::EscapeNormalized => without_escapes(old, new),
        Strategy::TrimmedBoundary => Cow::Borrowed(without_boundary(old, new)),
        _ => Cow::Borrowed(new),
    };
    let new = match strategy {
        Strategy::Exact => new,
        _ => Cow::Owned(reindented(&new, indent_of(old), indent_of(region))),
    };
    let new = with_real_tabs(region, &new);
    let new = match strategy {
        Strategy::UnicodeNormalized => with_typography(region, &new),
        _ => new.into_owned(),
    };
    with_line_breaks(region, new)
}

/// Returns the white space before the first line that has more than that.
pub fn indent_of(text: &str) -> &str {
    let line = text.split('\n').find(|line| !line.trim().is_empty());
    line.map_or("", |line| {
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    })
}

/// Moves every line from one indentation to another.
pub fn reindented(text: &str, from: &str, to: &str) -> String {
    if from == to {
        return text.to_owned();
    }
    let line = |line: &str| match line.strip_prefix(from) {
        _ if line.trim().is_empty() => line.to_owned(),
        Some(rest) => format!("{to}{rest}"),
        // Less indented than the first line: move it as far as the first one moved.
        None => match to.strip_suffix(from) {
            Some(added) => format!("{added}{line}"),
            None => line.to_owned(),
        },
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

/// A text in which every line break was escaped has them escaped in its replacement too.
fn without_escapes<'a>(old: &str, new: &'a str) -> Cow<'a, str> {
    if old.contains('\n') || new.contains('\n') {
        Cow::Borrowed(new)
    } else {
        unescaped(new)
    }
}

/// Takes from `new` the empty lines at the ends that `old` has and the file has not.
fn without_boundary<'a>(old: &str, new: &'a str) -> &'a str {
    let is_empty_before = |text: &str, at: usize| text[..at].trim().is_empty();
    let mut new = new;
    let mut rest = old;
    while let (Some(old_break), Some(new_break)) = (rest.find('\n'), new.find('\n')) {
        if !is_empty_before(rest, old_break) || !is_empty_before(new, new_break) {
            break;
        }
        (rest, new) = (&rest[old_break + 1..], &new[new_break + 1..]);
    }
    while let (Some(old_break), Some(new_break)) = (rest.rfind('\n'), new.rfind('\n')) {
        if !rest[old_break..].trim().is_empty() || !new[new_break..].trim().is_empty() {
            break;
        }
        (rest, new) = (&rest[..old_break], &new[..new_break]);
    }
    new
}

/// Makes a tab that was written as `\t` before a line a real one where the file has real ones, likewise `\r` after it.
/// Inside a line they are more often part of the program.
fn with_real_tabs<'a>(region: &str, new: &'a str) -> Cow<'a, str> {
    let tabs = region.contains('\t') && new.contains("\\t");
    let returns = region.contains('\r') && new.contains("\\r");
    if !tabs && !returns {
        return Cow::Borrowed(new);
    }
    let line = |line: &str| {
        let rest = if tabs {
            line.trim_start_matches("\\t")
        } else {
            line
        };
        let indent = "\t".repeat((line.len() - rest.len()) / 2);
        match rest.strip_suffix("\\r") {
            Some(rest) if returns => format!("{indent}{rest}\r"),
            _ => format!("{indent}{rest}"),
        }
    };
    let lines: Vec<String> = new.split('\n').map(line).collect();
    Cow::Owned(lines.join("\n"))
}

/// Keeps the typographic characters of the file where the new text says the same.
fn with_typography(region: &str, new: &str) -> String {
    // What each character of the region is in plain text, and which character of the region it belongs to.
    let mut plain_chars = Vec::new();
    let mut owners = Vec::new();
    for (owner, c) in region.chars().enumerate() {
        let before = plain_chars.len();
        match plain(c) {
            Some(plain) => plain_chars.extend(plain.chars()),
            None => plain_chars.push(c),
        }
        owners.resize(owners.len() + plain_chars.len() - before, owner);
    }
    let region: Vec<char> = region.chars().collect();
    let new: Vec<char> = new.chars().collect();
    if plain_chars.len().max(new.len()) > TYPOGRAPHY_CHARS_MAX {
        return new.into_iter().collect();
    }
    let mut text = String::new();
    for op in capture_diff_slices(similar::Algorithm::Myers, &plain_chars, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                push_originals(
                    &mut text,
                    &region,
                    &plain_chars,
                    &owners,
                    old_index..old_index + len,
                );
            }
            op => text.extend(&new[op.new_range()]),
        }
    }
    text
}

/// Appends the characters of the region that a range of its plain text stands for.
fn push_originals(
    text: &mut String,
    region: &[char],
    plain_chars: &[char],
    owners: &[usize],
    range: std::ops::Range<usize>,
) {
    let mut at = range.start;
    while at < range.end {
        let owner = owners[at];
        let start = owners.partition_point(|other| *other < owner);
        let end = owners.partition_point(|other| *other <= owner);
        if start >= range.start && end <= range.end {
            text.push(region[owner]);
            at = end;
        } else {
            text.push(plain_chars[at]);
            at += 1;
        }
    }
}

/// Gives the new text the line breaks of a region that has carriage returns.
fn with_line_breaks(region: &str, new: String) -> String {
    if !region.contains("\r\n") && !region.ends_with('\r') || new.contains('\r') {
        return new;
    }
    let mut text = new.replace('\n', "\r\n");
    if region.ends_with('\r') {
        text.push('\r');
    }
    text
}
