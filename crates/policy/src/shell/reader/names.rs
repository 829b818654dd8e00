//! What a command means for those after it: variables, aliases and functions, and calls of them.

use std::slice;

use super::Reader;
use crate::shell::draft::{Compound, Draft, Function};
use crate::shell::printed::printed;
use crate::shell::{Command, TooComplex, scope};

/// What a command takes beside its words.
const COMMAND_STEPS: usize = 40;

/// Builtins that take assignments as arguments.
const DECLARING: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

impl Reader<'_> {
    /// Returns the name before `()`, and skips the `)`.
    pub(super) fn function_name(&mut self, draft: &mut Draft<'_>) -> Option<String> {
        let rest = &self.chars[self.at..];
        let spaces = rest.iter().take_while(|c| matches!(c, ' ' | '\t')).count();
        let (name, before) = draft.words.split_last()?;
        if name.is_quoted || rest.get(spaces) != Some(&')') || before.iter().any(|w| w.is_quoted) {
            return None;
        }
        let name = name.text.clone();
        self.at += spaces + 1;
        draft.words.pop();
        draft.words.retain(|word| word.text != "function");
        Some(name)
    }

    /// Reads `name=(…)` after its parenthesis.
    pub(super) fn array(&mut self, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        draft.end_word()?;
        let name = draft.words.pop().unwrap_or_default().text;
        let commands = self.commands(Some(')'))?;
        let values = commands.iter().flat_map(|command| command.words.clone());
        let values: Vec<String> = values.collect();
        self.scope.set(name.trim_end_matches(['=', '+']), &values);
        let substitutions = commands.into_iter().flat_map(|c| c.substitutions);
        draft.command.substitutions.extend(substitutions);
        Ok(())
    }

    /// Reads `function name {` from its brace on.
    pub(super) fn function_with_keyword(
        &mut self,
        draft: &mut Draft<'_>,
    ) -> Result<(), TooComplex> {
        self.at -= 1;
        let name = draft.words.pop().unwrap_or_default().text;
        draft.words.pop();
        self.begin_function(name, draft)
    }

    /// Takes note of where the body of a function begins.
    pub(super) fn begin_function(
        &mut self,
        name: String,
        draft: &mut Draft<'_>,
    ) -> Result<(), TooComplex> {
        if !draft.words.is_empty() {
            self.end_command(draft)?;
        }
        self.take_while(|c| c.is_whitespace());
        let (end, skipped) = match self.peek() {
            Some('{') => ("}", 1),
            Some('(') => (")", 0),
            _ => return Ok(()),
        };
        self.at += skipped;
        let body_start = self.at;
        draft.open.push(Compound {
            end,
            reads_pipe: draft.group_reads_pipe(),
            function: Some(Function { name, body_start }),
        });
        Ok(())
    }

    /// Ends a command: takes note of what it means for those after it.
    pub(super) fn end_command(&mut self, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        draft.end_word()?;
        if draft.is_empty() {
            return Ok(());
        }
        self.budget.spend(COMMAND_STEPS)?;
        let reads_pipe = draft.reads_pipe();
        let (reserved, ended) = draft.follow_compounds();
        for function in ended {
            self.end_function(function)?;
        }
        let words = std::mem::take(&mut draft.words);
        let mut command = std::mem::take(&mut draft.command);
        command.reads_pipe = reads_pipe;
        let may_be_alias = words.get(reserved).is_some_and(|word| !word.is_quoted);
        command.words = words.into_iter().map(|word| word.text).collect();
        if may_be_alias {
            self.expand_alias(&mut command, reserved)?;
        }
        self.take_note(&command, reserved)?;
        let called = self.called(&command, reserved)?;
        draft.done.push(command);
        draft.done.extend(called);
        Ok(())
    }

    /// Takes note of the variables, aliases and arguments a command sets.
    pub(super) fn take_note(
        &mut self,
        command: &Command,
        reserved: usize,
    ) -> Result<(), TooComplex> {
        let words = &command.words[reserved..];
        let is_assignment = |word: &&String| scope::assignment(word).is_some();
        let assigned = words.iter().take_while(is_assignment).count();
        for word in &words[..assigned] {
            self.scope.assign(word);
        }
        let loops = ["for", "select"].map(str::to_owned);
        if reserved > 0 && loops.contains(&command.words[reserved - 1]) {
            if let [name, keyword, values @ ..] = words
                && keyword == "in"
            {
                self.scope.set(name, values);
            }
            return Ok(());
        }
        let Some((program, args)) = words[assigned..].split_first() else {
            return Ok(());
        };
        match program.as_str() {
            "alias" => {
                let texts = args.iter().filter_map(|arg| arg.split_once('='));
                texts.for_each(|(name, text)| self.scope.set_alias(name, text.into()));
            }
            "set" => {
                let options = args.iter().take_while(|arg| arg.starts_with('-')).count();
                if args.len() > options || options > 0 && args[options - 1] == "--" {
                    self.scope.set_arguments("bash", &args[options..]);
                }
            }
            "read" => {
                if let (Some(name), Some(input)) = (args.last(), &command.input) {
                    self.scope.set(name, slice::from_ref(input));
                }
            }
            "printf" if args.first().is_some_and(|arg| arg == "-v") && args.len() > 2 => {
                let words = [&["printf".to_owned()], &args[2..]].concat();
                let inner = Command {
                    words,
                    ..Command::default()
                };
                let text = printed(&inner, self.budget)?;
                self.scope.set(&args[1], text.as_slice());
            }
            program if DECLARING.contains(&program) => {
                args.iter().for_each(|arg| {
                    self.scope.assign(arg);
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces an alias by what it stands for.
    pub(super) fn expand_alias(
        &mut self,
        command: &mut Command,
        reserved: usize,
    ) -> Result<(), TooComplex> {
        let name = command.words[reserved].clone();
        let Some(text) = self.scope.take_alias(&name) else {
            return Ok(());
        };
        let mut commands = self.inside(&text, |inner| inner.commands(None))?;
        self.scope.set_alias(&name, text);
        if let Some(last) = commands.pop() {
            command.words.splice(reserved..=reserved, last.words);
            command.substitutions.extend(last.substitutions);
            command.substitutions.extend(commands);
        }
        Ok(())
    }

    /// Returns what a function runs, when the command calls one.
    pub(super) fn called(
        &mut self,
        command: &Command,
        reserved: usize,
    ) -> Result<Vec<Command>, TooComplex> {
        let Some((name, arguments)) = command.words.get(reserved..).and_then(<[_]>::split_first)
        else {
            return Ok(Vec::new());
        };
        let Some(body) = self.scope.function(name) else {
            return Ok(Vec::new());
        };
        let outside = self.scope.copied(self.budget)?;
        self.scope.enter(name, arguments);
        let mut commands = self.inside(&body, |inner| inner.commands(None))?;
        self.scope = outside;
        for inner in &mut commands {
            inner.reads_pipe |= command.reads_pipe;
        }
        Ok(commands)
    }

    /// Takes note of a function whose body ends here.
    pub(super) fn end_function(&mut self, function: Function) -> Result<(), TooComplex> {
        let body = &self.chars[function.body_start.min(self.at)..self.at];
        self.budget.spend(body.len())?;
        let body: String = body.iter().collect();
        self.scope.set_function(&function.name, body.into());
        Ok(())
    }

    /// Ends functions whose end never came: they go on to the end of the text.
    pub(super) fn close(&mut self, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        for compound in std::mem::take(&mut draft.open) {
            if let Some(function) = compound.function {
                self.end_function(function)?;
            }
        }
        Ok(())
    }
}
