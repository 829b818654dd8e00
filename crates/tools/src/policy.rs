//! Judges shell commands before they run: free, to be asked for, or forbidden whoever asks.
//!
//! Pure: the same line always gets the same verdict. The line is read by `shell`; `wrappers` finds the program that
//! `sudo`, `env` or `xargs` would run; `rules` holds one row per danger, which asks its `questions` of a `call`; `runs`
//! finds the lines that a program will run in turn; `places` knows which paths matter; `read_only` recognises the few
//! commands that surely change nothing. `script` judges Python. What the user refused or allowed for good is in
//! [`CommandLists`].
//!
//! A net for mistakes and for prompts gone astray. It does not contain a program that means harm.

use hermes_core::{Consent, Need};

use crate::shell::{self, Budget, Command, Scope, TooComplex};

mod call;
mod exactly;
mod lists;
mod named;
pub(crate) mod needs;
pub(crate) mod places;
mod questions;
pub(crate) mod read_only;
mod rules;
mod runs;
mod script;
pub(crate) mod wildcard;
mod wrappers;

use call::Call;
use exactly::Exactly;
pub use lists::{AllowRule, CommandLists};
pub use named::{Named, named};
pub use read_only::is_read_only;

/// Longer lines are no longer something a person could judge; they belong in a script file.
pub const LINE_BYTES_MAX: usize = 100_000;

/// `bash -c "bash -c …"` and the like, inside each other.
const NESTING_MAX: usize = 8;

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
    consent_in(None, line)
}

/// Says the same of a line that runs in a folder, where that is known.
pub fn consent_in(folder: Option<&str>, line: &str) -> Consent {
    let judged = Judge::of(line, folder, &Budget::default());
    judged.consent(folder, line)
}

/// What was found out about a line.
struct Judged {
    verdict: Verdict,
    /// Every program with its arguments, as written out.
    calls: Vec<String>,
    exactly: Exactly,
}

impl Judged {
    fn consent(&self, folder: Option<&str>, line: &str) -> Consent {
        match &self.verdict {
            Verdict::Free => Consent::NotNeeded,
            Verdict::Ask(reason) => Consent::Needed(Need {
                patterns: self.exactly.patterns(line),
                folder: folder
                    .filter(|folder| folder.starts_with('/'))
                    .map(Into::into),
                ..Need::because(reason)
            }),
            Verdict::Forbid(reason) => Consent::Forbidden {
                reason: reason.clone(),
            },
        }
    }
}

/// Goes through a line and everything it runs.
struct Judge<'a> {
    budget: &'a Budget,
    /// Every program with its arguments, as written out.
    calls: Vec<String>,
}

impl<'a> Judge<'a> {
    /// Judges a line twice: by what a lenient reading makes of it, and by what an exact one does. The worse counts.
    fn of(line: &str, folder: Option<&str>, budget: &'a Budget) -> Judged {
        let mut judge = Self {
            budget,
            calls: Vec::new(),
        };
        let exactly = if line.len() > LINE_BYTES_MAX {
            Exactly::default()
        } else {
            exactly::judge(line)
        };
        let verdict = judge.both(line, folder, &exactly);
        let too_complex =
            |TooComplex| Verdict::forbid("is too long or too deeply nested to be judged");
        Judged {
            verdict: verdict.unwrap_or_else(too_complex),
            calls: judge.calls,
            exactly,
        }
    }

    fn both(
        &mut self,
        line: &str,
        folder: Option<&str>,
        exactly: &Exactly,
    ) -> Result<Verdict, TooComplex> {
        let lenient = self.line(line, Scope::default(), folder, 0)?;
        let commands: Vec<Command> = exactly.commands();
        let behind = self.commands(&commands, &Scope::default(), folder, 0)?;
        let asked = exactly.asked.clone().map_or(Verdict::Free, Verdict::Ask);
        // What is not understood is the reason that matters most to a person.
        Ok(match exactly.reading {
            Some(_) => lenient.or(behind).or(asked),
            None => asked.or(lenient).or(behind),
        })
    }

    fn line(
        &mut self,
        line: &str,
        scope: Scope,
        folder: Option<&str>,
        nesting: usize,
    ) -> Result<Verdict, TooComplex> {
        if line.len() > LINE_BYTES_MAX || nesting > NESTING_MAX {
            return Err(TooComplex);
        }
        let (commands, scope) = shell::parse_in(line, scope, self.budget)?;
        let functions = self.functions(&scope)?;
        let commands_themselves = self.commands(&commands, &scope, folder, nesting)?;
        self.budget.spend(line.len())?;
        let sql = rules::judge_sql(line, &commands);
        Ok(functions.or(commands_themselves).or(sql))
    }

    fn functions(&self, scope: &Scope) -> Result<Verdict, TooComplex> {
        for (name, body) in scope.functions() {
            if is_fork_bomb(name, body, self.budget)? {
                return Ok(Verdict::forbid("starts copies of itself without end"));
            }
            if calls_of_itself(name, body, self.budget)? > 1 {
                return Ok(Verdict::ask(
                    "calls itself more than once, so it may start copies of itself without end",
                ));
            }
        }
        Ok(Verdict::Free)
    }

    fn commands(
        &mut self,
        commands: &[Command],
        scope: &Scope,
        folder: Option<&str>,
        nesting: usize,
    ) -> Result<Verdict, TooComplex> {
        let mut verdict = Verdict::Free;
        // The folder that the line has gone to.
        let mut folder = folder.map(str::to_owned);
        let (mut makes_program, mut runs_made) = (false, false);
        for command in commands {
            let calls = wrappers::unwrap(command, folder.as_deref());
            let written = command.redirects.iter().filter(|redirect| redirect.writes);
            for redirect in written {
                let written = places::joined(folder.as_deref(), &redirect.target);
                self.budget.spend(written.len())?;
                verdict = verdict.or(rules::judge_written(&written));
            }
            let inner = self.commands(&command.substitutions, scope, folder.as_deref(), nesting);
            verdict = verdict.or(inner?);
            for call in &calls {
                verdict = verdict.or(self.call(call, scope, nesting)?);
                makes_program |= rules::makes_program(call);
                runs_made |= makes_program && call.path.starts_with("./");
            }
            folder = match calls.last() {
                Some(call) => call.leads_to(),
                None => folder,
            };
        }
        Ok(if runs_made {
            verdict.or(Verdict::ask("makes a file a program and runs it"))
        } else {
            verdict
        })
    }

    fn call(
        &mut self,
        call: &Call<'_>,
        scope: &Scope,
        nesting: usize,
    ) -> Result<Verdict, TooComplex> {
        call.spend_on_words(self.budget)?;
        self.calls.push(call.written_out());
        let mut verdict = rules::judge_call(call, self.budget)?;
        for run in runs::lines_run_by(call, self.budget)? {
            let mut scope = scope.copied(self.budget)?;
            if let Some((zeroth, arguments)) = run.arguments.split_first() {
                scope.set_arguments(zeroth, arguments);
            }
            let folder = call.folder.filter(|_| !run.is_elsewhere);
            let inner = self.line(&run.line, scope, folder, nesting + 1)?;
            verdict = verdict.or(if run.is_elsewhere {
                inner.elsewhere()
            } else {
                inner
            });
        }
        Ok(verdict)
    }
}

fn calls_of_itself(name: &str, body: &str, budget: &Budget) -> Result<usize, TooComplex> {
    let commands = shell::parse(body, budget)?;
    let calls_itself = |command: &&Command| {
        let calls = wrappers::unwrap(command, None);
        calls.last().is_some_and(|call| call.path == name)
    };
    Ok(commands.iter().filter(calls_itself).count())
}

/// Returns whether a function pipes itself into itself: `f(){ f|f& };f`.
fn is_fork_bomb(name: &str, body: &str, budget: &Budget) -> Result<bool, TooComplex> {
    let commands = shell::parse(body, budget)?;
    let calls_itself = |command: &Command| {
        let calls = wrappers::unwrap(command, None);
        calls.last().is_some_and(|call| call.path == name)
    };
    Ok(commands
        .windows(2)
        .any(|pair| pair[1].reads_pipe && pair.iter().all(calls_itself)))
}

/// Returns whether it depends on a program's words what it does.
pub(crate) fn is_judged(program: &str) -> bool {
    rules::is_known(program) || read_only::is_known(program)
}

/// Returns the programs that a line runs, when it is read exactly.
pub(crate) fn programs_of(line: &str) -> Option<Vec<String>> {
    let reading = exactly::judge(line).reading?;
    Some(
        reading
            .runs
            .iter()
            .map(shell::exact::Run::program)
            .collect(),
    )
}

/// Returns the name of the program that runs last: the one whose exit code the line returns.
pub(crate) fn last_program(line: &str) -> Option<String> {
    let commands = shell::parse(line, &Budget::default()).ok()?;
    let calls = wrappers::unwrap(commands.last()?, None);
    calls.last().map(|call| call.program.to_owned())
}
