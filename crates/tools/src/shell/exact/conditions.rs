//! Reads `[[ … ]]`.

use super::Outcome;
use super::odd::Quoted;
use super::tree::{Part, Word};
use super::words::{Parser, Use, bare};

impl Parser {
    /// Reads up to `]]`, which is taken. Operators are words like the others.
    pub(super) fn condition(&mut self) -> Outcome<Vec<Word>> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.blanks()?;
            if self.reserved() == Some("]]") && !words.is_empty() {
                self.expects("]]")?;
                return Ok(words);
            }
            if self.cursor.starts_with("<(") || self.cursor.starts_with(">(") {
                return self.fail("compares with what a program prints to a stream");
            }
            let operators = ["&&", "||", "(", ")", "<", ">"];
            if let Some(operator) = operators
                .into_iter()
                .find(|operator| self.cursor.takes(operator))
            {
                words.push(vec![Part::Bare(operator.to_owned())]);
                continue;
            }
            let is_pattern = words.last().and_then(bare) == Some("=~");
            let word = if is_pattern {
                self.expression()?
            } else {
                self.word(Use::Value)?
            };
            if word.is_empty() {
                return self.fail("has `[[` without `]]` in its line");
            }
            words.push(word);
        }
    }

    /// Reads a regular expression: a word in quotes or a variable, or plain signs up to a blank.
    fn expression(&mut self) -> Outcome<Word> {
        if matches!(self.cursor.peek(), Some('"' | '\'' | '$')) {
            return self.word(Use::Value);
        }
        let mut text = String::new();
        let mut open = 0;
        while let Some(c) = self
            .cursor
            .peek()
            .filter(|c| !matches!(c, ' ' | '\t' | '\n'))
        {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                '\\' => {
                    self.cursor.next(Quoted::Bare)?;
                    if !self.cursor.peek().is_some_and(|c| c.is_ascii_punctuation()) {
                        return self.fail("has a pattern that is not known");
                    }
                }
                '$' if !matches!(self.cursor.peek_at(1), Some(' ' | ')' | '|')) => {
                    return self.fail("has a pattern that is not known");
                }
                c if c.is_ascii_alphanumeric() || "_^.*+?|[]{}/:,@%=-$".contains(c) => {}
                _ => return self.fail("has a pattern that is not known"),
            }
            if open < 0 {
                return self.fail("has a pattern that is not known");
            }
            self.cursor.next(Quoted::Bare)?;
            text.push(c);
        }
        if open != 0 {
            return self.fail("has a pattern that is not known");
        }
        Ok(vec![Part::Quoted(text)])
    }
}
