//! Recognises command lines that surely change nothing, so that they may run side by side and again after a crash.
//!
//! Deliberately small, and only on lines that are read exactly: a command that is not recognised is merely treated with
//! more care.

use crate::judge::{Judge, Judged, Verdict};
use crate::shell::Budget;
use crate::shell::exact::{Arg, Input, Reading, Run};

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
    "expr",
    "false",
    "fgrep",
    "grep",
    "head",
    "id",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "seq",
    "sha1sum",
    "sha256sum",
    "stat",
    "tail",
    "test",
    "tr",
    "true",
    "type",
    "uname",
    "uptime",
    "wc",
    "which",
    "whoami",
    ":",
    "fold",
    "paste",
    "rev",
    "tac",
    "strings",
    "od",
];

/// Programs that change nothing with these options alone, and any words that are none.
const WITH_OPTIONS: &[(&str, &str, &[&str])] = &[
    (
        "sort",
        "bdfghikMnRrVusz",
        &[
            "--reverse",
            "--numeric-sort",
            "--unique",
            "--human-numeric-sort",
            "--version-sort",
        ],
    ),
    ("uniq", "cdDiuz", &["--count", "--repeated", "--unique"]),
    (
        "tree",
        "adfilpsuhDFL0123456789",
        &["--noreport", "--dirsfirst", "--gitignore"],
    ),
    (
        "date",
        "uIR",
        &[
            "--utc",
            "--iso-8601",
            "--iso-8601=seconds",
            "--rfc-3339=seconds",
        ],
    ),
    ("file", "bikLz", &["--mime-type", "--brief", "--mime"]),
    (
        "rg",
        "nilLcvwxFeoHNSsuhABCg0123456789tT",
        &[
            "--files",
            "--hidden",
            "--no-ignore",
            "--type",
            "--glob",
            "--json",
            "--line-number",
            "--count",
            "--files-with-matches",
            "--ignore-case",
            "--no-heading",
        ],
    ),
];

/// Tests of find that take a value.
const FIND_VALUES: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-newer",
    "-regex",
    "-perm",
    "-user",
    "-group",
    "-atime",
    "-ctime",
];
const FIND_FLAGS: &[&str] = &[
    "-print", "-print0", "-prune", "-o", "-a", "-not", "!", "(", ")", "-empty", "-L", "-H", "-P",
    "-xdev",
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
    "shortlog",
    "cat-file",
    "ls-tree",
    "merge-base",
];

/// Git options that write a file or run a program, whole or shortened.
const GIT_OPTIONS_REFUSED: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--show-signature",
];

/// Returns whether running the line surely changes nothing.
pub fn is_read_only(line: &str) -> bool {
    Judge::of(line, None, &Budget::default()).is_read_only()
}

impl Judged {
    /// Returns whether running the line surely changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        let reading = self.exactly.reading.as_ref();
        self.verdict == Verdict::Free && reading.is_some_and(changes_nothing)
    }
}

fn changes_nothing(reading: &Reading) -> bool {
    let is_discarded = |arg: &Arg| arg.literal().as_deref() == Some("/dev/null");
    !reading.runs.is_empty()
        && reading.functions.is_empty()
        && reading.sets.is_empty()
        && reading.writes.iter().all(is_discarded)
        && reading.runs.iter().all(run_changes_nothing)
}

fn run_changes_nothing(run: &Run) -> bool {
    if !run.assignments.is_empty() || matches!(run.input, Input::Stream) {
        return false;
    }
    let program = run.program();
    let args: Vec<Option<String>> = run.words[1..].iter().map(Arg::literal).collect();
    if is_harmless(&program) {
        return true;
    }
    if program == "cd" {
        // The folder a session is left in is a change.
        return false;
    }
    let unknown_option = |arg: &Arg| arg.literal().is_none() && arg.may_be_option();
    if run.words[1..].iter().any(unknown_option) {
        return false;
    }
    let texts: Vec<&str> = args.iter().flatten().map(String::as_str).collect();
    match program.as_str() {
        "git" => args.len() == texts.len() && is_harmless_git(&texts),
        "find" => args.len() == texts.len() && is_harmless_find(&texts),
        "sed" => args.len() == texts.len() && is_harmless_sed(&texts),
        "uniq" => {
            texts.iter().filter(|text| !text.starts_with('-')).count() <= 1
                && has_only_known_options(&program, &texts)
        }
        "date" => {
            texts.iter().all(|text| text.starts_with(['-', '+']))
                && has_only_known_options(&program, &texts)
        }
        "hostname" | "env" | "printenv" | "nproc" => texts.is_empty() && args.is_empty(),
        _ => has_only_known_options(&program, &texts),
    }
}

fn has_only_known_options(program: &str, texts: &[&str]) -> bool {
    let Some((_, letters, names)) = WITH_OPTIONS.iter().find(|(name, ..)| *name == program) else {
        return false;
    };
    texts
        .iter()
        .filter(|text| text.starts_with('-') && text.len() > 1)
        .all(|text| {
            let is_cluster =
                !text.starts_with("--") && text[1..].chars().all(|c| letters.contains(c));
            is_cluster || names.contains(text)
        })
}

/// Returns whether a program changes nothing, whatever its arguments.
pub(super) fn is_harmless(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

/// Returns whether a program is judged here by its name.
pub(super) fn is_known(program: &str) -> bool {
    let others = ["git", "find", "sed", "hostname", "env", "printenv"];
    is_harmless(program)
        || others.contains(&program)
        || WITH_OPTIONS.iter().any(|(name, ..)| *name == program)
}

fn is_harmless_git(args: &[&str]) -> bool {
    let args = match args {
        ["--no-pager", rest @ ..] => rest,
        rest => rest,
    };
    let is_refused = |arg: &&str| {
        let name = arg.split('=').next().unwrap_or(arg);
        let is_same = |refused: &&str| {
            name.len() > 2 && (refused.starts_with(name) || name.starts_with(refused))
        };
        // Signatures are checked by another program.
        GIT_OPTIONS_REFUSED.iter().any(is_same) || arg.starts_with("-O") || arg.contains("%G")
    };
    match args {
        ["branch"]
        | [
            "branch",
            "-a" | "-v" | "-vv" | "-r" | "--show-current" | "--list",
        ]
        | ["remote"]
        | ["remote", "-v"]
        | ["stash", "list"] => true,
        [command, ..] => GIT_COMMANDS.contains(command) && !args.iter().any(is_refused),
        [] => false,
    }
}

fn is_harmless_find(args: &[&str]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if FIND_VALUES.contains(arg) {
            args.next();
        } else if arg.starts_with('-') && !FIND_FLAGS.contains(arg) {
            return false;
        }
    }
    true
}

/// `sed -n 1,5p file`, without any other option.
fn is_harmless_sed(args: &[&str]) -> bool {
    let (script, files) = match args {
        ["-n", script, files @ ..] | ["-E", script, files @ ..] => (script, files),
        [script, files @ ..] => (script, files),
        [] => return false,
    };
    !script.starts_with('-') && !files.iter().any(|file| file.starts_with('-'))
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
            "find . -name '*.rs' -type f | sort | uniq -c | sort -rn | head",
            "sed -n 1,5p src/main.rs",
            "cat \"$(git rev-parse --show-toplevel)/README.md\"",
            "for f in a b; do cat \"$f\"; done > /dev/null",
            "rg -n 'fn main' src",
        ] {
            let expected = !line.starts_with("for");
            assert_eq!(is_read_only(line), expected, "{line}");
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
            "X=1",
            "sudo ls",
            "./ls",
            "ls() { rm x; }; ls",
            "git push",
            "git -c core.pager=x log",
            "git diff --output=x",
            "git diff --outp x",
            "git",
            "find . -delete",
            "find . -fprint x",
            "find . -exec rm {} +",
            "cat <(rm x)",
            "ls 2>/dev/nullpwd",
            "ls &&rm x",
            "sort -o x y",
            "sort --outp=x y",
            "uniq a b",
            "tree -o x",
            "date -s 1970-01-01",
            "date 010100001970",
            "hostname x",
            "sed -i s/a/b/ f",
            "sed -n 'w x' f",
            "sed 's/a/b/w x' f",
            "sed '1e reboot' f",
            "rg --pre x y",
            "sort $x",
            "git branch x",
            "cd x",
            "ls\u{3000}x",
        ] {
            assert!(!is_read_only(line), "{line}");
        }
    }
}
