//! What models write, as Discord shows it: pure functions.
//!
//! Discord reads markdown itself, so most of a text stays as it is. Rewritten is what it does not know: tables become bullets,
//! deep headings bold lines, headings with lines below them headings, pictures links, and rules lines.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

const RULE: &str = "———";

pub(super) fn render(markdown: &str) -> String {
    let clean = without_controls(markdown);
    let mut written = String::with_capacity(clean.len());
    let mut at = 0;
    for (range, replacement) in replacements(&clean) {
        if range.start >= at {
            written.push_str(&clean[at..range.start]);
            written.push_str(&replacement);
            at = range.end;
        }
    }
    written.push_str(&clean[at..]);
    written.trim_end().to_owned()
}

/// How long Discord says a text is, at most: some count characters, some UTF-16.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

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
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// What is to stand in place of parts of the text, in order.
fn replacements(text: &str) -> Vec<(Range<usize>, String)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut found = Vec::new();
    let mut table: Option<Table> = None;
    let mut quotes = 0usize;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::BlockQuote(_)) => quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => quotes = quotes.saturating_sub(1),
            // The signs of a quote stand between the lines of what is in it.
            _ if quotes > 0 => {}
            Event::Start(Tag::Table(_)) => table = Some(Table::default()),
            Event::Start(Tag::TableRow) => {
                if let Some(table) = &mut table {
                    table.rows.push(Vec::new());
                }
            }
            Event::End(TagEnd::TableCell) => {
                if let Some(table) = &mut table {
                    table.put(cell(&text[range]));
                }
            }
            Event::End(TagEnd::Table) => {
                let lines = table.take().unwrap_or_default().lines();
                let end = if text[range.clone()].ends_with('\n') {
                    "\n"
                } else {
                    ""
                };
                found.push((range, lines.join("\n") + end));
            }
            Event::Start(Tag::Heading { level, .. }) => {
                found.extend(heading(&text[range.clone()], level).map(|line| (range, line)));
            }
            Event::Start(Tag::Image { dest_url, .. }) if table.is_none() => {
                found.extend(picture(&text[range.clone()], &dest_url).map(|link| (range, link)));
            }
            Event::Rule => {
                let end = if text[range.clone()].ends_with('\n') {
                    "\n"
                } else {
                    ""
                };
                found.push((range, format!("{RULE}{end}")));
            }
            _ => {}
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// A heading that Discord does not show as one.
fn heading(source: &str, level: HeadingLevel) -> Option<String> {
    let end = if source.ends_with('\n') { "\n" } else { "" };
    let source = source.trim();
    let is_deep = level > HeadingLevel::H3;
    if source.starts_with('#') {
        let words = source.trim_matches('#').trim();
        let is_marked = words.contains("**") || words.is_empty();
        return is_deep.then(|| match is_marked {
            true => format!("{words}{end}"),
            false => format!("**{words}**{end}"),
        });
    }
    // Its line is below it.
    let (words, _) = source.rsplit_once('\n')?;
    let sign = if level == HeadingLevel::H1 { "#" } else { "##" };
    let words = words.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Some(format!("{sign} {words}{end}"))
}

fn picture(source: &str, address: &str) -> Option<String> {
    let alt = source.strip_prefix("![")?.split(']').next()?.trim();
    Some(match alt {
        "" => address.to_owned(),
        alt => format!("[{alt}]({address})"),
    })
}

fn cell(source: &str) -> String {
    source.trim().trim_matches('|').trim().replace("\\|", "|")
}

impl Table {
    fn put(&mut self, cell: String) {
        match self.rows.last_mut() {
            Some(row) => row.push(cell),
            None => self.head.push(cell),
        }
    }

    /// One bullet for each row, with one below it for each further column. No word of the table is lost.
    fn lines(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return vec![self.head.join(" · ")];
        }
        let rows = self.rows.iter();
        rows.flat_map(|row| self.row_lines(row)).collect()
    }

    fn row_lines(&self, row: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, cell) in row.iter().enumerate() {
            if at > 0 && cell.is_empty() {
                continue;
            }
            let bullet = if at == 0 { "-" } else { "  -" };
            let head = match self.head.get(at).map(String::as_str) {
                None | Some("") => String::new(),
                Some(head) => format!("{head}: "),
            };
            let shown = match at == 0 && !cell.is_empty() && !cell.contains("**") {
                true => format!("**{cell}**"),
                false => cell.clone(),
            };
            lines.push(format!("{bullet} {head}{shown}").trim_end().to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(markdown: &str, expected: &str) {
        assert_eq!(render(markdown), expected, "{markdown:?}");
    }

    #[test]
    fn what_discord_knows_stays_as_it_is() {
        for text in [
            "# A\n\nSome **bold**, _italic_, ~~gone~~ and ||hidden|| `code`.",
            "- a\n  - b\n\n1. c\n> quote",
            "```rust\n| a | b |\n|---|---|\n#### x\n---\n```",
            "a_b_c * d <b>html</b> &amp; \\*",
            "| no table",
            "> | a |\n> |---|\n> | 1 |",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn tables_are_bullets() {
        check(
            "Look:\n\n| Name | Age | |\n|---|--:|---|\n| Ann \\| Bo | 7 | x |\n| **C** | | |\n\nDone.",
            "Look:\n\n- Name: **Ann | Bo**\n  - Age: 7\n  - x\n- Name: **C**\n\nDone.",
        );
        check("| a | b |\n|---|---|", "a · b");
    }

    #[test]
    fn headings_pictures_and_rules_are_shown() {
        check("#### Deep\n\ntext", "**Deep**\n\ntext");
        check("###### **Deep**", "**Deep**");
        check("Title\n=====\n\nPart\n---\nx", "# Title\n\n## Part\nx");
        check(
            "see ![a cat](https://x.y/c.png)!",
            "see [a cat](https://x.y/c.png)!",
        );
        check("![](https://x.y/c.png)", "https://x.y/c.png");
        check("a\n\n---\n\nb", "a\n\n———\n\nb");
        check("\u{7}a\r\nb", " a\nb");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_rendered(text in "[ a-c|#\\-=!\\[\\]()>*`\n]{0,60}") {
            let rendered = render(&text);
            // Nothing that was said is lost, but what only draws lines is.
            for word in ["a", "b", "c"] {
                prop_assert_eq!(text.contains(word), rendered.contains(word));
            }
        }
    }
}
