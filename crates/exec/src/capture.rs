//! Keeps the beginning and the end of what a command prints, however much that is, and shows it live.

use std::collections::VecDeque;

use hermes_core::Progress;
use hermes_core::hidden_keys::PrivateKeyLines;
use hermes_core::text::{head, shorten, tail};

use crate::clean::Cleaner;

/// The end tells how it went, so it gets the larger part.
const HEAD_PERCENT: usize = 40;

/// Lines shown live for each read. A flood would only push itself out of the watcher's queue.
const LIVE_LINES_PER_READ_MAX: usize = 8;

/// Characters shown live of a line: about two rows of a terminal.
const LIVE_LINE_CHARS_MAX: usize = 200;

/// An unfinished line longer than this is not kept for showing.
const LIVE_LINE_BYTES_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Capture {
    cleaner: Cleaner,
    progress: Progress,
    unfinished_line: String,
    /// Keys have many lines, and whoever watches sees one at a time.
    private_keys: PrivateKeyLines,
    head: String,
    head_bytes_max: usize,
    tail: VecDeque<u8>,
    tail_bytes_max: usize,
    omitted_bytes: u64,
}

/// What a [`Capture`] kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) text: String,
    pub(crate) omitted_bytes: u64,
}

impl Capture {
    pub(crate) fn new(bytes_max: usize, progress: Progress) -> Self {
        let head_bytes_max = bytes_max.saturating_mul(HEAD_PERCENT) / 100;
        Self {
            cleaner: Cleaner::default(),
            progress,
            unfinished_line: String::new(),
            private_keys: PrivateKeyLines::default(),
            head: String::new(),
            head_bytes_max,
            tail: VecDeque::new(),
            tail_bytes_max: bytes_max - head_bytes_max,
            omitted_bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let mut text = String::with_capacity(chunk.len());
        self.cleaner.feed(chunk, &mut text);
        self.show(&text);
        self.keep(&text);
    }

    pub(crate) fn finish(mut self) -> Captured {
        let mut text = String::new();
        self.cleaner.finish(&mut text);
        self.keep(&text);
        let tail: Vec<u8> = self.tail.into();
        let text = match self.omitted_bytes {
            0 => self.head + &String::from_utf8_lossy(&tail),
            omitted => format!(
                "{}\n[… {omitted} bytes left out …]\n{}",
                self.head,
                String::from_utf8_lossy(&tail)
            ),
        };
        Captured {
            text: without_overwritten(&text),
            omitted_bytes: self.omitted_bytes,
        }
    }

    fn keep(&mut self, text: &str) {
        let mut rest = text;
        // Once something went to the tail, the head is closed, even if a few bytes would still fit.
        if self.tail.is_empty() && self.omitted_bytes == 0 {
            let room = self.head_bytes_max - self.head.len();
            let first = head(text, room);
            self.head.push_str(first);
            rest = &text[first.len()..];
        }
        let last = tail(rest, self.tail_bytes_max);
        self.omitted_bytes += (rest.len() - last.len()) as u64;
        let overflow = (self.tail.len() + last.len()).saturating_sub(self.tail_bytes_max);
        self.forget(overflow);
        self.tail.extend(last.as_bytes());
    }

    /// Drops at least `bytes` from the front of the tail, and the rest of the character they end in.
    fn forget(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let mut end = bytes.min(self.tail.len());
        while self.tail.get(end).is_some_and(is_continuation) {
            end += 1;
        }
        self.tail.drain(..end);
        self.omitted_bytes += end as u64;
    }

    fn show(&mut self, text: &str) {
        self.unfinished_line.push_str(text);
        let (finished, unfinished) = match self.unfinished_line.rsplit_once('\n') {
            Some((finished, unfinished)) => (Some(finished), unfinished),
            None => (None, self.unfinished_line.as_str()),
        };
        if let Some(finished) = finished {
            let mut lines: Vec<&str> = if self.private_keys.ignores(finished) {
                finished
                    .rsplit('\n')
                    .take(LIVE_LINES_PER_READ_MAX)
                    .collect()
            } else {
                let all = finished.split('\n');
                let shown = all.filter(|line| !self.private_keys.hides(line));
                let shown: Vec<_> = shown.collect();
                shown
                    .into_iter()
                    .rev()
                    .take(LIVE_LINES_PER_READ_MAX)
                    .collect()
            };
            lines.reverse();
            for line in lines {
                let line = line.trim_end_matches('\r');
                self.progress.show(shorten(line, LIVE_LINE_CHARS_MAX));
            }
        }
        self.unfinished_line = head(unfinished, LIVE_LINE_BYTES_MAX).to_owned();
    }
}

/// Keeps of each line what a terminal would show: the text after the last carriage return.
fn without_overwritten(text: &str) -> String {
    if !text.contains('\r') {
        return text.to_owned();
    }
    let visible = |line: &str| {
        let line = line.trim_end_matches('\r');
        line.rsplit('\r').next().unwrap_or(line).to_owned()
    };
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    fn capture(bytes_max: usize, chunks: &[&str]) -> Captured {
        let mut capture = Capture::new(bytes_max, Progress::default());
        for chunk in chunks {
            capture.push(chunk.as_bytes());
        }
        capture.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let captured = capture(10, &["ab", "cd", "efghij"]);
        assert_eq!(
            (captured.text.as_str(), captured.omitted_bytes),
            ("abcdefghij", 0)
        );
    }

    #[test]
    fn long_output_loses_its_middle() {
        for chunks in [
            &["0123456789abcdefghij"][..],
            &["0123456", "789abcdefg", "hij"],
        ] {
            let captured = capture(10, chunks);
            assert_eq!(captured.text, "0123\n[… 10 bytes left out …]\nefghij");
            assert_eq!(captured.omitted_bytes, 10);
        }
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        for bytes_max in 0..24 {
            let text = "é→é→é→é→é→";
            let captured = capture(bytes_max, &[&text[..5], &text[5..]]);
            assert!(!captured.text.contains('\u{fffd}'), "{captured:?}");
            let kept = captured.text.len()
                - captured.text.find("\n[").map_or(0, |_| {
                    format!("\n[… {} bytes left out …]\n", captured.omitted_bytes).len()
                });
            assert_eq!(kept as u64 + captured.omitted_bytes, text.len() as u64);
        }
    }

    #[test]
    fn a_progress_bar_leaves_its_last_state() {
        let captured = capture(100, &["get 1%\rget 50%\rget 100%\ndone\r\n"]);
        assert_eq!(captured.text, "get 100%\ndone\n");
    }

    #[test]
    fn finished_lines_are_shown_live() {
        let (tx, mut rx) = mpsc::channel(100);
        let mut capture = Capture::new(100, Progress::to(tx));
        for chunk in ["on", "e\ntwo\nth", "ree", "\n", "rest"] {
            capture.push(chunk.as_bytes());
        }
        let shown: Vec<String> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        assert_eq!(shown, ["one", "two", "three"]);
    }

    #[test]
    fn of_a_private_key_only_the_frame_is_shown_live() {
        let key =
            "cat id\n-----BEGIN PRIVATE KEY-----\nQUJD\nREVG\n-----END PRIVATE KEY-----\ndone\n";
        for bytes in [1, 5, 30, 500] {
            let (tx, mut rx) = mpsc::channel(100);
            let mut capture = Capture::new(100, Progress::to(tx));
            for chunk in key.as_bytes().chunks(bytes) {
                capture.push(chunk);
            }
            let shown: Vec<String> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
            let expected = [
                "cat id",
                "-----BEGIN PRIVATE KEY-----",
                "-----END PRIVATE KEY-----",
                "done",
            ];
            assert_eq!(shown, expected, "{bytes}");
        }
    }

    #[test]
    fn of_a_flood_only_the_last_lines_are_shown() {
        let (tx, mut rx) = mpsc::channel(100);
        let mut capture = Capture::new(100, Progress::to(tx));
        let flood: String = (0..50).map(|n| format!("{n}\n")).collect();
        capture.push(flood.as_bytes());
        let shown: Vec<String> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        assert_eq!(shown.len(), LIVE_LINES_PER_READ_MAX);
        assert_eq!(shown.last().map(String::as_str), Some("49"));
    }
}
