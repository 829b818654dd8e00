//! Reads commands that hold other commands.

use super::Outcome;
use super::commands::End;
use super::odd::Quoted;
use super::tree::{Kind, Script, Word};
use super::words::{Parser, Use};

impl Parser {
    /// Reads a compound command, if one begins here.
    pub(super) fn compound(&mut self) -> Outcome<Option<Kind>> {
        if self.cursor.starts_with("((") {
            self.cursor.takes("((");
            let arithmetic = self.arithmetic("))")?;
            return Ok(Some(Kind::Arithmetic(arithmetic)));
        }
        if self.cursor.takes("(") {
            let script = self.block(End::Parenthesis)?;
            if !self.cursor.takes(")") {
                return self.fail("has `(` without `)`");
            }
            return Ok(Some(Kind::Subshell(script)));
        }
        let Some(word) = self.reserved() else {
            return Ok(None);
        };
        let kind = match word {
            "{" => {
                self.expects("{")?;
                if !matches!(self.cursor.peek(), Some(' ' | '\t' | '\n')) {
                    return self.fail("has `{` without a blank");
                }
                let script = self.block(End::Word(&["}"]))?;
                self.expects("}")?;
                Kind::Group(script)
            }
            "if" => self.branches()?,
            "while" | "until" => {
                self.expects(word)?;
                let condition = self.block(End::Word(&["do"]))?;
                Kind::While(condition, self.do_done()?)
            }
            "for" => self.each()?,
            "case" => self.case()?,
            "[[" => {
                self.expects("[[")?;
                Kind::Condition(self.condition()?)
            }
            _ => return self.fail(&format!("has `{word}` where it is not understood")),
        };
        Ok(Some(kind))
    }

    /// Reads a script that must hold a command.
    fn block(&mut self, end: End) -> Outcome<Script> {
        let script = self.script(end)?;
        if script.items.is_empty() {
            return self.fail("has a block without a command");
        }
        Ok(script)
    }

    fn do_done(&mut self) -> Outcome<Script> {
        self.expects("do")?;
        let body = self.block(End::Word(&["done"]))?;
        self.expects("done")?;
        Ok(body)
    }

    fn branches(&mut self) -> Outcome<Kind> {
        let mut branches = Vec::new();
        self.expects("if")?;
        loop {
            let condition = self.block(End::Word(&["then"]))?;
            self.expects("then")?;
            let body = self.block(End::Word(&["elif", "else", "fi"]))?;
            branches.push((Some(condition), body));
            match self.reserved() {
                Some("elif") => self.expects("elif")?,
                Some("else") => {
                    self.expects("else")?;
                    branches.push((None, self.block(End::Word(&["fi"]))?));
                    break;
                }
                _ => break,
            }
        }
        self.expects("fi")?;
        Ok(Kind::If(branches))
    }

    fn each(&mut self) -> Outcome<Kind> {
        self.expects("for")?;
        self.blanks()?;
        if self.cursor.takes("((") {
            let parts = vec![
                self.arithmetic(";")?,
                self.arithmetic(";")?,
                self.arithmetic("))")?,
            ];
            self.blanks()?;
            self.cursor.takes(";");
            self.empty_lines()?;
            let body = self.do_done()?;
            return Ok(Kind::Count { parts, body });
        }
        let name = self.name()?;
        self.empty_lines()?;
        let mut words = None;
        if self.reserved() == Some("in") {
            self.expects("in")?;
            words = Some(self.each_words()?);
        } else {
            self.cursor.takes(";");
        }
        self.empty_lines()?;
        let body = self.do_done()?;
        Ok(Kind::For { name, words, body })
    }

    fn each_words(&mut self) -> Outcome<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.blanks()?;
            match self.cursor.peek() {
                Some(';') if self.cursor.peek_at(1) != Some(';') => {
                    self.cursor.next(Quoted::Bare)?;
                    return Ok(words);
                }
                Some('\n' | '#') => return Ok(words),
                None | Some(';' | '&' | '|' | '<' | '>' | '(' | ')') => {
                    return self.fail("has `for` with more than words after `in`");
                }
                _ => {
                    let word = self.word(Use::Argument)?;
                    words.extend(self.multiplied(word)?);
                }
            }
        }
    }

    fn case(&mut self) -> Outcome<Kind> {
        self.expects("case")?;
        self.blanks()?;
        let word = self.word(Use::Value)?;
        if word.is_empty() {
            return self.fail("has `case` without a word");
        }
        self.empty_lines()?;
        self.expects("in")?;
        let mut arms = Vec::new();
        loop {
            self.empty_lines()?;
            if self.reserved() == Some("esac") {
                self.expects("esac")?;
                return Ok(Kind::Case { word, arms });
            }
            self.cursor.takes("(");
            arms.push(self.arm()?);
        }
    }

    fn arm(&mut self) -> Outcome<(Vec<Word>, Script)> {
        let mut patterns = Vec::new();
        loop {
            self.blanks()?;
            let pattern = self.word(Use::Value)?;
            if pattern.is_empty() {
                return self.fail("has a case without a pattern");
            }
            patterns.push(pattern);
            self.blanks()?;
            if self.cursor.takes(")") {
                break;
            }
            if !self.cursor.takes("|") {
                return self.fail("has a case without `)`");
            }
        }
        let body = self.script(End::Arm)?;
        if self.cursor.takes(";;") {
            if self.cursor.peek() == Some('&') {
                return self.fail("goes on to the next case with `;;&`");
            }
        } else if self.reserved() != Some("esac") {
            return self.fail("has a case without `;;`");
        }
        Ok((patterns, body))
    }
}
