//! A process in a sandbox: input and output with offsets, so that whoever lost the connection can go on.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::MARK;
use super::wire::{ExitAnswer, Refusal, StartRequest, WriteRequest};

/// Output that waits to be read. More of it makes the process wait.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// Kept after it was read, for whoever lost the connection.
const READ_BYTES_KEPT: usize = 1024 * 1024;

const CHUNK_BYTES: usize = 16 * 1024;

const PIPE: i32 = 1;
const STDERR_TO_STDOUT: i32 = 2;

#[derive(Debug)]
pub(super) struct Exec {
    /// Standard output and error.
    pipes: [Arc<Pipe>; 2],
    input: Mutex<Input>,
    exit: watch::Receiver<Option<ExitStatus>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Input {
    taken: u64,
    sender: Option<mpsc::UnboundedSender<Vec<u8>>>,
}

impl Exec {
    /// Starts a process in the files of a sandbox.
    #[expect(clippy::disallowed_methods, reason = "runs commands for a test")]
    pub(super) fn start(home: &Path, mark: &Path, request: &StartRequest) -> std::io::Result<Self> {
        let (program, args) = request
            .command_args
            .split_first()
            .ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("TMPDIR", home)
            .env(MARK, mark)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut tasks = JoinSet::new();
        let pipes = [Arc::new(Pipe::default()), Arc::new(Pipe::default())];
        let output = (request.stdout_config == PIPE).then_some(&pipes[0]);
        let complaints = match request.stderr_config {
            PIPE => Some(&pipes[1]),
            STDERR_TO_STDOUT => output,
            _ => None,
        };
        // All are open before one can end.
        let sources = [output.map(Pipe::source), complaints.map(Pipe::source)];
        let [output, complaints] = sources;
        if let Some(stdout) = child.stdout.take() {
            tasks.spawn(drain(stdout, output));
        }
        if let Some(stderr) = child.stderr.take() {
            tasks.spawn(drain(stderr, complaints));
        }
        let (sender, mut pieces) = mpsc::unbounded_channel::<Vec<u8>>();
        if let Some(mut stdin) = child.stdin.take() {
            tasks.spawn(async move {
                while let Some(piece) = pieces.recv().await {
                    if stdin.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            });
        }
        let (exited, exit) = watch::channel(None);
        tasks.spawn(async move {
            let status = child.wait().await.ok();
            exited.send_replace(status);
        });
        Ok(Self {
            pipes,
            input: Mutex::new(Input {
                taken: 0,
                sender: Some(sender),
            }),
            exit,
            _tasks: tasks,
        })
    }

    /// Takes input. What was taken before is passed over.
    pub(super) fn write(&self, request: &WriteRequest) -> Result<(), Refusal> {
        let mut input = lock(&self.input);
        let known = input.taken.checked_sub(request.offset);
        let known = known.ok_or_else(|| Refusal::new(11, "stdin offset is ahead"))?;
        let piece = request.data.get(known as usize..).unwrap_or_default();
        input.taken += piece.len() as u64;
        if let Some(sender) = &input.sender {
            // A process that has gone reads nothing more.
            let _ = sender.send(piece.to_vec());
        }
        if request.eof {
            input.sender = None;
        }
        Ok(())
    }

    pub(super) fn pipe(&self, descriptor: i32) -> &Arc<Pipe> {
        &self.pipes[usize::from(descriptor == 1)]
    }

    pub(super) async fn wait(&self) -> ExitAnswer {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await;
        let status = status.ok().and_then(|status| *status);
        ExitAnswer {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        }
    }
}

async fn drain(mut output: impl AsyncRead + Unpin, source: Option<Source>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(len) = output.read(&mut chunk).await {
        if len == 0 {
            return;
        }
        if let Some(source) = &source {
            source.0.push(&chunk[..len]).await;
        }
    }
}

/// Output as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    known: Mutex<Known>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    /// Where `bytes` begin.
    offset: u64,
    bytes: Vec<u8>,
    read: u64,
    sources: usize,
}

/// Something that still writes to a pipe.
struct Source(Arc<Pipe>);

impl Drop for Source {
    fn drop(&mut self) {
        lock(&self.0.known).sources -= 1;
        self.0.change();
    }
}

impl Pipe {
    fn source(pipe: &Arc<Self>) -> Source {
        lock(&pipe.known).sources += 1;
        Source(Arc::clone(pipe))
    }

    async fn push(&self, bytes: &[u8]) {
        let mut changes = self.changes.subscribe();
        while {
            let known = lock(&self.known);
            let end = known.offset + known.bytes.len() as u64;
            (end - known.read) as usize > WAITING_BYTES_MAX
        } {
            let _ = changes.changed().await;
        }
        lock(&self.known).bytes.extend_from_slice(bytes);
        self.change();
    }

    /// Returns what comes after an offset, or nothing at the end.
    pub(super) async fn read(&self, offset: u64) -> Option<Vec<u8>> {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(read) = self.read_now(offset) {
                self.change();
                return Some(read);
            }
            if lock(&self.known).sources == 0 {
                return None;
            }
            let _ = changes.changed().await;
        }
    }

    fn read_now(&self, offset: u64) -> Option<Vec<u8>> {
        let mut known = lock(&self.known);
        let at = offset.checked_sub(known.offset)? as usize;
        let rest = known.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let read = rest[..rest.len().min(CHUNK_BYTES)].to_vec();
        known.read = known.read.max(offset + read.len() as u64);
        let old = (known.read - known.offset) as usize;
        if old > 2 * READ_BYTES_KEPT {
            known.bytes.drain(..old - READ_BYTES_KEPT);
            known.offset += (old - READ_BYTES_KEPT) as u64;
        }
        Some(read)
    }

    fn change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

#[expect(clippy::expect_used, reason = "a failed helper is a failed test")]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic before")
}
