//! Where things stand in the text, in bytes.
//!
//! Mends what the parser reports: it counts characters, includes the comment after a quoted scalar, and starts a
//! block scalar below its header and ends it in the indentation of the next key.

use std::ops::Range;

use saphyr_parser::{Marker, ScalarStyle, Span};

/// The text of a document, with a way from the parser's marks to bytes.
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
    offsets: Offsets,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            offsets: Offsets::new(text),
        }
    }

    pub(super) fn bytes(&self, span: Span) -> Range<usize> {
        self.offsets.byte(span.start)..self.offsets.byte(span.end)
    }

    pub(super) fn has_anchor(&self, span: Span) -> bool {
        self.text[self.bytes(span)].starts_with('&')
    }

    /// Returns the span of a plain or quoted scalar up to its last character or closing quote.
    pub(super) fn inline(&self, style: ScalarStyle, span: Span) -> Range<usize> {
        let bytes = self.bytes(span);
        let text = &self.text[bytes.clone()];
        let length = match style {
            ScalarStyle::SingleQuoted => closing_quote(text, '\''),
            ScalarStyle::DoubleQuoted => closing_quote(text, '"'),
            _ => None,
        };
        bytes.start..bytes.start + length.unwrap_or(text.trim_end().len())
    }

    /// Returns the span of a block scalar from its `|` or `>` to the end of its last line.
    pub(super) fn block_scalar(&self, span: Span) -> Range<usize> {
        let bytes = self.bytes(span);
        let above = self.text[..bytes.start].trim_end_matches([' ', '\n', '\r']);
        let line_start = above.rfind('\n').map_or(0, |newline| newline + 1);
        let line = &above[line_start..];
        let line = line.find(" #").map_or(line, |comment| &line[..comment]);
        let header = line.rfind(['|', '>']).unwrap_or(0);
        let text = &self.text[bytes.clone()];
        let keeps_newlines = line[header..].contains('+');
        let length = match text.trim_end_matches(' ').strip_suffix('\n') {
            Some(lines) if keeps_newlines => lines.strip_suffix('\r').unwrap_or(lines).len(),
            _ => text.trim_end().len(),
        };
        line_start + header..bytes.start + length
    }

    /// Returns the first line, of this and the next, whose indentation has a tab.
    pub(super) fn tab_indented_line(&self, line: usize) -> Option<usize> {
        let indented_by_tab =
            |line: &str| line[..line.len() - line.trim_start().len()].contains('\t');
        let lines = self.text.lines().enumerate().skip(line.saturating_sub(1));
        lines
            .take(2)
            .find(|(_, line)| indented_by_tab(line))
            .map(|(index, _)| index + 1)
    }
}

/// Returns where the colon behind a key ends; `None` for a lone key in braces.
pub(super) fn after_colon(text: &str, key_end: usize) -> Option<usize> {
    let trimmed = text[key_end..].trim_start();
    trimmed
        .starts_with(':')
        .then(|| text.len() - trimmed.len() + 1)
}

pub(super) fn skip_space_and_comments(text: &str, from: usize) -> usize {
    let mut rest = text[from..].trim_start();
    while rest.starts_with('#') {
        let line_end = rest.find('\n').unwrap_or(rest.len());
        rest = rest[line_end..].trim_start();
    }
    text.len() - rest.len()
}

/// Returns the length of `text` up to and with the quote that closes it.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut chars = text
        .char_indices()
        .skip_while(|(_, c)| *c != quote)
        .skip(1)
        .peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            let is_doubled = quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote);
            if !is_doubled {
                return Some(at + 1);
            }
            chars.next();
        }
    }
    None
}

/// Turns the parser's character counts into byte offsets.
enum Offsets {
    Ascii { length: usize },
    Table(Vec<usize>),
}

impl Offsets {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Ascii { length: text.len() };
        }
        let starts = text.char_indices().map(|(byte, _)| byte);
        Self::Table(starts.chain([text.len()]).collect())
    }

    fn byte(&self, marker: Marker) -> usize {
        match self {
            Self::Ascii { length } => marker.index().min(*length),
            Self::Table(table) => table[marker.index().min(table.len() - 1)],
        }
    }
}
