//! Finds everything a command started by the mark in its environment, also what left its process group.

use std::path::Path;

use hermes_core::Random;
use rustix::process::{Pid, Signal, kill_process};

/// The variable that carries the mark.
const VARIABLE: &str = "HERMES_COMMAND";

/// Makes a mark no other command has.
pub(crate) fn new_mark(random: &Random) -> String {
    format!("{:016x}", random.next_u64())
}

/// Signals every process of ours that carries the mark. Does nothing where there is no `/proc`.
pub(crate) fn signal_marked(mark: &str, signal: Signal) {
    let wanted = format!("{VARIABLE}={mark}");
    let Ok(processes) = Path::new("/proc").read_dir() else {
        return;
    };
    for entry in processes.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw)
        else {
            continue;
        };
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        let is_marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes());
        if is_marked {
            // The only failure is a process that is gone, which is what we want.
            let _ = kill_process(pid, signal);
        }
    }
}
