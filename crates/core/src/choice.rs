//! Something to choose: what a slash command offers where a surface can show a list.

use crate::command::Command;

/// A list, and what is done with the choice.
#[derive(Debug, Clone)]
pub struct Choice {
    /// What is run with the value of the item that is chosen.
    pub command: &'static Command,
    pub title: String,
    pub items: Vec<Item>,
    pub depth: Depth,
}

/// How much there is behind the items of a [`Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// They are all there is.
    Flat,
    /// One can look into them and find words there.
    Deep,
}

/// One thing to choose.
#[derive(Debug, Clone)]
pub struct Item {
    pub value: String,
    pub label: String,
    /// Shown dimly behind the label, and searched like it.
    pub detail: String,
}
