//! Reads a shell command line the way a careful person would: which programs does it run, with what words?
//!
//! Compound commands are taken apart into the simple commands inside them, in order, whatever decides between them; a
//! line no shell would accept is read as far as it goes, never refused. Quotes, escapes and the ways to disguise a word
//! (`r\m`, `r''m`, `{rm,-rf}`, `$(echo rm)`, `${x:-rm}`, `x=rm; $x`, functions, aliases, `base64 -d`) are undone. What
//! only a running shell can know stays as `$name` or `$()`.
//!
//! `reader` goes through the characters, `draft` is the command it is at, `scope` what names mean, `braces`,
//! `parameter` and `printed` are what words and programs make of text, `budget` is how much of all that there may be.

mod braces;
mod budget;
mod draft;
pub(crate) mod exact;
mod parameter;
mod printed;
mod reader;
mod scope;

#[cfg(test)]
mod tests;

pub(crate) use budget::{Budget, TooComplex};
use reader::Reader;
pub(crate) use scope::Scope;

/// Stands for what a substitution prints when we cannot tell.
const UNKNOWN: &str = "$()";

/// One program with its words, or the shell's own word for something.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) words: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// Commands run to make up the words.
    pub(crate) substitutions: Vec<Command>,
    /// What it reads from a here-document or a pipe, when that is plain to see.
    pub(crate) input: Option<String>,
    /// What it is given as `<(…)`, when that is plain to see.
    pub(crate) files: Vec<String>,
    pub(crate) reads_here_document: bool,
    /// Its input is what the command before it prints.
    pub(crate) reads_pipe: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) target: String,
    pub(crate) writes: bool,
}

/// Returns every simple command of a line.
pub(crate) fn parse(line: &str, budget: &Budget) -> Result<Vec<Command>, TooComplex> {
    Ok(parse_in(line, Scope::default(), budget)?.0)
}

/// Returns every simple command of a line that begins with these names known, and the names known after it.
pub(crate) fn parse_in(
    line: &str,
    scope: Scope,
    budget: &Budget,
) -> Result<(Vec<Command>, Scope), TooComplex> {
    let mut reader = Reader::new(line, scope, budget)?;
    let commands = reader.commands(None)?;
    Ok((commands, reader.into_scope()))
}

/// Returns whether a word is `name=value`, which sets a variable and runs nothing.
pub(crate) fn is_assignment(word: &str) -> bool {
    scope::assignment(word).is_some()
}
