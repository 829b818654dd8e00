//! The ways in which an answer goes wrong, as plain data. `play` carries them out.
//!
//! A *chunk* here is one piece of content (text, reasoning or arguments) whatever frames the
//! wire wraps around it, so the same fault means the same on every wire. A collected
//! (non-streamed) response counts as one chunk.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// Everything that is wrong with one answer; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    pub headers_delay_ms: u64,
    /// Waits between the headers and the first byte of the body.
    pub body_delay_ms: u64,
    /// Waits before every frame (or slice) of the body after the first.
    pub chunk_delay_ms: u64,
    pub noise: Vec<Noise>,
    #[serde(rename = "break")]
    pub break_off: Option<Break>,
    /// Writes the body in slices of these sizes, over and over, wherever characters and lines
    /// begin or end. Each slice is an HTTP chunk, so clients see exactly these cuts.
    pub slice_bytes: Vec<usize>,
    /// Ends the lines of the body with `\r\n`.
    pub crlf: bool,
    pub content_type: Option<String>,
}

/// Something in the stream that does not belong there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Comes after this many chunks; 0 is before everything.
    pub after_chunks: usize,
    pub kind: NoiseKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseKind {
    /// A frame that is cut off in the middle of its JSON.
    BadJson,
    /// An SSE comment, which clients must skip; a blank line on Ollama's wire.
    Comment(String),
    /// These characters, as they are.
    Raw(String),
    /// These bytes, which need not be characters.
    Bytes(Vec<u8>),
}

/// The point at which an answer ends before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Break {
    pub at: Point,
    pub how: Ending,
}

/// A place in the response. One that is never reached leaves the answer whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// Before any byte of the response.
    BeforeHeaders,
    /// After this many chunks; 0 is straight after the headers.
    Chunks(usize),
    /// After this many bytes of the body.
    Bytes(usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Stays silent with the connection open, until the client leaves.
    Stall,
    /// Resets the connection (RST).
    Reset,
    /// Closes the connection in the middle of the HTTP body (FIN).
    Truncate,
    /// Ends the HTTP body properly, without the wire's closing events, and closes.
    Close,
    /// Sends the wire's own error event and ends the body.
    Error { kind: String, message: String },
}

impl Faults {
    pub(super) fn headers_delay(&self) -> Duration {
        Duration::from_millis(self.headers_delay_ms)
    }

    pub(super) fn body_delay(&self) -> Duration {
        Duration::from_millis(self.body_delay_ms)
    }

    pub(crate) fn chunk_delay(&self) -> Duration {
        Duration::from_millis(self.chunk_delay_ms)
    }

    /// Returns how the answer ends if it ends before its headers.
    pub(super) fn ending_before_headers(&self) -> Option<&Ending> {
        match &self.break_off {
            Some(Break {
                at: Point::BeforeHeaders,
                how,
            }) => Some(how),
            _ => None,
        }
    }
}

impl Answer {
    pub fn headers_delay(mut self, delay: Duration) -> Self {
        self.faults.headers_delay_ms = millis(delay);
        self
    }

    pub fn body_delay(mut self, delay: Duration) -> Self {
        self.faults.body_delay_ms = millis(delay);
        self
    }

    pub fn chunk_delay(mut self, delay: Duration) -> Self {
        self.faults.chunk_delay_ms = millis(delay);
        self
    }

    pub fn break_off(mut self, at: Point, how: Ending) -> Self {
        self.faults.break_off = Some(Break { at, how });
        self
    }

    pub fn stall_after(self, chunks: usize) -> Self {
        self.break_off(Point::Chunks(chunks), Ending::Stall)
    }

    pub fn reset_after(self, chunks: usize) -> Self {
        self.break_off(Point::Chunks(chunks), Ending::Reset)
    }

    pub fn truncate_after(self, chunks: usize) -> Self {
        self.break_off(Point::Chunks(chunks), Ending::Truncate)
    }

    pub fn close_after(self, chunks: usize) -> Self {
        self.break_off(Point::Chunks(chunks), Ending::Close)
    }

    pub fn error_after(
        self,
        chunks: usize,
        kind: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let how = Ending::Error {
            kind: kind.into(),
            message: message.into(),
        };
        self.break_off(Point::Chunks(chunks), how)
    }

    pub fn noise_after(mut self, chunks: usize, kind: NoiseKind) -> Self {
        self.faults.noise.push(Noise {
            after_chunks: chunks,
            kind,
        });
        self
    }

    /// Writes the body in slices of `bytes`.
    pub fn cut_every(self, bytes: usize) -> Self {
        self.cut_at([bytes])
    }

    /// Writes the body in slices of these sizes, over and over.
    pub fn cut_at(mut self, slice_bytes: impl IntoIterator<Item = usize>) -> Self {
        self.faults.slice_bytes = slice_bytes.into_iter().collect();
        self
    }

    pub fn crlf(mut self) -> Self {
        self.faults.crlf = true;
        self
    }

    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.faults.content_type = Some(content_type.into());
        self
    }
}

fn millis(delay: Duration) -> u64 {
    u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)
}
