//! The process of a server, and everything it started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hermes_core::Secret;
use hermes_os::ProcessGroup;
use rustix::process::Signal;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::family::{Effort, Family, MARK};
use super::watchdog::Watchdog;
use crate::failure::Failure;

/// After this long without effect, a request to end becomes an order.
const GRACE: Duration = Duration::from_secs(2);

/// How often we look for what a family has started while it was killed.
const FAMILY_LOOKS_MAX: usize = 5;

/// How to start a server.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) environment: BTreeMap<String, Secret>,
    pub(crate) cwd: Option<PathBuf>,
}

/// A running server. Dropping it kills its whole group, and what has left it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: ProcessGroup,
    family: Family,
    _watchdog: Option<Watchdog>,
}

/// The pipes of a process that was just started.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Process {
    pub(crate) fn start(program: &Program) -> Result<(Self, Pipes), Failure> {
        let name = Family::new_name();
        let mut watchdog = Watchdog::over(&Family::mark_of(&name));
        let mut child = command(program, &name).spawn().map_err(|error| {
            let cause = format!("cannot start `{}`: {error}", program.command);
            match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                    Failure::Misconfigured { cause }
                }
                _ => Failure::Unreachable { cause },
            }
        })?;
        let group = ProcessGroup::led_by(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(group), (Some(stdin), Some(stdout), Some(stderr))) = (group, pipes) else {
            return Err(Failure::Unreachable {
                cause: format!("`{}` ended as it was started", program.command),
            });
        };
        if let Some(watchdog) = &mut watchdog {
            watchdog.add_group(group.id());
        }
        let process = Self {
            child,
            family: Family::new(group.id(), &name),
            group,
            _watchdog: watchdog,
        };
        let pipes = Pipes {
            stdin,
            stdout,
            stderr,
        };
        Ok((process, pipes))
    }

    /// Waits until the server itself has ended; its children may go on.
    pub(super) async fn exited(&mut self) {
        // An error means that somebody else has waited for it.
        let _ = self.child.wait().await;
    }

    /// Returns what tells whether it works.
    pub(crate) fn effort(&self) -> Effort {
        Effort::of_group(self.group.id())
    }

    /// Remembers what it has started so far: once it has ended, its children may be hard to find.
    pub(super) fn note_family(&mut self) {
        self.family.look();
    }

    /// Asks every process of the group to end, waits a little, then kills what is left.
    ///
    /// What a server that ended by itself left behind is killed at once: callers wait for this.
    pub(crate) async fn end(mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        self.family.look();
        self.group.signal(Signal::TERM);
        self.family.signal(Signal::TERM);
        let family = &mut self.family;
        let (group, child) = (&mut self.group, &mut self.child);
        group.gone_within(child, GRACE, || family.is_empty()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
        // A member may start another while we look.
        for _ in 0..FAMILY_LOOKS_MAX {
            self.family.look();
            if !self.family.signal(Signal::KILL) {
                break;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "hermes-mcp owns the processes of its servers"
)]
fn command(program: &Program, name: &str) -> Command {
    let mut command = Command::new(&program.command);
    command
        .args(&program.args)
        .env_clear()
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value.expose())),
        )
        .env(MARK, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command
}
