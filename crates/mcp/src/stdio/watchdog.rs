//! Kills a server's process group should this process die without a chance to do it.
//!
//! A small shell waits for a word on a pipe. The kernel closes the pipe when we die, however we die, and the shell then
//! kills the group, and whoever bears the family's mark; told the word, it just ends. Out of reach are a process that
//! leaves its group (`setsid`) and clears its environment, and a server that was started in the very moment we die.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Signals that a terminal or a service manager sends to everyone are ignored: it is needed until its parent is gone.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
read -r word && exit
kill -s KILL -- "-$1"
for file in /proc/[0-9]*/environ; do
    process="${file#/proc/}"
    tr '\000' '\n' <"$file" | grep -qxF -- "$2" && kill -s KILL -- "${process%/environ}"
done"#;

#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Starts watching over a group. Best effort: a machine without `/bin/sh` runs servers unguarded.
    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-mcp owns the processes of its servers"
    )]
    pub(super) fn over(group: Pid, mark: &str) -> Option<Self> {
        let spawned = Command::new("/bin/sh")
            .args([
                "-c",
                SCRIPT,
                "hermes-mcp-watchdog",
                &group.to_string(),
                mark,
            ])
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
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // One that somebody killed has nothing left to be told.
            let _ = pipe.write_all(b"done\n");
        }
        // It ends at once; waiting takes it off the process table.
        let _ = self.0.wait();
    }
}
