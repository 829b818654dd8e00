//! What programs write, as far as their words tell.

use std::path::PathBuf;

use hermes_core::FenceSetting;

use super::{Program, located};

/// Programs all of whose operands are changed.
const CHANGE_ALL: &[&str] = &[
    "tee", "truncate", "sponge", "touch", "mkdir", "rmdir", "rm", "unlink", "shred", "mkfifo",
    "mknod", "trash",
];

/// Programs whose first operand says how, and all others what.
const CHANGE_REST: &[&str] = &["chmod", "chown", "chgrp", "setfacl"];

/// Programs whose last operand is where something goes.
const CHANGE_LAST: &[&str] = &["cp", "install", "ln", "rsync"];

const EDITORS: &[&str] = &["sed", "perl", "ruby", "gawk"];

/// Returns the files and folders that a program changes.
pub(super) fn by(program: &Program, setting: FenceSetting<'_>) -> Vec<PathBuf> {
    let paths = words_of(program);
    let located = |word: &str| located(word, &program.folder, setting);
    paths.into_iter().filter_map(located).collect()
}

fn words_of(program: &Program) -> Vec<&str> {
    let name = program.name.as_str();
    let (subcommand, rest) = program.subcommand();
    let into = value(program, &["-t", "--target-directory"]);
    match name {
        _ if CHANGE_ALL.contains(&name) => program.operands().collect(),
        _ if CHANGE_REST.contains(&name) => program.operands().skip(1).collect(),
        _ if CHANGE_LAST.contains(&name) => {
            let last = || program.operands().skip(1).last();
            let target = into.or_else(last);
            target
                .filter(|target| name != "rsync" || !target.contains(':'))
                .into_iter()
                .collect()
        }
        "mv" => program.operands().chain(into).collect(),
        "dd" => program
            .args
            .iter()
            .filter_map(|arg| arg.strip_prefix("of="))
            .collect(),
        "curl" | "wget" => value(
            program,
            &[
                "-o",
                "-O",
                "--output",
                "--output-document",
                "-P",
                "--output-dir",
            ],
        )
        .filter(|value| !value.starts_with('-') && !value.contains("://"))
        .into_iter()
        .collect(),
        "tar" | "bsdtar" => value(program, &["-C", "--directory"]).into_iter().collect(),
        "unzip" => value(program, &["-d"]).into_iter().collect(),
        "git" if matches!(subcommand, "clone" | "init") => {
            let skipped = usize::from(subcommand == "clone");
            let operands = rest
                .iter()
                .map(String::as_str)
                .filter(|arg| !arg.starts_with('-'));
            operands.skip(skipped).last().into_iter().collect()
        }
        "git" if subcommand == "worktree" => {
            let operands = rest
                .iter()
                .map(String::as_str)
                .filter(|arg| !arg.starts_with('-'));
            operands
                .skip(1)
                .take(1)
                .filter(|_| rest.first().is_some_and(|word| word == "add"))
                .collect()
        }
        _ if EDITORS.contains(&name) && program.args.iter().any(|arg| is_in_place(arg)) => {
            let has_script = program.has(&["-e", "-f", "--expression"]);
            program.operands().skip(usize::from(!has_script)).collect()
        }
        _ => Vec::new(),
    }
}

fn is_in_place(arg: &str) -> bool {
    let is_cluster = arg.starts_with('-') && !arg.starts_with("--");
    arg.starts_with("--in-place") || (is_cluster && arg.contains('i'))
}

fn value<'a>(program: &'a Program, options: &[&str]) -> Option<&'a str> {
    let next = program
        .args
        .windows(2)
        .find(|pair| options.contains(&pair[0].as_str()));
    let attached = |arg: &'a String| {
        let (name, value) = arg.split_once('=')?;
        options.contains(&name).then_some(value)
    };
    let next = next.map(|pair| pair[1].as_str());
    next.or_else(|| program.args.iter().find_map(attached))
}
