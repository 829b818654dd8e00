//! How things are laid out for people, on a terminal: the columns of `hermes_runtime::layout` with a heading that stands out.

use serde_json::Value;

use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;

pub(crate) use hermes_runtime::layout::{Table, age, count, one_line, size, tokens_in, tokens_out};

/// A table on a terminal.
pub(crate) trait OnTerminal {
    fn print(&self, style: Style) -> Outcome<()>;
}

impl<const COLUMNS: usize> OnTerminal for Table<COLUMNS> {
    fn print(&self, style: Style) -> Outcome<()> {
        match self.styled(style).as_str() {
            "" => Ok(()),
            text => println(text),
        }
    }
}

/// Prints a value as JSON that people can read too.
pub(crate) fn print_json(value: &Value) -> Outcome<()> {
    println(&format!("{value:#}"))
}
