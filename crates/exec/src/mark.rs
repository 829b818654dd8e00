//! Finds everything a command started by the mark in its environment, also what left its process group.

use std::collections::HashSet;
use std::path::Path;

use hermes_core::{Random, ShellCommand};
use rustix::process::{Pid, Signal, kill_process};

use crate::kin::fenced;

/// The variable that carries the mark, up to it.
const PREFIX: &str = "HERMES_COMMAND=";

/// Makes a mark no other command has.
pub(crate) fn new_mark(random: &Random) -> String {
    format!("{:016x}", random.next_u64())
}

/// Returns the mark of a command: its caller's, or a new one.
pub(crate) fn mark_of(command: &ShellCommand, random: &Random) -> String {
    let wanted = command.mark.clone().filter(|mark| is_mark(mark));
    wanted.unwrap_or_else(|| new_mark(random))
}

/// Returns whether a text could be a mark.
fn is_mark(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.len() == 16 && text.chars().all(is_digit)
}

/// Signals every process of ours that carries the mark. Does nothing where there is no `/proc`.
pub(crate) fn signal_marked(mark: &str, signal: Signal) {
    for (pid, found) in marked_processes() {
        if found == mark {
            // The only failure is a process that is gone, which is what we want.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns those of the marks that a running process carries.
pub(crate) fn alive_of(marks: &[String]) -> HashSet<String> {
    if marks.is_empty() {
        return HashSet::new();
    }
    let alive = marked_processes().map(|(_, mark)| mark);
    alive.filter(|mark| marks.contains(mark)).collect()
}

/// Returns whether a fenced process carries none of these marks: it has shed its own, or took another.
pub(crate) fn is_any_fenced_without(marks: &[String]) -> bool {
    let carries = |process: Pid| {
        let mark = carried_by(&Path::new("/proc").join(process.as_raw_nonzero().to_string()));
        mark.is_some_and(|mark| marks.contains(&mark))
    };
    fenced().into_iter().any(|process| !carries(process))
}

/// Returns the processes of this user that carry a mark, with it.
fn marked_processes() -> impl Iterator<Item = (Pid, String)> {
    let processes = Path::new("/proc").read_dir().into_iter().flatten();
    processes.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let pid = Pid::from_raw(name.to_str()?.parse().ok()?)?;
        Some((pid, carried_by(&entry.path())?))
    })
}

fn carried_by(process: &Path) -> Option<String> {
    let environment = std::fs::read(process.join("environ")).ok()?;
    let mark = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(PREFIX.as_bytes()))?;
    Some(String::from_utf8_lossy(mark).into_owned())
}
