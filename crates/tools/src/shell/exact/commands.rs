//! Reads lists, pipelines and simple commands.

use super::Outcome;
use super::odd::Quoted;
use super::tree::{
    Assignment, Item, Kind, Node, Part, Pipeline, Redirect, RedirectKind, Script, Value, Word,
};
use super::words::{Parser, Use, bare, push};

/// Where a script ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    /// `)`.
    Parenthesis,
    /// One of these words of the grammar.
    Word(&'static [&'static str]),
    /// `;;` or `esac`.
    Arm,
}

/// Words that mean something to the shell where a command begins.
pub(super) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

/// Built-in commands whose words may be assignments.
const DECLARING: &[&str] = &["export", "local", "readonly", "declare", "typeset"];

impl Parser {
    /// Reads everything there is.
    pub(super) fn whole(&mut self) -> Outcome<Script> {
        let script = self.script(End::Text)?;
        if self.cursor.peek().is_some() {
            return self.fail("has something that is no command");
        }
        if !self.pending.is_empty() {
            return self.fail("has a here-document without a text");
        }
        Ok(script)
    }

    pub(super) fn script(&mut self, end: End) -> Outcome<Script> {
        let mut script = Script::default();
        loop {
            self.empty_lines()?;
            if self.is_at(end) {
                return Ok(script);
            }
            let mut item = Item {
                first: self.pipeline()?,
                rest: Vec::new(),
                is_background: false,
            };
            self.blanks()?;
            while self.cursor.takes("&&") || self.cursor.takes("||") {
                self.empty_lines()?;
                item.rest.push(self.pipeline()?);
                self.blanks()?;
            }
            let goes_on = self.separator(&mut item)?;
            script.items.push(item);
            if !goes_on {
                return Ok(script);
            }
        }
    }

    /// Takes what separates commands. Returns whether another may follow.
    fn separator(&mut self, item: &mut Item) -> Outcome<bool> {
        match self.cursor.peek() {
            Some(';') if self.cursor.peek_at(1) == Some(';') => Ok(false),
            Some(';') => {
                self.cursor.next(Quoted::Bare)?;
                if self.cursor.peek() == Some('&') {
                    return self.fail("goes on to the next case with `;&`");
                }
                Ok(true)
            }
            Some('&') => {
                self.cursor.next(Quoted::Bare)?;
                item.is_background = true;
                // `a &; b` is an error to the shell.
                self.blanks()?;
                if matches!(self.cursor.peek(), Some(';' | '&' | '|')) {
                    return self.fail("has operators without a command between them");
                }
                Ok(true)
            }
            Some('\n') => Ok(true),
            None | Some(')') => Ok(false),
            _ => self.fail("has something that is no command"),
        }
    }

    /// Skips blanks, comments and ends of lines, and reads the here-documents that begin there.
    pub(super) fn empty_lines(&mut self) -> Outcome<()> {
        loop {
            self.blanks()?;
            self.comment()?;
            if self.cursor.peek() != Some('\n') {
                return Ok(());
            }
            self.cursor.next(Quoted::Bare)?;
            self.bodies()?;
        }
    }

    /// Skips a comment up to the end of its line.
    fn comment(&mut self) -> Outcome<()> {
        if self.cursor.peek() != Some('#') {
            return Ok(());
        }
        while self.cursor.peek().is_some_and(|c| c != '\n') {
            self.cursor.next(Quoted::Text)?;
        }
        Ok(())
    }

    fn is_at(&self, end: End) -> bool {
        match end {
            End::Text => self.cursor.peek().is_none(),
            End::Parenthesis => self.cursor.peek() == Some(')'),
            End::Word(words) => self.reserved().is_some_and(|word| words.contains(&word)),
            End::Arm => self.cursor.starts_with(";;") || self.reserved() == Some("esac"),
        }
    }

    /// Returns the word of the grammar that stands here, if one does.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        RESERVED.iter().copied().find(|word| {
            let after = self.cursor.peek_at(word.len());
            let ends = matches!(
                after,
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
            );
            self.cursor.starts_with(word) && ends
        })
    }

    /// Takes a word of the grammar.
    pub(super) fn expects(&mut self, word: &str) -> Outcome<()> {
        if self.reserved() != Some(word) {
            return self.fail(&format!("has no `{word}` where it must be"));
        }
        self.cursor.takes(word);
        Ok(())
    }

    fn pipeline(&mut self) -> Outcome<Pipeline> {
        if self.reserved() == Some("!") {
            self.expects("!")?;
            self.blanks()?;
        }
        if self.reserved() == Some("time") {
            self.expects("time")?;
            self.blanks()?;
            if self.cursor.takes("-p ") {
                self.blanks()?;
            }
            if matches!(self.cursor.peek(), Some('-')) || self.reserved() == Some("!") {
                return self.fail("has `time` with words that are not known");
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks()?;
            if self.cursor.starts_with("||") || self.cursor.peek() != Some('|') {
                return Ok(Pipeline { commands });
            }
            self.cursor.next(Quoted::Bare)?;
            self.cursor.takes("&");
            self.empty_lines()?;
            commands.push(self.command()?);
        }
    }

    fn command(&mut self) -> Outcome<Node> {
        self.deeper()?;
        let kind = self.compound()?;
        let node = match kind {
            Some(kind) => {
                let redirects = self.redirects()?;
                Node { kind, redirects }
            }
            None => self.simple()?,
        };
        self.depth -= 1;
        Ok(node)
    }

    fn redirects(&mut self) -> Outcome<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    fn simple(&mut self) -> Outcome<Node> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.cursor.peek() {
                Some('#') => {
                    self.comment()?;
                    break;
                }
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => {
                    return match (
                        words.as_slice(),
                        assignments.is_empty() && redirects.is_empty(),
                    ) {
                        ([name], true) => self.function(name),
                        _ => self.fail("has `(` where none can be"),
                    };
                }
                _ if words.is_empty() => {
                    if let Some(assignment) = self.assignment()? {
                        assignments.push(assignment);
                        continue;
                    }
                }
                _ => {}
            }
            let declares = words
                .first()
                .and_then(bare)
                .is_some_and(|word| DECLARING.contains(&word));
            words.extend(self.argument(declares)?);
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return self.fail("has an operator without a command");
        }
        let is_list = |assignment: &Assignment| matches!(assignment.value, Value::Array(_));
        if !words.is_empty() && assignments.iter().any(is_list) {
            return self.fail("sets a list for one command");
        }
        if words
            .first()
            .and_then(bare)
            .is_some_and(|word| RESERVED.contains(&word))
        {
            return self.fail("has a word of the shell's grammar where a program must be");
        }
        let kind = Kind::Simple { assignments, words };
        Ok(Node { kind, redirects })
    }

    fn argument(&mut self, declares: bool) -> Outcome<Vec<Word>> {
        if declares && let Some(name) = self.assigned_name() {
            self.cursor.takes(&name);
            let mut word = vec![Part::Bare(name)];
            let value = self.word(Use::Value)?;
            let has_brace = |part: &Part| matches!(part, Part::Bare(text) if text.contains('{'));
            if value.iter().any(has_brace) {
                return self.fail("declares a value with braces");
            }
            for part in value {
                push(&mut word, part);
            }
            return Ok(vec![word]);
        }
        let word = self.word(Use::Argument)?;
        if word.is_empty() {
            return self.fail("has something that is no word");
        }
        if matches!(self.cursor.peek(), Some('<' | '>')) {
            let is_stream = match word.last() {
                Some(Part::Brace('}')) => true,
                Some(Part::Bare(text)) => {
                    text.ends_with(|c: char| c.is_ascii_digit()) && word.len() == 1
                }
                _ => false,
            };
            let is_digits =
                bare(&word).is_some_and(|text| text.chars().all(|c| c.is_ascii_digit()));
            if matches!(word.last(), Some(Part::Brace('}'))) || (is_stream && is_digits) {
                return self.fail("names a stream in a way that is not known");
            }
        }
        self.multiplied(word)
    }

    /// Returns `name=` or `name+=` that stands here, if one does.
    fn assigned_name(&self) -> Option<String> {
        let mut name = String::new();
        while let Some(c) = self.cursor.peek_at(name.len()) {
            let is_letter = c.is_ascii_alphabetic() || c == '_';
            let is_digit = c.is_ascii_digit() && !name.is_empty();
            if !is_letter && !is_digit {
                break;
            }
            name.push(c);
        }
        let after = |ahead: usize| self.cursor.peek_at(name.len() + ahead);
        let operator = match (name.is_empty(), after(0), after(1)) {
            (false, Some('='), _) => "=",
            (false, Some('+'), Some('=')) => "+=",
            _ => return None,
        };
        Some(name + operator)
    }

    fn assignment(&mut self) -> Outcome<Option<Assignment>> {
        let Some(written) = self.assigned_name() else {
            return self.no_element().map(|()| None);
        };
        self.cursor.takes(&written);
        let appends = written.ends_with("+=");
        let name = written
            .trim_end_matches('=')
            .trim_end_matches('+')
            .to_owned();
        let value = match self.cursor.peek() {
            Some('(') => Value::Array(self.list()?),
            _ => Value::Word(self.word(Use::Value)?),
        };
        if self.cursor.peek() == Some('(') {
            return self.fail("has `(` where none can be");
        }
        Ok(Some(Assignment {
            name,
            appends,
            value,
        }))
    }

    /// Refuses `name[…]=…`.
    fn no_element(&self) -> Outcome<()> {
        let mut ahead = 0;
        while self
            .cursor
            .peek_at(ahead)
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            ahead += 1;
        }
        if ahead > 0 && self.cursor.peek_at(ahead) == Some('[') {
            return self.fail("sets an element of a list");
        }
        Ok(())
    }

    /// Reads the words of `name=(…)`.
    fn list(&mut self) -> Outcome<Vec<Word>> {
        // Bash writes out what it read of a substitution and reads that again, and ends a list at an escaped `;`.
        if self.substitutions > 0 {
            return self.fail("sets a list inside a substitution");
        }
        self.cursor.next(Quoted::Bare)?;
        let mut words = Vec::new();
        loop {
            self.blanks()?;
            match self.cursor.peek() {
                Some(')') => break,
                Some('\n') if self.pending.is_empty() => {
                    self.cursor.next(Quoted::Bare)?;
                }
                None | Some('#' | '\n' | '[' | ';' | '&' | '|' | '<' | '>' | '(') => {
                    return self.fail("has a list with more than words in it");
                }
                _ => words.extend(self.argument(false)?),
            }
        }
        self.cursor.next(Quoted::Bare)?;
        let is_element = |word: &Word| word.first() == Some(&Part::Glob('['));
        if words.iter().any(is_element) {
            return self.fail("has a list with numbered elements");
        }
        Ok(words)
    }

    fn function(&mut self, name: &Word) -> Outcome<Node> {
        let Some(name) = bare(name).map(str::to_owned) else {
            return self.fail("has `(` where none can be");
        };
        if !self.cursor.takes("()") {
            return self.fail("has `(` where none can be");
        }
        self.empty_lines()?;
        if !matches!(self.reserved(), Some("{")) && self.cursor.peek() != Some('(') {
            return self.fail("has a function without `{`");
        }
        let body = Box::new(self.command()?);
        Ok(Node {
            kind: Kind::Function { name, body },
            redirects: Vec::new(),
        })
    }

    fn redirect(&mut self) -> Outcome<Option<Redirect>> {
        let first = self.cursor.peek();
        let stream = first
            .filter(|c| c.is_ascii_digit() && matches!(self.cursor.peek_at(1), Some('<' | '>')));
        let ahead = usize::from(stream.is_some());
        let operator = [
            "<<<", "<<", "<&", "<>", ">>", ">|", ">&", "&>>", "&>", "<", ">",
        ]
        .into_iter()
        .find(|operator| {
            let mut chars = operator.chars().enumerate();
            chars.all(|(at, c)| self.cursor.peek_at(ahead + at) == Some(c))
        });
        let Some(operator) = operator else {
            return Ok(None);
        };
        let is_process = self.cursor.peek_at(1) == Some('(') && stream.is_none();
        if matches!(operator, "<" | ">") && is_process {
            return Ok(None);
        }
        if stream.is_some() {
            self.cursor.next(Quoted::Bare)?;
        }
        self.cursor.takes(operator);
        let kind = self.redirected(operator)?;
        Ok(Some(Redirect { kind, stream }))
    }

    fn redirected(&mut self, operator: &str) -> Outcome<RedirectKind> {
        if operator == "<<" {
            return Ok(RedirectKind::Document(self.document()?));
        }
        while matches!(self.cursor.peek(), Some(' ' | '\t')) {
            self.cursor.next(Quoted::Bare)?;
        }
        if matches!(operator, ">&" | "<&") {
            let target = bare_stream(&self.word(Use::Argument)?);
            return match (target, operator) {
                (true, ">&") => Ok(RedirectKind::Copy),
                (true, _) => Ok(RedirectKind::CopyInput),
                (false, _) => self.fail("leads a stream to what is no number"),
            };
        }
        if operator == "<>" {
            return self.fail("opens a file with `<>`");
        }
        let mut words = {
            let word = self.word(Use::Argument)?;
            self.multiplied(word)?
        };
        let is_glob = |part: &Part| matches!(part, Part::Glob(_));
        let word = match words.pop() {
            Some(word) if words.is_empty() && !word.is_empty() => word,
            _ => return self.fail("leads a stream to what is not one word"),
        };
        if operator == "<<<" {
            return Ok(RedirectKind::Text(word));
        }
        if word.iter().any(is_glob) {
            return self.fail("leads a stream to a name with stars");
        }
        Ok(match operator {
            "<" => RedirectKind::Read(word),
            _ => RedirectKind::Write(word),
        })
    }
}

/// Returns whether a word is a stream's number, or `-`.
fn bare_stream(word: &Word) -> bool {
    bare(word).is_some_and(|text| {
        text == "-" || (text.len() == 1 && text.chars().all(|c| c.is_ascii_digit()))
    })
}
