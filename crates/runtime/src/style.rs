//! Colour where a person looks, plain text everywhere else.

use std::fmt::Display;
use std::io::IsTerminal;

use hermes_config::Environment;

/// Decides once per stream whether it is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    pub const PLAIN: Self = Self { colour: false };

    /// Coloured on a terminal, unless the user said `NO_COLOR` or the terminal cannot.
    pub fn of(stream: &impl IsTerminal, environment: &Environment) -> Self {
        let refused = environment
            .get("NO_COLOR")
            .is_some_and(|value| !value.is_empty());
        let is_dumb = environment.get("TERM") == Some("dumb");
        Self {
            colour: stream.is_terminal() && !refused && !is_dumb,
        }
    }

    pub fn is_coloured(self) -> bool {
        self.colour
    }

    pub fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    pub fn green(self, text: impl Display) -> String {
        self.paint("32", text)
    }

    pub fn red(self, text: impl Display) -> String {
        self.paint("31", text)
    }

    pub fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    pub fn cyan(self, text: impl Display) -> String {
        self.paint("36", text)
    }

    /// A line of [`hermes_core::wording::change_lines`].
    pub fn change_line(self, line: &str) -> String {
        match line.chars().nth(2) {
            Some('+') => self.green(line),
            Some('-') => self.red(line),
            Some('@') => self.cyan(line),
            _ => line.to_owned(),
        }
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}
