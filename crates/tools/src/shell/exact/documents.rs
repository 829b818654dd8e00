//! Reads here-documents.

use super::Outcome;
use super::odd::{self, Quoted};
use super::tree::{Document, Part, Word};
use super::words::{Parser, push};

/// A here-document whose text has not begun.
#[derive(Debug)]
pub(super) struct Pending {
    end: String,
    strips_tabs: bool,
    is_literal: bool,
}

impl Parser {
    /// Reads what follows `<<`, and returns the number of the document.
    pub(super) fn document(&mut self) -> Outcome<usize> {
        if self.is_inner {
            return self.fail("has a here-document inside backticks or another");
        }
        let strips_tabs = self.cursor.takes("-");
        while matches!(self.cursor.peek(), Some(' ' | '\t')) {
            self.cursor.next(Quoted::Bare)?;
        }
        let quote = self.cursor.peek().filter(|c| matches!(c, '\'' | '"'));
        if quote.is_some() {
            self.cursor.next(Quoted::Bare)?;
        }
        let mut end = String::new();
        while let Some(c) = self
            .cursor
            .peek()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            self.cursor.next(Quoted::Bare)?;
            end.push(c);
        }
        let is_closed = quote.is_none_or(|quote| self.cursor.takes(&quote.to_string()));
        let ends = matches!(
            self.cursor.peek(),
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')')
        );
        if end.is_empty() || !is_closed || !ends {
            return self.fail("has a here-document whose end is no plain word");
        }
        self.pending.push(Pending {
            end,
            strips_tabs,
            is_literal: quote.is_some(),
        });
        self.documents.push(Document::default());
        Ok(self.documents.len() - 1)
    }

    /// Reads the texts of the documents that were begun in the line before.
    pub(super) fn bodies(&mut self) -> Outcome<()> {
        let first = self.documents.len() - self.pending.len();
        for (number, pending) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let text = self.body(&pending)?;
            let parts = if pending.is_literal {
                vec![Part::Quoted(text)]
            } else {
                self.replaced(&text)?
            };
            // Documents inside the text are refused, so the numbers follow one another.
            self.documents[first + number].parts = parts;
        }
        Ok(())
    }

    fn body(&mut self, pending: &Pending) -> Outcome<String> {
        let mut body = String::new();
        loop {
            let start = self.cursor.at();
            let Some(raw) = self.cursor.line() else {
                return self.fail("has a here-document without an end");
            };
            let line = if pending.strips_tabs {
                raw.trim_start_matches('\t')
            } else {
                &raw
            };
            if line == pending.end {
                return Ok(body);
            }
            let odd = raw
                .chars()
                .position(|c| odd::why_odd(c, Quoted::Text).is_some());
            if let Some(at) = odd {
                self.cursor.back_to(start + at);
                self.cursor.next(Quoted::Text)?;
            }
            let backslashes = raw.len() - raw.trim_end_matches('\\').len();
            if !pending.is_literal && backslashes % 2 == 1 {
                self.cursor.back_to(start);
                return self.fail("joins lines of a here-document with a backslash");
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// Reads what a shell replaces in a text.
    fn replaced(&self, text: &str) -> Outcome<Word> {
        let mut inner = self.inner(text)?;
        let mut word = Word::new();
        loop {
            match inner.cursor.peek() {
                Some('$') => inner.dollar(&mut word, true)?,
                Some('`') => return inner.fail("has a backtick in a here-document"),
                Some('\\') => {
                    inner.cursor.next(Quoted::Text)?;
                    let text = match inner.cursor.next(Quoted::Text)? {
                        Some(c @ ('$' | '`' | '\\')) => c.into(),
                        Some(c) => format!("\\{c}"),
                        None => "\\".to_owned(),
                    };
                    push(&mut word, Part::Quoted(text));
                }
                Some(c) => {
                    inner.cursor.next(Quoted::Text)?;
                    push(&mut word, Part::Quoted(c.into()));
                }
                None => return Ok(word),
            }
        }
    }
}
