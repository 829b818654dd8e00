//! Kills the commands that are running should this process die without a chance to do it.
//!
//! A small shell process reads from a pipe what is running. The kernel closes the pipe when we die, however we die; the
//! watchdog then kills what it was not told to forget, and ends. It is started with the first command, and ends with the
//! [`Watchdog`].
//!
//! A command is known to it by its mark before it is started, so that there is no moment in which nobody knows of it: a
//! child holds our pipe until it is the command. By the mark it finds also what left the group (`setsid`). Where there is no
//! `/proc`, only the group is left to go by, which is known a moment after the start.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;

/// Keeps a list of names with a space on both sides of each: a group with its minus, or a mark. At the end of input it
/// kills those that are left.
///
/// Signals that a terminal or a service manager sends to everyone are ignored: it is needed until its parent is gone.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
watched=' '
while read -r action name; do
    case "$action:$watched" in
        watch:*) watched="$watched$name " ;;
        forget:*" $name "*) watched="${watched%% $name *} ${watched#* $name }" ;;
    esac
done
for name in $watched; do
    case $name in
        -*) kill -s KILL -- "$name" ;;
        *)
            for found in $(grep -lsa -e "$name" /proc/[0-9]*/cmdline /proc/[0-9]*/environ); do
                found=${found#/proc/}
                found=${found%%/*}
                kill -s KILL -- "-$found" "$found"
            done
            ;;
    esac
done
"#;

#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Taken when the process is told to end.
    entries: Option<ChildStdin>,
}

impl Watchdog {
    /// Watches over a command that is about to start, by its mark.
    ///
    /// Best effort: a machine without `/bin/sh` still runs commands, unguarded.
    pub(crate) fn watch(&self, mark: &str) -> Watched<'_> {
        self.wake();
        let mut watched = Watched {
            watchdog: self,
            names: Vec::new(),
        };
        watched.add(mark.to_owned());
        watched
    }

    fn wake(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = |process: &mut Process| matches!(process.child.try_wait(), Ok(None));
        if !process.as_mut().is_some_and(is_running) {
            *process = Process::start().ok();
        }
    }

    /// Tells one or more lines, each an action and a name.
    fn tell(&self, lines: &str) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = process
            .as_mut()
            .and_then(|process| process.entries.as_mut());
        if let Some(entries) = entries {
            // One that somebody killed is started again for the next command.
            let _ = entries.write_all(lines.as_bytes());
        }
    }
}

/// A command that is watched over until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    watchdog: &'a Watchdog,
    names: Vec<String>,
}

impl Watched<'_> {
    /// Tells also the group of the command.
    pub(crate) fn add_group(&mut self, group: Pid) {
        self.add(format!("-{group}"));
    }

    fn add(&mut self, name: String) {
        self.watchdog.tell(&format!("watch {name}\n"));
        self.names.push(name);
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let lines = self.names.iter().map(|name| format!("forget {name}\n"));
        self.watchdog.tell(&lines.collect::<String>());
    }
}

impl Process {
    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-exec owns child processes"
    )]
    fn start() -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "hermes-watchdog"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to our group; the watchdog has its own.
            .process_group(0)
            .spawn()?;
        let entries = child.stdin.take();
        Ok(Self { child, entries })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.entries.take());
        // It ends by itself at the end of its input; waiting takes it off the process table.
        let _ = self.child.wait();
    }
}
