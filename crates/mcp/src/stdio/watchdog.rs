//! Kills a server's process group should this process die without a chance to do it.
//!
//! A small shell waits for words on a pipe. The kernel closes the pipe when we die, however we die, and the shell then
//! kills the group, and whoever bears the family's mark; told that it is done, it just ends. It is there before the server:
//! a child holds our pipe until it is the server, so that there is no moment in which nobody knows of it. Out of reach is a
//! process that leaves its group (`setsid`) and clears its environment.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Reads the group, or `done`. Signals that a terminal or a service manager sends to everyone are ignored: it is needed
/// until its parent is gone.
///
/// One `grep` looks through all processes: a program for each would take a second on a busy machine, and servers would
/// live that long.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
group=
while read -r word; do
    case $word in
        done) exit ;;
        *) group=$word ;;
    esac
done
test -n "$group" && kill -s KILL -- "-$group"
for file in $(grep -lsaF -e "$1" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    kill -s KILL -- "${file%/environ}"
done"#;

#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Starts watching over the family that will bear a mark. Best effort: a machine without `/bin/sh` runs servers
    /// unguarded.
    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-mcp owns the processes of its servers"
    )]
    pub(super) fn over(mark: &str) -> Option<Self> {
        let spawned = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "hermes-mcp-watchdog", mark])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to our group; the watchdog has its own.
            .process_group(0)
            .spawn();
        spawned.ok().map(Self)
    }

    /// Tells the group of the server, which is all there is to go by without `/proc`.
    pub(super) fn add_group(&mut self, group: Pid) {
        self.tell(&group.to_string());
    }

    fn tell(&mut self, word: &str) {
        if let Some(pipe) = &mut self.0.stdin {
            // One that somebody killed has nothing left to be told.
            let _ = pipe.write_all(format!("{word}\n").as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.tell("done");
        drop(self.0.stdin.take());
        // It ends at once; waiting takes it off the process table.
        let _ = self.0.wait();
    }
}
