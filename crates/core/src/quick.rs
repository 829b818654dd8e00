//! Slash commands of the user's own: a name for a shell command, or for another slash command.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::command::{self, Surface};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuickCommands(BTreeMap<String, Quick>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quick {
    /// Runs this in a shell and shows what it prints.
    Exec(String),
    /// Stands for this slash command.
    Alias(String),
}

/// What a line means once the user's own names are known.
#[derive(Debug, PartialEq, Eq)]
pub enum Own<'a> {
    /// A line as any other.
    Line(Cow<'a, str>),
    /// A shell command.
    Exec(&'a str),
}

impl QuickCommands {
    /// Takes commands by their names. Names of built-in commands are not for the taking.
    pub fn new(commands: impl IntoIterator<Item = (String, Quick)>) -> Self {
        Self(commands.into_iter().collect())
    }

    /// The names and what they stand for, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quick)> {
        self.0.iter().map(|(name, quick)| (name.as_str(), quick))
    }

    /// Reads a line. What an alias stands for is not read again, so none can go round in circles.
    pub fn read<'a>(&'a self, line: &'a str, surface: Surface) -> Own<'a> {
        let first = line.split_whitespace().next().unwrap_or_default();
        let name = first.strip_prefix('/').unwrap_or_default();
        match self.0.get(name) {
            Some(_) if command::is_name(name, surface) => Own::Line(line.into()),
            Some(Quick::Exec(command)) => Own::Exec(command),
            Some(Quick::Alias(target)) => {
                let arguments = line.trim_start()[first.len()..].trim();
                Own::Line(format!("{target} {arguments}").trim_end().to_owned().into())
            }
            None => Own::Line(line.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> QuickCommands {
        let named = [
            ("disk", Quick::Exec("df -h".into())),
            ("m", Quick::Alias("/model".into())),
            ("new", Quick::Exec("echo never".into())),
        ];
        QuickCommands::new(named.map(|(name, quick)| (name.to_owned(), quick)))
    }

    #[test]
    fn own_names_stand_for_what_the_user_said() {
        let quick = quick();
        let read = |line| quick.read(line, Surface::Terminal);
        assert_eq!(read("/disk"), Own::Exec("df -h"));
        assert_eq!(
            read(" /m opus --global "),
            Own::Line("/model opus --global".into())
        );
    }

    #[test]
    fn built_in_names_and_words_are_left_alone() {
        let quick = quick();
        for line in ["/new", "disk", "/unknown", "", "say /disk"] {
            assert_eq!(quick.read(line, Surface::Terminal), Own::Line(line.into()));
        }
    }
}
