//! Composes the parser's events into a tree of [`Node`]s.
//!
//! Owns the limits on what a document may be.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};
use serde_json::Value;

use super::{
    Content, Entry, Layout, Node, Position, Role,
    merge::inherit,
    scalar,
    spans::{Source, after_colon, skip_space_and_comments},
};

/// Levels of nesting; more is a mistake, and walking the tree recursively must not exhaust the stack.
const DEPTH_MAX: usize = 64;
/// Nodes in a document with its aliases written out; keeps a few lines of aliases from filling the memory.
const NODES_MAX: usize = 200_000;

/// A text that is not the YAML we can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub(crate) struct YamlError {
    pub(crate) at: Position,
    pub(crate) message: String,
}

/// Reads one document; `None` when the text holds nothing but comments.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, YamlError> {
    let mut composer = Composer::new(text);
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| composer.syntax_error(&error))?;
        composer.accept(event, span)?;
    }
    Ok(composer.root)
}

struct Composer<'t> {
    source: Source<'t>,
    stack: Vec<Frame<'t>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
    root: Option<Node>,
}

/// A collection that is still open.
struct Frame<'t> {
    start: usize,
    at: Marker,
    anchor: usize,
    kind: FrameKind<'t>,
}

enum FrameKind<'t> {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// Where each key was first seen.
        seen: HashMap<Cow<'t, str>, Position>,
        /// The key that waits for its value.
        key: Option<PendingKey>,
    },
}

struct PendingKey {
    key: String,
    span: Range<usize>,
    at: Position,
    role: Role,
}

impl<'t> Composer<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            source: Source::new(text),
            stack: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            documents: 0,
            root: None,
        }
    }

    fn accept(&mut self, event: Event<'t>, span: Span) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(error(
                        span.start,
                        "a second document starts here; settings are one document",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, span.start)?;
                if self.expects_key() {
                    return self.open_entry(text, style, span);
                }
                let node = self.scalar(&text, style, tag.as_deref(), span)?;
                self.place(node, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(span, anchor, tag.as_deref(), FrameKind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let kind = FrameKind::Map {
                    entries: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                };
                self.open(span, anchor, tag.as_deref(), kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize, at: Marker) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            return Err(error(
                at,
                format!("more than {NODES_MAX} values, counting those that aliases repeat"),
            ));
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                kind: FrameKind::Map { key: None, .. },
                ..
            })
        )
    }

    fn open_entry(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        span: Span,
    ) -> Result<(), YamlError> {
        let key_span = match style {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                return Err(error(span.start, "a key must be written on one line"));
            }
            style => self.source.inline(style, span),
        };
        let Some(Frame {
            kind: FrameKind::Map { seen, key, .. },
            ..
        }) = self.stack.last_mut()
        else {
            return Ok(());
        };
        let key_at = position(span.start);
        let role = match (text.as_ref(), style) {
            ("<<", ScalarStyle::Plain) => Role::Merge,
            _ => Role::Own,
        };
        if let Some(first) = seen.get(&text) {
            return Err(error(
                span.start,
                format!(
                    "the key `{text}` is here twice, first in line {}",
                    first.line
                ),
            ));
        }
        *key = Some(PendingKey {
            key: text.as_ref().to_owned(),
            span: key_span,
            at: key_at,
            role,
        });
        seen.insert(text, key_at);
        Ok(())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Node, YamlError> {
        let (layout, bytes) = match style {
            ScalarStyle::Plain
                if text.is_empty() && tag.is_none() && !self.source.has_anchor(span) =>
            {
                let at = self.source.bytes(span).start;
                (Layout::Empty, at..at)
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let text_start = self.source.bytes(span).start;
                (
                    Layout::BlockScalar { text_start },
                    self.source.block_scalar(span),
                )
            }
            style => (Layout::Inline, self.source.inline(style, span)),
        };
        let value = match (tag, style) {
            (None, ScalarStyle::Plain) => scalar::resolve(text),
            (None, _) => Value::String(text.to_owned()),
            (Some(tag), _) => scalar::resolve_tagged(text, tag).ok_or_else(|| {
                error(
                    span.start,
                    format!("`{text}` does not fit its tag `{tag}`, or the tag is none of ours"),
                )
            })?,
        };
        Ok(Node {
            content: Content::Scalar(value),
            layout,
            span: bytes,
            at: position(span.start),
        })
    }

    fn open(
        &mut self,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        kind: FrameKind<'t>,
    ) -> Result<(), YamlError> {
        self.count(1, span.start)?;
        if self.expects_key() {
            return Err(error(
                span.start,
                "a key must be a word, not a list or a mapping",
            ));
        }
        if self.stack.len() == DEPTH_MAX {
            return Err(error(
                span.start,
                format!("nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            return Err(error(
                span.start,
                format!("the tag `{tag}` is none of ours"),
            ));
        }
        let start = self.start_of_list(&kind);
        self.stack.push(Frame {
            start: start.unwrap_or(self.source.bytes(span).start),
            at: span.start,
            anchor,
            kind,
        });
        Ok(())
    }

    /// Returns where a list behind a key starts, which the parser misses when its dashes are not indented.
    fn start_of_list(&self, kind: &FrameKind<'_>) -> Option<usize> {
        match (kind, self.stack.last().map(|frame| &frame.kind)) {
            (FrameKind::List(_), Some(FrameKind::Map { key: Some(key), .. })) => {
                let colon = after_colon(self.source.text, key.span.end)?;
                Some(skip_space_and_comments(self.source.text, colon))
            }
            _ => None,
        }
    }

    fn close(&mut self, end: Span) -> Result<(), YamlError> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let start = frame.start;
        let is_flow = !end.is_empty();
        let last_child_end = frame.last_child_end();
        let content = match frame.kind {
            FrameKind::List(items) => Content::List(items),
            FrameKind::Map { mut entries, .. } => {
                let added = inherit(&mut entries)?;
                self.count(added, frame.at)?;
                Content::Map(entries)
            }
        };
        let (layout, end) = if is_flow {
            (Layout::Flow, self.source.bytes(end).start + 1)
        } else {
            (Layout::Block, last_child_end.unwrap_or(start))
        };
        let node = Node {
            content,
            layout,
            span: start..end,
            at: position(frame.at),
        };
        self.place(node, frame.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), YamlError> {
        if self.expects_key() {
            return Err(error(span.start, "an alias cannot be a key"));
        }
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(error(
                span.start,
                "the alias stands inside the value it names",
            ));
        };
        let mut node = node.clone();
        self.count(node.size(), span.start)?;
        if self.stack.len() + node.depth() > DEPTH_MAX {
            return Err(error(
                span.start,
                format!("nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        node.span = self.source.inline(ScalarStyle::Plain, span);
        node.layout = Layout::Alias;
        node.at = position(span.start);
        self.place(node, 0)
    }

    /// Gives a finished node to the collection it belongs to.
    fn place(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        if anchor > 0 {
            self.count(node.size(), Marker::new(0, node.at.line, node.at.column))?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(FrameKind::List(items)) => items.push(node),
            Some(FrameKind::Map { entries, key, .. }) => {
                if let Some(key) = key.take() {
                    entries.push(key.with_value(node, &self.source));
                }
            }
        }
        Ok(())
    }

    fn syntax_error(&self, error: &saphyr_parser::ScanError) -> YamlError {
        let at = position(*error.marker());
        match self.source.tab_indented_line(at.line) {
            Some(line) => YamlError {
                at: Position { line, column: 1 },
                message: "a tab in the indentation; YAML wants spaces".to_owned(),
            },
            None => YamlError {
                at,
                message: error.info().to_owned(),
            },
        }
    }
}

impl PendingKey {
    fn with_value(self, mut value: Node, source: &Source<'_>) -> Entry {
        if value.layout == Layout::Empty {
            let at = after_colon(source.text, self.span.end).unwrap_or(self.span.end);
            value.span = at..at;
        }
        Entry {
            key: self.key,
            key_span: self.span,
            key_at: self.at,
            value,
            role: self.role,
        }
    }
}

impl Frame<'_> {
    fn last_child_end(&self) -> Option<usize> {
        match &self.kind {
            FrameKind::List(items) => items.last().map(|item| item.span.end),
            FrameKind::Map { entries, .. } => entries.last().map(|entry| entry.value.span.end),
        }
    }
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn error(at: Marker, message: impl Into<String>) -> YamlError {
    YamlError {
        at: position(at),
        message: message.into(),
    }
}
