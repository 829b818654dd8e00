//! Whether this process was started from inside Hermes: by a command, a script or a server that runs for a model.
//!
//! Told by who started whom, not by a variable, which a child can clear. [`take_name`] gives every Hermes the same name,
//! whatever its file is called, and [`adopt`] makes those its children again that cut themselves loose while it runs.

/// The name that every Hermes has in the list of processes.
const NAME: &str = "hermes";

/// More generations than any shell script has.
const GENERATIONS_MAX: usize = 128;

/// What looks like Hermes by its name is a script of that name, when one of these runs it.
const INTERPRETERS: &[&str] = &[
    "ash", "bash", "bun", "busybox", "dash", "deno", "fish", "ksh", "mksh", "node", "perl", "ruby",
    "sh", "zsh",
];

/// A process above this one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ancestor {
    parent: u32,
    name: String,
    /// The program it runs, where that may be known. Hermes does not let others look.
    program: Option<String>,
}

/// Returns the number of the Hermes that this process was started from, directly or not.
pub fn hermes_above() -> Option<u32> {
    find_above(system::parent()?, system::look)
}

/// Goes up from a process until there is a Hermes, or nothing.
fn find_above(first: u32, look: impl Fn(u32) -> Option<Ancestor>) -> Option<u32> {
    let mut process = first;
    for _ in 0..GENERATIONS_MAX {
        let ancestor = look(process)?;
        if is_hermes(&ancestor) {
            return Some(process);
        }
        process = ancestor.parent;
    }
    // Whoever has so many ancestors wants to hide one.
    Some(process)
}

fn is_hermes(ancestor: &Ancestor) -> bool {
    let program = ancestor.program.as_deref().unwrap_or_default();
    let program = program.trim_end_matches(" (deleted)");
    let program = program.rsplit('/').next().unwrap_or_default();
    let is_script = INTERPRETERS.contains(&program) || program.starts_with("python");
    ancestor.name == NAME && !is_script
}

#[cfg(target_os = "linux")]
mod system {
    use super::Ancestor;

    pub(super) fn parent() -> Option<u32> {
        let parent = rustix::process::getppid()?;
        u32::try_from(parent.as_raw_nonzero().get()).ok()
    }

    pub(super) fn look(process: u32) -> Option<Ancestor> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let program = std::fs::read_link(format!("/proc/{process}/exe")).ok();
        let program = program.map(|path| path.to_string_lossy().into_owned());
        parse(&stat, program)
    }

    /// Reads `PID (NAME) STATE PARENT …`. A name may hold anything, also brackets.
    pub(super) fn parse(stat: &str, program: Option<String>) -> Option<Ancestor> {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some(Ancestor {
            parent,
            name: name.to_owned(),
            program,
        })
    }
}

/// Other systems have `ps`, which knows the program of a process; names cannot be chosen there.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Ancestor, NAME};

    pub(super) fn parent() -> Option<u32> {
        Some(std::os::unix::process::parent_id())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "asks the system a question; nothing of a model runs here"
    )]
    pub(super) fn look(process: u32) -> Option<Ancestor> {
        let mut ps = std::process::Command::new("/bin/ps");
        let output = ps
            .args(["-o", "ppid=,comm=", "-p", &process.to_string()])
            .output()
            .ok()?;
        let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let (parent, program) = line.split_once(char::is_whitespace)?;
        let program = program.trim();
        let own = std::env::current_exe().ok();
        let is_own = own.is_some_and(|own| own.to_string_lossy() == program);
        let last = program.rsplit('/').next().unwrap_or_default();
        Some(Ancestor {
            parent: parent.parse().ok()?,
            name: if is_own { NAME } else { last }.to_owned(),
            program: Some(program.to_owned()),
        })
    }
}

/// Takes the name by which Hermes is known among processes, also when its file is called otherwise.
#[cfg(target_os = "linux")]
pub fn take_name() {
    // A kernel that refuses leaves the name of the file.
    let _ = rustix::thread::set_name(c"hermes");
}

#[cfg(not(target_os = "linux"))]
pub fn take_name() {}

/// Gives the name up, for a Hermes in which no model works: what it starts now was not started for one. Nothing below a
/// Hermes can do this for it.
#[cfg(target_os = "linux")]
pub fn give_up_name() {
    let _ = rustix::thread::set_name(c"hermes-launch");
}

#[cfg(not(target_os = "linux"))]
pub fn give_up_name() {}

#[cfg(target_os = "linux")]
pub use adoption::adopt;

#[cfg(not(target_os = "linux"))]
pub async fn adopt() {}

/// Children of children that cut themselves loose (`setsid`, two forks) become our own, instead of the system's: they stay
/// below Hermes as long as it runs.
#[cfg(target_os = "linux")]
mod adoption {
    use std::collections::HashMap;
    use std::time::Duration;

    use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
    use tokio::signal::unix::{SignalKind, signal};

    /// Those that we started are fetched by whoever started them, within moments. What is left after this time was
    /// adopted, and nobody asks for it.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Adopts, and buries what died. Never ends by itself.
    pub async fn adopt() {
        // Older kernels have no such thing; then those who cut themselves loose are lost from sight.
        if set_child_subreaper(Some(getpid())).is_err() {
            return;
        }
        let Ok(mut died) = signal(SignalKind::child()) else {
            return;
        };
        let mut dead = HashMap::new();
        loop {
            if dead.is_empty() && died.recv().await.is_none() {
                return;
            }
            tokio::time::sleep(PATIENCE).await;
            dead = bury(&dead);
        }
    }

    /// Buries those that were dead at the last look too. Returns who is dead now, with when it began: numbers are used
    /// again.
    fn bury(before: &HashMap<i32, u64>) -> HashMap<i32, u64> {
        let mut dead = HashMap::new();
        for child in children() {
            let Some(since) = dead_since(child) else {
                continue;
            };
            if before.get(&child) == Some(&since) {
                let _ = waitpid(Pid::from_raw(child), WaitOptions::NOHANG);
            } else {
                dead.insert(child, since);
            }
        }
        dead
    }

    fn children() -> Vec<i32> {
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
            return Vec::new();
        };
        let lists = threads.flatten().filter_map(|thread| {
            let list = thread.path().join("children");
            std::fs::read_to_string(list).ok()
        });
        let lists: Vec<String> = lists.collect();
        let numbers = lists.iter().flat_map(|list| list.split_whitespace());
        numbers.filter_map(|number| number.parse().ok()).collect()
    }

    /// Returns when a dead child began, in ticks of the kernel.
    fn dead_since(child: i32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_dead = fields.first() == Some(&"Z");
        is_dead.then(|| fields.get(19)?.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ancestor(parent: u32, name: &str, program: Option<&str>) -> Ancestor {
        Ancestor {
            parent,
            name: name.to_owned(),
            program: program.map(str::to_owned),
        }
    }

    #[test]
    fn a_hermes_is_found_however_far_above() {
        let look = |process| match process {
            9 => Some(ancestor(8, "bash", Some("/bin/bash"))),
            8 => Some(ancestor(7, "x) R 1 (", None)),
            7 => Some(ancestor(6, "hermes", None)),
            _ => None,
        };
        assert_eq!(find_above(9, look), Some(7));
        assert_eq!(find_above(6, look), None, "what is above it is no Hermes");
        assert_eq!(
            find_above(1, |_| Some(ancestor(1, "x", None))),
            Some(1),
            "no way up"
        );
    }

    #[test]
    fn a_script_of_the_same_name_is_no_hermes() {
        for (program, expected) in [
            (None, true),
            (Some("/usr/bin/hermes (deleted)"), true),
            (Some("/tmp/renamed"), true),
            (Some("/usr/bin/bash"), false),
            (Some("/usr/bin/python3.12"), false),
        ] {
            assert_eq!(
                is_hermes(&ancestor(1, "hermes", program)),
                expected,
                "{program:?}"
            );
        }
        assert!(!is_hermes(&ancestor(1, "cargo", None)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_with_brackets_is_read() {
        let read = system::parse("12 (a) (b) S 7 12 12 0", None);
        assert_eq!(read, Some(ancestor(7, "a) (b", None)));
        assert!(system::look(std::process::id()).is_some());
    }
}
