//! Everything a server has started, also what has left its process group (`setsid`), and how much it works.
//!
//! A variable in the environment of a server marks it, and whatever it starts inherits the mark; a child that clears its
//! environment is still found as a child while its parent lives. Needs `/proc`: elsewhere a family has no members beside
//! the group.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks the processes of a server.
pub(super) const MARK: &str = "HERMES_MCP_FAMILY";

#[derive(Debug)]
pub(super) struct Family {
    /// The server itself; `None` where nobody can tell.
    leader: Option<Member>,
    /// `NAME=value`, as the environment has it.
    mark: String,
    /// Those that were seen at some time.
    known: HashSet<Member>,
}

/// A process; its start tells it from another with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Member {
    pid: Pid,
    started: u64,
}

impl Family {
    /// Returns a value for the mark that no other server has.
    pub(super) fn new_name() -> String {
        let random = || RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}", random(), random())
    }

    pub(super) fn new(leader: Pid, name: &str) -> Self {
        Self {
            leader: Stat::of(leader).map(|stat| stat.member()),
            mark: Self::mark_of(name),
            known: HashSet::new(),
        }
    }

    /// `NAME=value`, as the environment of all members has it.
    pub(super) fn mark_of(name: &str) -> String {
        format!("{MARK}={name}")
    }

    /// Looks for members. Those that are found stay known when they lose their parent.
    pub(super) fn look(&mut self) {
        let processes: Vec<Stat> = processes().filter_map(Stat::of).collect();
        // One whose number belongs to somebody else by now has no children.
        let members = self.leader.iter().chain(&self.known);
        let members = members.filter(|member| member.lives());
        let mut parents: HashSet<Pid> = members.map(|member| member.pid).collect();
        loop {
            let before = parents.len();
            let children = processes
                .iter()
                .filter(|stat| parents.contains(&stat.parent));
            let children: Vec<Pid> = children.map(|stat| stat.pid).collect();
            parents.extend(children);
            if parents.len() == before {
                break;
            }
        }
        for stat in processes {
            let is_member = parents.contains(&stat.pid) || is_marked(stat.pid, &self.mark);
            if is_member && Some(stat.member()) != self.leader {
                self.known.insert(stat.member());
            }
        }
    }

    /// Sends a signal to all known members that still live. Returns whether there was one.
    pub(super) fn signal(&mut self, signal: Signal) -> bool {
        self.known.retain(|member| member.lives());
        for member in &self.known {
            // One that has just ended needs no signal.
            let _ = kill_process(member.pid, signal);
        }
        !self.known.is_empty()
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.known.retain(|member| member.lives());
        self.known.is_empty()
    }
}

impl Member {
    fn lives(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.member() == *self && !stat.is_dead)
    }
}

/// Says how much a program has worked: one that works is not frozen, however silent it is.
#[derive(Clone)]
pub(crate) struct Effort(Arc<dyn Fn() -> Option<u64> + Send + Sync>);

impl Effort {
    pub(crate) fn new(measure: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }

    pub(super) fn of_group(group: Pid) -> Self {
        Self::new(move || {
            let ticks = processes().filter_map(Stat::of);
            let ticks = ticks.filter(|stat| stat.group == group);
            ticks.map(|stat| stat.ticks).reduce(|sum, more| sum + more)
        })
    }

    /// Returns the time it has computed so far, in a unit of its own; `None` where nobody knows.
    pub(crate) fn so_far(&self) -> Option<u64> {
        (self.0)()
    }
}

impl std::fmt::Debug for Effort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Effort").field(&self.so_far()).finish()
    }
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    pid: Pid,
    is_dead: bool,
    parent: Pid,
    group: Pid,
    /// Its time on a processor, and that of the children it waited for.
    ticks: u64,
    started: u64,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        Self::parse(pid, &fs::read_to_string(path).ok()?)
    }

    /// The second field is the program's name in brackets, and may hold anything, also brackets and blanks.
    fn parse(pid: Pid, text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let process = |at: usize| Pid::from_raw(i32::try_from(number(at)?).ok()?);
        Some(Self {
            pid,
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: process(1)?,
            group: process(2)?,
            ticks: (11..=14).filter_map(number).sum(),
            started: number(19)?,
        })
    }

    fn member(&self) -> Member {
        Member {
            pid: self.pid,
            started: self.started,
        }
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let environment = fs::read(path).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let text = "42 (a) b (c) S 7 40 40 0 -1 4194560 1 2 3 4 10 20 1 2 20 0 1 0 98765 0";
        let pid = |raw| Pid::from_raw(raw).unwrap();
        let stat = Stat::parse(pid(42), text).unwrap();
        let expected = Stat {
            pid: pid(42),
            is_dead: false,
            parent: pid(7),
            group: pid(40),
            ticks: 33,
            started: 98765,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn names_differ() {
        assert_ne!(Family::new_name(), Family::new_name());
    }
}
