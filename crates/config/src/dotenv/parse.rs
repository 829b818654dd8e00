//! The grammar of `.env` files: `NAME=value`, `export`, quotes, comments, values over several lines.

use std::ops::Range;

use super::{DotEnvProblem, is_forbidden, is_name};

/// `NAME=value` in the file.
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: String,
    /// Where its first line starts.
    pub(super) line_start: usize,
    /// From its name to the end of its value: what stands around, like `export` or a comment, is not ours.
    pub(super) span: Range<usize>,
}

/// Reads all assignments, and tells which lines have no effect.
pub(super) fn parse(text: &str) -> (Vec<Assignment>, Vec<DotEnvProblem>) {
    let mut assignments = Vec::new();
    let mut problems = Vec::new();
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut line = 1;
    while start < text.len() {
        let end = match parse_line(text, start) {
            Ok(Some(assignment)) => {
                let end = assignment.span.end;
                if is_forbidden(&assignment.name) {
                    problems.push(DotEnvProblem {
                        line,
                        message: "this variable is not taken from a `.env` file; set it in your shell",
                    });
                } else {
                    assignments.push(assignment);
                }
                end
            }
            Ok(None) => line_end(text, start),
            Err(message) => {
                problems.push(DotEnvProblem { line, message });
                line_end(text, start)
            }
        };
        let next = text[end..]
            .find('\n')
            .map_or(text.len(), |newline| end + newline + 1);
        line += text[start..next].matches('\n').count();
        start = next;
    }
    (assignments, problems)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline)
}

/// Reads the assignment that starts in the line at `start`; `None` for a blank line or a comment.
fn parse_line(text: &str, start: usize) -> Result<Option<Assignment>, &'static str> {
    let end = line_end(text, start);
    let line = text[start..end].trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, _) = line.split_once('=').ok_or("there is no `=`")?;
    let name = name.trim();
    let name = name
        .strip_prefix("export")
        .filter(|rest| rest.starts_with([' ', '\t']))
        .map_or(name, str::trim_start);
    if !is_name(name) {
        return Err("the text before `=` is not the name of a variable");
    }
    let name_start = start + text[start..end].find(name).unwrap_or(0);
    let value_start = start + text[start..end].find('=').map_or(0, |equals| equals + 1);
    let (value, value_end) = parse_value(text, value_start, end)?;
    Ok(Some(Assignment {
        name: name.to_owned(),
        value,
        line_start: start,
        span: name_start..value_end,
    }))
}

/// Reads a value, which may go over several lines when it is quoted; returns it and where it ends.
fn parse_value(text: &str, start: usize, line_end: usize) -> Result<(String, usize), &'static str> {
    let line = &text[start..line_end];
    let margin = line.len() - line.trim_start().len();
    let at = start + margin;
    if let Some(quote @ ('"' | '\'')) = line[margin..].chars().next() {
        let (value, length) = unquote(&text[at + 1..], quote).ok_or("a quote is not closed")?;
        return Ok((value, at + 1 + length));
    }
    let comment = line.find(" #").or(line.find("\t#")).unwrap_or(line.len());
    let value = line[..comment].trim();
    let end = if value.is_empty() {
        start
    } else {
        at + value.len()
    };
    Ok((value.to_owned(), end))
}

/// Reads up to the closing quote; returns the value and the length read, with the quote.
fn unquote(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, at + 1)),
            '\\' => match (chars.next()?.1, quote) {
                ('n', '"') => value.push('\n'),
                ('r', '"') => value.push('\r'),
                ('t', '"') => value.push('\t'),
                (escaped @ ('\\' | '"' | '$'), '"') | (escaped @ ('\\' | '\''), '\'') => {
                    value.push(escaped);
                }
                (other, _) => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}
