//! Reads what begins with `$` or a backtick.

use super::Outcome;
use super::odd::Quoted;
use super::tree::{Expansion, Part, Word};
use super::words::{Parser, push};

/// What may stand in the word of `${name:-word}` besides letters and digits.
const PLAIN: &str = "_./:@%+,=- ";

/// What may stand in a pattern of `${name%pattern}`.
const PATTERN: &str = "_./:@+,=- *?";

impl Parser {
    pub(super) fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Outcome<()> {
        self.cursor.next(Quoted::Bare)?;
        let expansion = match self.cursor.peek() {
            Some('(') if self.cursor.peek_at(1) == Some('(') => {
                self.cursor.takes("((");
                let arithmetic = self.arithmetic("))")?;
                Expansion::Arithmetic(arithmetic)
            }
            Some('(') => {
                self.cursor.next(Quoted::Bare)?;
                let script = self.enclosed()?;
                word.push(Part::Substitution { script, is_quoted });
                return Ok(());
            }
            Some('{') => {
                self.cursor.next(Quoted::Bare)?;
                self.parameter()?
            }
            Some('\'') if !is_quoted => return self.c_string(word),
            Some('"') if !is_quoted => return self.fail("has a text for translation, `$\"…\"`,"),
            Some('[') => return self.fail("has `$[…]`"),
            Some('\\') => return self.fail("has a backslash after `$`"),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Expansion::Variable(self.name()?),
            Some(c) if is_special(c) => {
                self.cursor.next(Quoted::Bare)?;
                special(c)
            }
            Some(c) if !c.is_ascii() => return self.fail("has a strange character after `$`"),
            _ => {
                let text = "$".to_owned();
                let part = if is_quoted {
                    Part::Quoted(text)
                } else {
                    Part::Bare(text)
                };
                push(word, part);
                return Ok(());
            }
        };
        word.push(Part::Expansion {
            expansion,
            is_quoted,
        });
        Ok(())
    }

    /// Reads a script up to its closing parenthesis.
    pub(super) fn enclosed(&mut self) -> Outcome<super::tree::Script> {
        if !self.pending.is_empty() {
            return self.fail("has `$(` before its here-document has begun");
        }
        self.deeper()?;
        self.substitutions += 1;
        let documents = self.documents.len();
        let script = self.script(super::commands::End::Parenthesis)?;
        self.substitutions -= 1;
        // Bash writes out what it read here and reads that again, and loses what separates commands after a document.
        if self.documents.len() > documents && !script.is_simple() {
            return self.fail("has a here-document beside other commands in `$(…)`");
        }
        if !self.cursor.takes(")") {
            return self.fail("has `(` without `)`");
        }
        if !self.pending.is_empty() {
            return self.fail("closes `)` before its here-document has begun");
        }
        self.depth -= 1;
        Ok(script)
    }

    /// Reads `<(…)` or `>(…)`.
    pub(super) fn process(&mut self) -> Outcome<Part> {
        self.cursor.next(Quoted::Bare)?;
        self.cursor.next(Quoted::Bare)?;
        Ok(Part::Process(self.enclosed()?))
    }

    pub(super) fn backticks(&mut self, word: &mut Word, is_quoted: bool) -> Outcome<()> {
        if !self.pending.is_empty() {
            return self.fail("has a backtick before its here-document has begun");
        }
        self.cursor.next(Quoted::Bare)?;
        let mut text = String::new();
        loop {
            match self.cursor.next(Quoted::Bare)? {
                Some('`') => break,
                Some('\\') => return self.fail("has a backslash between backticks"),
                Some('"' | '\'') if is_quoted => {
                    return self.fail("has quotes between backticks between quotes");
                }
                Some(c) => text.push(c),
                None => return self.fail("has a backtick without another"),
            }
        }
        let mut inner = self.inner(&text)?;
        let script = inner.whole()?;
        word.push(Part::Substitution { script, is_quoted });
        Ok(())
    }

    fn c_string(&mut self, word: &mut Word) -> Outcome<()> {
        self.cursor.next(Quoted::Bare)?;
        let mut text = String::new();
        loop {
            let c = match self.cursor.next(Quoted::SingleQuotes)? {
                Some('\'') => break,
                Some('\\') => match self.cursor.next(Quoted::SingleQuotes)? {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(c @ ('\\' | '\'' | '"')) => c,
                    _ => return self.fail("has `$'…'` with characters given as numbers"),
                },
                Some('\n') | None => return self.fail("has a quote without an end"),
                Some(c) => c,
            };
            text.push(c);
        }
        push(word, Part::Quoted(text));
        Ok(())
    }

    /// Takes a name of a variable.
    pub(super) fn name(&mut self) -> Outcome<String> {
        let mut name = String::new();
        while let Some(c) = self.cursor.peek() {
            let is_letter = c.is_ascii_alphabetic() || c == '_';
            let is_digit = c.is_ascii_digit() && !name.is_empty();
            if !is_letter && !is_digit {
                break;
            }
            self.cursor.next(Quoted::Bare)?;
            name.push(c);
        }
        if name.is_empty() {
            return self.fail("has no name where a name must be");
        }
        Ok(name)
    }

    /// Reads what is between `${` and `}`.
    fn parameter(&mut self) -> Outcome<Expansion> {
        match self.cursor.peek() {
            Some('#') if self.cursor.peek_at(1) != Some('}') => {
                self.cursor.next(Quoted::Bare)?;
                self.name()?;
                let _is_list = self.cursor.takes("[@]") || self.cursor.takes("[*]");
                return self.closed(Expansion::Number);
            }
            Some('!') => return self.fail("names a variable by another, `${!…}`,"),
            Some(c) if is_special(c) => {
                self.cursor.next(Quoted::Bare)?;
                if self.cursor.peek() == Some('}') {
                    return self.closed(special(c));
                }
                if !c.is_ascii_digit() {
                    return self.fail("takes a part of its arguments");
                }
                return self.altered(None);
            }
            _ => {}
        }
        let name = self.name()?;
        match self.cursor.peek() {
            Some('}') => self.closed(Expansion::Variable(name)),
            Some('[') if self.cursor.takes("[@]") || self.cursor.takes("[*]") => {
                self.closed(Expansion::Several)
            }
            Some('[') => {
                self.cursor.next(Quoted::Bare)?;
                while self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.cursor.next(Quoted::Bare)?;
                }
                if !self.cursor.takes("]") {
                    return self.fail("computes which element of a list is meant");
                }
                self.closed(Expansion::Changed)
            }
            _ => self.altered(Some(name)),
        }
    }

    /// Reads what follows the name.
    fn altered(&mut self, name: Option<String>) -> Outcome<Expansion> {
        for operator in [":-", ":+", ":?", ":=", "-", "+", "?", "="] {
            if self.cursor.takes(operator) {
                let word = self.plain(PLAIN)?;
                let sets = operator.ends_with('=');
                if sets && name.is_none() {
                    return self.fail("sets an argument");
                }
                return self.closed(Expansion::Default { name, word, sets });
            }
        }
        for operator in ["%%", "%"] {
            if self.cursor.takes(operator) {
                self.plain(PATTERN)?;
                let shortened = name.map_or(Expansion::Changed, Expansion::Shortened);
                return self.closed(shortened);
            }
        }
        for operator in ["##", "#", "//", "/"] {
            if self.cursor.takes(operator) {
                self.plain(PATTERN)?;
                return self.closed(Expansion::Changed);
            }
        }
        for operator in ["^^", "^", ",,", ","] {
            if self.cursor.takes(operator) {
                return self.closed(Expansion::Changed);
            }
        }
        if self.cursor.takes(":") {
            let is_number = |c: char| c.is_ascii_digit() || c == ':';
            while self.cursor.peek().is_some_and(is_number) {
                self.cursor.next(Quoted::Bare)?;
            }
            return self.closed(Expansion::Changed);
        }
        self.fail("changes a value in a way that is not known")
    }

    fn closed(&mut self, expansion: Expansion) -> Outcome<Expansion> {
        if !self.cursor.takes("}") {
            return self.fail("changes a value in a way that is not known");
        }
        Ok(expansion)
    }

    /// Reads the word in `${name:-word}`: letters, a few signs, and simple expansions.
    fn plain(&mut self, signs: &str) -> Outcome<Word> {
        let mut word = Word::new();
        loop {
            match self.cursor.peek() {
                Some('$') => {
                    self.deeper()?;
                    self.dollar(&mut word, true)?;
                    self.depth -= 1;
                }
                Some(c) if c.is_ascii_alphanumeric() || signs.contains(c) => {
                    self.cursor.next(Quoted::Bare)?;
                    push(&mut word, Part::Quoted(c.into()));
                }
                _ => return Ok(word),
            }
        }
    }
}

fn is_special(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '?' | '#' | '$' | '!' | '-' | '@' | '*')
}

fn special(c: char) -> Expansion {
    match c {
        '@' | '*' => Expansion::Several,
        '?' | '#' | '$' | '!' => Expansion::Number,
        _ => Expansion::Positional,
    }
}
