//! Runs shell commands on this machine.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hermes_core::{BoxFuture, CommandExit, CommandOutput, ShellCommand, Terminal, TerminalError};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use crate::capture::Capture;
use crate::group::ProcessGroup;
use crate::watchdog::Watchdog;

/// Tried in order. Models write bash; a machine without it still has a POSIX shell.
const SHELLS: &[&str] = &["bash", "sh"];

/// A pipe holds 64 KiB on Linux, so one read can empty it.
const READ_BYTES: usize = 64 * 1024;

/// How long a stopped command may clean up. A turn must react to an interrupt within 100 ms, reading the rest included.
const STOP_GRACE: Duration = Duration::from_millis(50);

/// How long a command that timed out may clean up. Nobody waits at the keyboard, so it gets longer.
const TIMEOUT_GRACE: Duration = Duration::from_millis(200);

/// How long we read on after the shell ended. What it waited for is in the pipe already; this is for the likes of
/// `tee >(…)`, and not for a server left in the background that holds the pipe open for ever.
const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(100);

/// The same after a kill: everything that could write is dead.
const DRAIN_AFTER_KILL: Duration = Duration::from_millis(20);

/// The machine Hermes runs on.
///
/// Commands get the given environment and nothing else, an empty standard input, and a process group of their own.
/// A background process outlives a command that ended by itself, but not one that was stopped, timed out or dropped.
#[derive(Debug)]
pub struct Local {
    environment: Vec<(OsString, OsString)>,
    watchdog: Watchdog,
}

impl Local {
    pub fn new(environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            environment,
            watchdog: Watchdog::default(),
        }
    }

    async fn run(&self, command: ShellCommand) -> Result<CommandOutput, TerminalError> {
        let started = Instant::now();
        let mut capture = Capture::new(command.output_bytes_max, command.progress.clone());
        if command.stop.is_cancelled() {
            return Ok(finished(capture, CommandExit::Stopped, started));
        }
        self.watchdog.wake();
        let (mut child, mut output) = self.start(&command)?;
        let group = ProcessGroup::led_by(&child, Some(&self.watchdog))
            .ok_or_else(|| lost("the shell has no process id"))?;

        let exit = tokio::select! {
            status = exit_while_reading(&mut child, &mut output, &mut capture) => {
                exit_of(status.map_err(|error| lost(error.to_string()))?)
            }
            () = command.stop.cancelled() => CommandExit::Stopped,
            () = sleep(command.timeout) => CommandExit::TimedOut,
        };
        let drain = match exit {
            CommandExit::Code(_) | CommandExit::Signal(_) => {
                group.release();
                DRAIN_AFTER_EXIT
            }
            CommandExit::Stopped => {
                group.end(&mut child, STOP_GRACE).await;
                DRAIN_AFTER_KILL
            }
            CommandExit::TimedOut => {
                group.end(&mut child, TIMEOUT_GRACE).await;
                DRAIN_AFTER_KILL
            }
        };
        // Running out of time means that somebody holds the pipe open; what was read is kept.
        let _ = timeout(drain, read_to_end(&mut output, &mut capture)).await;
        Ok(finished(capture, exit, started))
    }

    fn start(&self, command: &ShellCommand) -> Result<(Child, pipe::Receiver), TerminalError> {
        let mut last = None;
        for shell in SHELLS {
            match self.spawn(shell, command) {
                Ok(started) => return Ok(started),
                Err(error) => {
                    let try_next = error.kind() == ErrorKind::NotFound;
                    last = Some((shell, error));
                    if !try_next {
                        break;
                    }
                }
            }
        }
        // The system reports a missing directory and a missing shell in the same words.
        if !command.cwd.is_dir() {
            return Err(TerminalError::NoSuchDirectory {
                path: command.cwd.clone(),
            });
        }
        let (shell, detail) = last.map_or(("sh", "no shell".to_owned()), |(shell, error)| {
            (shell, error.to_string())
        });
        Err(TerminalError::NotStarted {
            shell: shell.to_owned(),
            detail,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-exec owns child processes"
    )]
    fn spawn(&self, shell: &str, command: &ShellCommand) -> io::Result<(Child, pipe::Receiver)> {
        // One pipe for both keeps errors beside the output they belong to.
        let (reader, writer) = io::pipe()?;
        let child = Command::new(shell)
            .arg("-c")
            .arg(&command.line)
            .current_dir(&command.cwd)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("PWD", &command.cwd)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        Ok((child, output))
    }
}

impl Terminal for Local {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        Box::pin(self.run(command))
    }
}

async fn exit_while_reading(
    child: &mut Child,
    output: &mut pipe::Receiver,
    capture: &mut Capture,
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => return status,
        // The command closed its output, or cannot be read; it still runs.
        _ = read_to_end(output, capture) => {}
    }
    child.wait().await
}

async fn read_to_end(output: &mut pipe::Receiver, capture: &mut Capture) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    loop {
        match output.read(&mut chunk).await? {
            0 => return Ok(()),
            len => capture.push(&chunk[..len]),
        }
        // A flood is always ready to be read; let whoever waits beside us see a stop or a timeout.
        yield_now().await;
    }
}

fn exit_of(status: ExitStatus) -> CommandExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Code(code),
        (None, Some(signal)) => CommandExit::Signal(signal),
        (None, None) => CommandExit::Code(status.into_raw()),
    }
}

fn finished(capture: Capture, exit: CommandExit, started: Instant) -> CommandOutput {
    let captured = capture.finish();
    CommandOutput {
        text: captured.text,
        omitted_bytes: captured.omitted_bytes,
        exit,
        elapsed: started.elapsed(),
    }
}

fn lost(detail: impl Into<String>) -> TerminalError {
    TerminalError::Lost {
        detail: detail.into(),
    }
}
