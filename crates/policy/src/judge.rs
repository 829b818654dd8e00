//! Judges a line and everything it runs: the worst of it decides.

use hermes_core::command_policy::LINE_BYTES_MAX;
use hermes_core::{Consent, Need};

use crate::call::Call;
use crate::exactly::{self, Exactly};
use crate::shell::exact::Run;
use crate::shell::{self, Budget, Command, Scope, TooComplex};
use crate::{places, read_only, rules, runs, wrappers};

/// `bash -c "bash -c …"` and the like, inside each other.
const NESTING_MAX: usize = 8;

/// How bad a command is, and why. The worst of a line decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Free,
    Ask(String),
    Forbid(String),
}

impl Verdict {
    pub(super) fn ask(reason: &str) -> Self {
        Self::Ask(reason.to_owned())
    }

    pub(super) fn forbid(reason: &str) -> Self {
        Self::Forbid(reason.to_owned())
    }

    /// Keeps the worse of two verdicts; of equals, the first.
    pub(super) fn or(self, other: Self) -> Self {
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
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// Every program with its arguments, as written out.
    pub(super) calls: Vec<String>,
    pub(super) exactly: Exactly,
    /// The commands of a lenient reading, unless there are too many to read.
    pub(super) commands: Option<Vec<Command>>,
}

impl Judged {
    /// Returns the name of the program that runs last: the one whose exit code the line returns.
    pub(super) fn last_program(&self) -> Option<String> {
        let calls = wrappers::unwrap(self.commands.as_ref()?.last()?, None);
        calls.last().map(|call| call.program.to_owned())
    }

    /// Returns the programs that the line runs, when it is read exactly.
    pub(super) fn programs(&self) -> Option<Vec<String>> {
        let reading = self.exactly.reading.as_ref()?;
        Some(reading.runs.iter().map(Run::program).collect())
    }

    /// Returns whether it depends on the words of the programs what they do.
    pub(super) fn depends_on_words(&self) -> bool {
        let is_judged = |name: &String| rules::is_known(name) || read_only::is_known(name);
        self.programs()
            .is_none_or(|programs| programs.iter().any(is_judged))
    }

    pub(super) fn consent(&self, folder: Option<&str>, line: &str) -> Consent {
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
pub(super) struct Judge<'a> {
    budget: &'a Budget,
    /// Every program with its arguments, as written out.
    calls: Vec<String>,
}

impl<'a> Judge<'a> {
    /// Reads a line once, and judges it twice: by what a lenient reading makes of it, and by what an exact one does. The
    /// worse counts.
    pub(super) fn of(line: &str, folder: Option<&str>, budget: &'a Budget) -> Judged {
        let mut judge = Self {
            budget,
            calls: Vec::new(),
        };
        let (exactly, parsed) = if line.len() > LINE_BYTES_MAX {
            (Exactly::default(), Err(TooComplex))
        } else {
            let parsed = shell::parse_in(line, Scope::default(), budget);
            (exactly::judge(line), parsed)
        };
        let verdict = match &parsed {
            Ok(parsed) => judge.both(line, parsed, folder, &exactly),
            Err(TooComplex) => Err(TooComplex),
        };
        let too_complex =
            |TooComplex| Verdict::forbid("is too long or too deeply nested to be judged");
        Judged {
            verdict: verdict.unwrap_or_else(too_complex),
            calls: judge.calls,
            exactly,
            commands: parsed.ok().map(|(commands, _)| commands),
        }
    }

    fn both(
        &mut self,
        line: &str,
        parsed: &(Vec<Command>, Scope),
        folder: Option<&str>,
        exactly: &Exactly,
    ) -> Result<Verdict, TooComplex> {
        let lenient = self.parsed(line, parsed, folder, 0)?;
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
        let parsed = shell::parse_in(line, scope, self.budget)?;
        self.parsed(line, &parsed, folder, nesting)
    }

    fn parsed(
        &mut self,
        line: &str,
        (commands, scope): &(Vec<Command>, Scope),
        folder: Option<&str>,
        nesting: usize,
    ) -> Result<Verdict, TooComplex> {
        let functions = self.functions(scope)?;
        let commands_themselves = self.commands(commands, scope, folder, nesting)?;
        self.budget.spend(line.len())?;
        let sql = rules::judge_sql(line, commands);
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
