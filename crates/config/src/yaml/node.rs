//! The tree: values with the place and the span of the text they were read from.

use std::ops::Range;

use serde_json::{Map, Value};

use super::Position;

/// One value in a document.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) layout: Layout,
    /// Bytes of the value, with its anchor and tag, without a trailing comment or newline.
    pub(crate) span: Range<usize>,
    pub(crate) at: Position,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Nothing is written, as after `key:`.
    Empty,
    /// A plain or quoted scalar.
    Inline,
    /// A literal or folded scalar; its text starts at this offset, below the `|` or `>`.
    BlockScalar { text_start: usize },
    /// A collection by indentation.
    Block,
    /// A collection in brackets or braces.
    Flow,
    /// `*name`: the content stands elsewhere.
    Alias,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) key_at: Position,
    pub(crate) value: Node,
    pub(crate) role: Role,
}

/// What an entry of a mapping is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// An ordinary key.
    Own,
    /// The merge key `<<`, which has no value of its own.
    Merge,
    /// A key that a merge brought in; its text stands elsewhere.
    Inherited,
}

impl Node {
    /// Makes a node for a value that no file holds.
    pub(crate) fn synthetic(value: &Value) -> Self {
        let content = match value {
            Value::Object(map) => Content::Map(
                map.iter()
                    .map(|(key, value)| Entry::synthetic(key.clone(), Self::synthetic(value)))
                    .collect(),
            ),
            Value::Array(items) => Content::List(items.iter().map(Self::synthetic).collect()),
            scalar => Content::Scalar(scalar.clone()),
        };
        Self::nowhere(content)
    }

    pub(crate) fn empty_map() -> Self {
        Self::nowhere(Content::Map(Vec::new()))
    }

    fn nowhere(content: Content) -> Self {
        Self {
            content,
            layout: Layout::Inline,
            span: 0..0,
            at: Position { line: 1, column: 1 },
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_value).collect(),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .filter(|entry| entry.role != Role::Merge)
                    .map(|entry| (entry.key.clone(), entry.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(Value::Null))
    }

    /// Returns the entries of a mapping that have a value; none for other nodes.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let entries = match &self.content {
            Content::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().filter(|entry| entry.role != Role::Merge)
    }

    pub(crate) fn child(&self, segment: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(_) => self
                .entries()
                .find(|entry| entry.key == segment)
                .map(|entry| &entry.value),
            Content::List(items) => segment
                .parse()
                .ok()
                .and_then(|index: usize| items.get(index)),
            Content::Scalar(_) => None,
        }
    }

    pub(crate) fn find(&self, path: &[String]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |node, segment| node.child(segment))
    }

    /// Takes the node at `path` out of its mapping.
    pub(crate) fn take(&mut self, path: &[String]) -> Option<Self> {
        let Content::Map(entries) = &mut self.content else {
            return None;
        };
        let (first, rest) = path.split_first()?;
        let index = entries
            .iter()
            .position(|entry| entry.role != Role::Merge && entry.key == *first)?;
        if rest.is_empty() {
            Some(entries.remove(index).value)
        } else {
            entries[index].value.take(rest)
        }
    }

    /// Puts `node` at `path`, making mappings on the way; an existing value is replaced.
    pub(crate) fn put(&mut self, path: &[String], node: Self) {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.content, Content::Map(_)) {
            self.content = Content::Map(Vec::new());
        }
        let Content::Map(entries) = &mut self.content else {
            return;
        };
        let found = entries
            .iter()
            .position(|entry| entry.role != Role::Merge && entry.key == *first);
        let index = found.unwrap_or_else(|| {
            let mut entry = Entry::synthetic(first.clone(), Self::empty_map());
            entry.value.at = node.at;
            entry.key_at = node.at;
            entries.push(entry);
            entries.len() - 1
        });
        entries[index].value.put(rest, node);
    }

    /// Counts the node and everything in it.
    pub(super) fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::size).sum(),
            Content::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    /// Counts the levels of nesting.
    pub(super) fn depth(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Content::Map(entries) => entries
                .iter()
                .map(|entry| entry.value.depth())
                .max()
                .unwrap_or(0),
        }
    }
}

impl Entry {
    fn synthetic(key: String, value: Node) -> Self {
        Self {
            key,
            key_span: 0..0,
            key_at: value.at,
            value,
            role: Role::Own,
        }
    }
}
