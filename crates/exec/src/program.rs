//! Runs single programs for other parts of Hermes, without a shell between.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hermes_core::TerminalError;
use tokio::io::{AsyncRead, AsyncReadExt};
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
    if !cwd.is_dir() {
        return Err(TerminalError::NoSuchDirectory {
            path: cwd.to_owned(),
        });
    }
    let mut child = command(program)
        .args(args)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| TerminalError::NotStarted {
            shell: program.to_owned(),
            detail: error.to_string(),
        })?;
    let lost = |detail: String| TerminalError::Lost { detail };
    let group = ProcessGroup::led_by(&child, None).ok_or_else(|| lost(format!("`{program}`")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let run = async { tokio::try_join!(read_limited(stdout), read_limited(stderr), child.wait()) };
    let (stdout, stderr, status) = tokio::time::timeout(timeout, run)
        .await
        .map_err(|_| lost(format!("`{program}` did not finish within {timeout:?}")))?
        .map_err(|error| lost(format!("`{program}`: {error}")))?;
    group.release();
    Ok(ProgramOutput {
        status,
        stdout,
        stderr,
    })
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

async fn read_limited(source: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        let mut source = source.take(OUTPUT_BYTES_MAX);
        source.read_to_end(&mut bytes).await?;
        // Read on, so that the program does not wait for us for ever.
        tokio::io::copy(source.get_mut(), &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
