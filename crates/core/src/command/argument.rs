//! What may stand behind the name of a command, as far as that is known beforehand: words of a closed set, or names from
//! a list that only the program has. Everything a surface needs to suggest arguments, or to offer them as buttons.

use super::{Surface, called, slashed};

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nothing, or anything.
    Free,
    Words(&'static [Word]),
    Of(List),
}

/// A word that an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub word: &'static str,
    pub help: &'static str,
    /// What has to follow it.
    pub then: Argument,
}

/// Names that only the program knows, and not before it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    Models,
    Sessions,
    Personalities,
    Toolsets,
    Servers,
    Skills,
}

/// How much of a line names of a list take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    OneWord,
    ManyWords,
    /// The rest of it is one name, spaces and all.
    Line,
}

impl List {
    /// Whether something may be meant that is not in the list.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Models | Self::Skills)
    }

    fn extent(self) -> Extent {
        match self {
            Self::Models | Self::Servers => Extent::OneWord,
            Self::Toolsets => Extent::ManyWords,
            Self::Sessions | Self::Personalities | Self::Skills => Extent::Line,
        }
    }
}

/// The argument that a line ends in, as far as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typed<'a> {
    pub argument: Argument,
    /// Where in the line it begins.
    pub start: usize,
    pub letters: &'a str,
}

/// Finds the argument at the end of a line that begins with the full name of a command. Returns nothing where nothing is
/// known of what may stand there.
pub fn argument(line: &str, surface: Surface) -> Option<Typed<'_>> {
    let (first, _) = line.split_once(' ')?;
    if line.contains('\n') {
        return None;
    }
    let mut argument = called(slashed(first)?, surface)?.argument;
    let mut start = first.len();
    loop {
        start += spaces(&line[start..]);
        let letters = &line[start..];
        let typed = Typed {
            argument,
            start,
            letters,
        };
        let word = letters.split_once(' ').map(|(word, _)| word);
        argument = match (argument, word) {
            (Argument::Free, _) => return None,
            (Argument::Of(list), _) if list.extent() == Extent::Line => return Some(typed),
            (_, None) => return Some(typed),
            (Argument::Words(words), Some(word)) => {
                words.iter().find(|known| known.word == word)?.then
            }
            (Argument::Of(list), Some(_)) => match list.extent() {
                Extent::ManyWords => argument,
                Extent::OneWord | Extent::Line => return None,
            },
        };
        start += word.map_or(0, str::len);
    }
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

pub(super) const fn word(word: &'static str, help: &'static str) -> Word {
    Word {
        word,
        help,
        then: Argument::Free,
    }
}

impl Word {
    pub(super) const fn then(mut self, argument: Argument) -> Self {
        self.then = argument;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::COMMANDS;

    fn typed(line: &str) -> Option<(Argument, &str)> {
        let typed = argument(line, Surface::Terminal)?;
        assert_eq!(&line[typed.start..], typed.letters);
        Some((typed.argument, typed.letters))
    }

    #[test]
    fn an_argument_is_what_stands_behind_the_full_name_of_a_command() {
        assert_eq!(typed("/model "), Some((Argument::Of(List::Models), "")));
        assert_eq!(
            typed("/Model  gpt"),
            Some((Argument::Of(List::Models), "gpt"))
        );
        for line in [
            "/model",
            "/mod gpt",
            "/title x",
            "/nope x",
            "model x",
            "",
            "/model a\nb",
        ] {
            assert_eq!(typed(line), None, "{line}");
        }
    }

    #[test]
    fn names_take_one_word_or_many_or_the_rest_of_the_line() {
        let sessions = Argument::Of(List::Sessions);
        assert_eq!(typed("/resume fix the b"), Some((sessions, "fix the b")));
        assert_eq!(typed("/model a b"), None);
        let toolsets = Argument::Of(List::Toolsets);
        assert_eq!(typed("/tools enable web fi"), Some((toolsets, "fi")));
    }

    #[test]
    fn a_word_leads_to_what_follows_it() {
        let (argument, letters) = typed("/mcp rec").unwrap();
        assert!(matches!(argument, Argument::Words(words) if words[0].word == "reconnect"));
        assert_eq!(letters, "rec");
        let servers = Argument::Of(List::Servers);
        assert_eq!(typed("/mcp reconnect "), Some((servers, "")));
        assert_eq!(typed("/mcp forget x"), None);
        assert_eq!(typed("/yolo on "), None);
    }

    #[test]
    fn help_names_every_word_that_is_known() {
        for command in COMMANDS {
            if let Argument::Words(words) = command.argument {
                for Word { word, .. } in words {
                    assert!(command.arguments.contains(word), "/{} {word}", command.name);
                }
            }
        }
    }
}
