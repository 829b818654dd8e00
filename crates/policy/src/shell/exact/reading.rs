//! What an exact reading says of a line.

use std::collections::BTreeSet;

use hermes_core::wildcard;

/// What bash runs and writes for a line. Nothing else.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) runs: Vec<Run>,
    /// Files that redirections write.
    pub(crate) writes: Vec<Arg>,
    /// Functions that the line defines.
    pub(crate) functions: BTreeSet<String>,
    /// Variables that the line sets for longer than a command.
    pub(crate) sets: BTreeSet<String>,
    /// It is one simple command and nothing else: no operator, no redirection, no variable set.
    pub(crate) is_one_command: bool,
}

/// A program, a function or a built-in command with its words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) words: Vec<Arg>,
    /// Variables set for it alone.
    pub(crate) assignments: Vec<(String, Arg)>,
    pub(crate) input: Input,
    /// Files it reads from and writes to by redirection.
    pub(crate) reads: Vec<Arg>,
    pub(crate) writes: Vec<Arg>,
}

/// What a program's standard input is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Inherited,
    Pipe,
    /// A here-document or a here-string; None where it is computed.
    Text(Option<String>),
    File(Arg),
    /// Another stream, `<&3`.
    Stream,
}

/// A word as bash hands it to a program, as far as the line says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Arg {
    pub(crate) pieces: Vec<Piece>,
    /// It may become no word, or several.
    pub(crate) is_many: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Glob(char),
    Home,
    Any(Origin),
}

/// Where a text comes from that only a running shell knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Number,
    /// No option and no absolute path: names of files here.
    Relative,
    /// What a harmless program prints.
    Plain,
    /// The name of a stream that a program writes to or reads from.
    Process,
    Unknown,
}

impl Arg {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            pieces: vec![Piece::Text(text.into())],
            is_many: false,
        }
    }

    /// Any number of words that nobody knows.
    pub(crate) fn unknown_words() -> Self {
        Self {
            pieces: vec![Piece::Any(Origin::Unknown)],
            is_many: true,
        }
    }

    /// One word that nobody knows.
    pub(crate) fn unknown_word() -> Self {
        Self {
            is_many: false,
            ..Self::unknown_words()
        }
    }

    /// Returns the word, if the line says it wholly. The home folder is `~`.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut literal = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => literal.push_str(text),
                Piece::Home => literal.push('~'),
                Piece::Glob(_) | Piece::Any(_) => return None,
            }
        }
        (!self.is_many).then_some(literal)
    }

    /// Returns what the word surely begins with.
    pub(crate) fn beginning(&self) -> String {
        let mut beginning = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => beginning.push_str(text),
                Piece::Home => beginning.push('~'),
                Piece::Glob(_) | Piece::Any(_) => break,
            }
        }
        beginning
    }

    /// Returns the word with `$` for what is not known.
    pub(crate) fn shown(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Glob(c) => c.to_string(),
            Piece::Home => "~".to_owned(),
            Piece::Any(_) => "$()".to_owned(),
        });
        pieces.collect()
    }

    /// Returns whether the word, or one that it becomes, may begin with a dash.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.pieces.first() {
            Some(Piece::Text(text)) if !text.is_empty() => text.starts_with('-'),
            Some(Piece::Home) | None => self.is_many && self.pieces.is_empty(),
            Some(Piece::Glob('*' | '?')) => false,
            Some(Piece::Any(
                Origin::Number | Origin::Relative | Origin::Plain | Origin::Process,
            )) => false,
            Some(_) => true,
        }
    }

    /// Returns whether some of it is known by nobody.
    pub(crate) fn is_unknown(&self) -> bool {
        let is_unknown = |piece: &Piece| matches!(piece, Piece::Any(Origin::Unknown));
        self.pieces.iter().any(is_unknown)
    }

    /// Returns whether a word that bash made may be one of this.
    pub(crate) fn allows(&self, word: &str, home: &str) -> bool {
        let has_any = self
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Any(_)));
        if self.is_many && has_any {
            return true;
        }
        let mut pattern = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => pattern.push_str(&wildcard::escape(text)),
                Piece::Home => pattern.push_str(&wildcard::escape(home)),
                // What follows is letters to choose from, up to where nobody knows without the files.
                Piece::Glob('[') => {
                    pattern.push('*');
                    break;
                }
                Piece::Glob(_) | Piece::Any(_) => pattern.push('*'),
            }
        }
        wildcard::matches(&pattern, word)
    }
}

impl Reading {
    /// Returns whether the line may run this program with these arguments.
    pub(crate) fn names(&self, argv: &[String], home: &str) -> bool {
        self.runs.iter().any(|run| run.allows(argv, home))
    }

    /// Returns whether a redirection of the line may write this file.
    pub(crate) fn names_file(&self, path: &str, home: &str) -> bool {
        self.writes.iter().any(|arg| arg.allows(path, home))
    }
}

impl Run {
    /// Returns the program, whose name is always known.
    pub(crate) fn program(&self) -> String {
        self.words
            .first()
            .and_then(Arg::literal)
            .unwrap_or_default()
    }

    fn allows(&self, argv: &[String], home: &str) -> bool {
        allows(&self.words, argv, home)
    }
}

/// Returns whether words can become these.
fn allows(words: &[Arg], argv: &[String], home: &str) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return argv.is_empty();
    };
    if !first.is_many {
        return argv
            .split_first()
            .is_some_and(|(word, others)| first.allows(word, home) && allows(rest, others, home));
    }
    let fitting = argv
        .iter()
        .take_while(|word| first.allows(word, home))
        .count();
    (0..=fitting).any(|taken| allows(rest, &argv[taken..], home))
}
