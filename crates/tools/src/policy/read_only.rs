//! Recognises command lines that surely change nothing, so that they may run side by side and again after a crash.
//!
//! Deliberately small: a command that is not recognised is merely treated with more care.

use crate::shell::{self, Budget};

/// Programs that change nothing, whatever their arguments.
const PROGRAMS: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cmp",
    "comm",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "false",
    "fgrep",
    "grep",
    "head",
    "id",
    "ls",
    "md5sum",
    "nl",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "sha256sum",
    "stat",
    "tail",
    "test",
    "tr",
    "true",
    "uname",
    "wc",
    "which",
    "whoami",
];

const GIT_COMMANDS: &[&str] = &[
    "blame",
    "describe",
    "diff",
    "log",
    "ls-files",
    "rev-parse",
    "show",
    "status",
];

/// Beginnings of git options that write a file or run a program.
const GIT_OPTIONS_REFUSED: &[&str] = &["--output", "--ext-diff", "--textconv", "-O"];

/// Words between spaces that change nothing: redirections, and `&&`, which only joins.
const HARMLESS: &[&str] = &["2>&1", "2>/dev/null", ">/dev/null", "&&"];

/// With any of these in a line, quoted or not, we do not look further.
const SUSPICIOUS: &[char] = &['$', '`', '(', ')', '{', '}', '<', '>', '&', '!', '\\'];

/// Returns whether running the line surely changes nothing.
pub fn is_read_only(line: &str) -> bool {
    let bare: String = line
        .split_inclusive(char::is_whitespace)
        .map(|piece| match HARMLESS.contains(&piece.trim_end()) {
            true => "; ",
            false => piece,
        })
        .collect();
    if bare.contains(SUSPICIOUS) {
        return false;
    }
    let Ok(commands) = shell::parse(&bare, &Budget::default()) else {
        return false;
    };
    !commands.is_empty()
        && commands
            .iter()
            .all(|command| changes_nothing(&command.words))
}

fn changes_nothing(words: &[String]) -> bool {
    match words.split_first() {
        None => false,
        Some((program, args)) if program == "git" => is_harmless_git(args),
        Some((program, _)) => is_harmless(program),
    }
}

/// Returns whether a program changes nothing, whatever its arguments.
pub(super) fn is_harmless(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

fn is_harmless_git(args: &[String]) -> bool {
    let is_refused = |arg: &String| {
        GIT_OPTIONS_REFUSED
            .iter()
            .any(|refused| arg.starts_with(refused))
    };
    args.first()
        .is_some_and(|command| GIT_COMMANDS.contains(&command.as_str()))
        && !args.iter().any(is_refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_changes_nothing() {
        for line in [
            "ls -la",
            "pwd",
            "cat a.txt | grep -n 'x y' | head -5",
            "git status && git log --oneline -5",
            "git diff HEAD~1 -- src 2>&1",
            "grep -r foo . 2>/dev/null",
            "ls; wc -l a b",
        ] {
            assert!(is_read_only(line), "{line}");
        }
    }

    #[test]
    fn everything_else_may_change_something() {
        for line in [
            "",
            "rm x",
            "ls > files",
            "ls >> files",
            "cat a | tee b",
            "echo $(rm x)",
            "echo `rm x`",
            "ls & rm x",
            "ls && rm x",
            "ls; rm x",
            "ls\nrm x",
            "X=1 ls",
            "sudo ls",
            "./ls",
            "ls() { rm x; }; ls",
            "git push",
            "git -c core.pager=x log",
            "git diff --output=x",
            "git",
            "find . -delete",
            "cat <(rm x)",
            "ls 2>/dev/nullpwd",
            "ls &&rm x",
        ] {
            assert!(!is_read_only(line), "{line}");
        }
    }
}
