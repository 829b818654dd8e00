//! Finds what fenced commands left running by descent, also what has shed its mark.
//!
//! What is inside a fence can never gain rights again, which the kernel shows of each process; and what cuts itself loose
//! becomes a child of ours where we adopt such ones. So nothing that a fenced command started hides from this.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How often the fenced are looked for until none is left: they may fork while they are killed.
const ROUNDS_MAX: usize = 100;

const ROUND_INTERVAL: Duration = Duration::from_millis(2);

/// Room for what the kernel says of a process: it gives no size, and growing a buffer costs a read each time.
const STAT_BYTES: usize = 1024;

/// Returns the processes below us that are inside a fence. None where that cannot be told: without `/proc`, and where we
/// cannot gain rights ourselves.
pub(crate) fn fenced() -> Vec<Pid> {
    if is_bound("self") || is_childless() {
        return Vec::new();
    }
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let processes = Path::new("/proc").read_dir().into_iter().flatten();
    for entry in processes.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let parent = number.and_then(living_parent);
        if let (Some(number), Some(parent)) = (number, parent) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut below = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(process) = open.pop() {
        for child in children.remove(&process).unwrap_or_default() {
            below.push(child);
            open.push(child);
        }
    }
    let bound = below.into_iter().filter(|process| is_bound(process));
    bound.filter_map(Pid::from_raw).collect()
}

/// Ends all of them.
pub(crate) fn end_fenced() {
    for _ in 0..ROUNDS_MAX {
        let fenced = fenced();
        if fenced.is_empty() {
            return;
        }
        for process in fenced {
            // The only failure is a process that is gone, which is what we want.
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(ROUND_INTERVAL);
    }
}

/// Returns whether we are known to have no children: most often nothing was left, and there is no need to look at every
/// process of the machine.
fn is_childless() -> bool {
    let Ok(threads) = Path::new("/proc/self/task").read_dir() else {
        return false;
    };
    // Kernels can be built without this list.
    let mut children = threads.map(|thread| std::fs::read(thread?.path().join("children")));
    children.all(|found| found.is_ok_and(|list| list.is_empty()))
}

/// Returns the parent of a process that has not ended.
fn living_parent(process: i32) -> Option<i32> {
    let mut stat = String::with_capacity(STAT_BYTES);
    let mut file = File::open(format!("/proc/{process}/stat")).ok()?;
    file.read_to_string(&mut stat).ok()?;
    // The name before it may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

/// Returns whether a process can gain no rights.
fn is_bound(process: impl std::fmt::Display) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| status.lines().any(|line| line == "NoNewPrivs:\t1"))
}
