//! A rewritten text that knows where each of its parts was in the original.

use std::ops::Range;

/// A text in which some pieces were replaced, and where those pieces were.
pub(super) struct Mapped {
    pub(super) text: String,
    pieces: Vec<Piece>,
}

struct Piece {
    original: Range<usize>,
    rewritten: Range<usize>,
}

impl Mapped {
    /// Makes every run of blanks and tabs one blank.
    pub(super) fn with_single_blanks(text: &str) -> Self {
        Self::rewrite(text, |rest| {
            let run = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            (run > 1 || rest.starts_with('\t')).then_some((run, " "))
        })
    }

    /// Makes typographic characters plain.
    pub(super) fn with_plain_characters(text: &str) -> Self {
        Self::rewrite(text, |rest| {
            let c = rest.chars().next()?;
            plain(c).map(|plain| (c.len_utf8(), plain))
        })
    }

    /// Rewrites a text; `piece` says how many bytes at the beginning of the rest become what.
    fn rewrite(original: &str, piece: impl Fn(&str) -> Option<(usize, &'static str)>) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(c) = original[at..].chars().next() {
            match piece(&original[at..]) {
                Some((bytes, replacement)) if bytes > 0 => {
                    let start = text.len();
                    text.push_str(replacement);
                    pieces.push(Piece {
                        original: at..at + bytes,
                        rewritten: start..text.len(),
                    });
                    at += bytes;
                }
                _ => {
                    text.push(c);
                    at += c.len_utf8();
                }
            }
        }
        Self { text, pieces }
    }

    /// Returns where a range of the rewritten text was; `None` if it cuts through a piece, half a dash being none.
    pub(super) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        Some(self.original_place(range.start)?..self.original_place(range.end)?)
    }

    fn original_place(&self, at: usize) -> Option<usize> {
        match self.piece_before(at) {
            Some(piece) if at == piece.rewritten.start => Some(piece.original.start),
            Some(piece) if at < piece.rewritten.end => None,
            Some(piece) => Some(piece.original.end + (at - piece.rewritten.end)),
            None => Some(at),
        }
    }

    /// Returns the last piece that begins at or before a place in the rewritten text.
    fn piece_before(&self, at: usize) -> Option<&Piece> {
        let after = self
            .pieces
            .partition_point(|piece| piece.rewritten.start <= at);
        self.pieces[..after].last()
    }
}

/// Returns what people type instead of a typographic character.
pub(super) fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{201c}' | '\u{201d}' => "\"",
        '\u{2018}' | '\u{2019}' => "'",
        '\u{2014}' => "--",
        '\u{2013}' => "-",
        '\u{2026}' => "...",
        '\u{a0}' => " ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_mapped_back() {
        let text = "a  =\t“x”";
        let blanks = Mapped::with_single_blanks(text);
        assert_eq!(blanks.text, "a = “x”");
        assert_eq!(blanks.original(&(0..3)), Some(0..4));
        assert_eq!(blanks.original(&(2..4)), Some(3..5));
        let plain = Mapped::with_plain_characters("a—b…");
        assert_eq!(plain.text, "a--b...");
        assert_eq!(plain.original(&(1..3)), Some(1..4));
        assert_eq!(plain.original(&(3..7)), Some(4..8));
        assert_eq!(plain.original(&(2..7)), None);
    }
}
