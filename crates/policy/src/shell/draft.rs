//! A command on its way.

use super::scope::assignment;
use super::{Budget, Command, Redirect, TooComplex, braces};

/// A character of a word, and whether it means itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph {
    pub(super) c: char,
    is_quoted: bool,
}

impl Glyph {
    pub(super) fn plain(c: char) -> Self {
        let is_quoted = false;
        Self { c, is_quoted }
    }

    fn quoted(c: char) -> Self {
        let is_quoted = true;
        Self { c, is_quoted }
    }

    /// Returns whether this is the shell's own character.
    pub(super) fn is(self, c: char) -> bool {
        self.c == c && !self.is_quoted
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    Double,
}

/// A complete word.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

pub(super) struct Draft<'a> {
    budget: &'a Budget,
    pub(super) done: Vec<Command>,
    /// Which of the commands, done or on their way, reads which here-document.
    pub(super) here_documents: Vec<(usize, usize)>,
    /// Without its words.
    pub(super) command: Command,
    pub(super) words: Vec<Word>,
    /// The word that is being read.
    word: Option<Vec<Glyph>>,
    is_word_quoted: bool,
    /// Compound commands that have begun.
    pub(super) open: Vec<Compound>,
}

/// A compound command whose end is still to come.
pub(super) struct Compound {
    pub(super) end: &'static str,
    /// Everything in it reads from the pipe before it, or before what it is in.
    pub(super) reads_pipe: bool,
    /// The function whose body it is.
    pub(super) function: Option<Function>,
}

/// A function whose body is being read.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) body_start: usize,
}

impl<'a> Draft<'a> {
    pub(super) fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            done: Vec::new(),
            here_documents: Vec::new(),
            command: Command::default(),
            words: Vec::new(),
            word: None,
            is_word_quoted: false,
            open: Vec::new(),
        }
    }

    pub(super) fn has_word(&self) -> bool {
        self.word.is_some()
    }

    pub(super) fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(Glyph::plain(c));
    }

    pub(super) fn push_quoted(&mut self, text: &str) {
        let word = self.word.get_or_insert_default();
        word.extend(text.chars().map(Glyph::quoted));
        self.is_word_quoted = true;
    }

    pub(super) fn end_word(&mut self) -> Result<(), TooComplex> {
        let is_quoted = std::mem::take(&mut self.is_word_quoted);
        let Some(word) = self.word.take() else {
            return Ok(());
        };
        for glyphs in braces::expand(word, self.budget)? {
            let text = glyphs.iter().map(|glyph| glyph.c).collect();
            self.words.push(Word { text, is_quoted });
        }
        Ok(())
    }

    /// Ends the word before a redirection, unless it is the number of a file descriptor.
    pub(super) fn end_word_before_redirect(&mut self) -> Result<(), TooComplex> {
        let is_number = |word: &Vec<Glyph>| word.iter().all(|glyph| glyph.c.is_ascii_digit());
        if !self.is_word_quoted && self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word()
    }

    /// Puts in the value of an expansion, which makes several words when it is not quoted.
    pub(super) fn expand(&mut self, value: &str, quoting: Quoting) -> Result<(), TooComplex> {
        self.budget.spend(value.len())?;
        if quoting == Quoting::Double {
            let word = self.word.get_or_insert_default();
            word.extend(value.chars().map(Glyph::quoted));
            return Ok(());
        }
        for (at, field) in value.split(char::is_whitespace).enumerate() {
            if at > 0 {
                self.end_word()?;
            }
            if !field.is_empty() {
                let word = self.word.get_or_insert_default();
                word.extend(field.chars().map(Glyph::quoted));
            }
        }
        Ok(())
    }

    /// Puts in each of several values, one word for each, all with what stands before them.
    pub(super) fn expand_each(
        &mut self,
        values: &[String],
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        if let [value] = values {
            return self.expand(value, quoting);
        }
        let before = self.word.clone().unwrap_or_default();
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.end_word()?;
                self.budget.spend(before.len())?;
                self.word = Some(before.clone());
            }
            self.expand(value, quoting)?;
        }
        Ok(())
    }

    pub(super) fn add_redirect(&mut self, target: String, writes: bool) {
        self.command.redirects.push(Redirect { target, writes });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
            && self.command.redirects.is_empty()
            && self.command.substitutions.is_empty()
            && !self.command.reads_here_document
    }

    /// Returns whether the command reads from a pipe, or belongs to a group that does.
    pub(super) fn reads_pipe(&self) -> bool {
        self.command.reads_pipe || self.group_reads_pipe()
    }

    /// Returns whether the command belongs to a group that reads from a pipe.
    pub(super) fn group_reads_pipe(&self) -> bool {
        self.open.last().is_some_and(|group| group.reads_pipe)
    }

    /// Returns whether a closing parenthesis ends a pattern of `case` here.
    pub(super) fn is_in_case(&self) -> bool {
        let mut own = self.words.iter().take_while(|word| is_reserved(word));
        let begins = own.any(|word| word.text == "case");
        let ends = self.words.first().is_some_and(|word| word.text == "esac");
        let is_inside = self
            .open
            .last()
            .is_some_and(|compound| compound.end == "esac");
        begins || (is_inside && !ends)
    }

    /// Returns whether `name=` was read, and nothing after it.
    pub(super) fn begins_array(&self) -> bool {
        let Some(word) = &self.word else {
            return false;
        };
        if !word.last().is_some_and(|glyph| glyph.is('=')) {
            return false;
        }
        let text: String = word.iter().map(|glyph| glyph.c).collect();
        assignment(&text).is_some_and(|(_, value)| value.is_empty())
    }

    /// Returns whether `function name` was read.
    pub(super) fn names_function(&self) -> bool {
        let is_keyword = |word: &Word| word.text == "function" && !word.is_quoted;
        !self.has_word() && self.words.len() == 2 && is_keyword(&self.words[0])
    }

    /// Takes note of the compound commands that begin or end with the words of this command. Returns how many words
    /// are the shell's own, and the functions whose bodies end here.
    pub(super) fn follow_compounds(&mut self) -> (usize, Vec<Function>) {
        let mut ended = Vec::new();
        let mut reserved = 0;
        let reads_pipe = self.reads_pipe();
        for word in self.words.iter().take_while(|word| is_reserved(word)) {
            reserved += 1;
            let end = match word.text.as_str() {
                "{" => "}",
                "if" => "fi",
                "while" | "until" | "for" | "select" => "done",
                "case" => "esac",
                end => {
                    if let Some(compound) = self.open.pop_if(|compound| compound.end == end) {
                        ended.extend(compound.function);
                    }
                    continue;
                }
            };
            self.open.push(Compound {
                end,
                reads_pipe,
                function: None,
            });
            if matches!(word.text.as_str(), "for" | "select" | "case") {
                // What follows are its own words.
                break;
            }
        }
        (reserved, ended)
    }
}

/// Returns whether a word is one of the shell, after which a command may begin.
fn is_reserved(word: &Word) -> bool {
    const RESERVED: &[&str] = &[
        "!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "select",
        "then", "time", "until", "while",
    ];
    !word.is_quoted && RESERVED.contains(&word.text.as_str())
}
