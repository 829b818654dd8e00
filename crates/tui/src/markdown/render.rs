//! Makes rows of markdown. Prose is wrapped; lines of code are left long, so that they can be copied whole.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::highlight::Highlighter;
use super::table::Table;
use super::{OPTIONS, Piece};
use crate::theme;
use crate::wrap::{self, Margin};

const CODE_INDENT: &str = "  ";

/// Renders a piece for a terminal of so many columns. The text must be clean.
pub(crate) fn render(piece: &Piece, columns: usize) -> Vec<Line<'static>> {
    let mut renderer = Renderer {
        columns: columns.max(1),
        ..Renderer::default()
    };
    for event in Parser::new_ext(&piece.source, OPTIONS) {
        renderer.take(event);
    }
    renderer.end_paragraph();
    renderer.rows
}

#[derive(Default)]
struct Renderer {
    columns: usize,
    rows: Vec<Line<'static>>,
    /// The words of the paragraph, heading or cell that is open.
    words: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// Lists and quotes that are open, the outermost first.
    containers: Vec<Container>,
    code: Option<Highlighter>,
    table: Option<Table>,
    /// Where a link leads, and where its words begin.
    links: Vec<(String, usize)>,
    /// A blank line is due before the next row.
    wants_gap: bool,
}

enum Container {
    Quote,
    List { next: Option<u64> },
    Item { mark: String, is_marked: bool },
}

impl Renderer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code.is_some() => self.code_text(&text),
            Event::Text(text) => self.word(&text, theme::PLAIN),
            Event::Code(text) => self.word(&text, theme::CODE),
            Event::Html(text) | Event::InlineHtml(text) => {
                self.word(text.trim_end_matches('\n'), theme::DIM);
            }
            Event::SoftBreak => self.word(" ", theme::PLAIN),
            Event::HardBreak => self.end_paragraph_row(),
            Event::Rule => {
                let columns = self.columns.min(40);
                self.block(Line::styled("─".repeat(columns), theme::DIM));
                self.wants_gap = true;
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "☑ " } else { "☐ " };
                self.word(mark, theme::PLAIN);
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.word(&text, theme::PLAIN);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.styles.push(heading(level)),
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.gap();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language,
                    CodeBlockKind::Indented => "",
                };
                self.code = Some(Highlighter::new(language));
            }
            Tag::List(next) => {
                self.end_paragraph();
                if self.in_item() {
                    self.wants_gap = false;
                }
                self.containers.push(Container::List { next });
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::Emphasis => self.styles.push(theme::ITALIC),
            Tag::Strong => self.styles.push(theme::BOLD),
            Tag::Strikethrough => self.styles.push(theme::STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.words.len()));
                self.styles.push(theme::LINK);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_paragraph();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.end_paragraph();
                self.containers.pop();
                self.wants_gap = true;
            }
            TagEnd::Item => {
                self.end_paragraph();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::TableCell => {
                let words = std::mem::take(&mut self.words);
                self.table
                    .iter_mut()
                    .for_each(|table| table.cell(words.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.wants_gap = true;
            }
            _ => {}
        }
    }

    fn in_item(&self) -> bool {
        matches!(self.containers.last(), Some(Container::Item { .. }))
    }

    fn start_item(&mut self) {
        let mark = match self.containers.last_mut() {
            Some(Container::List { next: Some(number) }) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".into(),
        };
        self.containers.push(Container::Item {
            mark,
            is_marked: false,
        });
    }

    fn word(&mut self, text: &str, style: Style) {
        let style = self
            .styles
            .iter()
            .fold(theme::PLAIN, |sum, style| sum.patch(*style))
            .patch(style);
        self.words.push(Span::styled(text.to_owned(), style));
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, start)) = self.links.pop() else {
            return;
        };
        let words: String = self.words[start.min(self.words.len())..]
            .iter()
            .map(|span| span.content.as_ref())
            .collect();
        let is_said = address == words || address.strip_prefix("mailto:") == Some(&words);
        if !is_said {
            self.word(&format!(" ({address})"), theme::DIM);
        }
    }

    fn end_paragraph(&mut self) {
        if !self.words.is_empty() {
            self.end_paragraph_row();
        }
    }

    fn end_paragraph_row(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.gap();
        let margin = self.margin();
        self.rows.extend(wrap::words(&words, self.columns, &margin));
    }

    fn code_text(&mut self, text: &str) {
        let Some(mut code) = self.code.take() else {
            return;
        };
        self.gap();
        for line in text.split_inclusive('\n') {
            let mut spans = vec![Span::raw(CODE_INDENT)];
            spans.extend(code.line(line.trim_end_matches('\n')));
            let mut margin = self.margin().first;
            margin.extend(spans);
            self.rows.push(Line::from(margin));
        }
        self.code = Some(code);
    }

    fn end_code(&mut self) {
        self.code = None;
        self.wants_gap = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        self.gap();
        let margin = self.margin();
        let inset: usize = margin.first.iter().map(Span::width).sum();
        for row in table.rows(self.columns.saturating_sub(inset)) {
            let mut spans = margin.rest.clone();
            spans.extend(row.spans);
            self.rows.push(Line::from(spans));
        }
        self.wants_gap = true;
    }

    fn block(&mut self, line: Line<'static>) {
        self.gap();
        let mut spans = self.margin().first;
        spans.extend(
            line.spans
                .into_iter()
                .map(|span| span.patch_style(line.style)),
        );
        self.rows.push(Line::from(spans));
    }

    /// Puts the blank line that is due, with the bars of open quotes.
    fn gap(&mut self) {
        if !std::mem::take(&mut self.wants_gap) || self.rows.is_empty() {
            return;
        }
        let bars = self
            .containers
            .iter()
            .filter(|container| matches!(container, Container::Quote));
        let bars: Vec<_> = bars.map(|_| quote_bar()).collect();
        self.rows.push(Line::from(bars));
    }

    /// What stands before the next rows; the mark of an item only before its first.
    fn margin(&mut self) -> Margin {
        let mut margin = Margin::default();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    margin.first.push(quote_bar());
                    margin.rest.push(quote_bar());
                }
                Container::List { .. } => {}
                Container::Item { mark, is_marked } => {
                    let space = " ".repeat(wrap::width(mark));
                    let first = if std::mem::replace(is_marked, true) {
                        Span::raw(space.clone())
                    } else {
                        Span::styled(mark.clone(), theme::ACCENT)
                    };
                    margin.first.push(first);
                    margin.rest.push(Span::raw(space));
                }
            }
        }
        margin
    }
}

fn quote_bar() -> Span<'static> {
    Span::styled("▎ ", theme::DIM)
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => theme::HEADING,
        _ => theme::BOLD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(source: &str, columns: usize) -> String {
        let piece = Piece {
            source: source.into(),
            is_continued: false,
        };
        let rows = render(&piece, columns);
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    #[test]
    fn blocks_stand_apart_and_lists_stay_together() {
        let source = "# Title\nSome *words* and `code`.\n\n- one\n- two\n  - deep\n\n3. three\n4. four\n\n> said\n>\n> twice";
        insta::assert_snapshot!(rendered(source, 40), @r"
        Title

        Some words and code.

        • one
        • two
          • deep

        3. three
        4. four

        ▎ said
        ▎ 
        ▎ twice
        ");
    }

    #[test]
    fn long_items_hang_and_code_is_not_wrapped() {
        let source = "- a rather long item here\n\n```\nlet x = \"a line that is too long\";\n```";
        insta::assert_snapshot!(rendered(source, 14), @r#"
        • a rather
          long item
          here

          let x = "a line that is too long";
        "#);
    }

    #[test]
    fn links_show_where_they_lead_unless_they_say_so() {
        let source = "[docs](https://a.example) <https://b.example> <me@c.example>";
        let expected = "docs (https://a.example) https://b.example me@c.example";
        assert_eq!(rendered(source, 80), expected);
    }

    #[test]
    fn unfinished_markup_is_shown_as_it_is() {
        assert_eq!(rendered("some **bold that", 40), "some **bold that");
        assert_eq!(rendered("```rust\nfn main", 40), "  fn main");
        assert_eq!(rendered("[x](http", 40), "[x](http");
    }

    #[test]
    fn tables_have_columns() {
        let source = "| name | n |\n|---|--:|\n| a | 1 |\n| long name | 100 |";
        insta::assert_snapshot!(rendered(source, 40), @r"
        name      │   n
        ──────────┼────
        a         │   1
        long name │ 100
        ");
    }

    #[test]
    fn a_table_that_is_too_wide_is_wrapped_inside_its_cells() {
        let source = "| what | why |\n|---|---|\n| x | because it is so much longer |";
        let text = rendered(source, 20);
        assert!(text.lines().all(|row| wrap::width(row) <= 20), "{text}");
        assert!(text.contains("because it"), "{text}");
    }
}
