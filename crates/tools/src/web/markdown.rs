//! HTML as markdown: what a reader would see of a page, without its scripts, styles and ways around the site.
//!
//! The tokens come from `html5gum`, which follows the standard. There is no tree: a stack of open elements, with the
//! ends that nobody writes, tells enough for reading, takes no more memory than the page is deep, and takes linear time
//! for every page, however broken.

mod elements;
mod sheet;
mod table;

use std::collections::HashMap;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use reqwest::Url;

use self::elements::{DEPTH_MAX, Flow, attribute, flow};
use self::sheet::{Gap, Sheet};
use self::table::Table;
use super::page::Page;

/// A page can say more than it has bytes: every link repeats the address of its site.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A page that marks its main part means that part, unless there is next to nothing in it.
const MAIN_BYTES_MIN: usize = 200;

/// Converts a page; its links are relative to `address`.
pub(super) fn convert(html: &str, address: &Url) -> Page {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut reader = Reader::new(address);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => reader.start(&tag),
            Token::EndTag(tag) => reader.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if reader.sheet().text.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    reader.finish()
}

struct Reader {
    base: Url,
    open: Vec<Element>,
    /// How many elements of a name are open. Most tags end nothing, and need not look for what they could end.
    counts: HashMap<String, usize>,
    /// The page, and above it what goes somewhere else first: a cell, a block of code, the title.
    sheets: Vec<Sheet>,
    tables: Vec<Table>,
    /// For each list, the number of its next item; none for those with bullets.
    lists: Vec<Option<u64>>,
    /// Whether white space is to stay as it is.
    is_in_code: bool,
    title: Option<String>,
    /// Where in the page its main part begins and ends.
    main: Option<(usize, Option<usize>)>,
}

struct Element {
    name: String,
    is_dropped: bool,
    end: End,
}

/// What is to be done when an element ends.
enum End {
    Nothing,
    Gap(Gap),
    /// A mark, and the distance after it.
    Mark(&'static str, Gap),
    Link(Option<String>),
    Item,
    List,
    Quote,
    Code,
    Title,
    Cell,
    Table,
    Main,
}

impl Reader {
    fn new(address: &Url) -> Self {
        Self {
            base: address.clone(),
            open: Vec::new(),
            counts: HashMap::new(),
            sheets: vec![Sheet::default()],
            tables: Vec::new(),
            lists: Vec::new(),
            is_in_code: false,
            title: None,
            main: None,
        }
    }

    fn sheet(&mut self) -> &mut Sheet {
        self.sheets
            .last_mut()
            .expect("the sheet of the page is never taken away")
    }

    fn is_dropped(&self) -> bool {
        self.open.last().is_some_and(|element| element.is_dropped)
    }

    fn text(&mut self, text: &str) {
        if self.is_dropped() {
            return;
        }
        if self.is_in_code {
            self.sheet().text.push_str(text);
        } else {
            self.sheet().words(text);
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        let (ended, boundaries) = elements::implied_ends(&name);
        self.end_one_of(ended, boundaries);
        let is_dropped = self.is_dropped() || elements::is_dropped(&name, tag);
        if elements::is_void(&name) {
            if !is_dropped {
                self.lone(&name, tag);
            }
            return;
        }
        // Only drawings may end where they begin.
        let is_ended = tag.self_closing && matches!(name.as_str(), "svg" | "math");
        if is_ended || self.open.len() >= DEPTH_MAX {
            return;
        }
        let end = if is_dropped {
            End::Nothing
        } else {
            self.begin(&name, tag)
        };
        *self.counts.entry(name.clone()).or_default() += 1;
        self.open.push(Element {
            name,
            is_dropped,
            end,
        });
    }

    /// Writes an element without content.
    fn lone(&mut self, name: &str, tag: &StartTag<()>) {
        match name {
            "br" if self.is_in_code => self.sheet().text.push('\n'),
            "br" => self.sheet().gap(Gap::Line),
            "hr" => {
                self.sheet().gap(Gap::Paragraph);
                self.sheet().exactly("---");
                self.sheet().gap(Gap::Paragraph);
            }
            "img" => self.picture(tag),
            "base" => {
                if let Some(address) =
                    attribute(tag, "href").and_then(|href| self.base.join(&href).ok())
                {
                    self.base = address;
                }
            }
            _ => {}
        }
    }

    fn picture(&mut self, tag: &StartTag<()>) {
        let shown = attribute(tag, "alt").unwrap_or_default();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = attribute(tag, "src").unwrap_or_default();
        if source.starts_with("data:") {
            self.sheet().exactly(&format!("[IMAGE: {shown}]"));
        } else if !shown.is_empty() {
            match self.address(&source) {
                Some(address) => self.sheet().exactly(&format!("![{shown}]({address})")),
                None => self.sheet().exactly(&format!("[IMAGE: {shown}]")),
            }
        }
    }

    /// Begins an element that is seen, and says what its end will do.
    fn begin(&mut self, name: &str, tag: &StartTag<()>) -> End {
        if self.is_in_code {
            return End::Nothing;
        }
        match name {
            "a" => self.link(tag),
            "b" | "strong" => self.mark("**"),
            "em" | "i" => self.mark("*"),
            "code" | "kbd" | "samp" | "tt" => self.mark("`"),
            "del" | "s" | "strike" => self.mark("~~"),
            "h1" => self.heading("# "),
            "h2" => self.heading("## "),
            "h3" => self.heading("### "),
            "h4" => self.heading("#### "),
            "h5" => self.heading("##### "),
            "h6" => self.heading("###### "),
            "ul" | "menu" => self.list(None),
            "ol" => {
                let first = attribute(tag, "start").and_then(|start| start.trim().parse().ok());
                self.list(Some(first.unwrap_or(1)))
            }
            "li" => self.item(),
            "blockquote" => {
                self.sheet().open_quote();
                End::Quote
            }
            "pre" => {
                self.is_in_code = true;
                self.above(End::Code)
            }
            "title" if self.title.is_none() => self.above(End::Title),
            "table" => {
                self.tables.push(Table::default());
                End::Table
            }
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    table.open_row();
                }
                End::Nothing
            }
            "td" | "th" if !self.tables.is_empty() => self.above(End::Cell),
            "main" if self.main.is_none() && self.sheets.len() == 1 => {
                self.sheet().gap(Gap::Paragraph);
                self.main = Some((self.sheet().text.len(), None));
                End::Main
            }
            name => self.block(flow(name)),
        }
    }

    fn block(&mut self, flow: Flow) -> End {
        let gap = match flow {
            Flow::Inline => return End::Nothing,
            Flow::Line => Gap::Line,
            Flow::Paragraph => Gap::Paragraph,
        };
        self.sheet().gap(gap);
        End::Gap(gap)
    }

    fn mark(&mut self, mark: &'static str) -> End {
        self.sheet().open(mark);
        End::Mark(mark, Gap::None)
    }

    fn heading(&mut self, mark: &str) -> End {
        self.sheet().gap(Gap::Paragraph);
        let mark = if self.sheet().is_in_link() { "" } else { mark };
        self.sheet().open(mark);
        End::Mark("", Gap::Paragraph)
    }

    fn link(&mut self, tag: &StartTag<()>) -> End {
        let href = attribute(tag, "href").unwrap_or_default();
        let leads_nowhere = href.trim().is_empty() || href.trim_start().starts_with('#');
        let address = if self.sheet().is_in_link() || leads_nowhere {
            None
        } else {
            self.address(&href)
        };
        if address.is_some() {
            self.sheet().open_link();
        }
        End::Link(address)
    }

    /// Where a link leads, if a reader could follow it.
    fn address(&self, href: &str) -> Option<String> {
        let address = self.base.join(href.trim()).ok()?;
        matches!(address.scheme(), "http" | "https" | "mailto").then(|| address.to_string())
    }

    fn list(&mut self, first: Option<u64>) -> End {
        // A list inside an item follows its words.
        let gap = if self.lists.is_empty() {
            Gap::Paragraph
        } else {
            Gap::Line
        };
        self.sheet().gap(gap);
        self.lists.push(first);
        End::List
    }

    fn item(&mut self) -> End {
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            _ => "- ".to_owned(),
        };
        if self.sheet().is_in_link() {
            self.block(Flow::Line)
        } else {
            self.sheet().open_item(bullet);
            End::Item
        }
    }

    /// What follows is written apart, until the end of the element.
    fn above(&mut self, end: End) -> End {
        self.sheets.push(Sheet::default());
        end
    }

    fn end(&mut self, name: &str) {
        if name == "br" {
            self.sheet().gap(Gap::Line);
            return;
        }
        self.end_one_of(&[name], elements::end_boundaries(name));
    }

    /// Ends the innermost of the named elements, and what is open inside it, unless one of `boundaries` is.
    fn end_one_of(&mut self, names: &[&str], boundaries: &[&str]) {
        let is_open = |name: &&str| self.counts.get(*name).is_some_and(|count| *count > 0);
        if !names.iter().any(is_open) {
            return;
        }
        let mut open = self.open.iter().enumerate().rev();
        let found = open.find(|(_, element)| {
            let name = element.name.as_str();
            names.contains(&name) || boundaries.contains(&name)
        });
        let Some((at, element)) = found else {
            return;
        };
        if names.contains(&element.name.as_str()) {
            while self.open.len() > at {
                self.end_last();
            }
        }
    }

    fn end_last(&mut self) {
        let Some(element) = self.open.pop() else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&element.name) {
            *count -= 1;
        }
        match element.end {
            End::Nothing | End::Link(None) => {}
            End::Gap(gap) => self.sheet().gap(gap),
            End::Mark(mark, gap) => {
                self.sheet().close(mark);
                self.sheet().gap(gap);
            }
            End::Link(Some(address)) => self.sheet().close_link(&format!("]({address})")),
            End::Item => self.sheet().close_item(),
            End::List => {
                self.lists.pop();
                let gap = if self.lists.is_empty() {
                    Gap::Paragraph
                } else {
                    Gap::Line
                };
                self.sheet().gap(gap);
            }
            End::Quote => self.sheet().close_quote(),
            End::Code => self.code(),
            End::Title => {
                let title = self.taken();
                self.title = (!title.is_empty()).then_some(title);
            }
            End::Cell => {
                let cell = self.taken();
                if let Some(table) = self.tables.last_mut() {
                    table.add_cell(cell);
                }
            }
            End::Table => {
                let text = self.tables.pop().map(Table::text).unwrap_or_default();
                self.apart(&text);
            }
            End::Main => {
                self.main = self
                    .main
                    .map(|(start, _)| (start, Some(self.sheets[0].text.len())));
                self.sheet().gap(Gap::Paragraph);
            }
        }
    }

    fn taken(&mut self) -> String {
        match self.sheets.len() {
            1 => String::new(),
            _ => self.sheets.pop().unwrap_or_default().text,
        }
    }

    fn code(&mut self) {
        self.is_in_code = false;
        let code = self.taken();
        let code = code.trim_end().trim_start_matches('\n');
        if code.is_empty() {
            return;
        }
        let runs = code.split(|c| c != '`').map(str::len);
        let fence = "`".repeat(runs.max().map_or(3, |longest| (longest + 1).max(3)));
        self.apart(&format!("{fence}\n{code}\n{fence}"));
    }

    /// Writes lines between paragraphs.
    fn apart(&mut self, lines: &str) {
        self.sheet().gap(Gap::Paragraph);
        self.sheet().lines(lines);
        self.sheet().gap(Gap::Paragraph);
    }

    fn finish(mut self) -> Page {
        while !self.open.is_empty() {
            self.end_last();
        }
        let text = std::mem::take(&mut self.sheet().text);
        let main = self.main.and_then(|(start, end)| text.get(start..end?));
        let text = match main.map(str::trim) {
            Some(main) if main.len() >= MAIN_BYTES_MIN => main.to_owned(),
            _ => text.trim().to_owned(),
        };
        Page {
            title: self.title,
            text,
        }
    }
}

#[cfg(test)]
mod tests;
