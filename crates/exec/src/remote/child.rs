//! A line that is the standard input and output of a program here, such as `ssh`.

use std::fs;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use hermes_core::Random;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStdout, Command};

use super::RunningScript;

/// More than such a program ever says when it fails.
const COMPLAINT_BYTES_MAX: usize = 4096;

/// Starts the program. What it complains about is kept in a nameless file in `scratch`, a folder that is made when it is
/// needed, and comes at the end of its output.
pub(crate) fn open(program: std::process::Command, scratch: &Path) -> io::Result<RunningScript> {
    make_private(scratch)?;
    let complaints = nameless_file(scratch)?;
    let mut child = Command::from(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not a pipe: a connection that `ssh` shares keeps it, and we would wait for its end.
        .stderr(complaints.try_clone()?)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no standard input or output"));
    };
    Ok(RunningScript {
        input: Box::new(input),
        output: Box::new(ChildOutput {
            output,
            complaints: Some(complaints),
            _child: child,
        }),
    })
}

/// What the program brings from there, and at the end what it has to say itself. The child goes with it.
struct ChildOutput {
    output: ChildStdout,
    complaints: Option<fs::File>,
    _child: Child,
}

impl AsyncRead for ChildOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buffer))?;
        let is_over = buffer.filled().len() == filled;
        if let (true, Some(mut complaints)) = (is_over, self.complaints.take_if(|_| is_over)) {
            let mut said = vec![0; buffer.remaining().min(COMPLAINT_BYTES_MAX)];
            complaints.rewind()?;
            let len = complaints.read(&mut said)?;
            buffer.put_slice(&said[..len]);
        }
        Poll::Ready(Ok(()))
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// A file that is gone when nobody has it open any more.
fn nameless_file(folder: &Path) -> io::Result<fs::File> {
    let name = format!("said-{:016x}", Random::from_system().next_u64());
    let path = folder.join(name);
    let file = fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
