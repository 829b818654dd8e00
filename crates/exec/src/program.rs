//! Runs single programs for other parts of Hermes, without a shell between.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use hermes_core::TerminalError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::group::ProcessGroup;

/// More than any answer we ask a program for; the rest is left out.
const OUTPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a program printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program to its end and returns what it printed.
///
/// The program gets the given environment only (see [`crate::child_environment`]) and an empty standard input. After
/// `timeout`, or when the future is dropped, it is killed with everything it started.
pub async fn output(
    program: &str,
    args: impl IntoIterator<Item: AsRef<OsStr>>,
    environment: &[(OsString, OsString)],
    cwd: &Path,
    timeout: Duration,
) -> Result<ProgramOutput, TerminalError> {
    let program = Program {
        name: program,
        args: args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect(),
        environment,
        cwd,
        stdin: &[],
        output_bytes_max: OUTPUT_BYTES_MAX,
        timeout,
    };
    let output = program.run().await?;
    Ok(ProgramOutput {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The same for a program that reads what it is told; of each of its streams so many bytes are kept.
pub async fn filter(
    program: &str,
    args: impl IntoIterator<Item: AsRef<OsStr>>,
    environment: &[(OsString, OsString)],
    cwd: &Path,
    stdin: &[u8],
    (output_bytes_max, timeout): (u64, Duration),
) -> Result<ProgramOutput, TerminalError> {
    let program = Program {
        name: program,
        args: args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect(),
        environment,
        cwd,
        stdin,
        output_bytes_max,
        timeout,
    };
    let output = program.run().await?;
    Ok(ProgramOutput {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A program, what it is given, and how much of it is waited for.
pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) cwd: &'a Path,
    pub(crate) stdin: &'a [u8],
    /// Of each stream; the rest is left out.
    pub(crate) output_bytes_max: u64,
    pub(crate) timeout: Duration,
}

pub(crate) struct RawOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Program<'_> {
    /// Runs it to its end. After the timeout, or when the future is dropped, it is killed with everything it started.
    pub(crate) async fn run(self) -> Result<RawOutput, TerminalError> {
        let Self { name, timeout, .. } = self;
        if !self.cwd.is_dir() {
            return Err(TerminalError::NoSuchDirectory {
                path: self.cwd.to_owned(),
            });
        }
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| TerminalError::NotStarted {
                shell: name.to_owned(),
                detail: error.to_string(),
            })?;
        let lost = |detail: String| TerminalError::Lost { detail };
        let group = ProcessGroup::led_by(&child, None).ok_or_else(|| lost(format!("`{name}`")))?;
        let input = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut input) = input {
                // A program need not read what it is given.
                let _ = input.write_all(self.stdin).await;
            }
            Ok(())
        };
        let limit = self.output_bytes_max;
        let run = async {
            tokio::try_join!(
                read_limited(stdout, limit),
                read_limited(stderr, limit),
                write,
                child.wait()
            )
        };
        let (stdout, stderr, (), status) = tokio::time::timeout(timeout, run)
            .await
            .map_err(|_| lost(format!("`{name}` did not finish within {timeout:?}")))?
            .map_err(|error| lost(format!("`{name}`: {error}")))?;
        group.release();
        Ok(RawOutput {
            status,
            stdout,
            stderr,
        })
    }

    fn command(&self) -> Command {
        let stdin = if self.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let mut command = command(self.name);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }
}

/// Runs a program that takes over the terminal, such as an editor, and waits for it. Blocks the thread.
///
/// It is the user's own program at the user's own keyboard, so it inherits everything.
#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
pub fn interactive(
    program: &str,
    args: impl IntoIterator<Item: AsRef<OsStr>>,
    cwd: &Path,
) -> io::Result<ExitStatus> {
    std::process::Command::new(program)
        .args(args)
        .current_dir(cwd)
        .status()
}

/// Starts a program that goes its own way, such as a browser, and does not wait for it.
///
/// It is the user's own program, so it inherits the environment; it hears and says nothing here.
#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
pub fn launch(program: &str, args: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<()> {
    use std::os::unix::process::CommandExt as _;
    std::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}

/// Starts a program of ours that goes on when we end, with what it says in this file.
///
/// It is Hermes itself, so it inherits the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
pub fn detach(
    program: &Path,
    args: impl IntoIterator<Item: AsRef<OsStr>>,
    cwd: &Path,
    log: File,
) -> io::Result<Child> {
    let errors = log.try_clone()?;
    let mut command = if cfg!(target_os = "linux") {
        std::process::Command::new(program)
    } else {
        // Elsewhere it is told from what models start by its parent, which ends at once.
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "\"$@\" &", "sh"]).arg(program);
        shell
    };
    command
        .args(args)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
}

/// Becomes another program: returns only if that cannot be.
#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
pub fn become_program(program: &Path, args: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Error {
    use std::os::unix::process::CommandExt as _;
    std::process::Command::new(program).args(args).exec()
}

/// Finds a program on the `PATH` of the given environment.
pub(crate) fn find(name: &str, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let path = environment.iter().find(|(variable, _)| variable == "PATH");
    let folders = std::env::split_paths(&path?.1);
    let is_program = |path: &PathBuf| {
        let data = path.metadata();
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_absolute() && is_program(path))
}

#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

async fn read_limited(
    source: Option<impl AsyncRead + Unpin>,
    bytes_max: u64,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        let mut source = source.take(bytes_max);
        source.read_to_end(&mut bytes).await?;
        // Read on, so that the program does not wait for us for ever.
        tokio::io::copy(source.get_mut(), &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}
