//! A line into a sandbox: one process there, its input written and its output read piece by piece.
//!
//! Pieces have offsets, so a lost connection is taken up again where it broke. Modal lets a process run on when nobody reads
//! any more: we end its input when we turn away, and should we be killed, the script `line.sh` does so after a while
//! without a sign of us.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hermes_core::{BoxFuture, Random};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf,
};
use tokio::time::{Instant, sleep};

use super::cloud::Sandbox;
use super::grpc::{GrpcError, code};
use super::messages::{
    STDERR_TO_STDOUT, STDOUT_TO_PIPE, TaskExecStart, TaskExecStdinWrite, TaskExecStdioRead,
};
use crate::remote::RunningScript;
use crate::shell::quoted;

/// How often we say that we still listen: well within what `line.sh` waits for.
const SIGN_INTERVAL: Duration = Duration::from_secs(4);

/// How long a lost connection is tried again. Later, the sandbox has ended the command.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Modal takes 64 KiB of arguments; this much of them may be ours to choose.
const ARGUMENT_BYTES_MAX: usize = 48 * 1024;

/// One piece of input, and what may wait to be taken on either side.
const PIECE_BYTES: usize = 64 * 1024;

/// A process in a sandbox.
pub(super) struct Exec {
    sandbox: Arc<Sandbox>,
    id: String,
    start: TaskExecStart,
    /// What `line.sh` reads before the input proper.
    script: String,
    /// How much input has arrived there.
    fed: AtomicU64,
}

impl Exec {
    /// Prepares `sh -c args…`.
    pub(super) fn new(sandbox: Arc<Sandbox>, args: &[String], random: &Random) -> Self {
        let id = new_id(random);
        let is_short = args.iter().map(String::len).sum::<usize>() <= ARGUMENT_BYTES_MAX;
        let script = if is_short {
            String::new()
        } else {
            exec_script(args)
        };
        let mut words: Vec<String> = ["sh", "-c", include_str!("line.sh"), "hermes"]
            .map(str::to_owned)
            .into();
        words.extend([id.clone(), script.len().to_string()]);
        words.extend(args.iter().filter(|_| is_short).cloned());
        let start = TaskExecStart {
            task_id: sandbox.task.clone(),
            exec_id: id.clone(),
            command_args: words,
            stdout_config: STDOUT_TO_PIPE,
            stderr_config: STDERR_TO_STDOUT,
        };
        Self {
            sandbox,
            id,
            start,
            script,
            fed: AtomicU64::new(0),
        }
    }

    /// Starts the process. Asking twice starts one.
    pub(super) async fn start(&self) -> Result<(), GrpcError> {
        self.sandbox.ask(&self.start).await.map(drop)
    }

    /// Carries input and output of the process, for as long as the output is read.
    pub(super) fn into_running(self) -> RunningScript {
        let (theirs, ours) = tokio::io::duplex(PIECE_BYTES);
        let (output, input) = tokio::io::split(theirs);
        RunningScript {
            input: Box::new(input),
            output: Box::new(Carried {
                output,
                carrying: Some(Box::pin(self.carry(ours))),
            }),
        }
    }

    async fn carry(self, ours: DuplexStream) {
        let (input, output) = tokio::io::split(ours);
        tokio::select! {
            () = self.read(output) => {}
            () = self.feed(input) => {}
            () = self.give_signs() => {}
        }
    }

    /// Brings the output until it ends, or until its loss is certain.
    async fn read(&self, mut output: impl AsyncWrite + Unpin) {
        let mut offset = 0;
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            let (began, before) = (Instant::now(), offset);
            let Err(error) = self.read_from(&mut offset, &mut output).await else {
                return;
            };
            // It had held until now.
            if offset > before || began.elapsed() > PATIENCE {
                deadline = Instant::now() + PATIENCE;
            }
            let is_stale = error.has_code(&[code::UNAUTHENTICATED]);
            if !(error.is_passing() || is_stale) || Instant::now() > deadline {
                // Read by whoever wonders why the line ended.
                let _ = output.write_all(error.to_string().as_bytes()).await;
                return;
            }
            if is_stale {
                // Should this fail, the next try says why.
                let _ = self.sandbox.renew().await;
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn read_from(
        &self,
        offset: &mut u64,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), GrpcError> {
        let read = TaskExecStdioRead {
            task_id: self.sandbox.task.clone(),
            exec_id: self.id.clone(),
            offset: *offset,
        };
        let mut chunks = self.sandbox.router().listen(&read).await?;
        while let Some(chunk) = chunks.next().await? {
            *offset += chunk.data.len() as u64;
            if output.write_all(&chunk.data).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes the input there. Never returns: a command need not read what it is given.
    async fn feed(&self, mut input: impl AsyncRead + Unpin) {
        let mut piece = self.script.clone().into_bytes();
        loop {
            if piece.is_empty() {
                piece.resize(PIECE_BYTES, 0);
                let len = input.read(&mut piece).await.unwrap_or(0);
                piece.truncate(len);
            }
            let len = piece.len() as u64;
            let written = self.write(&self.input(std::mem::take(&mut piece))).await;
            if len == 0 || written.is_err() {
                return std::future::pending().await;
            }
            self.fed.fetch_add(len, Ordering::Relaxed);
        }
    }

    /// The next piece of input. An empty one is the end.
    fn input(&self, data: Vec<u8>) -> TaskExecStdinWrite {
        TaskExecStdinWrite {
            task_id: self.sandbox.task.clone(),
            exec_id: self.id.clone(),
            offset: self.fed.load(Ordering::Relaxed),
            eof: data.is_empty(),
            data,
        }
    }

    async fn write(&self, write: &TaskExecStdinWrite) -> Result<(), GrpcError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.sandbox.ask(write).await {
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    sleep(RETRY_INTERVAL).await;
                }
                written => return written.map(drop),
            }
        }
    }

    /// Tells the sandbox that we still listen.
    async fn give_signs(&self) {
        let touch = format!(r#": >"${{TMPDIR:-/tmp}}/hermes-line-{}""#, self.id);
        for number in 1_u64.. {
            sleep(SIGN_INTERVAL).await;
            let sign = TaskExecStart {
                task_id: self.sandbox.task.clone(),
                exec_id: format!("{}-{number}", self.id),
                command_args: ["sh", "-c", &touch].map(str::to_owned).into(),
                ..TaskExecStart::default()
            };
            // The next one may do better.
            let _ = self.sandbox.ask(&sign).await;
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.sandbox.send_off(self.input(Vec::new()));
    }
}

/// Output that brings itself while it is read.
struct Carried {
    output: ReadHalf<DuplexStream>,
    /// Until the process has nothing more to say.
    carrying: Option<BoxFuture<'static, ()>>,
}

impl AsyncRead for Carried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = &mut *self;
        if let Some(carrying) = &mut this.carrying
            && carrying.as_mut().poll(cx).is_ready()
        {
            this.carrying = None;
        }
        Pin::new(&mut this.output).poll_read(cx, buffer)
    }
}

/// The same as `sh -c args…`, as a script.
fn exec_script(args: &[String]) -> String {
    let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    format!("exec sh -c {}", words.join(" "))
}

/// A name that nobody else has thought of, in the form of a UUID.
pub(super) fn new_id(random: &Random) -> String {
    let (high, low) = (random.next_u64(), random.next_u64());
    let hex = format!("{high:016x}{low:016x}");
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..],
    );
    format!("{a}-{b}-4{c}-a{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_uuids_of_the_random_kind() {
        let random = Random::from_system();
        let id = new_id(&random);
        let lens: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lens, [8, 4, 4, 4, 12], "{id}");
        assert_eq!((&id[14..15], &id[19..20]), ("4", "a"), "{id}");
        assert_ne!(id, new_id(&random));
    }
}
