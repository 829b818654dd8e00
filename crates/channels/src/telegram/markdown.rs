//! What models write, as Telegram's MarkdownV2: pure functions.
//!
//! The text is read into lines of styled spans ([`read`]), where tables are bullets already, and written from there
//! ([`write`]). Whatever goes in, what comes out is MarkdownV2 that Telegram can parse: every style is closed on its line, in a
//! fixed order, and everything else is escaped.

mod read;
mod spoiler;
mod table;
mod write;

/// A text in Telegram's own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) markdown: String,
    /// The same without any style: what people see, and what Telegram counts.
    pub(super) plain: String,
}

pub(super) fn render(markdown: &str) -> Rendered {
    let lines = read::read(markdown);
    Rendered {
        markdown: write::markdown(&lines),
        plain: write::plain(&lines),
    }
}

/// How long Telegram says a text is.
pub(super) fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// One line of what people see; a block of code is one line here, however many it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    is_quote: bool,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Spans(Vec<Span>),
    Code { language: String, code: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    text: String,
    style: Style,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Style {
    link: Option<String>,
    is_spoiler: bool,
    is_bold: bool,
    is_italic: bool,
    is_struck: bool,
    is_code: bool,
}

impl Span {
    fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style: Style::default(),
        }
    }
}

/// Adds text to spans; what has the style of the last one becomes part of it.
fn push(spans: &mut Vec<Span>, text: &str, style: &Style) {
    match spans.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.style == *style => last.text.push_str(text),
        _ => spans.push(Span {
            text: text.to_owned(),
            style: style.clone(),
        }),
    }
}

#[cfg(test)]
mod tests;
