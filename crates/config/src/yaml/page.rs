//! The text of a document with its tree: where lines, keys, dashes and comments stand.

use std::ops::Range;

use super::{
    Entry, Layout, Node,
    comments::comments_in,
    spans::{after_colon, skip_space_and_comments},
};

pub(super) struct Page<'a> {
    pub(super) text: &'a str,
    pub(super) newline: &'static str,
    pub(super) root: Option<&'a Node>,
}

impl<'a> Page<'a> {
    pub(super) fn new(text: &'a str, root: Option<&'a Node>) -> Self {
        let first_line = text.find('\n').map_or("", |end| &text[..end]);
        let newline = if first_line.ends_with('\r') {
            "\r\n"
        } else {
            "\n"
        };
        Self {
            text,
            newline,
            root,
        }
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the end of the line in which `at` stands, before its newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let line = self.text[at..].split('\n').next().unwrap_or("");
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    /// Returns where the value of an entry may start: behind its colon.
    pub(super) fn value_start(&self, entry: &Entry) -> usize {
        after_colon(self.text, entry.key_span.end).unwrap_or(entry.key_span.end)
    }

    /// Returns the spans of a list's items; by indentation they start at their dashes.
    ///
    /// `None` when a dash is not where it is expected, as behind an anchor.
    pub(super) fn item_spans(&self, list: &Node, items: &[Node]) -> Option<Vec<Range<usize>>> {
        if list.layout == Layout::Flow {
            return Some(items.iter().map(|item| item.span.clone()).collect());
        }
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(items.len());
        for item in items {
            let from = spans.last().map_or(list.span.start, |span| span.end);
            let dash = skip_space_and_comments(self.text, from);
            if !self.text[dash..].starts_with('-') {
                return None;
            }
            let end = match item.layout {
                Layout::Empty => dash + 1,
                _ => item.span.end,
            };
            spans.push(dash..end);
        }
        Some(spans)
    }

    /// Returns the comment in the first line of `range`, and those below.
    pub(super) fn comments(&self, range: Range<usize>) -> (Option<&'a str>, Vec<&'a str>) {
        let Some(root) = self.root else {
            return (None, Vec::new());
        };
        let first_line_end = self.line_end(range.start);
        let comments = comments_in(self.text, root, range);
        let (beside, below): (Vec<_>, Vec<_>) = comments
            .into_iter()
            .partition(|comment| comment.at < first_line_end);
        let below = below.into_iter().map(|comment| comment.text).collect();
        (beside.first().map(|comment| comment.text), below)
    }

    /// Writes comments as lines of their own, each behind a newline.
    pub(super) fn comment_lines(&self, comments: &[&str], indent: usize) -> String {
        let margin = " ".repeat(indent);
        comments
            .iter()
            .map(|comment| format!("{}{margin}{comment}", self.newline))
            .collect()
    }
}
