//! Reads expressions over whole numbers.

use super::Outcome;
use super::odd::Quoted;
use super::tree::{Arithmetic, ArithmeticName};
use super::words::Parser;

/// Operators between two values. Division is apart: by nothing it is an error, which skips the rest of a line.
const BETWEEN: &[&str] = &[
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "<", ">", "&", "|", "^",
];

/// Operators that set the name before them.
const SETTING: &[&str] = &["+=", "-=", "*="];

impl Parser {
    /// Reads an expression that cannot fail up to this end, which is taken: `))`, or `;`.
    pub(super) fn arithmetic(&mut self, end: &str) -> Outcome<Arithmetic> {
        let mut arithmetic = Arithmetic::default();
        self.blanks_in_arithmetic()?;
        if end == ";" && self.cursor.takes(end) {
            return Ok(arithmetic);
        }
        self.setting(&mut arithmetic)?;
        let mut open = 0;
        loop {
            self.value(&mut arithmetic, &mut open)?;
            while open > 0 && self.cursor.takes(")") {
                open -= 1;
                self.blanks_in_arithmetic()?;
            }
            if open == 0 && self.cursor.takes(end) {
                return Ok(arithmetic);
            }
            self.operator()?;
        }
    }

    /// Takes `name =`, `name +=` and the like where an expression begins.
    fn setting(&mut self, arithmetic: &mut Arithmetic) -> Outcome<()> {
        let at = self.cursor.at();
        if !self
            .cursor
            .peek()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        {
            return Ok(());
        }
        let name = self.name()?;
        let used = self.arithmetic_name(name)?;
        self.blanks_in_arithmetic()?;
        if used.is_set {
            self.cursor.takes("=");
        } else if !SETTING.iter().any(|operator| self.cursor.takes(operator)) {
            self.cursor.back_to(at);
            return Ok(());
        }
        arithmetic.names.push(used);
        self.blanks_in_arithmetic()
    }

    /// Takes signs, parentheses and a value.
    fn value(&mut self, arithmetic: &mut Arithmetic, open: &mut usize) -> Outcome<()> {
        loop {
            self.blanks_in_arithmetic()?;
            match self.cursor.peek() {
                Some('(') => *open += 1,
                Some('!') if self.cursor.peek_at(1) != Some('=') => {}
                Some('-') if self.cursor.peek_at(1).is_some_and(|c| c.is_ascii_digit()) => {}
                _ => break,
            }
            self.cursor.next(Quoted::Bare)?;
        }
        match self.cursor.peek() {
            Some(c) if c.is_ascii_digit() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name()?;
                let used = self.arithmetic_name(name)?;
                if used.is_set {
                    return self.fail("sets a name in the middle of an expression");
                }
                arithmetic.names.push(used);
                let _is_counted = self.cursor.takes("++") || self.cursor.takes("--");
            }
            Some('$') => self.dollar_in_arithmetic(arithmetic)?,
            _ => return self.fail("computes with what is no number and no plain name"),
        }
        self.blanks_in_arithmetic()
    }

    fn operator(&mut self) -> Outcome<()> {
        if self.cursor.takes("/") || self.cursor.takes("%") {
            self.blanks_in_arithmetic()?;
            let divisor = self.cursor.peek();
            return if divisor.is_some_and(|c| c.is_ascii_digit() && c != '0') {
                Ok(())
            } else {
                self.fail("divides by what may be nothing")
            };
        }
        if BETWEEN.iter().any(|operator| self.cursor.takes(operator))
            && self.cursor.peek() != Some('=')
        {
            Ok(())
        } else {
            self.fail("computes in a way that is not known")
        }
    }

    fn blanks_in_arithmetic(&mut self) -> Outcome<()> {
        while self.cursor.peek() == Some(' ') {
            self.cursor.next(Quoted::Bare)?;
        }
        Ok(())
    }

    fn number(&mut self) -> Outcome<()> {
        if self.cursor.peek() == Some('0')
            && self.cursor.peek_at(1).is_some_and(|c| c.is_ascii_digit())
        {
            return self.fail("computes with a number in another base");
        }
        while self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.cursor.next(Quoted::Bare)?;
        }
        let follows = self.cursor.peek();
        if follows
            .is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '#' | '@' | '[' | '$'))
        {
            return self.fail("computes with a number in another base");
        }
        Ok(())
    }

    fn arithmetic_name(&mut self, name: String) -> Outcome<ArithmeticName> {
        if matches!(self.cursor.peek(), Some('[' | '$' | '#' | '@')) {
            return self.fail("computes with an element of a list");
        }
        let at = self.cursor.at();
        while self.cursor.peek() == Some(' ') {
            self.cursor.next(Quoted::Bare)?;
        }
        let is_set = self.cursor.peek() == Some('=') && self.cursor.peek_at(1) != Some('=');
        self.cursor.back_to(at);
        Ok(ArithmeticName { name, is_set })
    }

    /// Takes `$name`, `${name}`, `$#`, `$?` and `${#name}`.
    fn dollar_in_arithmetic(&mut self, arithmetic: &mut Arithmetic) -> Outcome<()> {
        self.cursor.next(Quoted::Bare)?;
        if self.cursor.takes("#") || self.cursor.takes("?") {
            return self.ends_in_arithmetic();
        }
        let has_brace = self.cursor.takes("{");
        let is_length = has_brace && self.cursor.takes("#");
        if !self
            .cursor
            .peek()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        {
            return self.fail("computes with what is no number and no plain name");
        }
        let name = self.name()?;
        if is_length {
            let _is_list = self.cursor.takes("[@]") || self.cursor.takes("[*]");
        } else {
            arithmetic.names.push(ArithmeticName {
                name,
                is_set: false,
            });
        }
        if has_brace && !self.cursor.takes("}") {
            return self.fail("computes with what is no number and no plain name");
        }
        self.ends_in_arithmetic()
    }

    /// What a value is joined to would make it another number, or a name.
    fn ends_in_arithmetic(&mut self) -> Outcome<()> {
        let joined =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '[' | '$' | '@');
        if self.cursor.peek().is_some_and(joined) {
            return self.fail("computes with joined values");
        }
        Ok(())
    }
}
