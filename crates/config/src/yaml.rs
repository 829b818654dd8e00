//! YAML as people write it: a tree of nodes that know where they stand in the text, and edits of that text.
//!
//! Reading follows YAML 1.2, where only `true` and `false` are booleans; the typed accessors accept `yes`, `on`
//! and their opposites where a boolean is expected. Nothing here touches files. Start at [`parse`] and [`edit`].

mod comments;
mod compose;
pub(crate) mod edit;
mod emit;
mod merge;
mod node;
mod page;
mod put;
mod remove;
mod scalar;
mod spans;
mod verify;

use compose::YamlError;
pub(crate) use compose::parse;
pub(crate) use emit::{block as to_yaml, flow as to_one_line};
pub(crate) use node::{Content, Entry, Layout, Node, Role};
pub(crate) use scalar::resolve as resolve_scalar;

/// A place in a text file; both numbers start at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
