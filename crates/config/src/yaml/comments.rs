//! Finding comments, which the parser skips, so that no edit loses one.

use std::ops::Range;

use super::{Content, Layout, Node, Role};

/// A comment, from its `#` to the end of its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comment<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// Returns the comments inside `range`, looking only between the scalars of the document.
pub(super) fn comments_in<'t>(text: &'t str, root: &Node, range: Range<usize>) -> Vec<Comment<'t>> {
    let mut scalars = Vec::new();
    collect_scalars(root, &range, &mut scalars);
    scalars.sort_by_key(|span| span.start);
    scalars.push(range.end..range.end);
    let mut comments = Vec::new();
    let mut at = range.start;
    for scalar in scalars {
        while at < scalar.start {
            let Some(comment) = next_comment(text, at..scalar.start) else {
                break;
            };
            at = comment.at + comment.text.len();
            comments.push(comment);
        }
        at = at.max(scalar.end);
    }
    comments
}

fn next_comment(text: &str, gap: Range<usize>) -> Option<Comment<'_>> {
    let bytes = text.as_bytes();
    let at = gap
        .into_iter()
        .find(|&at| bytes[at] == b'#' && (at == 0 || bytes[at - 1].is_ascii_whitespace()))?;
    let line = &text[at..];
    let end = line.find('\n').unwrap_or(line.len());
    Some(Comment {
        text: line[..end].trim_end(),
        at,
    })
}

fn collect_scalars(node: &Node, range: &Range<usize>, spans: &mut Vec<Range<usize>>) {
    let mut keep = |span: Range<usize>| {
        if span.start >= range.start && span.end <= range.end {
            spans.push(span);
        }
    };
    match (&node.content, node.layout) {
        (_, Layout::BlockScalar { text_start }) => keep(text_start..node.span.end.max(text_start)),
        (Content::Scalar(_), _) | (_, Layout::Alias) => keep(node.span.clone()),
        (Content::List(items), _) => {
            for item in items {
                collect_scalars(item, range, spans);
            }
        }
        (Content::Map(entries), _) => {
            let written = entries.iter().filter(|entry| entry.role != Role::Inherited);
            written
                .clone()
                .for_each(|entry| keep(entry.key_span.clone()));
            written.for_each(|entry| collect_scalars(&entry.value, range, spans));
        }
    }
}
