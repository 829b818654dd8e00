//! Plans which bytes to replace so that a value is set.

use std::ops::Range;

use serde_json::Value;

use super::{
    Content, Entry, Layout, Node, Role,
    edit::{EditError, unsupported},
    emit,
    page::Page,
    verify::{self, Splice},
};

/// Plans setting the value at `path`.
pub(super) fn plan(page: &Page<'_>, path: &[String], value: &Value) -> Result<Splice, EditError> {
    let everything = || verify::nest(path, value.clone());
    match page.root {
        Some(root) if !root.is_null() => Put { page, path, value }.below(root, 0),
        Some(root) if root.layout != Layout::Empty => Ok(Splice {
            range: root.span.clone(),
            with: emit::block(&everything(), 0, page.newline),
        }),
        _ => Ok(append(page, &everything())),
    }
}

/// Plans the first setting of a text that has only comments.
fn append(page: &Page<'_>, value: &Value) -> Splice {
    let at = page.text.len();
    let is_line_open = !page.text.is_empty() && !page.text.ends_with('\n');
    let separator = if is_line_open { page.newline } else { "" };
    let lines = emit::block(value, 0, page.newline);
    Splice {
        range: at..at,
        with: format!("{separator}{lines}{}", page.newline),
    }
}

struct Put<'a> {
    page: &'a Page<'a>,
    path: &'a [String],
    value: &'a Value,
}

/// The place of an existing value in the text.
struct Slot<'a> {
    node: &'a Node,
    holder: Holder,
    /// Right behind the `:` or `-`.
    start: usize,
    /// Column of the key or the dash.
    indent: usize,
    is_in_flow: bool,
}

#[derive(Clone, Copy)]
enum Holder {
    Key,
    Item,
}

impl Put<'_> {
    /// Plans setting `path[depth..]` below `node`.
    fn below(&self, node: &Node, depth: usize) -> Result<Splice, EditError> {
        let here = || self.path[..depth].to_vec();
        let at = node.at;
        if node.layout == Layout::Alias {
            return Err(EditError::Shared { path: here(), at });
        }
        let segment = &self.path[depth];
        let new_value = || verify::nest(&self.path[depth + 1..], self.value.clone());
        match &node.content {
            Content::Scalar(_) => Err(EditError::NotASection { path: here(), at }),
            Content::Map(entries) => {
                let is_named = |entry: &&Entry| entry.role == Role::Own && entry.key == *segment;
                match entries.iter().find(is_named) {
                    Some(entry) => self.in_slot(&self.entry_slot(node, entry), depth + 1),
                    None => Ok(self.insert(node, entries, segment, new_value())),
                }
            }
            Content::List(items) => match segment.parse::<usize>() {
                Ok(index) if index < items.len() => {
                    self.in_slot(&self.item_slot(node, items, index)?, depth + 1)
                }
                Ok(index) if index == items.len() => self.push(node, items, new_value()),
                _ => Err(EditError::NoSuchItem {
                    path: here(),
                    length: items.len(),
                    at,
                }),
            },
        }
    }

    /// Plans setting `path[depth..]` in a slot: its whole value, or something below.
    fn in_slot(&self, slot: &Slot<'_>, depth: usize) -> Result<Splice, EditError> {
        let rest = &self.path[depth..];
        let is_replaced =
            rest.is_empty() || (slot.node.layout != Layout::Alias && is_void(slot.node));
        if !is_replaced {
            return self.below(slot.node, depth);
        }
        let mut value = slot.node.to_value();
        verify::set_value(&mut value, rest, self.value.clone())
            .ok_or_else(|| self.unsupported())?;
        Ok(if slot.is_in_flow {
            self.replace_in_flow(slot, &value)
        } else {
            self.replace_in_block(slot, &value)
        })
    }

    fn replace_in_flow(&self, slot: &Slot<'_>, value: &Value) -> Splice {
        let text = emit::flow(value);
        if slot.node.layout != Layout::Empty {
            return Splice {
                range: slot.node.span.clone(),
                with: text,
            };
        }
        let colon = if self.page.text[..slot.start].ends_with(':') {
            ""
        } else {
            ":"
        };
        Splice {
            range: slot.start..slot.start,
            with: format!("{colon} {text}"),
        }
    }

    fn replace_in_block(&self, slot: &Slot<'_>, value: &Value) -> Splice {
        let node = slot.node;
        let is_one_line = node.layout != Layout::Empty
            && !self.page.text[slot.start..node.span.end].contains('\n');
        match emit::inline(value) {
            Some(inline) if is_one_line => Splice {
                range: node.span.clone(),
                with: inline,
            },
            inline => self.replace_lines(slot, value, inline),
        }
    }

    /// Replaces everything from the slot to the end of the value's last line; its comments follow below.
    fn replace_lines(&self, slot: &Slot<'_>, value: &Value, inline: Option<String>) -> Splice {
        let newline = self.page.newline;
        let end = slot.node.span.end.max(slot.start);
        let range = slot.start..self.page.line_end(end);
        let (beside, mut below) = self.page.comments(range.clone());
        let comment = beside.map_or(String::new(), |comment| format!("  {comment}"));
        let lines = || emit::block(value, slot.indent + 2, newline);
        let head = match (inline, slot.holder) {
            (Some(inline), _) => format!(" {inline}{comment}"),
            (None, Holder::Key) => format!("{comment}{newline}{}", lines()),
            // The item starts beside its dash, where the comment was.
            (None, Holder::Item) => {
                below.splice(0..0, beside);
                format!(" {}", lines().trim_start())
            }
        };
        Splice {
            range,
            with: head + &self.page.comment_lines(&below, slot.indent),
        }
    }

    /// Plans a new key at the end of a mapping.
    fn insert(&self, node: &Node, entries: &[Entry], key: &str, value: Value) -> Splice {
        let entry = verify::single(key, value);
        let mut written = entries.iter().filter(|entry| entry.role != Role::Inherited);
        let Some(first) = written.next() else {
            return replace_void(node, &entry);
        };
        let end = written.next_back().unwrap_or(first).value.span.end;
        match node.layout {
            Layout::Flow => {
                let braced = emit::flow(&entry);
                insert_text(end, format!(", {}", &braced[1..braced.len() - 1]))
            }
            _ => self.insert_lines(end, &entry, first.key_at.column - 1),
        }
    }

    /// Plans a new item at the end of a list.
    fn push(&self, node: &Node, items: &[Node], value: Value) -> Result<Splice, EditError> {
        let spans = self.item_spans(node, items)?;
        let item = Value::Array(vec![value]);
        Ok(match (spans.first(), spans.last(), node.layout) {
            (Some(_), Some(last), Layout::Flow) => {
                let bracketed = emit::flow(&item);
                insert_text(
                    last.end,
                    format!(", {}", &bracketed[1..bracketed.len() - 1]),
                )
            }
            (Some(first), Some(last), _) => {
                self.insert_lines(last.end, &item, self.page.column(first.start))
            }
            _ => replace_void(node, &item),
        })
    }

    /// Plans new lines below the line in which `end` stands.
    fn insert_lines(&self, end: usize, value: &Value, indent: usize) -> Splice {
        let newline = self.page.newline;
        let lines = emit::block(value, indent, newline);
        insert_text(self.page.line_end(end), format!("{newline}{lines}"))
    }

    fn entry_slot<'n>(&self, map: &Node, entry: &'n Entry) -> Slot<'n> {
        Slot {
            node: &entry.value,
            holder: Holder::Key,
            start: self.page.value_start(entry),
            indent: entry.key_at.column - 1,
            is_in_flow: map.layout == Layout::Flow,
        }
    }

    fn item_slot<'n>(
        &self,
        list: &Node,
        items: &'n [Node],
        index: usize,
    ) -> Result<Slot<'n>, EditError> {
        let start = self.item_spans(list, items)?[index].start;
        Ok(Slot {
            node: &items[index],
            holder: Holder::Item,
            start: start + 1,
            indent: self.page.column(start),
            is_in_flow: list.layout == Layout::Flow,
        })
    }

    fn item_spans(&self, list: &Node, items: &[Node]) -> Result<Vec<Range<usize>>, EditError> {
        let spans = self.page.item_spans(list, items);
        spans.ok_or_else(|| self.unsupported())
    }

    fn unsupported(&self) -> EditError {
        unsupported(self.path)
    }
}

fn insert_text(at: usize, text: String) -> Splice {
    Splice {
        range: at..at,
        with: text,
    }
}

/// Fills an empty `{}` or `[]` that is the whole document, in its own style.
fn replace_void(node: &Node, value: &Value) -> Splice {
    Splice {
        range: node.span.clone(),
        with: emit::flow(value),
    }
}

/// Tells whether a node holds nothing yet, so that a value below it replaces it.
fn is_void(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(value) => value.is_null(),
        Content::List(items) => items.is_empty(),
        Content::Map(entries) => entries.is_empty(),
    }
}
