//! Reads words.

use super::cursor::Cursor;
use super::documents::Pending;
use super::odd::Quoted;
use super::tree::{Document, Part, Word};
use super::{DEPTH_MAX, Outcome};

/// What a word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// An argument: braces multiply it, stars stand for files.
    Argument,
    /// A value or a pattern: braces and stars are text.
    Value,
}

pub(super) struct Parser {
    pub(super) cursor: Cursor,
    pub(super) documents: Vec<Document>,
    /// Here-documents whose text begins after this line.
    pub(super) pending: Vec<Pending>,
    pub(super) depth: usize,
    /// Substitutions that this is inside of.
    pub(super) substitutions: usize,
    /// Text inside backticks or a here-document: no here-documents in it.
    pub(super) is_inner: bool,
}

impl Parser {
    pub(super) fn new(text: &str) -> Self {
        Self {
            cursor: Cursor::new(text),
            documents: Vec::new(),
            pending: Vec::new(),
            depth: 0,
            substitutions: 0,
            is_inner: false,
        }
    }

    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// A parser of text inside this one.
    pub(super) fn inner(&self, text: &str) -> Outcome<Self> {
        let mut inner = Self::new(text);
        inner.is_inner = true;
        inner.depth = self.depth;
        inner.substitutions = self.substitutions + 1;
        inner.deeper()?;
        Ok(inner)
    }

    pub(super) fn fail<T>(&self, why: &str) -> Outcome<T> {
        Err(self.cursor.not_understood(why))
    }

    pub(super) fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail("is nested too deeply");
        }
        Ok(())
    }

    /// Skips blanks, and backslashes at the end of a line that stand between words.
    pub(super) fn blanks(&mut self) -> Outcome<()> {
        loop {
            match self.cursor.peek() {
                Some(' ' | '\t') => {
                    self.cursor.next(Quoted::Bare)?;
                }
                Some('\\') if self.cursor.peek_at(1) == Some('\n') => self.continuation()?,
                _ => return Ok(()),
            }
        }
    }

    fn continuation(&mut self) -> Outcome<()> {
        if !self.pending.is_empty() {
            return self.fail("continues a line whose here-document has not begun");
        }
        let before = self.cursor.previous();
        let after = self.cursor.peek_at(2);
        let is_blank = |c: Option<char>| matches!(c, None | Some(' ' | '\t' | '\n'));
        if !is_blank(before) && !is_blank(after) {
            return self.fail("continues a line in the middle of a word");
        }
        self.cursor.takes("\\\n");
        Ok(())
    }

    /// Reads a word; an empty one where none begins.
    pub(super) fn word(&mut self, purpose: Use) -> Outcome<Word> {
        let mut word = Word::new();
        loop {
            let Some(c) = self.cursor.peek() else {
                return Ok(with_bracket(word));
            };
            match c {
                '<' | '>' if word.is_empty() && self.cursor.peek_at(1) == Some('(') => {
                    word.push(self.process()?);
                }
                '<' | '>' if self.cursor.peek_at(1) == Some('(') => {
                    return self.fail("has the output of a program inside a word");
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                    return Ok(with_bracket(word));
                }
                '\\' if self.cursor.peek_at(1) == Some('\n') => {
                    let is_blank = |c: char| matches!(c, ' ' | '\t');
                    if !self.cursor.peek_at(2).is_some_and(is_blank) {
                        return self.fail("continues a line in the middle of a word");
                    }
                    return Ok(word);
                }
                _ => self.part(&mut word, purpose)?,
            }
        }
    }

    fn part(&mut self, word: &mut Word, purpose: Use) -> Outcome<()> {
        let c = self.cursor.peek().unwrap_or_default();
        match c {
            '\'' => self.single_quotes(word),
            '"' => self.double_quotes(word),
            '\\' => {
                self.cursor.next(Quoted::Bare)?;
                match self.cursor.next(Quoted::Bare)? {
                    Some(c) => push(word, Part::Quoted(c.into())),
                    None => return self.fail("ends in a backslash"),
                }
                Ok(())
            }
            '$' => self.dollar(word, false),
            '`' => self.backticks(word, false),
            '~' => self.tilde(word),
            '*' | '?' | '[' if purpose == Use::Argument => {
                self.cursor.next(Quoted::Bare)?;
                word.push(Part::Glob(c));
                Ok(())
            }
            '{' | '}' | ',' if purpose == Use::Argument => {
                self.cursor.next(Quoted::Bare)?;
                word.push(Part::Brace(c));
                Ok(())
            }
            _ => {
                self.cursor.next(Quoted::Bare)?;
                push(word, Part::Bare(c.into()));
                Ok(())
            }
        }
    }

    fn tilde(&mut self, word: &mut Word) -> Outcome<()> {
        let before = self.cursor.previous();
        let after = self.cursor.peek_at(1);
        let ends = matches!(
            after,
            None | Some('/' | ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
        );
        if word.is_empty() && ends {
            word.push(Part::Home);
        } else if word.is_empty() {
            return self.fail("begins a word with `~`, which may be somebody's folder,");
        } else if matches!(before, Some('=' | ':')) {
            return self.fail("has `~` after `=` or `:`");
        } else {
            push(word, Part::Bare('~'.into()));
        }
        self.cursor.next(Quoted::Bare)?;
        Ok(())
    }

    fn single_quotes(&mut self, word: &mut Word) -> Outcome<()> {
        self.cursor.next(Quoted::Bare)?;
        let mut text = String::new();
        loop {
            match self.cursor.next(Quoted::SingleQuotes)? {
                Some('\'') => break,
                Some('\n') if !self.pending.is_empty() => {
                    return self.fail("has a quote over the beginning of a here-document");
                }
                Some(c) => text.push(c),
                None => return self.fail("has a quote without an end"),
            }
        }
        push(word, Part::Quoted(text));
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Outcome<()> {
        self.cursor.next(Quoted::Bare)?;
        push(word, Part::Quoted(String::new()));
        loop {
            match self.cursor.peek() {
                Some('"') => break,
                Some('$') => self.dollar(word, true)?,
                Some('`') => self.backticks(word, true)?,
                Some('\\') => {
                    self.cursor.next(Quoted::DoubleQuotes)?;
                    let text = match self.cursor.next(Quoted::DoubleQuotes)? {
                        // A name would go on in the next line.
                        Some('\n') if matches!(word.last(), Some(Part::Expansion { .. })) => {
                            return self.fail("continues a line in the middle of a name");
                        }
                        Some('\n') if self.pending.is_empty() => String::new(),
                        Some(c @ ('$' | '`' | '"' | '\\')) => c.into(),
                        Some('\n') | None => return self.fail("has a quote without an end"),
                        Some(c) => format!("\\{c}"),
                    };
                    push(word, Part::Quoted(text));
                }
                Some('\n') if !self.pending.is_empty() => {
                    return self.fail("has a quote over the beginning of a here-document");
                }
                Some(c) => {
                    self.cursor.next(Quoted::DoubleQuotes)?;
                    push(word, Part::Quoted(c.into()));
                }
                None => return self.fail("has a quote without an end"),
            }
        }
        self.cursor.next(Quoted::Bare)?;
        Ok(())
    }
}

/// Appends a part; text joins text of its kind.
pub(super) fn push(word: &mut Word, part: Part) {
    match (word.last_mut(), part) {
        (Some(Part::Bare(before)), Part::Bare(text))
        | (Some(Part::Quoted(before)), Part::Quoted(text)) => before.push_str(&text),
        (_, part) => word.push(part),
    }
}

/// A bracket alone is no pattern but a program.
fn with_bracket(word: Word) -> Word {
    match word.as_slice() {
        [Part::Glob('[')] => vec![Part::Bare("[".to_owned())],
        _ => word,
    }
}

/// Returns the text of a word that is wholly bare.
pub(super) fn bare(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [Part::Bare(text)] => Some(text),
        _ => None,
    }
}
