//! One JSON message per line, over any pair of byte streams.
//!
//! Nothing here can hang a caller: a write has a deadline, and an answer that is too long or malformed becomes an error
//! for the request it answers.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_core::text::{printable, shorten};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Process, Written};
use crate::message;

/// A server that does not read its input for this long has stopped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// For what is still in the pipe when a process ends.
const LAST_LINES_WAIT: Duration = Duration::from_millis(100);

/// A longer answer would fill the memory, not the model's context.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Some programs begin what they print with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Of a line that is no message, this much is shown.
const NOISE_CHARS_MAX: usize = 100;

/// Of a line that is too long, both ends are kept: one of them has the id.
const END_BYTES: usize = 256;

pub(crate) struct Lines<R, W> {
    reader: LineReader<R>,
    noise: Noise,
    writer: Arc<Mutex<Option<W>>>,
    written: Written,
    /// The process behind the streams, if there is one; it ends with the transport.
    process: Option<Process>,
}

/// The first line that was no message: it tells what a program is that is no server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noise(Arc<OnceLock<String>>);

impl Noise {
    /// Returns the beginning of the line; empty if there was none.
    pub(crate) fn first(&self) -> &str {
        self.0.get().map_or("", String::as_str)
    }

    fn note(&self, line: &[u8]) {
        self.0.get_or_init(|| {
            let line = String::from_utf8_lossy(&line[..line.len().min(4 * NOISE_CHARS_MAX)]);
            printable(&shorten(line.trim(), NOISE_CHARS_MAX)).into_owned()
        });
    }
}

struct LineReader<R> {
    source: BufReader<R>,
    /// What has been read of the next line. It survives a reader that is called off in the middle.
    line: Line,
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Bytes that were left out between the two ends.
    omitted: usize,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(crate) fn new(reader: R, writer: W, process: Option<Process>) -> Self {
        Self {
            reader: LineReader {
                source: BufReader::new(reader),
                line: Line::default(),
            },
            noise: Noise::default(),
            writer: Arc::new(Mutex::new(Some(writer))),
            written: Written::default(),
            process,
        }
    }

    pub(crate) fn noise(&self) -> Noise {
        self.noise.clone()
    }

    pub(crate) fn written(&self) -> Written {
        self.written.clone()
    }

    /// Lets nothing be written any more. What is being written comes to its end first, so that it is known.
    async fn stop_writing(&mut self) {
        // A write that is stuck in spite of everything is given up by its own deadline.
        if let Ok(mut writer) = timeout(WRITE_TIMEOUT, self.writer.lock()).await {
            *writer = None;
        }
    }

    /// Reads the next line; `None` when there will be no more.
    ///
    /// A process that has ended says nothing more, even if a child of its own still holds the pipe.
    async fn next_line(&mut self) -> Option<Line> {
        let Some(process) = &mut self.process else {
            return self.reader.next().await;
        };
        tokio::select! {
            biased;
            line = self.reader.next() => line,
            () = process.exited() => timeout(LAST_LINES_WAIT, self.reader.next()).await.ok()?,
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads the next line; `None` at the end of the stream, where an unfinished line is worth nothing.
    async fn next(&mut self) -> Option<Line> {
        loop {
            let available = match self.source.fill_buf().await {
                Ok([]) | Err(_) => return None,
                Ok(available) => available,
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let count = newline.unwrap_or(available.len());
            self.line.extend(&available[..count]);
            // No await between taking the bytes and counting them off, so nothing is lost or read twice.
            self.source.consume(newline.map_or(count, |at| at + 1));
            if newline.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl Line {
    fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > LINE_BYTES_MAX
            || (self.omitted > 0 && self.bytes.len() > 4 * END_BYTES)
        {
            let middle = END_BYTES..self.bytes.len() - END_BYTES;
            self.omitted += middle.len();
            self.bytes.drain(middle);
            self.bytes.shrink_to(4 * END_BYTES);
        }
    }

    /// Reads the message. Noise is `None`; an answer that cannot be used becomes an error for its request.
    fn message(&self) -> Option<ServerJsonRpcMessage> {
        if self.omitted > 0 {
            let cause = message::too_large(LINE_BYTES_MAX);
            return Some(message::unusable(id_at_an_end(&self.bytes)?, cause));
        }
        let bytes = self.bytes.as_slice();
        message::read(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes))
    }
}

/// Finds the number after `"id":` near the beginning or the end of a message whose middle is missing.
fn id_at_an_end(bytes: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(bytes);
    let number_after = |at: usize| {
        let digits = text[at..].trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse::<i64>().ok().map(RequestId::Number)
    };
    const KEY: &str = "\"id\":";
    let first = text
        .find(KEY)
        .filter(|at| !text[..*at].contains("\"result\""));
    let at = first.or_else(|| text.rfind(KEY))?;
    number_after(at + KEY.len())
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let (writer, written) = (Arc::clone(&self.writer), self.written.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let stopped = || Error::new(ErrorKind::TimedOut, "it does not read its input");
            let mut writer = match writer.try_lock() {
                Ok(writer) => writer,
                Err(_) => timeout(WRITE_TIMEOUT, writer.lock())
                    .await
                    .map_err(|_| stopped())?,
            };
            let Some(pipe) = writer.as_mut() else {
                return Err(Error::new(
                    ErrorKind::NotConnected,
                    "the transport is closed",
                ));
            };
            let write = timeout(WRITE_TIMEOUT, async {
                pipe.write_all(&line).await?;
                if let ClientJsonRpcMessage::Request(request) = &message {
                    written.note(&request.id);
                }
                pipe.flush().await
            });
            match write.await {
                Ok(result) => result,
                Err(_) => {
                    // Half a line may be in the pipe; nothing can follow it.
                    *writer = None;
                    Err(stopped())
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(line) = self.next_line().await else {
                self.stop_writing().await;
                return None;
            };
            match line.message() {
                Some(message) => return Some(message),
                None if line.bytes.iter().all(u8::is_ascii_whitespace) => {}
                None => {
                    self.noise.note(&line.bytes);
                    tracing::debug!(
                        bytes = line.bytes.len(),
                        "skipped a line that is no message"
                    );
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        // The end of its input is the end of a good server, and with it its children lose their parent.
        if let Some(process) = &mut self.process {
            process.note_family();
        }
        // A write that is stuck holds the lock; the end of the process frees it.
        if let Ok(mut writer) = self.writer.try_lock() {
            *writer = None;
        }
        if let Some(process) = self.process.take() {
            process.end().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn messages(input: &[u8]) -> Vec<String> {
        let input = std::io::Cursor::new(input.to_vec());
        let mut lines = Lines::new(input, tokio::io::sink(), None);
        let mut seen = Vec::new();
        while let Some(message) = lines.receive().await {
            seen.push(serde_json::to_string(&message).unwrap());
        }
        seen
    }

    #[tokio::test]
    async fn noise_between_messages_is_skipped() {
        let input = b"Starting server...\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\nbye\n{\"half\":";
        assert_eq!(
            messages(input).await,
            [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
        );
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_no_noise() {
        let input = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".as_bytes();
        assert_eq!(
            messages(input).await,
            [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_fails_its_request_and_no_other() {
        let huge = "x".repeat(LINE_BYTES_MAX + 1);
        for long in [
            format!(r#"{{"jsonrpc":"2.0","id":41,"result":{{"text":"{huge}"}}}}"#),
            format!(r#"{{"result":{{"text":"{huge}"}},"jsonrpc":"2.0","id":41}}"#),
        ] {
            let input = format!("{long}\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{}}}}\n");
            let seen = messages(input.as_bytes()).await;
            assert!(seen[0].contains(r#""id":41"#) && seen[0].contains("larger than 32 MiB"));
            assert!(seen[1].contains(r#""id":2"#));
        }
    }

    #[tokio::test]
    async fn an_endless_line_takes_no_more_memory() {
        let mut line = Line::default();
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..100 {
            line.extend(&chunk);
        }
        assert!(line.bytes.capacity() <= LINE_BYTES_MAX + 2 * chunk.len());
        assert_eq!(line.bytes.len() + line.omitted, 100 * chunk.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_reads_fails_at_its_deadline() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut lines = Lines::new(tokio::io::empty(), ours, None);
        let message = serde_json::from_str(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
        let error = lines.send(message).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let message = serde_json::from_str(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).unwrap();
        let error = lines.send(message).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    }
}
