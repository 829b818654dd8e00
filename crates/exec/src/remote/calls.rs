//! A line for places that only run a script to its end and return what it printed, such as an API over HTTP.
//!
//! The command's input is a file there that grows, its output a row of small files that are fetched call by call; a flood
//! waits for us. The script `calls.sh` keeps both. It ends the command when it is told to, and when nobody has asked for
//! its output for a while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::{BoxFuture, Random, TerminalError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::RunningScript;
use crate::shell::quoted;

/// Sent in one call: with the script around it, and written in base64, it stays below what one argument may have.
const SENT_BYTES_MAX: usize = 48 * 1024;

/// The number of the first piece of output; all have as many digits.
const FIRST_PIECE: u64 = 1_000_000;

/// Runs scripts there.
pub(crate) trait Calls: Send + Sync + 'static {
    /// Runs a script of `sh` that ends within seconds, and returns what it printed.
    fn call(self: Arc<Self>, script: String) -> BoxFuture<'static, Result<String, TerminalError>>;
}

/// Starts `sh -c args…` there.
pub(crate) async fn open(
    calls: Arc<dyn Calls>,
    args: &[String],
    random: &Random,
) -> Result<RunningScript, TerminalError> {
    let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let script = format!("exec sh -c {}\n", words.join(" "));
    let place = CallFolder {
        calls,
        id: format!("{:016x}", random.next_u64()),
    };
    place.append("run", script.as_bytes()).await?;
    let started = place.call("start").await?;
    if started.trim() != "started" {
        return Err(TerminalError::NotStarted {
            shell: "sh".to_owned(),
            detail: format!("the place says: {}", started.trim()),
        });
    }
    Ok(RunningScript {
        input: Box::new(Input {
            place: place.clone(),
            sending: None,
            is_closing: false,
        }),
        output: Box::new(Output {
            place,
            asking: None,
            next: FIRST_PIECE,
            heard: Vec::new(),
        }),
    })
}

/// One line's folder there.
#[derive(Clone)]
struct CallFolder {
    calls: Arc<dyn Calls>,
    id: String,
}

impl CallFolder {
    /// Calls a function of the script.
    fn call(&self, words: &str) -> BoxFuture<'static, Result<String, TerminalError>> {
        let script = include_str!("calls.sh");
        let script = format!("id={}\n{script}\n{words}\n", self.id);
        Arc::clone(&self.calls).call(script)
    }

    async fn append(&self, file: &str, bytes: &[u8]) -> Result<(), TerminalError> {
        for chunk in bytes.chunks(SENT_BYTES_MAX) {
            let encoded = STANDARD.encode(chunk);
            self.call(&format!("append {file} {encoded}")).await?;
        }
        Ok(())
    }

    /// Waits for output from piece `next` on, which tells the place that those before it have come.
    async fn fetch(self, next: u64) -> io::Result<Fetched> {
        let said = self.call(&format!("fetch {next}")).await;
        let said = said.map_err(io::Error::other)?;
        let (first, encoded) = said.split_once('\n').unwrap_or((&said, ""));
        let next = match first.split_once(' ') {
            Some(("more", next)) => next.parse().map_err(io::Error::other)?,
            _ if first == "end" => return Ok(Fetched::End),
            _ => return Err(io::Error::other(format!("an odd answer: {first}"))),
        };
        let encoded: String = encoded.lines().collect();
        let bytes = STANDARD.decode(encoded).map_err(io::Error::other)?;
        Ok(Fetched::More { bytes, next })
    }
}

/// What came of asking for output.
enum Fetched {
    /// Perhaps none yet.
    More {
        bytes: Vec<u8>,
        next: u64,
    },
    End,
}

type Sending = BoxFuture<'static, io::Result<()>>;

struct Input {
    place: CallFolder,
    sending: Option<Sending>,
    is_closing: bool,
}

impl Input {
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(sending) = &mut self.sending {
            let sent = ready!(sending.as_mut().poll(cx));
            self.sending = None;
            return Poll::Ready(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        let bytes = bytes[..bytes.len().min(SENT_BYTES_MAX)].to_vec();
        let len = bytes.len();
        let place = self.place.clone();
        self.sending = Some(Box::pin(async move {
            let sent = place.append("in", &bytes).await;
            sent.map_err(io::Error::other)
        }));
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    /// Ends the command there. What was not sent yet is not missed.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_closing {
            self.is_closing = true;
            let call = self.place.call("release");
            self.sending = Some(Box::pin(async move {
                call.await.map(drop).map_err(io::Error::other)
            }));
        }
        self.poll_sent(cx)
    }
}

type Asking = BoxFuture<'static, io::Result<Fetched>>;

struct Output {
    place: CallFolder,
    asking: Option<Asking>,
    next: u64,
    heard: Vec<u8>,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.heard.is_empty() {
            let (place, next) = (&this.place, this.next);
            let asking = this
                .asking
                .get_or_insert_with(|| Box::pin(place.clone().fetch(next)));
            let fetched = ready!(asking.as_mut().poll(cx));
            this.asking = None;
            match fetched? {
                Fetched::End => return Poll::Ready(Ok(())),
                Fetched::More { bytes, next } => (this.heard, this.next) = (bytes, next),
            }
        }
        let len = this.heard.len().min(buffer.remaining());
        buffer.put_slice(&this.heard[..len]);
        this.heard.drain(..len);
        Poll::Ready(Ok(()))
    }
}
