//! Markdown, rendered as it streams: [`Stream`] hands over what can no longer change and keeps the rest, [`render`]
//! makes rows of either.

mod highlight;
mod render;
mod table;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

pub(crate) use highlight::diff_style;
pub(crate) use render::render;

/// A block that is still growing is drawn anew with every frame; beyond this it is printed in pieces.
const LIVE_BYTES_MAX: usize = 16 * 1024;
/// Lines of an unfinished code block that stay live; those before them cannot change any more.
const LIVE_CODE_LINES: usize = 6;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// A part of a text that will not change any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) source: String,
    /// It goes on inside the block of the piece before: no blank line between them.
    pub(crate) is_continued: bool,
}

/// Text that still grows.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    source: String,
    is_continued: bool,
    /// How much of `source` was looked at in vain: a block ends at the end of a line, not before.
    examined: usize,
}

impl Stream {
    pub(crate) fn push(&mut self, text: &str) {
        self.source.push_str(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.source.trim().is_empty()
    }

    /// What is not finished yet.
    pub(crate) fn rest(&self) -> Piece {
        Piece {
            source: self.source.clone(),
            is_continued: self.is_continued,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Ends the text and returns what was left of it.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        let rest = self.rest();
        self.clear();
        (!rest.source.trim().is_empty()).then_some(rest)
    }

    /// Returns what is finished since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Piece> {
        let complete = self.source.rfind('\n').map_or(0, |at| at + 1);
        if complete == self.examined && self.source.len() <= LIVE_BYTES_MAX {
            return Vec::new();
        }
        let mut pieces = Vec::new();
        let last_block = block_starts(&self.source[..complete]).pop().unwrap_or(0);
        if last_block > 0 {
            pieces.push(self.take(last_block));
        }
        pieces.extend(self.take_code());
        while self.source.len() > LIVE_BYTES_MAX {
            let window = hermes_core::text::head(&self.source, LIVE_BYTES_MAX);
            let end = window.rfind(['\n', ' ']).map_or(window.len(), |at| at + 1);
            pieces.push(self.take(end));
            self.is_continued = true;
        }
        self.examined = self.source.rfind('\n').map_or(0, |at| at + 1);
        pieces
    }

    fn take(&mut self, end: usize) -> Piece {
        let rest = self.source.split_off(end);
        Piece {
            source: std::mem::replace(&mut self.source, rest),
            is_continued: std::mem::take(&mut self.is_continued),
        }
    }

    /// The first lines of a long code block that is still open, as a block of their own; the rest is opened again.
    fn take_code(&mut self) -> Option<Piece> {
        let opening = open_fence(&self.source)?;
        let fence = self.source[opening].to_owned();
        let body = &self.source[fence.len()..];
        let ends: Vec<usize> = body.match_indices('\n').map(|(at, _)| at + 1).collect();
        let cut = *ends.get(ends.len().checked_sub(LIVE_CODE_LINES + 1)?)?;
        let mut piece = self.take(fence.len() + cut);
        let mark: String = fence
            .chars()
            .take_while(|c| matches!(c, '`' | '~'))
            .collect();
        piece.source.push_str(&mark);
        self.source.insert_str(0, &fence);
        self.is_continued = true;
        Some(piece)
    }
}

/// Where the blocks of a text begin.
fn block_starts(source: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut starts = Vec::new();
    for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    starts.push(range.start);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => starts.push(range.start),
            _ => {}
        }
    }
    starts
}

/// The first line of a text that is one fenced code block without an end.
fn open_fence(source: &str) -> Option<Range<usize>> {
    let first_line = source.find('\n')? + 1;
    let mark = source.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let mut events = Parser::new_ext(source, OPTIONS);
    let Some(Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))) = events.next() else {
        return None;
    };
    let last_line = source.trim_end().rsplit('\n').next().unwrap_or_default();
    let is_closed = !last_line.is_empty() && last_line.trim().chars().all(|c| c == mark);
    (!is_closed).then_some(0..first_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(chunks: &[&str]) -> (Vec<String>, String) {
        let mut stream = Stream::default();
        let mut finished = Vec::new();
        for chunk in chunks {
            stream.push(chunk);
            finished.extend(stream.take_finished().into_iter().map(|piece| piece.source));
        }
        (finished, stream.rest().source)
    }

    #[test]
    fn a_block_is_finished_when_the_next_one_begins() {
        let (finished, rest) =
            pieces(&["# Title\n\nSome ", "words\n\n", "- a\n", "- b\n", "\nend"]);
        assert_eq!(finished, ["# Title\n\n", "Some words\n\n"]);
        assert_eq!(rest, "- a\n- b\n\nend");
    }

    #[test]
    fn the_beginning_of_a_line_ends_nothing() {
        // `1` may become `1. third`, which belongs to the list.
        let (finished, _) = pieces(&["1. a\n\n2. b\n\n", "3"]);
        assert!(finished.is_empty(), "{finished:?}");
    }

    #[test]
    fn a_long_code_block_is_handed_over_line_by_line() {
        let lines: Vec<String> = (0..20).map(|n| format!("let a{n} = {n};\n")).collect();
        let mut chunks = vec!["```rust\n"];
        chunks.extend(lines.iter().map(String::as_str));
        let (finished, rest) = pieces(&chunks);
        assert_eq!(finished[0], "```rust\nlet a0 = 0;\n```");
        assert_eq!(finished.len(), 14);
        assert!(rest.starts_with("```rust\nlet a14 = 14;\n"), "{rest}");
    }

    #[test]
    fn a_megabyte_in_one_line_is_printed_in_pieces_that_lose_nothing() {
        let text = "wörd ".repeat(200_000);
        let (finished, rest) = pieces(&[&text]);
        assert!(rest.len() <= LIVE_BYTES_MAX);
        assert!(finished.iter().all(|piece| piece.len() <= LIVE_BYTES_MAX));
        assert_eq!(finished.concat() + &rest, text);
    }
}
