//! Which lines are free where no fence holds them: those that change nothing, and whose words say that they show nothing
//! that is kept from commands.

use std::path::{Path, PathBuf};

use hermes_core::FenceSetting;

use super::located;
use crate::judge::Judged;
use crate::shell::exact::{Arg, Input, Piece, Run};

/// Programs that show names and numbers of files, not what is in them.
const SHOWS_NAMES: &[&str] = &[
    "[", "basename", "df", "dirname", "du", "find", "ls", "pwd", "readlink", "realpath", "stat",
    "test", "tree", "type", "which",
];

/// Programs whose words are no paths.
const SHOWS_WORDS: &[&str] = &[
    ":", "echo", "expr", "false", "printf", "seq", "tr", "true", "uname",
];

/// Options with which a program follows links that it meets.
const FOLLOWS: &[&str] = &["-R", "-L", "--dereference-recursive", "--follow"];

/// Returns whether a line does nothing but look at what everybody may see.
pub(super) fn only_looks(judged: &Judged, setting: FenceSetting<'_>) -> bool {
    let reading = judged.exactly.reading.as_ref();
    judged.is_read_only()
        && reading.is_some_and(|reading| {
            let mut runs = reading.runs.iter();
            runs.all(|run| shows_nothing_hidden(run, setting))
        })
}

fn shows_nothing_hidden(run: &Run, setting: FenceSetting<'_>) -> bool {
    let program = run.program();
    let inputs = match &run.input {
        Input::File(file) => Some(file),
        _ => None,
    };
    let mut read = run.reads.iter().chain(inputs);
    if !read.all(|file| is_shown(file, false, setting)) {
        return false;
    }
    let words = &run.words[1..];
    if SHOWS_WORDS.contains(&program.as_str()) {
        let is_known = |word: &Arg| word.literal().is_some();
        return words.iter().all(is_known);
    }
    let follows = |word: &Arg| FOLLOWS.contains(&word.beginning().as_str());
    let shows_names = SHOWS_NAMES.contains(&program.as_str());
    let looks_around = program == "git" || program == "rg" || program.ends_with("grep");
    let is_around_shown = !looks_around || !holds_hidden(setting.folder, setting);
    let is_git_fine = program != "git" || is_plain_repository(setting.folder);
    is_around_shown
        && is_git_fine
        && (shows_names || !words.iter().any(follows))
        && words
            .iter()
            .all(|word| is_shown(word, shows_names, setting))
}

/// Returns whether a word, taken for a path, leads to nothing that is hidden; an option may hold one too.
fn is_shown(word: &Arg, only_names: bool, setting: FenceSetting<'_>) -> bool {
    let is_plain = |piece: &Piece| !matches!(piece, Piece::Any(_));
    if !word.pieces.iter().all(is_plain) {
        return false;
    }
    let text = word.shown();
    let inside = match text.strip_prefix('-') {
        Some(option) => {
            let value = option.split_once('=').map(|(_, value)| value);
            let attached = option.get(1..);
            [value, attached].into_iter().flatten().collect()
        }
        None => vec![text.as_str()],
    };
    inside.into_iter().all(|path| {
        let Some(path) = located(path, setting.folder, setting) else {
            return path.is_empty();
        };
        let is_process = path.strip_prefix("/proc").is_ok_and(|rest| {
            let first = rest.components().next();
            first.is_some_and(|first| {
                let name = first.as_os_str().to_string_lossy();
                name.contains("self") || name.chars().all(|c| c.is_ascii_digit())
            })
        });
        let is_open = setting.area.may_read(&path) && !is_process;
        is_open && (only_names || !holds_hidden(&path, setting))
    })
}

/// Returns whether something hidden lies in a folder.
fn holds_hidden(folder: &Path, setting: FenceSetting<'_>) -> bool {
    let is_inside = |hidden: &&PathBuf| hidden.starts_with(folder);
    let mut hidden = setting.area.hidden.iter().filter(is_inside);
    folder.is_dir() && hidden.any(|hidden| hidden.symlink_metadata().is_ok())
}

/// Returns whether git finds a repository that is a `.git`, or none: any folder can be dressed up as a repository, whose
/// settings then have git run something.
fn is_plain_repository(folder: &Path) -> bool {
    for folder in folder.ancestors() {
        if folder.join(".git").symlink_metadata().is_ok() {
            return true;
        }
        if folder.join("HEAD").symlink_metadata().is_ok() && folder.join("objects").is_dir() {
            return false;
        }
    }
    true
}
