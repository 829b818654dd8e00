//! Kills the commands that are running should this process die without a chance to do it.
//!
//! A small shell process reads the ids of running process groups from a pipe. The kernel closes the pipe when we die,
//! however we die; the watchdog then kills the groups it was not told to forget, and ends. It is started with the first
//! command, and ends with the [`Watchdog`].
//!
//! Out of reach are a process that leaves its group (`setsid`), as for every other way of stopping it, and a command
//! that was started in the very moment we die, before the watchdog was told.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;

/// Keeps a list of groups with a space on both sides of each. At the end of input it kills those that are left.
///
/// Signals that a terminal or a service manager sends to everyone are ignored: it is needed until its parent is gone.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r action group; do
    case "$action:$groups" in
        watch:*) groups="$groups$group " ;;
        forget:*" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
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
    /// Makes sure that it runs, so that the group of the next command can be told to it in no time.
    ///
    /// Best effort: a machine without `/bin/sh` still runs commands, unguarded.
    pub(crate) fn wake(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = |process: &mut Process| matches!(process.child.try_wait(), Ok(None));
        if !process.as_mut().is_some_and(is_running) {
            *process = Process::start().ok();
        }
    }

    pub(crate) fn watch(&self, group: Pid) {
        self.tell("watch", group);
    }

    pub(crate) fn forget(&self, group: Pid) {
        self.tell("forget", group);
    }

    fn tell(&self, action: &str, group: Pid) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = process
            .as_mut()
            .and_then(|process| process.entries.as_mut());
        if let Some(entries) = entries {
            // One that somebody killed is started again for the next command.
            let _ = entries.write_all(format!("{action} {group}\n").as_bytes());
        }
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
