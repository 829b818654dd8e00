//! What `$`, backticks and double quotes make of text.

use std::rc::Rc;

use super::Reader;
use super::input::Body;
use crate::shell::draft::{Draft, Quoting};
use crate::shell::parameter::{self, Parameter};
use crate::shell::printed::{all_printed, escaped};
use crate::shell::{Command, TooComplex, UNKNOWN};

impl Reader<'_> {
    /// Reads `((…))` after its first parenthesis, if that is what it is. Only the expansions in it run anything.
    pub(super) fn arithmetic(&mut self, draft: &mut Draft<'_>) -> Result<bool, TooComplex> {
        let mut depth = 0;
        let rest = &self.chars[self.at..];
        self.budget.spend(rest.len())?;
        let inner_end = rest.iter().enumerate().find_map(|(at, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(self.at + at)
        });
        let Some(inner_end) = inner_end.filter(|end| self.chars.get(end + 1) == Some(&')')) else {
            return Ok(false);
        };
        let inside: String = self.chars[self.at + 1..inner_end].iter().collect();
        let body = self.expanded_text(&inside)?;
        draft.command.substitutions.extend(body.substitutions);
        if inside.contains([';', '\n']) {
            // No arithmetic: shells differ in what they make of it.
            let commands = self.inside(&inside, |inner| inner.commands(None))?;
            draft.command.substitutions.extend(commands);
        }
        self.at = inner_end + 2;
        Ok(true)
    }

    /// Undoes the expansions in text that is read like a quoted string.
    pub(super) fn expanded_text(&mut self, text: &str) -> Result<Body, TooComplex> {
        let mut draft = self.inside(text, |inner| {
            let mut draft = Draft::new(inner.budget);
            inner.double_quoted(&mut draft, None)?;
            draft.end_word()?;
            Ok(draft)
        })?;
        Ok(Body {
            text: draft.words.pop().unwrap_or_default().text,
            substitutions: draft.command.substitutions,
        })
    }

    pub(super) fn double_quoted(
        &mut self,
        draft: &mut Draft<'_>,
        end: Option<char>,
    ) -> Result<(), TooComplex> {
        draft.push_quoted("");
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => break,
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        draft.push_quoted(c.encode_utf8(&mut [0; 4]));
                    }
                    Some(c) => draft.push_quoted(&format!("\\{c}")),
                },
                '$' => self.expansion(draft, Quoting::Double)?,
                '`' => self.backticks(draft, Quoting::Double)?,
                c => draft.push_quoted(c.encode_utf8(&mut [0; 4])),
            }
        }
        Ok(())
    }

    /// Reads what follows a `$`.
    pub(super) fn expansion(
        &mut self,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                if self.peek() == Some('(') && self.arithmetic(draft)? {
                    return draft.expand(UNKNOWN, quoting);
                }
                let commands = self.substitution()?;
                self.substitute(commands, draft, quoting)
            }
            Some('{') => {
                self.at += 1;
                let start = self.at;
                let text = self.take_braced(quoting);
                self.read_both_ways(start, &text, draft, quoting)?;
                self.parameter(&text, draft, quoting)
            }
            Some('\'') if quoting == Quoting::None => {
                self.at += 1;
                let text = self.escaped_string();
                draft.push_quoted(&text);
                Ok(())
            }
            // `$"…"` is a string to translate: the quote that follows reads it.
            Some('"') if quoting == Quoting::None => Ok(()),
            Some(c) if is_special(c) => {
                self.at += 1;
                self.variable(c.encode_utf8(&mut [0; 4]), draft, quoting)
            }
            Some(c) if is_name(c) => {
                let name = self.take_while(is_name);
                self.variable(&name, draft, quoting)
            }
            _ => {
                draft.push('$');
                Ok(())
            }
        }
    }

    /// Reads commands up to `)`. Here-documents that began outside have their text outside.
    pub(super) fn substitution(&mut self) -> Result<Vec<Command>, TooComplex> {
        let outside = std::mem::take(&mut self.pending);
        let commands = self.commands(Some(')'))?;
        self.pending = outside;
        Ok(commands)
    }

    pub(super) fn variable(
        &mut self,
        name: &str,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let values = match (name, self.scope.variable(name)) {
            (_, Some(values)) => values,
            ("IFS", None) => [" ".to_owned()].into(),
            ("HOME", None) => ["~".to_owned()].into(),
            // A line has no arguments unless it is given some.
            ("@" | "*" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9", None) => [].into(),
            (name, None) => [format!("${name}")].into(),
        };
        draft.expand_each(&values, quoting)
    }

    /// Reads the inside of `${…}`.
    pub(super) fn parameter(
        &mut self,
        text: &str,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let (is_indirect, text) = match text.strip_prefix('!') {
            Some(rest) if rest.starts_with(is_name) => (true, rest),
            _ => (false, text),
        };
        let end = match text.chars().next() {
            Some(c) if is_special(c) && !c.is_ascii_digit() => c.len_utf8(),
            _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
        };
        let (name, operation) = text.split_at(end);
        if let Some(values) = self.items(name, operation) {
            return draft.expand_each(&values, quoting);
        }
        if name == "IFS" || (operation.is_empty() && !is_indirect) {
            return self.variable(name, draft, quoting);
        }
        let mut value = self.scope.variable(name).map(|values| values.join(" "));
        if is_indirect {
            let names = self.scope.variable(&value.unwrap_or_default());
            value = names.map(|values| values.join(" "));
        }
        self.budget.spend(value.as_ref().map_or(0, String::len))?;
        match parameter::apply(value.as_deref(), operation) {
            Parameter::Value(value) => draft.expand(&value, quoting),
            Parameter::Instead(text) => {
                let commands = self.inside(text, |inner| inner.commands(None))?;
                let words: Vec<&str> = commands
                    .iter()
                    .flat_map(|command| command.words.iter().map(String::as_str))
                    .collect();
                draft.expand(&words.join(" "), quoting)?;
                let substitutions = commands.into_iter().flat_map(|c| c.substitutions);
                draft.command.substitutions.extend(substitutions);
                Ok(())
            }
            Parameter::Unknown => {
                // `${x[$(reboot)]}`: what is in it may run.
                let body = self.expanded_text(operation)?;
                draft.command.substitutions.extend(body.substitutions);
                draft.expand(&format!("${name}"), quoting)
            }
        }
    }

    /// Returns what `${name[index]}` stands for.
    pub(super) fn items(&self, name: &str, operation: &str) -> Option<Rc<[String]>> {
        let index = operation.strip_prefix('[')?.strip_suffix(']')?;
        let values = self.scope.variable(name)?;
        match index {
            "@" | "*" => Some(values),
            index => {
                let value = values.get(index.parse::<usize>().ok()?)?;
                Some([value.clone()].into())
            }
        }
    }

    pub(super) fn backticks(
        &mut self,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let mut inside = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => {
                    inside.extend(self.next());
                }
                c => inside.push(c),
            }
        }
        let commands = self.inside(&inside, |inner| inner.commands(None))?;
        self.substitute(commands, draft, quoting)
    }

    pub(super) fn substitute(
        &mut self,
        commands: Vec<Command>,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let value = all_printed(&commands, self.budget)?.unwrap_or_else(|| UNKNOWN.to_owned());
        draft.command.substitutions.extend(commands);
        draft.expand(value.trim_end_matches('\n'), quoting)
    }

    /// Takes the inside of `${…}` and its closing brace.
    pub(super) fn take_braced(&mut self, quoting: Quoting) -> String {
        let mut text = String::new();
        let mut ends = vec!['}'];
        while let Some(c) = self.next() {
            let end = ends[ends.len() - 1];
            match c {
                c if c == end => {
                    ends.pop();
                    if ends.is_empty() {
                        break;
                    }
                }
                '\\' => {
                    text.push(c);
                    text.extend(self.next());
                    continue;
                }
                '\'' if end != '"' && (ends.len() > 1 || quoting == Quoting::None) => {
                    text.push(c);
                    text.push_str(&self.take_while(|c| c != '\''));
                    text.extend(self.next());
                    continue;
                }
                '"' => ends.push('"'),
                '{' if end != '"' || text.ends_with('$') => ends.push('}'),
                '(' if end != '"' || text.ends_with('$') => ends.push(')'),
                _ => {}
            }
            text.push(c);
        }
        text
    }

    /// Where quotes inside `${…}` leave its end in doubt, what follows the first brace is read as well.
    pub(super) fn read_both_ways(
        &mut self,
        start: usize,
        text: &str,
        draft: &mut Draft<'_>,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let Some(first_end) = text.find('}').filter(|_| text.contains(['\'', '"'])) else {
            return Ok(());
        };
        let after = start + text[..first_end].chars().count() + 1;
        let open = if quoting == Quoting::Double { "\"" } else { "" };
        let rest: String = self.chars[after..].iter().collect();
        let commands = self.inside(&format!("{open}{rest}"), |inner| inner.commands(None))?;
        draft.command.substitutions.extend(commands);
        Ok(())
    }

    /// Reads a `$'…'` string up to its closing quote.
    pub(super) fn escaped_string(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\'' => break,
                '\\' => {
                    const ESCAPE_CHARS_MAX: usize = 9;
                    let end = self.chars.len().min(self.at + ESCAPE_CHARS_MAX);
                    let mut rest = self.chars[self.at..end].iter().copied().peekable();
                    text.extend(escaped(&mut rest));
                    self.at = end - rest.count();
                }
                c => text.push(c),
            }
        }
        text
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns whether a character is a whole name by itself.
fn is_special(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '@' | '*' | '?' | '!' | '#' | '$' | '-')
}
