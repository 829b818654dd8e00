//! What a person types, in lines. Lines that arrive together were pasted together and are one message.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Split, Stdin};
use tokio::time::timeout;

/// Lines of a paste follow each other faster than anybody types.
const PASTE_GAP: Duration = Duration::from_millis(15);
/// A terminal in line mode hands over at most this many bytes of a line, and drops the rest.
const LINE_BYTES_MAX: usize = 4_095;

pub struct Keyboard {
    lines: Split<BufReader<Stdin>>,
    /// Lines that may go on: kept here, so that none is lost when waiting is given up.
    read: Vec<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Text(String),
    /// Longer than the terminal hands over: the end of it is missing.
    TooLong,
    /// Ctrl-D.
    End,
}

impl Keyboard {
    pub fn new() -> Self {
        Self {
            lines: BufReader::new(tokio::io::stdin()).split(b'\n'),
            read: Vec::new(),
        }
    }

    /// Waits for what the person types next. Cancel-safe.
    pub async fn next(&mut self) -> Typed {
        if self.read.is_empty() {
            match self.lines.next_segment().await {
                Ok(Some(line)) => self.read.push(line),
                _ => return Typed::End,
            }
        }
        while let Ok(Ok(Some(line))) = timeout(PASTE_GAP, self.lines.next_segment()).await {
            self.read.push(line);
        }
        let lines = std::mem::take(&mut self.read);
        if lines.iter().any(|line| line.len() >= LINE_BYTES_MAX) {
            return Typed::TooLong;
        }
        let texts: Vec<_> = lines
            .iter()
            .map(|line| String::from_utf8_lossy(line))
            .collect();
        Typed::Text(texts.join("\n"))
    }
}
