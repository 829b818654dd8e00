//! What models write, as mail shows it: plain text for everybody, and simple HTML: pure functions.
//!
//! HTML in the text stays text, and links lead to the web or to an address, so that nothing a model repeats becomes markup.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

const RULE: &str = "———";
const INDENT: &str = "  ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) plain: String,
    pub(super) html: String,
}

pub(super) fn render(markdown: &str) -> Rendered {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let clean = without_controls(markdown);
    let mut writer = Writer::default();
    for event in Parser::new_ext(&clean, options) {
        writer.take(event);
    }
    let plain = writer.plain.finish();
    // What is nothing but signs is shown as it is.
    if plain.trim().is_empty() {
        return Rendered {
            html: document(&format!("<p>{}</p>\n", escaped(&clean))),
            plain: clean,
        };
    }
    Rendered {
        plain,
        html: document(&writer.html),
    }
}

fn without_controls(markdown: &str) -> String {
    let shown = |c: char| match c {
        '\r' => None,
        c if c.is_control() && !matches!(c, '\n' | '\t') => Some(' '),
        c => Some(c),
    };
    markdown.chars().filter_map(shown).collect()
}

fn document(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"></head><body>\n{body}</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

/// Whether an address may be followed from a mail.
fn is_followed(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| lower.starts_with(scheme))
}

#[derive(Default)]
struct Writer {
    plain: Plain,
    html: String,
    /// The next number of each open list.
    lists: Vec<Option<u64>>,
    links: Vec<Link>,
    is_head: bool,
}

struct Link {
    address: String,
    /// Where its words begin in the plain text.
    start: usize,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => {
                self.html
                    .push_str(&format!("<code>{}</code>", escaped(&text)));
                self.plain.text(&text);
            }
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::Html(text)
            | Event::InlineHtml(text) => self.text(&text),
            Event::FootnoteReference(label) => self.text(&format!("[{label}]")),
            Event::SoftBreak | Event::HardBreak => {
                self.html.push_str("<br>\n");
                self.plain.line();
            }
            Event::Rule => {
                self.html.push_str("<hr>\n");
                self.plain.block();
                self.plain.text(RULE);
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn text(&mut self, text: &str) {
        self.html.push_str(&escaped(text));
        self.plain.lines(text);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.open_block("p"),
            Tag::Heading { level, .. } => self.open_block(&level.to_string()),
            Tag::BlockQuote(_) => {
                self.open_block("blockquote");
                self.plain.quotes += 1;
            }
            Tag::CodeBlock(_) => {
                self.open_block("pre");
                self.html.push_str("<code>");
            }
            Tag::List(first) => self.open_list(first),
            Tag::Item => self.open_item(),
            Tag::Emphasis => self.html.push_str("<em>"),
            Tag::Strong => self.html.push_str("<strong>"),
            Tag::Strikethrough => self.html.push_str("<del>"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.open_link(&dest_url),
            Tag::Table(_) => self.open_block("table"),
            Tag::TableHead => {
                self.is_head = true;
                self.open_row();
            }
            Tag::TableRow => self.open_row(),
            Tag::TableCell => self.open_cell(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.close_block("p"),
            TagEnd::Heading(level) => self.close_block(&level.to_string()),
            TagEnd::BlockQuote(_) => {
                self.plain.quotes = self.plain.quotes.saturating_sub(1);
                self.close_block("blockquote");
            }
            TagEnd::CodeBlock => {
                self.html.push_str("</code>");
                self.close_block("pre");
            }
            TagEnd::List(_) => self.close_list(),
            TagEnd::Item => self.html.push_str("</li>\n"),
            TagEnd::Emphasis => self.html.push_str("</em>"),
            TagEnd::Strong => self.html.push_str("</strong>"),
            TagEnd::Strikethrough => self.html.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::Table => self.close_block("table"),
            TagEnd::TableHead => {
                self.is_head = false;
                self.html.push_str("</tr>\n");
            }
            TagEnd::TableRow => self.html.push_str("</tr>\n"),
            TagEnd::TableCell => self
                .html
                .push_str(if self.is_head { "</th>" } else { "</td>" }),
            _ => {}
        }
    }

    fn open_block(&mut self, name: &str) {
        self.html.push_str(&format!("<{name}>"));
        self.plain.block();
    }

    fn close_block(&mut self, name: &str) {
        self.html.push_str(&format!("</{name}>\n"));
        self.plain.end_block(self.lists.is_empty());
    }

    fn open_list(&mut self, first: Option<u64>) {
        self.plain.block();
        match first {
            Some(first) => self.html.push_str(&format!("<ol start=\"{first}\">\n")),
            None => self.html.push_str("<ul>\n"),
        }
        self.lists.push(first);
    }

    fn close_list(&mut self) {
        let was_numbered = self.lists.pop().is_some_and(|number| number.is_some());
        self.html
            .push_str(if was_numbered { "</ol>\n" } else { "</ul>\n" });
        self.plain.end_block(self.lists.is_empty());
    }

    fn open_item(&mut self) {
        self.html.push_str("<li>");
        let depth = self.lists.len().saturating_sub(1);
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number = number.saturating_add(1);
                sign
            }
            _ => "- ".to_owned(),
        };
        self.plain.item(&format!("{}{sign}", INDENT.repeat(depth)));
    }

    fn open_link(&mut self, address: &str) {
        if is_followed(address) {
            self.html
                .push_str(&format!("<a href=\"{}\">", escaped(address)));
        }
        self.links.push(Link {
            address: address.to_owned(),
            start: self.plain.written(),
        });
    }

    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else {
            return;
        };
        if is_followed(&link.address) {
            self.html.push_str("</a>");
        }
        let is_shown = self
            .plain
            .since(link.start)
            .contains(link.address.trim_start_matches("mailto:"));
        if !is_shown && !link.address.is_empty() {
            self.plain.text(&format!(" ({})", link.address));
        }
    }

    fn open_row(&mut self) {
        self.html.push_str("<tr>");
        self.plain.block();
    }

    fn open_cell(&mut self) {
        self.html
            .push_str(if self.is_head { "<th>" } else { "<td>" });
        self.plain.cell();
    }
}

/// Plain text, line by line.
#[derive(Default)]
struct Plain {
    text: String,
    quotes: usize,
    /// Something stands on the last line.
    is_open: bool,
    /// The last line has only the sign of an item.
    is_item: bool,
    /// A blank line is due before the next line.
    wants_gap: bool,
}

impl Plain {
    fn written(&self) -> usize {
        self.text.len()
    }

    fn since(&self, start: usize) -> &str {
        self.text.get(start..).unwrap_or_default()
    }

    /// Begins on a line of its own; beside the sign of an item it stays on its line.
    fn block(&mut self) {
        if !self.is_item {
            self.line();
        }
    }

    fn end_block(&mut self, is_outside: bool) {
        self.line();
        self.wants_gap |= is_outside;
    }

    fn line(&mut self) {
        if self.is_open {
            self.text.push('\n');
        }
        self.is_open = false;
        self.is_item = false;
    }

    fn begin(&mut self) {
        if self.is_open {
            return;
        }
        if std::mem::take(&mut self.wants_gap) && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&"> ".repeat(self.quotes));
        self.is_open = true;
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin();
        self.text.push_str(text);
        self.is_item = false;
    }

    /// Text with lines of its own, as code has.
    fn lines(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.begin();
                self.line();
            }
            self.text(line);
        }
    }

    fn item(&mut self, sign: &str) {
        self.line();
        self.text(sign);
        self.is_item = true;
    }

    fn cell(&mut self) {
        if self.is_open {
            self.text.push_str(" | ");
        }
    }

    fn finish(&self) -> String {
        self.text.trim_end_matches('\n').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(markdown: &str, plain: &str, html: &str) {
        let rendered = render(markdown);
        assert_eq!(rendered.plain, plain, "{markdown:?}");
        assert_eq!(rendered.html, document(html), "{markdown:?}");
    }

    #[test]
    fn styles_are_seen_and_their_signs_are_not() {
        check(
            "some **bold** *words* ~~no~~ `code`",
            "some bold words no code",
            "<p>some <strong>bold</strong> <em>words</em> <del>no</del> <code>code</code></p>\n",
        );
        check(
            "# Head\ntext",
            "Head\n\ntext",
            "<h1>Head</h1>\n<p>text</p>\n",
        );
        check("a\nb\n\nc", "a\nb\n\nc", "<p>a<br>\nb</p>\n<p>c</p>\n");
        check(
            "> said",
            "> said",
            "<blockquote><p>said</p>\n</blockquote>\n",
        );
        check("---", RULE, "<hr>\n");
    }

    #[test]
    fn lists_and_tables_stay_in_order() {
        check(
            "- a\n- b\n  1. c\n  2. d\n\nend",
            "- a\n- b\n  1. c\n  2. d\n\nend",
            "<ul>\n<li>a</li>\n<li>b<ol start=\"1\">\n<li>c</li>\n<li>d</li>\n</ol>\n</li>\n</ul>\n<p>end</p>\n",
        );
        check(
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "a | b\n1 | 2",
            "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>\n",
        );
    }

    #[test]
    fn code_keeps_its_lines() {
        check(
            "```rust\nfn a() {\n\n    b()\n}\n```\nend",
            "fn a() {\n\n    b()\n}\n\nend",
            "<pre><code>fn a() {\n\n    b()\n}\n</code></pre>\n<p>end</p>\n",
        );
    }

    #[test]
    fn links_say_where_they_lead_and_lead_nowhere_else() {
        check(
            "[here](https://a.example)",
            "here (https://a.example)",
            "<p><a href=\"https://a.example\">here</a></p>\n",
        );
        check(
            "<https://a.example>",
            "https://a.example",
            "<p><a href=\"https://a.example\">https://a.example</a></p>\n",
        );
        check(
            "[x](javascript:alert%281%29)",
            "x (javascript:alert%281%29)",
            "<p>x</p>\n",
        );
        check(
            "<script>a</script>",
            "<script>a</script>",
            "<p>&lt;script&gt;a&lt;/script&gt;</p>\n",
        );
    }

    proptest! {
        #[test]
        fn no_tag_comes_through_that_is_not_ours(markdown in "\\PC{0,200}") {
            let html = render(&markdown).html;
            let ours = ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "ul", "ol", "li",
                        "em", "strong", "del", "a", "table", "tr", "th", "td", "!DOCTYPE", "html", "head", "meta", "body"];
            for tag in html.split('<').skip(1) {
                let name = tag.trim_start_matches('/');
                let name = name.split([' ', '>']).next().unwrap_or_default();
                prop_assert!(ours.contains(&name), "{name} in {html}");
            }
        }

        #[test]
        fn plain_words_stay_as_they_are(words in "[a-zA-Z0-9 é你😀]{1,200}") {
            prop_assume!(!words.starts_with(' ') && !words.ends_with(' '));
            prop_assert_eq!(render(&words).plain, words);
        }

        #[test]
        fn something_is_always_seen(markdown in "\\PC{1,100}") {
            prop_assert_eq!(render(&markdown).plain.trim().is_empty(), markdown.trim().is_empty());
        }
    }
}
