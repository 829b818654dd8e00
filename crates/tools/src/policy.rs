//! Judges shell commands before they run: free, to be asked for, or forbidden whoever asks.
//!
//! Pure: the same line always gets the same verdict. The line is read by `shell`; `wrappers` finds the program that
//! `sudo`, `env` or `xargs` would run; `rules` holds one row per danger, which asks its `questions` of a `call`; `runs`
//! finds the lines that a program will run in turn; `places` knows which paths matter; `read_only` recognises the few
//! commands that surely change nothing. `script` judges Python. What the user refused or allowed for good is in
//! [`CommandLists`].
//!
//! A net for mistakes and for prompts gone astray. It does not contain a program that means harm.

use hermes_core::Consent;

use crate::shell::{self, Command, Scope};

mod call;
mod lists;
mod places;
mod questions;
mod read_only;
mod rules;
mod runs;
mod script;
pub(crate) mod wildcard;
mod wrappers;

pub use lists::CommandLists;
pub use read_only::is_read_only;

/// Longer lines are no longer something a person could judge; they belong in a script file.
pub const LINE_BYTES_MAX: usize = 100_000;

/// `bash -c "bash -c …"` and the like, inside each other.
const NESTING_MAX: usize = 8;

/// Lines inside a line, each of which may hold more.
const LINES_MAX: usize = 1000;

/// What all lines inside a line may add up to.
const JUDGED_BYTES_MAX: usize = 10 * LINE_BYTES_MAX;

/// `sudo env nice nohup …` before one program. People write three.
const WRAPPERS_MAX: usize = 64;

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

    /// What happens on another machine can be allowed: it may be meant.
    fn elsewhere(self) -> Self {
        match self {
            Self::Forbid(reason) => Self::Ask(format!("{reason}, on another machine")),
            other => other,
        }
    }
}

/// Says what a person must agree to before this line runs in a shell, whatever the user's lists say.
pub fn consent_for(line: &str) -> Consent {
    Judge::of(line).0
}

/// Goes through a line and everything it runs.
#[derive(Default)]
struct Judge {
    /// Every program with its arguments, as written out.
    calls: Vec<String>,
    judged_bytes: usize,
    judged_lines: usize,
}

impl Judge {
    /// Returns the verdict on a line, and every program in it with its arguments.
    fn of(line: &str) -> (Consent, Vec<String>) {
        let mut judge = Self::default();
        let consent = match judge.line(line, Scope::default(), 0) {
            Verdict::Free => Consent::NotNeeded,
            Verdict::Ask(reason) => Consent::Needed { reason },
            Verdict::Forbid(reason) => Consent::Forbidden { reason },
        };
        (consent, judge.calls)
    }

    fn line(&mut self, line: &str, scope: Scope, nesting: usize) -> Verdict {
        self.judged_bytes += line.len();
        self.judged_lines += 1;
        let is_too_long = line.len() > LINE_BYTES_MAX || self.judged_bytes > JUDGED_BYTES_MAX;
        if is_too_long || nesting > NESTING_MAX || self.judged_lines > LINES_MAX {
            return Verdict::forbid("is too long or too deeply nested to be judged");
        }
        let Ok((commands, scope)) = shell::parse_in(line, scope) else {
            return Verdict::forbid("is too deeply nested to be judged");
        };
        // What functions and variables have made of it counts too.
        self.judged_bytes += commands.iter().map(Command::bytes).sum::<usize>();
        self.functions(&scope)
            .or(self.commands(&commands, &scope, nesting))
            .or(rules::judge_sql(line, &commands))
    }

    fn functions(&mut self, scope: &Scope) -> Verdict {
        for (name, body) in scope.functions() {
            self.judged_bytes += body.len();
            if self.judged_bytes > JUDGED_BYTES_MAX {
                return Verdict::forbid("is too long or too deeply nested to be judged");
            }
            if is_fork_bomb(name, body) {
                return Verdict::forbid("starts copies of itself without end");
            }
        }
        Verdict::Free
    }

    fn commands(&mut self, commands: &[Command], scope: &Scope, nesting: usize) -> Verdict {
        let mut verdict = Verdict::Free;
        // The folder that the line itself has gone to.
        let mut folder = None;
        for command in commands {
            verdict = verdict.or(self.command(command, folder.as_deref(), scope, nesting));
            if let Some(call) = wrappers::unwrap(command, None).last() {
                folder = call.leads_to(folder);
            }
        }
        verdict.or(rules::judge_together(commands))
    }

    fn command(
        &mut self,
        command: &Command,
        folder: Option<&str>,
        scope: &Scope,
        nesting: usize,
    ) -> Verdict {
        let written = command.redirects.iter().filter(|redirect| redirect.writes);
        let mut verdict = written
            .map(|redirect| rules::judge_written(&redirect.target))
            .fold(Verdict::Free, Verdict::or)
            .or(self.commands(&command.substitutions, scope, nesting));
        let calls = wrappers::unwrap(command, folder);
        if calls.len() > WRAPPERS_MAX {
            return Verdict::forbid("hides a program behind too many others to be judged");
        }
        for call in calls {
            self.calls.push(call.written_out());
            verdict = verdict.or(rules::judge_call(&call));
            for run in runs::lines_run_by(&call) {
                let mut scope = scope.clone();
                if let Some((zeroth, arguments)) = run.arguments.split_first() {
                    scope.set_arguments(zeroth, arguments);
                }
                let inner = self.line(&run.line, scope, nesting + 1);
                verdict = verdict.or(match run.is_elsewhere {
                    true => inner.elsewhere(),
                    false => inner,
                });
            }
        }
        verdict
    }
}

/// Returns whether a function pipes itself into itself: `f(){ f|f& };f`.
fn is_fork_bomb(name: &str, body: &str) -> bool {
    let Ok(commands) = shell::parse(body) else {
        return true;
    };
    let calls_itself = |command: &Command| {
        let calls = wrappers::unwrap(command, None);
        calls.last().is_some_and(|call| call.path == name)
    };
    commands
        .windows(2)
        .any(|pair| pair[1].reads_pipe && pair.iter().all(calls_itself))
}

/// Returns the name of the program that runs last: the one whose exit code the line returns.
pub(crate) fn last_program(line: &str) -> Option<String> {
    let commands = shell::parse(line).ok()?;
    let calls = wrappers::unwrap(commands.last()?, None);
    calls.last().map(|call| call.program.to_owned())
}
