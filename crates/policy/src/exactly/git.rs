//! Git runs other programs in many ways: these are the words with which it does not.

use crate::shell::exact::Arg;

use super::options::{Options, has_letter, is_long};

/// Options before the subcommand that change nothing but where and how it looks.
const GLOBAL: Options = Options {
    flags: "Phv",
    values: "Cc",
    attached: "",
    long_flags: &[
        "no-pager",
        "no-optional-locks",
        "literal-pathspecs",
        "bare",
        "version",
        "help",
        "no-replace-objects",
    ],
    long_values: &["git-dir", "work-tree", "namespace"],
};

/// Settings that decide nothing but how things look and what they are called.
const HARMLESS_KEYS: &[&str] = &[
    "user.name",
    "user.email",
    "user.signingkey",
    "core.quotepath",
    "core.autocrlf",
    "core.safecrlf",
    "core.filemode",
    "core.longpaths",
    "core.ignorecase",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "gc.auto",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "fetch.prune",
    "http.postbuffer",
    "http.version",
    "merge.conflictstyle",
    "merge.ff",
    "rebase.autostash",
    "diff.noprefix",
    "diff.renames",
    "diff.algorithm",
    "log.date",
    "log.decorate",
    "rerere.enabled",
    "safe.directory",
    "protocol.version",
    "branch.autosetuprebase",
    "status.showuntrackedfiles",
];

const HARMLESS_SECTIONS: &[&str] = &["color.", "advice.", "column."];

/// Subcommands of git itself that run nothing but git and its hooks. Any other word may be an alias, or a program.
const SUBCOMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fast-export",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "merge-file",
    "merge-tree",
    "mv",
    "name-rev",
    "notes",
    "pack-refs",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// Options that name a program, or a file or folder with programs in it. Git takes them shortened.
const RUNNING: &[&str] = &[
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--extcmd",
    "--tool",
    "--open-files-in-pager",
    "--output",
    "--exec-path",
    "--config",
    "--template",
    "--strategy",
    "--interactive",
    "--edit-todo",
    "--remote",
    "--pager",
    "--gpg-program",
    "--separate-git-dir",
    "--config-env",
    "--paginate",
];

/// One-letter options that run something, by subcommand, and letters with values that may come before them.
const RUNNING_LETTERS: &[(&str, &str, &str)] = &[
    ("rebase", "xis", "CX"),
    ("merge", "s", "mXF"),
    ("pull", "s", "X"),
    ("cherry-pick", "", "mX"),
    ("grep", "O", "efABCm"),
    ("clone", "uc", "obj"),
    ("archive", "o", ""),
    ("add", "ip", ""),
];

/// Subcommands with options that run something: what is unknown among their words may be one.
const UNCERTAIN: &[&str] = &[
    "rebase",
    "clone",
    "fetch",
    "pull",
    "push",
    "ls-remote",
    "archive",
    "bisect",
    "submodule",
    "init",
    "config",
    "grep",
    "merge",
    "remote",
];

/// Says why a call of git is asked about, if so.
pub(super) fn why_asked(args: &[Arg]) -> Option<String> {
    let given = match GLOBAL.read(args) {
        Ok(given) => given,
        Err(what) => return Some(format!("gives git {what}, which is not understood")),
    };
    let keys = given.options.iter().filter(|(name, _)| name == "c");
    for (_, setting) in keys {
        let setting = setting.as_ref().and_then(Arg::literal);
        if !setting.is_some_and(|setting| is_harmless_setting(&setting)) {
            return Some("gives git a setting that may run a program".to_owned());
        }
    }
    let (subcommand, args) = given.rest.split_first()?;
    let Some(subcommand) = subcommand
        .literal()
        .filter(|name| SUBCOMMANDS.contains(&name.as_str()))
    else {
        return Some("runs a subcommand of git that may be another program".to_owned());
    };
    why_subcommand_asked(&subcommand, args)
}

fn why_subcommand_asked(subcommand: &str, args: &[Arg]) -> Option<String> {
    let running = || {
        Some(format!(
            "lets `git {subcommand}` run another program, or write where it says"
        ))
    };
    let letters = RUNNING_LETTERS
        .iter()
        .find(|(name, ..)| *name == subcommand);
    let mut is_value = false;
    for arg in args {
        let text = arg.literal();
        let Some(text) = text.as_deref() else {
            let is_uncertain = arg.is_unknown() && (arg.may_be_option() || arg.is_many);
            if is_uncertain && !is_value && UNCERTAIN.contains(&subcommand) {
                return Some(format!(
                    "gives `git {subcommand}` a word that is only known when it runs"
                ));
            }
            is_value = false;
            continue;
        };
        if text == "--" {
            break;
        }
        is_value = text.starts_with('-') && !text.contains('=');
        let is_helper = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '+')
        };
        let names_helper = text
            .split_once("::")
            .is_some_and(|(name, _)| is_helper(name.rsplit('=').next().unwrap_or(name)));
        let has_running =
            letters.is_some_and(|(_, letters, values)| has_letter(text, letters, values));
        if is_long(text, RUNNING) || has_running || (names_helper && takes_addresses(subcommand)) {
            let is_harmless =
                subcommand == "archive" && (text == "-o" || text.starts_with("--output"));
            if !is_harmless {
                return running();
            }
        }
    }
    let operands: Vec<String> = args
        .iter()
        .filter_map(Arg::literal)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let first = operands.first().map(String::as_str);
    match (subcommand, first) {
        ("bisect", Some("run")) | ("submodule", Some("foreach")) => running(),
        ("config", Some(key)) => {
            let reads = [
                "--get",
                "--list",
                "--get-all",
                "--get-regexp",
                "-l",
                "get",
                "list",
            ];
            let is_read = args
                .iter()
                .filter_map(Arg::literal)
                .any(|arg| reads.contains(&arg.as_str()));
            let sets = operands.len() > 1 || args.iter().any(|arg| arg.literal().is_none());
            let is_plain = is_harmless_key(key);
            (sets && !is_read && !is_plain)
                .then(|| "changes a setting of git that may run a program".to_owned())
        }
        _ => None,
    }
}

/// Where `helper::address` has git run `git-remote-helper`.
fn takes_addresses(subcommand: &str) -> bool {
    [
        "clone",
        "fetch",
        "pull",
        "push",
        "ls-remote",
        "remote",
        "submodule",
        "archive",
        "config",
    ]
    .contains(&subcommand)
}

fn is_harmless_setting(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let is_no_pager = key.eq_ignore_ascii_case("core.pager") && matches!(value, "" | "cat");
    is_no_pager || is_harmless_key(key)
}

fn is_harmless_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    HARMLESS_KEYS.contains(&key.as_str())
        || HARMLESS_SECTIONS
            .iter()
            .any(|section| key.starts_with(section))
}
