//! The port to places where commands run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fence::Pass;
use crate::id::SessionId;
use crate::tool::{BoxFuture, Progress};
use tokio_util::sync::CancellationToken;

/// A place that runs shell commands: this machine, a container, another host.
///
/// Each session has a shell of its own there. What a command leaves in it, the next one finds: the folder, variables,
/// functions, aliases and options, also after `exit`. A command that is killed leaves nothing: the shell is as it was
/// before. Commands of one session may run at once; the last to end decides what is found.
///
/// A command that times out or is stopped is killed with everything it started. Dropping the future does the same.
pub trait Terminal: Send + Sync {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>>;

    /// Returns the folder in which the next command of a session begins, when it is on this machine. `cwd` is where a
    /// new shell begins.
    fn folder_here(&self, _session: &SessionId, _cwd: &Path) -> Option<PathBuf> {
        None
    }

    /// Says what a program's name means to the next command of a session, where that is known.
    fn finds(&self, _session: &SessionId, _program: &str) -> Option<Found> {
        None
    }

    /// Forgets what is kept in memory for a session that is no longer open. Its shell stays, for when it is taken up again.
    fn close_session(&self, _session: &SessionId) {}

    /// Returns what somebody should know about the place that no command printed. Each thing is told once.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Kills what a command left running on this machine, by the command's mark. Other machines see to it themselves.
    fn end_marked(&self, _mark: &str) {}

    /// Ends our stay, when no command runs any more: brings back what belongs here and removes what must not stay there.
    /// What came of it is among the notices.
    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// Whose shell runs it.
    pub session: SessionId,
    pub line: String,
    /// Where a new shell begins.
    pub cwd: PathBuf,
    /// A folder for this command only.
    pub workdir: Option<PathBuf>,
    pub stdin: Vec<u8>,
    /// Whether it is to believe that a person sits at a terminal.
    pub pty: bool,
    pub timeout: Duration,
    pub output_bytes_max: usize,
    /// What it may do beyond the fence, where there is one.
    pub pass: Pass,
    /// What everything it starts carries in its environment, where the caller must know that beforehand. Sixteen digits from
    /// 0 to f; made up when there is none.
    pub mark: Option<String>,
    pub stop: CancellationToken,
    pub progress: Progress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Standard output and error as they came, interleaved. The middle is cut out when there was too much.
    pub text: String,
    /// Bytes that were cut out.
    pub omitted_bytes: u64,
    pub exit: CommandExit,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    Code(i32),
    Signal(i32),
    TimedOut,
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    #[error("the working directory `{}` does not exist, or this user may not enter it", path.display())]
    NoSuchDirectory { path: PathBuf },
    #[error("cannot start `{shell}`: {detail}")]
    NotStarted { shell: String, detail: String },
    #[error("lost the command while it ran: {detail}")]
    Lost { detail: String },
}

/// What a program's name means to a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A function or an alias, whatever it does.
    Shadowed,
    File(PathBuf),
    /// No file; what the shell has built in needs none.
    Nothing,
}
