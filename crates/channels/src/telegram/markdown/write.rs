//! Writes lines as MarkdownV2, and as plain text.

use super::{Content, Line, Span, Style};

/// What Telegram wants escaped wherever it is not meant.
const RESERVED: &[char] = &[
    '\\', '_', '*', '[', ']', '(', ')', '~', '`', '>', '#', '+', '-', '=', '|', '{', '}', '.', '!',
];
const RESERVED_IN_CODE: &[char] = &['\\', '`'];
const RESERVED_IN_ADDRESS: &[char] = &['\\', ')'];

pub(super) fn markdown(lines: &[Line]) -> String {
    joined(lines, |line, written| {
        if line.is_quote {
            written.push('>');
        }
        match &line.content {
            Content::Spans(spans) => write_spans(spans, written),
            Content::Code { language, code } => {
                written.push_str("```");
                written.push_str(language);
                written.push('\n');
                escape(code, RESERVED_IN_CODE, written);
                written.push_str("```");
            }
        }
    })
}

pub(super) fn plain(lines: &[Line]) -> String {
    joined(lines, |line, written| match &line.content {
        Content::Spans(spans) => spans.iter().for_each(|span| written.push_str(&span.text)),
        Content::Code { code, .. } => written.push_str(code),
    })
}

fn joined(lines: &[Line], write: impl Fn(&Line, &mut String)) -> String {
    let mut written = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            written.push('\n');
        }
        write(line, &mut written);
    }
    written
}

/// One thing that is open around text, from the outermost to the innermost: the order in which they nest.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark<'a> {
    Link(&'a str),
    Spoiler,
    Bold,
    Italic,
    Struck,
    Code,
}

impl Mark<'_> {
    fn open(&self) -> &'static str {
        match self {
            Self::Link(_) => "[",
            other => other.sign(),
        }
    }

    fn close(&self, written: &mut String) {
        match self {
            Self::Link(address) => {
                written.push_str("](");
                escape(address, RESERVED_IN_ADDRESS, written);
                written.push(')');
            }
            other => written.push_str(other.sign()),
        }
    }

    fn sign(&self) -> &'static str {
        match self {
            Self::Link(_) => "",
            Self::Spoiler => "||",
            Self::Bold => "*",
            Self::Italic => "_",
            Self::Struck => "~",
            Self::Code => "`",
        }
    }
}

fn marks(style: &Style) -> Vec<Mark<'_>> {
    let link = style.link.as_deref().map(Mark::Link);
    let marks = [
        link,
        style.is_spoiler.then_some(Mark::Spoiler),
        style.is_bold.then_some(Mark::Bold),
        style.is_italic.then_some(Mark::Italic),
        style.is_struck.then_some(Mark::Struck),
        style.is_code.then_some(Mark::Code),
    ];
    marks.into_iter().flatten().collect()
}

/// Writes the spans of one line. A mark is closed and opened again only when one around it changes, so that two of a kind never
/// touch: `__` would be another mark than `_` twice.
fn write_spans(spans: &[Span], written: &mut String) {
    let mut open: Vec<Mark<'_>> = Vec::new();
    for span in spans {
        let wanted = marks(&span.style);
        let kept = open
            .iter()
            .zip(&wanted)
            .take_while(|(old, new)| old == new)
            .count();
        close_to(&mut open, kept, written);
        for mark in &wanted[kept..] {
            written.push_str(mark.open());
        }
        open = wanted;
        let reserved = if span.style.is_code {
            RESERVED_IN_CODE
        } else {
            RESERVED
        };
        escape(&span.text, reserved, written);
    }
    close_to(&mut open, 0, written);
}

fn close_to(open: &mut Vec<Mark<'_>>, kept: usize, written: &mut String) {
    while open.len() > kept {
        if let Some(mark) = open.pop() {
            mark.close(written);
        }
    }
}

fn escape(text: &str, reserved: &[char], written: &mut String) {
    for c in text.chars() {
        if reserved.contains(&c) {
            written.push('\\');
        }
        written.push(c);
    }
}
