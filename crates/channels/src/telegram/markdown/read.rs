//! Reads markdown into lines.

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::table::{Cell, Table};
use super::{Content, Line, Span, Style, push, spoiler};

const LANGUAGE_CHARS_MAX: usize = 32;
/// Deeper lists are not pushed further to the right: phones are narrow.
const INDENT_LEVELS_MAX: usize = 4;
const INDENT: &str = "  ";
const RULE: &str = "———";

pub(super) fn read(markdown: &str) -> Vec<Line> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let clean = without_controls(markdown);
    let mut reader = Reader::default();
    for (event, range) in Parser::new_ext(&clean, options).into_offset_iter() {
        reader.take(event, &clean[range]);
    }
    reader.finish()
}

/// Telegram makes blanks of control characters; doing it first keeps both sides' counts the same.
fn without_controls(markdown: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        c if c.is_control() => Some(' '),
        c => Some(c),
    };
    markdown.chars().filter_map(shown).collect()
}

#[derive(Default)]
struct Reader {
    lines: Vec<Line>,
    /// The line that is being read; `None` between lines.
    line: Option<Vec<Span>>,
    bold: usize,
    italic: usize,
    struck: usize,
    /// Whether each open `~` or `~~` strikes through: one alone is a tilde.
    tildes: Vec<bool>,
    links: Vec<Link>,
    quotes: usize,
    /// The next number of each open list.
    lists: Vec<Option<u64>>,
    code: Option<(String, String)>,
    table: Option<Table>,
    cell: Option<Cell>,
    /// A blank line is due before the next line.
    wants_gap: bool,
}

struct Link {
    address: String,
    text: String,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, source: &str) {
        match event {
            Event::Start(tag) => self.start(tag, source),
            Event::End(tag) => self.end(tag, source),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.code_span(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html),
            Event::FootnoteReference(label) => self.text(&format!("[{label}]")),
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.block();
                self.text(RULE);
                self.end_block();
            }
            Event::TaskListMarker(is_done) => self.task(is_done),
        }
    }

    fn start(&mut self, tag: Tag<'_>, source: &str) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { .. } => {
                self.block();
                self.bold += 1;
            }
            Tag::BlockQuote(kind) => {
                self.block();
                self.quotes += 1;
                self.alert(kind);
            }
            Tag::CodeBlock(kind) => {
                self.block();
                self.code = Some((language(&kind), String::new()));
            }
            Tag::List(first) => {
                self.block();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.italic += 1,
            Tag::Strong => self.bold += 1,
            Tag::Strikethrough => self.strike(source.starts_with("~~")),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(Link {
                address: dest_url.into_string(),
                text: String::new(),
            }),
            Tag::Table(_) => {
                self.block();
                self.table = Some(Table::default());
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.cell = Some(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, _source: &str) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.bold = self.bold.saturating_sub(1);
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes = self.quotes.saturating_sub(1);
                self.end_block();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.end_block();
            }
            TagEnd::Item => self.end_line(),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.end_strike(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => self.end_cell(),
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// Begins a block on a line of its own; beside a bullet it stays on the bullet's line.
    fn block(&mut self) {
        let is_beside_bullet = self.line.as_ref().is_some_and(|spans| is_bullet(spans));
        if !is_beside_bullet {
            self.end_line();
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.wants_gap |= self.lists.is_empty() && !self.lines.is_empty();
    }

    fn end_line(&mut self) {
        if let Some(spans) = self.line.take() {
            self.put(Content::Spans(spoiler::hide(spans)));
        }
    }

    fn put(&mut self, content: Content) {
        self.close_gap();
        self.lines.push(Line {
            is_quote: self.quotes > 0,
            content,
        });
    }

    fn close_gap(&mut self) {
        if std::mem::take(&mut self.wants_gap) {
            // A gap inside a quote is part of it.
            let is_quote = self.quotes > 0 && self.lines.last().is_some_and(|line| line.is_quote);
            self.lines.push(Line {
                is_quote,
                content: Content::Spans(Vec::new()),
            });
        }
    }

    fn break_line(&mut self) {
        match &mut self.cell {
            Some(cell) => push(cell, " ", &Style::default()),
            None => {
                self.end_line();
                self.line = Some(self.indent());
            }
        }
    }

    /// What a further line of a list's item begins with.
    fn indent(&self) -> Vec<Span> {
        match self.lists.len().min(INDENT_LEVELS_MAX) {
            0 => Vec::new(),
            levels => vec![Span::plain(INDENT.repeat(levels))],
        }
    }

    fn text(&mut self, text: &str) {
        let style = self.style();
        self.add(text, &style);
    }

    fn code_span(&mut self, text: &str) {
        let style = Style {
            is_code: true,
            ..self.style()
        };
        self.add(text, &style);
    }

    fn add(&mut self, text: &str, style: &Style) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                self.break_line();
            }
            self.add_part(part, style);
        }
    }

    fn add_part(&mut self, text: &str, style: &Style) {
        if let Some(cell) = &mut self.cell {
            return push(cell, text, style);
        }
        let indent = self.indent();
        push(self.line.get_or_insert(indent), text, style);
    }

    fn style(&self) -> Style {
        Style {
            link: self
                .links
                .last()
                .map(|link| link.address.clone())
                .filter(|address| is_linked(address)),
            is_spoiler: false,
            is_bold: self.bold > 0,
            is_italic: self.italic > 0,
            is_struck: self.struck > 0,
            is_code: false,
        }
    }

    fn html(&mut self, html: &str) {
        let tag = html.trim().to_ascii_lowercase().replace(' ', "");
        if matches!(tag.as_str(), "<br>" | "<br/>") {
            self.break_line();
        } else {
            self.text(html.strip_suffix('\n').unwrap_or(html));
            if html.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn alert(&mut self, kind: Option<BlockQuoteKind>) {
        let label = match kind {
            Some(BlockQuoteKind::Note) => "Note",
            Some(BlockQuoteKind::Tip) => "Tip",
            Some(BlockQuoteKind::Important) => "Important",
            Some(BlockQuoteKind::Warning) => "Warning",
            Some(BlockQuoteKind::Caution) => "Caution",
            None => return,
        };
        self.bold += 1;
        self.text(label);
        self.bold -= 1;
        self.end_line();
    }

    fn item(&mut self) {
        self.end_line();
        let indent = INDENT.repeat(self.lists.len().saturating_sub(1).min(INDENT_LEVELS_MAX));
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            _ => "• ".to_owned(),
        };
        self.line = Some(vec![Span::plain(indent + &bullet)]);
    }

    fn task(&mut self, is_done: bool) {
        let sign = if is_done { "☑ " } else { "☐ " };
        if let Some(span) = self.line.as_mut().and_then(|line| line.last_mut()) {
            let indent = span.text.trim_end_matches("• ").to_owned();
            span.text = indent;
        }
        self.text(sign);
    }

    fn strike(&mut self, is_meant: bool) {
        self.tildes.push(is_meant);
        if is_meant {
            self.struck += 1;
        } else {
            self.text("~");
        }
    }

    fn end_strike(&mut self) {
        match self.tildes.pop() {
            Some(true) => self.struck = self.struck.saturating_sub(1),
            _ => self.text("~"),
        }
    }

    /// An address that Telegram makes no link of, or that would not be seen, stands beside its text.
    fn end_link(&mut self) {
        let Some(link) = self.links.last() else {
            return;
        };
        let (address, text) = (link.address.clone(), link.text.clone());
        let bare = address.strip_prefix("mailto:").unwrap_or(&address);
        if text.trim().is_empty() {
            self.text(bare);
            self.links.pop();
        } else {
            self.links.pop();
            if !is_linked(&address) && !text.contains(bare) {
                self.text(&format!(" ({bare})"));
            }
        }
        // What stands inside a link that is inside a link belongs to both.
        if let Some(outer) = self.links.last_mut() {
            outer.text.push_str(&text);
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let code = code.strip_suffix('\n').unwrap_or(&code);
        self.end_line();
        if self.quotes > 0 || code.is_empty() {
            // Inside a quote, Telegram would take the signs of the quote for code.
            for line in code.split('\n') {
                self.code_span(line);
                self.line.get_or_insert_default();
                self.end_line();
            }
        } else {
            self.put(Content::Code {
                language,
                code: code.to_owned(),
            });
        }
        self.end_block();
    }

    fn end_cell(&mut self) {
        let (Some(table), Some(cell)) = (&mut self.table, self.cell.take()) else {
            return;
        };
        match table.rows.last_mut() {
            Some(row) => row.push(cell),
            None => table.head.push(cell),
        }
    }

    fn end_table(&mut self) {
        let table = self.table.take().unwrap_or_default();
        for line in table.lines() {
            let mut spans = self.indent();
            spans.extend(line);
            self.line = Some(spans);
            self.end_line();
        }
        self.end_block();
    }

    fn finish(mut self) -> Vec<Line> {
        self.end_line();
        self.lines
    }
}

fn is_bullet(spans: &[Span]) -> bool {
    let [span] = spans else {
        return false;
    };
    let text = span.text.trim();
    text == "•"
        || text
            .strip_suffix('.')
            .is_some_and(|n| n.parse::<u64>().is_ok())
}

/// Whether Telegram makes a link of an address; of others it keeps only the text.
fn is_linked(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    let host = ["https://", "http://", "tg://"]
        .iter()
        .find_map(|scheme| lower.strip_prefix(scheme));
    host.is_some_and(|host| host.starts_with(|c: char| c.is_alphanumeric()))
        && !address.contains(char::is_whitespace)
}

/// The first word after a fence, if it can be the name of a language.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else {
        return String::new();
    };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
    let is_language = word.len() <= LANGUAGE_CHARS_MAX && word.chars().all(is_name);
    if is_language {
        word.to_owned()
    } else {
        String::new()
    }
}
