//! The port to processes that run on beside the conversation.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::message::{Origin, Part};
use crate::session::UserMessage;
use crate::terminal::{ShellCommand, TerminalError};
use crate::tool::BoxFuture;

/// What stands before a notice, for the model.
const NEWS: &str = "News of a process in the background:\n";

/// A notice of [`Processes::notice`] as the model is told it. Its words are no person's, so that nothing in them is a reference
/// to a file.
pub fn news(notice: String) -> UserMessage {
    let parts = vec![Part::text(NEWS), Part::text(notice)];
    UserMessage::of(parts).with_origin(Origin::Notice)
}

/// Processes in the background, each of one session.
///
/// They outlive the program that started them: after a restart they are found again, with their output, or reported
/// lost. A session sees its own only.
pub trait Processes: Send + Sync {
    /// Starts a command in the shell of its session and returns at once.
    fn start(
        &self,
        command: ShellCommand,
        notify_on: NotifyOn,
    ) -> BoxFuture<'_, Result<ProcessStatus, ProcessError>>;

    fn list<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>>;

    /// Looks at one process; the status carries the last `tail_bytes` of what it printed.
    fn look<'a>(
        &'a self,
        process: ProcessName<'a>,
        tail_bytes: usize,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>>;

    /// Waits until it ended, or as long as it may take. Whoever waits needs no notice of the end.
    fn wait<'a>(
        &'a self,
        process: ProcessName<'a>,
        timeout: Duration,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>>;

    /// Kills it with everything it started.
    fn kill<'a>(
        &'a self,
        process: ProcessName<'a>,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>>;

    /// Types into it.
    fn write<'a>(
        &'a self,
        process: ProcessName<'a>,
        input: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Ends its input.
    fn close<'a>(&'a self, process: ProcessName<'a>) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Waits for the next thing a session asked to be told. Dropping the future loses nothing.
    fn notice<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, String>;

    /// Whether a session asked to be told of a process, and that is still to come.
    fn owes_notice(&self, session: &SessionId) -> bool;

    /// Kills what the sessions that were served here left running: they are over.
    fn leave(&self) -> BoxFuture<'_, ()>;
}

/// Which process: an id means nothing outside its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessName<'a> {
    pub session: &'a SessionId,
    pub id: &'a str,
}

/// What a session is notified of when it starts a process in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotifyOn {
    pub tell_end: bool,
    /// Words to look for in each line it prints.
    pub watch_for: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStatus {
    pub id: String,
    pub line: String,
    pub cwd: PathBuf,
    pub pid: Option<u32>,
    pub started_at: Timestamp,
    pub uptime: Duration,
    pub state: ProcessState,
    /// The end of what it printed, as far as it was asked for.
    pub tail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    Running,
    Exited(i32),
    Killed,
    /// It is gone, and nobody saw how.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    #[error("there is no process `{id}` in this session; `list` shows those there are")]
    Unknown { id: String },
    #[error("`{id}` is not running")]
    NotRunning { id: String },
    #[error("{limit} background processes are running already; end one with `kill` first")]
    TooMany { limit: usize },
    #[error("cannot keep a record of the process: {detail}")]
    NotRecorded { detail: String },
    #[error("{detail}")]
    Failed { detail: String },
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}
