//! Goes through a line character by character. Its methods are in three more files: `expansion` for what is inside words,
//! `input` for redirections and here-documents, `names` for variables, aliases and functions.

mod expansion;
mod input;
mod names;

use super::draft::{Draft, Quoting};
use super::{Budget, Command, Scope, TooComplex};
use input::{Body, Pending};

/// Substitutions and parentheses inside each other. People need three; more is meant to confuse.
const DEPTH_MAX: usize = 32;

/// What a text takes beside its characters, with the arguments it may be given.
const TEXT_STEPS: usize = 100;

pub(super) struct Reader<'a> {
    budget: &'a Budget,
    chars: Vec<char>,
    at: usize,
    scope: Scope,
    depth: usize,
    /// Here-documents whose text is still to come, at the end of this line.
    pending: Vec<Pending>,
    bodies: Vec<Body>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &str, scope: Scope, budget: &'a Budget) -> Result<Self, TooComplex> {
        budget.spend(text.len() + TEXT_STEPS)?;
        Ok(Self {
            budget,
            chars: text.chars().filter_map(plain).collect(),
            at: 0,
            scope,
            depth: 0,
            pending: Vec::new(),
            bodies: Vec::new(),
        })
    }

    pub(super) fn into_scope(self) -> Scope {
        self.scope
    }

    /// Lets a reader of its own go through another text, with the names and the budget of this one.
    fn inside<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<T, TooComplex>,
    ) -> Result<T, TooComplex> {
        let mut inner = Self::new(text, std::mem::take(&mut self.scope), self.budget)?;
        inner.depth = self.depth;
        let read = read(&mut inner)?;
        self.scope = inner.scope;
        Ok(read)
    }

    /// Reads commands up to the end, or to the closing character.
    pub(super) fn commands(&mut self, end: Option<char>) -> Result<Vec<Command>, TooComplex> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooComplex);
        }
        let mut draft = Draft::new(self.budget);
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => {
                    draft.end_word()?;
                    if !draft.is_in_case() {
                        break;
                    }
                    self.end_command(&mut draft)?;
                }
                ' ' | '\t' | '\r' => draft.end_word()?,
                '\n' => {
                    self.end_command(&mut draft)?;
                    self.read_here_documents()?;
                }
                ';' | ')' => self.end_command(&mut draft)?,
                '&' if self.peek() == Some('>') => draft.end_word()?,
                '&' => {
                    self.skip_if('&');
                    self.end_command(&mut draft)?;
                }
                '|' => {
                    self.end_command(&mut draft)?;
                    draft.command.reads_pipe = !self.skip_if('|');
                    self.skip_if('&');
                }
                '(' if draft.begins_array() => self.array(&mut draft)?,
                '(' => self.parenthesis(&mut draft)?,
                '{' if draft.names_function() => self.function_with_keyword(&mut draft)?,
                '#' if !draft.has_word() => self.skip_comment(),
                '<' | '>' => self.redirect(c, &mut draft)?,
                c => self.part_of_word(c, &mut draft)?,
            }
        }
        self.end_command(&mut draft)?;
        self.close(&mut draft)?;
        self.depth -= 1;
        self.fill_in_input(draft)
    }

    /// Reads a subshell, a function's `()` or an arithmetic command.
    fn parenthesis(&mut self, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        if self.peek() == Some('(') && !draft.has_word() && self.arithmetic(draft)? {
            return Ok(());
        }
        draft.end_word()?;
        if let Some(name) = self.function_name(draft) {
            return self.begin_function(name, draft);
        }
        let reads_pipe = draft.reads_pipe();
        if !draft.is_empty() {
            self.end_command(draft)?;
        }
        let mut commands = self.commands(Some(')'))?;
        for command in &mut commands {
            command.reads_pipe |= reads_pipe;
        }
        let ended = draft.open.pop_if(|compound| compound.end == ")");
        if let Some(function) = ended.and_then(|compound| compound.function) {
            self.end_function(function)?;
        }
        draft.command.reads_pipe = false;
        draft.done.append(&mut commands);
        Ok(())
    }

    fn part_of_word(&mut self, c: char, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        match c {
            '\\' => match self.next() {
                None | Some('\n') => {}
                Some(escaped) => draft.push_quoted(escaped.encode_utf8(&mut [0; 4])),
            },
            '\'' => {
                let text = self.take_while(|c| c != '\'');
                self.next();
                draft.push_quoted(&text);
            }
            '"' => self.double_quoted(draft, Some('"'))?,
            '$' => self.expansion(draft, Quoting::None)?,
            '`' => self.backticks(draft, Quoting::None)?,
            c => draft.push(c),
        }
        Ok(())
    }

    fn skip_comment(&mut self) {
        self.take_while(|c| c != '\n');
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip_if(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> String {
        let rest = &self.chars[self.at..];
        let text: String = rest.iter().copied().take_while(|c| is_wanted(*c)).collect();
        self.at += text.chars().count();
        text
    }
}

/// Takes away what only looks different: control characters, and letters of double width.
fn plain(c: char) -> Option<char> {
    match c {
        '\n' | '\t' | '\r' => Some(c),
        '\u{3000}' | '\u{a0}' => Some(' '),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        c if c.is_control() => None,
        c => Some(c),
    }
}
