//! What a line needs from outside the fence, as far as its words tell: so that a person is asked once, before it runs, and
//! with the reason.
//!
//! A guess that only saves a failure: what it overlooks, the fence stops, and the model may ask then. `programs` knows which
//! programs need what, `written` what a line writes, `git` where a remote is, `looks` what needs no fence at all.

mod git;
mod looks;
mod programs;
mod written;

use std::path::{Path, PathBuf};

use hermes_core::fence::why_guarded;
use hermes_core::{BeyondFence, Checkout, FenceSetting, Pass, wildcard};
use hermes_os::paths;

use crate::judge::Judged;
use crate::shell::Command;
use crate::wrappers;

/// Finds out what a line needs, of which this is known.
pub(crate) fn beyond_fence(line: &str, judged: &Judged, setting: FenceSetting<'_>) -> BeyondFence {
    let commands = judged.commands.as_deref();
    let Some(read) = commands.map(|commands| read(commands, setting)) else {
        return BeyondFence {
            patterns: vec![wildcard::escape(line)],
            ..BeyondFence::default()
        };
    };
    let Needs { reasons, pass } = Needs::of(&read, setting);
    BeyondFence {
        reasons,
        pass,
        patterns: patterns(line, &read),
        checkout: checkout(line, &read),
        only_looks: looks::only_looks(judged, setting),
    }
}

/// What is found out, piece by piece.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Each completes "this …".
    reasons: Vec<String>,
    pass: Pass,
}

/// A program with its words, where the line is when it runs.
struct Program {
    name: String,
    args: Vec<String>,
    folder: PathBuf,
}

impl Program {
    fn operands(&self) -> impl Iterator<Item = &str> {
        let args = self.args.iter().map(String::as_str);
        args.filter(|arg| !arg.starts_with('-') || *arg == "-")
    }

    /// The first word that is no option, and what follows it.
    fn subcommand(&self) -> (&str, &[String]) {
        let mut at = 0;
        while let Some(arg) = self.args.get(at) {
            match arg.as_str() {
                "-C" | "-c" | "--git-dir" | "--work-tree" | "--context" | "--profile" | "-n" => {
                    at += 2;
                }
                arg if arg.starts_with('-') => at += 1,
                arg => return (arg, &self.args[at + 1..]),
            }
        }
        ("", &[])
    }

    fn has(&self, flags: &[&str]) -> bool {
        self.args.iter().any(|arg| flags.contains(&arg.as_str()))
    }
}

impl Needs {
    fn of(read: &Read, setting: FenceSetting<'_>) -> Self {
        let mut needs = Self::default();
        for path in &read.redirected {
            needs.writes(path, setting);
        }
        for program in &read.programs {
            programs::add(&mut needs, program, setting);
            for path in written::by(program, setting) {
                needs.writes(&path, setting);
            }
        }
        needs
    }

    fn because(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Something is written; inside the fence that needs nothing, unless it is guarded.
    fn writes(&mut self, path: &Path, setting: FenceSetting<'_>) {
        let shown = shown(path, setting.home);
        if path.starts_with("/dev") || path.starts_with("/proc") {
            // Devices are open or closed, and nobody's agreement changes it.
            return;
        }
        if !setting.area.may_write(path) {
            self.because(format!("writes `{shown}`, outside the project"));
        } else if let Some(why) = why_guarded_in(path, setting) {
            self.because(format!("{why} (`{shown}`)"));
        } else {
            return;
        }
        self.pass.writes.push(path.to_owned());
    }

    /// Something below the home is read that is hidden, if it is there.
    fn reads_at_home(&mut self, name: &str, setting: FenceSetting<'_>) {
        if let Some(path) = at_home(name, setting).filter(|path| path.exists()) {
            self.because(format!("reads `~/{name}`"));
            self.pass.reads.push(path);
        }
    }

    /// Something below the home is used and kept up to date.
    fn uses_at_home(&mut self, name: &str, setting: FenceSetting<'_>) {
        if let Some(path) = at_home(name, setting) {
            self.because(format!("reads and writes `~/{name}`"));
            self.pass.writes.push(path);
        }
    }

    fn outside(&mut self, reason: &str) {
        self.because(reason.to_owned());
        self.pass.outside = true;
    }
}

/// Says which guarded files a line may change because git does it, with what the repository or its remote hold. Only of a
/// line that does nothing else.
fn checkout(line: &str, read: &Read) -> Checkout {
    let is_plain = read.redirected.is_empty() && read.substitutions == 0;
    let is_git = !read.programs.is_empty() && read.programs.iter().all(git::only_checks_out);
    if !is_plain || !is_git || line.contains(['=', '$', '`']) {
        return Checkout::Nothing;
    }
    if read.programs.iter().any(git::pulls) {
        Checkout::Fetched
    } else {
        Checkout::Known
    }
}

/// Patterns of such lines that a person may allow for longer, the narrowest first.
fn patterns(line: &str, read: &Read) -> Vec<String> {
    let mut patterns = vec![wildcard::escape(line)];
    if let [program] = read.programs.as_slice()
        && line.trim_start().starts_with(&program.name)
        && read.redirected.is_empty()
        && read.substitutions == 0
    {
        let (subcommand, _) = program.subcommand();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_plain = !subcommand.is_empty() && subcommand.chars().all(is_word);
        let begins = is_plain
            && program
                .args
                .first()
                .is_some_and(|first| first == subcommand);
        patterns.push(if begins {
            format!("{} {subcommand} *", program.name)
        } else {
            format!("{} *", program.name)
        });
    }
    patterns
}

/// A line, taken apart.
struct Read {
    programs: Vec<Program>,
    /// Files that the shell itself writes.
    redirected: Vec<PathBuf>,
    substitutions: usize,
}

fn read(commands: &[Command], setting: FenceSetting<'_>) -> Read {
    let mut folder = setting.folder.to_owned();
    let mut read = Read {
        programs: Vec::new(),
        redirected: Vec::new(),
        substitutions: 0,
    };
    add_commands(&mut read, commands, &mut folder, setting);
    read
}

fn add_commands(
    read: &mut Read,
    commands: &[Command],
    folder: &mut PathBuf,
    setting: FenceSetting<'_>,
) {
    for command in commands {
        let written = command.redirects.iter().filter(|redirect| redirect.writes);
        let targets = written.filter_map(|redirect| located(&redirect.target, folder, setting));
        read.redirected.extend(targets);
        read.substitutions += command.substitutions.len();
        let mut inner = folder.clone();
        add_commands(read, &command.substitutions, &mut inner, setting);
        for call in wrappers::unwrap(command, None) {
            let program = Program {
                name: call.program.to_owned(),
                args: call.args.to_vec(),
                folder: folder.clone(),
            };
            if matches!(call.program, "cd" | "pushd")
                && let Some(target) = program.operands().next()
                && let Some(path) = located(target, folder, setting)
            {
                *folder = path;
            }
            read.programs.push(program);
        }
    }
}

/// Says where a word leads, without links; nothing when only a running shell knows. Of a word with stars, the folder that
/// they are in.
fn located(word: &str, folder: &Path, setting: FenceSetting<'_>) -> Option<PathBuf> {
    let home = setting.home;
    let word = match word.strip_prefix("$HOME").or(word.strip_prefix("${HOME}")) {
        Some(rest) => format!("~{rest}"),
        None => word.to_owned(),
    };
    if word.is_empty() || word.contains(['$', '`']) || word.starts_with('&') {
        return None;
    }
    let is_star = |part: &&str| part.contains(['*', '?', '[']);
    let known: Vec<&str> = word.split('/').take_while(|part| !is_star(part)).collect();
    let known = match (known.join("/"), word.starts_with('/')) {
        (known, true) if known.is_empty() => "/".to_owned(),
        (known, false) if known.is_empty() => ".".to_owned(),
        (known, _) => known,
    };
    let path = paths::absolute(&known, folder, home);
    let followed = paths::follow(&path).map(|followed| followed.target);
    Some(followed.unwrap_or(path))
}

fn at_home(name: &str, setting: FenceSetting<'_>) -> Option<PathBuf> {
    let path = setting.home?.join(name);
    Some(path.canonicalize().unwrap_or(path))
}

/// A path as a person writes it.
fn shown(path: &Path, home: Option<&Path>) -> String {
    let home = home.map(|home| home.canonicalize().unwrap_or(home.to_owned()));
    let inside = home.and_then(|home| Some(path.strip_prefix(home).ok()?.to_owned()));
    match inside {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    }
}

fn why_guarded_in(path: &Path, setting: FenceSetting<'_>) -> Option<&'static str> {
    let inside = path.strip_prefix(&setting.area.project).ok()?;
    why_guarded(inside)
}

#[cfg(test)]
mod tests;
