//! Judges shell commands before they run: free, to be asked for, or forbidden whoever asks.
//!
//! Pure: the same line always gets the same verdict. The line is read by `shell`; `wrappers` finds the program that
//! `sudo`, `env` or `xargs` would run; `rules` holds one row per danger, which asks its questions of a `call`; `places`
//! knows which paths matter; `read_only` recognises the few commands that surely change nothing. `script` judges Python.
//!
//! A net for mistakes and for prompts gone astray. It does not contain a program that means harm.

use hermes_core::Consent;

use crate::shell::{self, Command};

mod call;
mod places;
mod read_only;
mod rules;
mod script;
mod wrappers;

pub use read_only::is_read_only;
pub use script::consent_for_script;

/// Longer lines are no longer something a person could judge; they belong in a script file.
pub const LINE_BYTES_MAX: usize = 100_000;

/// `bash -c "bash -c …"` and the like, inside each other.
const NESTING_MAX: usize = 8;

/// Functions of a line that are looked at for one that never ends.
const FUNCTIONS_MAX: usize = 64;

/// How bad a command is, and why. The worst of a line decides.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Free,
    Ask(String),
    Forbid(String),
}

impl Verdict {
    fn ask(reason: &str) -> Self {
        Self::Ask(reason.to_owned())
    }

    fn forbid(reason: &str) -> Self {
        Self::Forbid(reason.to_owned())
    }

    /// Keeps the worse of two verdicts; of equals, the first.
    fn or(self, other: Self) -> Self {
        let rank = |verdict: &Self| match verdict {
            Self::Free => 0,
            Self::Ask(_) => 1,
            Self::Forbid(_) => 2,
        };
        if rank(&other) > rank(&self) {
            other
        } else {
            self
        }
    }
}

/// Says what a person must agree to before this line runs in a shell.
pub fn consent_for(line: &str) -> Consent {
    match judge(line, 0) {
        Verdict::Free => Consent::NotNeeded,
        Verdict::Ask(reason) => Consent::Needed { reason },
        Verdict::Forbid(reason) => Consent::Forbidden { reason },
    }
}

fn judge(line: &str, nesting: usize) -> Verdict {
    if line.len() > LINE_BYTES_MAX || nesting > NESTING_MAX {
        return Verdict::forbid("is too long or too deeply nested to be judged");
    }
    let Ok(commands) = shell::parse(line) else {
        return Verdict::forbid("is too deeply nested to be judged");
    };
    let verdict = match is_fork_bomb(line) {
        true => Verdict::forbid("starts copies of itself without end"),
        false => Verdict::Free,
    };
    verdict
        .or(judge_all(&commands, nesting))
        .or(rules::judge_sql(line))
}

fn judge_all(commands: &[Command], nesting: usize) -> Verdict {
    let each = commands
        .iter()
        .map(|command| judge_command(command, nesting))
        .fold(Verdict::Free, Verdict::or);
    each.or(rules::judge_together(commands))
}

fn judge_command(command: &Command, nesting: usize) -> Verdict {
    let written = command.redirects.iter().filter(|redirect| redirect.writes);
    let mut verdict = written
        .map(|redirect| rules::judge_written(&redirect.target))
        .fold(Verdict::Free, Verdict::or)
        .or(judge_all(&command.substitutions, nesting));
    for call in wrappers::unwrap(command) {
        verdict = verdict.or(rules::judge_call(&call));
        for line in rules::lines_run_by(&call) {
            verdict = verdict.or(judge(&line, nesting + 1));
        }
    }
    verdict
}

/// Finds a function that pipes itself into itself: `f(){ f|f& };f`.
fn is_fork_bomb(line: &str) -> bool {
    let squeezed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let mut functions = squeezed.match_indices("(){").take(FUNCTIONS_MAX);
    functions.any(|(at, _)| {
        let is_name = |c: &char| !matches!(c, ';' | '&' | '|' | '(' | ')' | '{' | '}');
        let name: String = squeezed[..at].chars().rev().take_while(is_name).collect();
        let name: String = name.chars().rev().collect();
        !name.is_empty() && squeezed[at..].contains(&format!("{name}|{name}"))
    })
}

/// Returns the name of the program that runs last: the one whose exit code the line returns.
pub(crate) fn last_program(line: &str) -> Option<String> {
    let commands = shell::parse(line).ok()?;
    let calls = wrappers::unwrap(commands.last()?);
    calls.last().map(|call| call.program.to_owned())
}
