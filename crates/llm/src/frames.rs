//! Cuts a body into the frames of a stream of server-sent events, wherever the network cut it into chunks.
//!
//! Every byte is looked at once and copied at most twice; a frame that lies within one chunk is not copied at all. Names
//! of events are skipped: every wire repeats them inside the data.

mod surrogates;

use std::borrow::Cow;

/// Bytes of one frame, and of one line. The largest honest frame is a Gemini call with a whole file in its arguments.
pub(crate) const FRAME_BYTES_MAX: usize = 4 << 20;

/// The byte order mark that a stream may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Holds what the chunks so far left unfinished.
#[derive(Debug, Default)]
pub(crate) struct FrameSplitter {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The data of the frame so far, when it came in several chunks or lines.
    data: Option<Vec<u8>>,
    /// The last chunk ended with `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    /// The first line, which may carry a mark, is behind us.
    begun: bool,
}

/// A frame or line is longer than [`FRAME_BYTES_MAX`]; the rest of the stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a single frame of the stream has more bytes than allowed; {FRAME_BYTES_MAX} is the limit")]
pub(crate) struct FrameTooLong;

impl FrameSplitter {
    /// Takes the next chunk in and hands over the data of each frame that it completes.
    pub(crate) fn push(
        &mut self,
        chunk: &[u8],
        mut on_frame: impl FnMut(&str),
    ) -> Result<(), FrameTooLong> {
        let mut frame = Frame {
            data: self.data.take().map(Cow::Owned),
        };
        let mut rest = chunk;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, after) = rest.split_at(end);
            let line = self.whole_line(piece)?;
            frame.line(line, &mut on_frame)?;
            rest = self.after_line_end(after);
        }
        self.data = frame.data.map(Cow::into_owned);
        self.keep(rest)
    }

    /// Hands over a frame whose lines came but not the blank line after them. A line without its end is dropped: it may
    /// be half of one.
    pub(crate) fn finish(&mut self, mut on_frame: impl FnMut(&str)) {
        let mut frame = Frame {
            data: self.data.take().map(Cow::Owned),
        };
        frame.end(&mut on_frame);
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), FrameTooLong> {
        if self.line.len() + piece.len() > FRAME_BYTES_MAX {
            return Err(FrameTooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    /// Skips `\n`, `\r` or `\r\n`.
    fn after_line_end<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        match rest {
            [b'\r', b'\n', after @ ..] => after,
            [b'\r'] => {
                self.after_return = true;
                &[]
            }
            [_, after @ ..] => after,
            [] => &[],
        }
    }

    /// Joins the end of a line with its beginning, if that came before.
    fn whole_line<'a>(&mut self, piece: &'a [u8]) -> Result<Cow<'a, [u8]>, FrameTooLong> {
        let line = if self.line.is_empty() {
            Cow::Borrowed(piece)
        } else {
            self.keep(piece)?;
            Cow::Owned(std::mem::take(&mut self.line))
        };
        let is_first = !std::mem::replace(&mut self.begun, true);
        Ok(if is_first && line.starts_with(BOM) {
            without_front(line, BOM.len())
        } else {
            line
        })
    }
}

/// The frame that is being read: borrowed from the chunk as long as one line of it is all there is.
struct Frame<'a> {
    data: Option<Cow<'a, [u8]>>,
}

impl<'a> Frame<'a> {
    fn line(
        &mut self,
        line: Cow<'a, [u8]>,
        on_frame: &mut impl FnMut(&str),
    ) -> Result<(), FrameTooLong> {
        if line.is_empty() {
            self.end(on_frame);
            return Ok(());
        }
        match value_start(&line) {
            Some(start) => self.add(without_front(line, start)),
            None => Ok(()),
        }
    }

    fn add(&mut self, value: Cow<'a, [u8]>) -> Result<(), FrameTooLong> {
        let bytes = self.data.as_ref().map_or(0, |data| data.len() + 1) + value.len();
        if bytes > FRAME_BYTES_MAX {
            return Err(FrameTooLong);
        }
        match &mut self.data {
            None => self.data = Some(value),
            Some(data) => {
                let data = data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(&value);
            }
        }
        Ok(())
    }

    fn end(&mut self, on_frame: &mut impl FnMut(&str)) {
        if let Some(data) = self.data.take() {
            on_frame(&surrogates::without_lone(String::from_utf8_lossy(&data)));
        }
    }
}

/// Returns where the value of a `data` line begins. Comments and other fields have none.
fn value_start(line: &[u8]) -> Option<usize> {
    match line.strip_prefix(b"data")? {
        [] => Some(4),
        [b':', b' ', ..] => Some(6),
        [b':', ..] => Some(5),
        _ => None,
    }
}

fn without_front(bytes: Cow<'_, [u8]>, count: usize) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[count..]),
        Cow::Owned(mut bytes) => {
            bytes.drain(..count);
            Cow::Owned(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(chunks: &[&[u8]]) -> Vec<String> {
        let mut splitter = FrameSplitter::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            let pushed = splitter.push(chunk, |data| frames.push(data.to_owned()));
            pushed.unwrap();
        }
        splitter.finish(|data| frames.push(data.to_owned()));
        frames
    }

    #[test]
    fn frames_are_what_the_standard_says() {
        let check = |stream: &str, expected: &[&str]| {
            assert_eq!(frames(&[stream.as_bytes()]), expected, "{stream:?}");
        };
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data:a\n\ndata:  b\n\n", &["a", " b"]);
        check("data: a\ndata: b\n\n", &["a\nb"]);
        check("data\ndata\n\n", &["\n"]);
        check("data:\n\n", &[""]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("event: x\nid: 1\nretry: 9\ndata: a\n\n", &["a"]);
        check(": hello\n\n: data: a\n\n", &[]);
        check("database: a\n\n {\"x\": 1}\n\n", &[]);
        check("\n\n\ndata: a\n\n\n\n", &["a"]);
    }

    #[test]
    fn a_stream_may_end_without_a_blank_line_but_not_within_a_line() {
        assert_eq!(frames(&[b"data: a\n\ndata: b\n"]), ["a", "b"]);
        assert_eq!(frames(&[b"data: a\n\ndata: {\"half"]), ["a"]);
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(frames(&[b"data: \xff\xc3\n\n"]), ["\u{fffd}\u{fffd}"]);
    }

    /// Pushes `piece` over and over and returns how many bytes were taken before it was refused.
    fn taken(piece: &[u8], times: usize) -> Option<usize> {
        let mut splitter = FrameSplitter::default();
        (0..times)
            .find(|_| splitter.push(piece, |_| ()).is_err())
            .map(|round| round * piece.len())
    }

    #[test]
    fn a_line_that_does_not_end_is_given_up_at_the_limit() {
        assert_eq!(taken(b"x", FRAME_BYTES_MAX), None);
        assert_eq!(taken(b"x", FRAME_BYTES_MAX + 1), Some(FRAME_BYTES_MAX));
        let many_lines = taken(b"data: 0123456789abcdef\n", FRAME_BYTES_MAX);
        assert!(many_lines.is_some_and(|bytes| bytes < 2 * FRAME_BYTES_MAX));
        let endless = vec![b'x'; FRAME_BYTES_MAX + 1];
        assert_eq!(taken(&endless, 1), Some(0));
    }

    #[test]
    fn the_largest_frame_in_the_smallest_pieces_takes_no_time() {
        let value = "x".repeat(FRAME_BYTES_MAX - "data: ".len());
        let stream = format!("data: {value}\n\n");
        let started = std::time::Instant::now();
        let pieces: Vec<&[u8]> = stream.as_bytes().chunks(3).collect();
        assert_eq!(frames(&pieces), [value]);
        // Quadratic time would be minutes, also on a fast machine.
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }

    fn cut(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
        cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
        cuts.sort_unstable();
        let mut from = 0;
        let mut pieces: Vec<&[u8]> = Vec::new();
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        pieces.push(&bytes[from..]);
        pieces
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_where_bytes_are_cut(
            stream in "\u{feff}?((data|event)?:? ?[a-zé世🦀]{0,6}(\n|\r|\r\n)){0,12}[a-z]{0,3}",
            cuts in prop::collection::vec(any::<usize>(), 0..12),
        ) {
            let whole = frames(&[stream.as_bytes()]);
            prop_assert_eq!(frames(&cut(stream.as_bytes(), cuts)), whole);
        }

        #[test]
        fn no_bytes_are_a_panic(
            stream in prop::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()],
                0..200,
            ),
            cuts in prop::collection::vec(any::<usize>(), 0..12),
        ) {
            prop_assert_eq!(frames(&cut(&stream, cuts)), frames(&[&stream]));
        }
    }
}
