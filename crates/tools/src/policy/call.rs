//! A program with its arguments, and the questions that rules ask about them.

use crate::shell::{Budget, Command, TooComplex};

use super::places;
use super::wildcard;
use super::wrappers::unwrap;

/// What it takes to look for a program in the rules.
const NAMES_STEPS: usize = 100;

/// A program with its arguments, as it will run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// Without its folder.
    pub(super) program: &'a str,
    /// The name by which rules know it: `python3.12` is `python`, `mkfs.ext4` is `mkfs`.
    pub(super) family: &'a str,
    /// Its name has stars, so it may be several.
    pub(super) is_pattern: bool,
    /// As written, with its folder.
    pub(super) path: &'a str,
    pub(super) args: &'a [String],
    pub(super) command: &'a Command,
    /// More arguments come from input.
    pub(super) by_xargs: bool,
    /// Where the line has gone before, as far as it says.
    pub(super) folder: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// Spends what it takes to look for the program in the rules.
    pub(super) fn spend_on_names(&self, budget: &Budget) -> Result<(), TooComplex> {
        // One with stars is compared with each of them letter by letter.
        let letters = self.program.len() * usize::from(self.is_pattern);
        budget.spend(NAMES_STEPS * (letters + 1))
    }

    /// Spends what it takes to go through the arguments, each seen from where the line is.
    pub(super) fn spend_on_words(&self, budget: &Budget) -> Result<(), TooComplex> {
        let folder = self.folder.unwrap_or_default();
        let is_folder_pattern = wildcard::is_pattern(folder);
        let bytes = |arg: &String| {
            if is_folder_pattern || wildcard::is_pattern(arg) {
                (folder.len() + arg.len()) * places::VITAL.len()
            } else {
                folder.len() + arg.len()
            }
        };
        budget.spend_on(self.args)?;
        budget.spend(self.args.iter().map(bytes).sum())
    }

    /// Returns whether this is one of these programs. A name with stars is all of them that it may be.
    pub(super) fn is_one_of(&self, names: &[&str]) -> bool {
        let may_be = |name: &&str| wildcard::matches(self.program, name);
        names.contains(&self.family) || (self.is_pattern && names.iter().any(may_be))
    }

    /// The program and its arguments, for patterns of the user.
    pub(super) fn written_out(&self) -> String {
        let words = std::iter::once(self.program).chain(self.args.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the folder the line is in after this call.
    pub(super) fn leads_to(&self) -> Option<String> {
        if !matches!(self.program, "cd" | "pushd") {
            return self.folder.map(str::to_owned);
        }
        let target = self.operands().next()?;
        (target != "-").then(|| places::joined(self.folder, target))
    }

    /// Operands as paths, seen from where the line is.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.operands()
            .map(|operand| places::joined(self.folder, operand))
    }

    /// Arguments that are not options.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> {
        let options_end = self.args.iter().position(|arg| arg == "--");
        let options_end = options_end.unwrap_or(self.args.len());
        let args = self.args.iter().map(String::as_str).enumerate();
        args.filter(move |(at, arg)| *at > options_end || !arg.starts_with('-') || *arg == "-")
            .map(|(_, arg)| arg)
    }

    pub(super) fn has_word(&self, words: &[&str]) -> bool {
        self.args.iter().any(|arg| words.contains(&arg.as_str()))
    }

    pub(super) fn begins(&self, word: &str) -> bool {
        self.args.first().is_some_and(|first| first == word)
    }

    /// Returns whether an option is given, alone or in a cluster such as `-rf`.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        let in_cluster = |arg: &String| is_cluster(arg) && arg.contains(short);
        self.has_long(&[long]) || self.args.iter().any(in_cluster)
    }

    /// Returns whether a long option is given, with a value or without.
    pub(super) fn has_long(&self, names: &[&str]) -> bool {
        let name = |arg: &'a String| arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        self.args.iter().any(|arg| names.contains(&name(arg)))
    }

    /// Returns the value of a `key=value` argument.
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(key))
    }

    /// Returns the script after an option such as `-c`, also when it is in a cluster such as `-lc`.
    pub(super) fn inline_script(&self, flag: char) -> Option<&'a str> {
        let is_flag = |arg: &String| is_cluster(arg) && arg.ends_with(flag);
        let at = self.args.iter().position(is_flag)?;
        self.args.get(at + 1).map(String::as_str)
    }

    /// Returns what follows the `-c` of a shell, alone or in a cluster such as `-lc` and `-ce`.
    pub(super) fn after_script_flag(&self) -> Option<&'a [String]> {
        let is_flag = |arg: &String| {
            let letters = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|letters| letters.contains('c'))
        };
        let at = self.args.iter().position(is_flag)?;
        self.args.get(at + 1..)
    }

    /// Returns what follows one of these options.
    pub(super) fn after(&self, options: &[&str]) -> Option<&'a [String]> {
        let at = self
            .args
            .iter()
            .position(|arg| options.contains(&arg.as_str()))?;
        self.args.get(at + 1..)
    }

    /// Returns the value of a long option, in the same word or the next.
    pub(super) fn long_value(&self, name: &str) -> Option<&'a str> {
        let attached = |arg: &'a String| arg.strip_prefix(name)?.strip_prefix('=');
        let next = || self.after(&[name])?.first().map(String::as_str);
        self.args.iter().find_map(attached).or_else(next)
    }

    pub(super) fn edits_in_place(&self) -> bool {
        self.has('i', "--in-place")
    }

    /// Returns whether a signal is given that cannot be refused.
    pub(super) fn has_kill_signal(&self) -> bool {
        let is_named = |signal: &str| matches!(signal, "9" | "KILL" | "SIGKILL");
        let after_option = self
            .args
            .windows(2)
            .any(|pair| matches!(pair[0].as_str(), "-s" | "-n" | "--signal") && is_named(&pair[1]));
        after_option || self.has_word(&["-9", "-KILL", "-SIGKILL"])
    }

    pub(super) fn names_us(&self) -> bool {
        self.operands()
            .any(|name| name.contains("hermes") || name.contains("gateway"))
    }

    /// Returns whether one of these programs makes up its words.
    pub(super) fn substitutes(&self, programs: &[&str]) -> bool {
        let inner = self.command.substitutions.iter();
        let mut inner = inner.flat_map(|command| unwrap(command, None));
        inner.any(|call| programs.contains(&call.program))
    }

    /// Returns whether git is told to do this, whatever global options come before.
    pub(super) fn git(&self, subcommand: &str) -> bool {
        let mut args = self.args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg {
                "-C" | "-c" | "--git-dir" | "--work-tree" => {
                    args.next();
                }
                arg if arg.starts_with('-') => {}
                arg => return arg == subcommand,
            }
        }
        false
    }
}

/// Returns the name by which rules know a program.
pub(super) fn family(program: &str) -> &str {
    let base = match program.split_once('.') {
        Some((base, _)) if base == "mkfs" || base.starts_with("python") => base,
        _ => program,
    };
    match base.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "" => base,
        trimmed => trimmed,
    }
}

/// Returns whether an argument is one-letter options after a single dash.
fn is_cluster(arg: &str) -> bool {
    arg.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphanumeric())
    })
}
