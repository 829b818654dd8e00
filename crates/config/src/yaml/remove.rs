//! Plans which bytes to remove so that a value is gone, with the sections this empties.

use std::ops::Range;

use super::{
    Content, Layout, Node, Role,
    edit::{EditError, unsupported},
    page::Page,
    verify::Splice,
};

/// Plans removing the value at `path`, which exists.
pub(super) fn plan(page: &Page<'_>, root: &Node, path: &[String]) -> Result<Splice, EditError> {
    let mut holders = Vec::new();
    let mut node = root;
    for (depth, segment) in path.iter().enumerate() {
        if node.layout == Layout::Alias {
            return Err(EditError::Shared {
                path: path[..depth].to_vec(),
                at: node.at,
            });
        }
        holders.push((node, segment.as_str()));
        node = node.child(segment).ok_or_else(|| unsupported(path))?;
    }
    // A holder that has only this child goes with it; the root stays.
    while holders.len() > 1
        && holders
            .last()
            .is_some_and(|(holder, _)| has_one_child(holder))
    {
        holders.pop();
    }
    let (holder, segment) = holders.pop().ok_or_else(|| unsupported(path))?;
    let (spans, index) = children(page, holder, segment).ok_or_else(|| unsupported(path))?;
    match holder.layout {
        Layout::Flow => {
            remove_from_flow(page, holder, &spans, index).ok_or_else(|| unsupported(path))
        }
        _ => Ok(remove_lines(page, &spans, index)),
    }
}

fn has_one_child(node: &Node) -> bool {
    match &node.content {
        Content::Map(entries) => {
            entries
                .iter()
                .filter(|entry| entry.role != Role::Inherited)
                .count()
                == 1
        }
        Content::List(items) => items.len() == 1,
        Content::Scalar(_) => false,
    }
}

/// Returns the spans of what is written in a collection, and which of them `segment` names.
fn children(page: &Page<'_>, holder: &Node, segment: &str) -> Option<(Vec<Range<usize>>, usize)> {
    match &holder.content {
        Content::Map(entries) => {
            let written = || entries.iter().filter(|entry| entry.role != Role::Inherited);
            let index =
                written().position(|entry| entry.role == Role::Own && entry.key == segment)?;
            Some((
                written()
                    .map(|entry| entry.key_span.start..entry.value.span.end)
                    .collect(),
                index,
            ))
        }
        Content::List(items) => Some((page.item_spans(holder, items)?, segment.parse().ok()?)),
        Content::Scalar(_) => None,
    }
}

/// Removes one of several children in braces or brackets, with one comma; `None` if a comment would go with it.
fn remove_from_flow(
    page: &Page<'_>,
    holder: &Node,
    spans: &[Range<usize>],
    index: usize,
) -> Option<Splice> {
    let span = &spans[index];
    let range = match (spans.get(index + 1), index.checked_sub(1)) {
        (Some(next), _) => span.start..next.start,
        (None, Some(previous)) => spans[previous].end..span.end,
        (None, None) => holder.span.start + 1..holder.span.end - 1,
    };
    let (beside, below) = page.comments(range.clone());
    let has_comment = beside.is_some() || !below.is_empty();
    (!has_comment).then(|| splice(range, String::new()))
}

/// Removes the lines of one child, and leaves its comments in their place.
fn remove_lines(page: &Page<'_>, spans: &[Range<usize>], index: usize) -> Splice {
    let Range { start, end } = spans[index];
    let line_start = page.line_start(start);
    let line_end = page.line_end(end);
    let indent = start - line_start;
    let (beside, below) = page.comments(start..line_end);
    let is_first_on_line = page.text[line_start..start].trim().is_empty();
    if is_first_on_line {
        let comments: Vec<_> = beside.into_iter().chain(below).collect();
        let lines = page.comment_lines(&comments, indent);
        return match lines.strip_prefix(page.newline) {
            Some(lines) => splice(line_start..line_end, lines.to_owned()),
            None => splice(
                line_start..after_newline(page.text, line_end),
                String::new(),
            ),
        };
    }
    // The child shares its line with the dash before it, as in `- a: 1`; the next one moves up unless a comment
    // stands between.
    let next = spans.get(index + 1).filter(|next| {
        beside.is_none() && below.is_empty() && page.text[end..next.start].trim().is_empty()
    });
    match next {
        Some(next) => splice(start..next.start, String::new()),
        None => splice(
            start..line_end,
            format!(
                "{}{}",
                beside.unwrap_or(""),
                page.comment_lines(&below, indent)
            ),
        ),
    }
}

fn splice(range: Range<usize>, with: String) -> Splice {
    Splice { range, with }
}

fn after_newline(text: &str, line_end: usize) -> usize {
    text[line_end..]
        .find('\n')
        .map_or(text.len(), |newline| line_end + newline + 1)
}
