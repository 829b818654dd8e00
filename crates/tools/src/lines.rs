//! Reads numbered lines of a file of any size in little memory.

use std::io::{self, BufRead, BufReader, Read};

use hermes_core::CancellationToken;

const BUFFER_BYTES: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Which lines are wanted, and how much of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    /// Number of the first line, from 1.
    pub(crate) offset: usize,
    pub(crate) lines_max: usize,
    pub(crate) is_numbered: bool,
    pub(crate) chars_max: usize,
    pub(crate) line_chars_max: usize,
    /// How far past the page lines are counted; beyond it the total is a lower bound.
    pub(crate) count_bytes_max: u64,
}

/// The lines of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageText {
    /// `number|text` for each line, or the text alone.
    pub(crate) text: String,
    /// Number of the last line shown; below the offset when there is none.
    pub(crate) last: usize,
    /// Lines of the file, as far as they were counted.
    pub(crate) total: usize,
    pub(crate) is_total_exact: bool,
    /// Some bytes were not UTF-8.
    pub(crate) is_lossy: bool,
}

/// Reads one page. `Ok(None)` means that it was stopped.
pub(crate) fn read_page(
    source: impl Read,
    page: Page,
    stop: &CancellationToken,
) -> io::Result<Option<PageText>> {
    read_page_after(0, source, page, stop)
}

/// Reads one page of a file whose first `skipped` lines are not in the source.
pub(crate) fn read_page_after(
    skipped: usize,
    source: impl Read,
    page: Page,
    stop: &CancellationToken,
) -> io::Result<Option<PageText>> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, source);
    let mut line = Line::new(page.line_chars_max);
    let mut read = PageText::default();
    let mut chars = 0;
    let mut number = skipped;
    while line.read(&mut reader, stop)? {
        number += 1;
        if stop.is_cancelled() {
            return Ok(None);
        }
        if number < page.offset {
            continue;
        }
        let text = line.text(number);
        let shown = if page.is_numbered {
            format!("{number}|{text}\n")
        } else {
            format!("{text}\n")
        };
        chars += shown.chars().count();
        if chars > page.chars_max && number > page.offset {
            break;
        }
        read.is_lossy |= text.contains(char::REPLACEMENT_CHARACTER);
        read.text.push_str(&shown);
        read.last = number;
        if number + 1 >= page.offset.saturating_add(page.lines_max) {
            break;
        }
    }
    let Some(rest) = count_lines(&mut reader, page.count_bytes_max, stop)? else {
        return Ok(None);
    };
    read.total = number + rest.lines;
    read.is_total_exact = rest.is_exact;
    Ok(Some(read))
}

/// One line, of which only as much is kept as can be shown.
struct Line {
    kept: Vec<u8>,
    kept_bytes_max: usize,
    chars_max: usize,
    is_cut: bool,
}

impl Line {
    fn new(chars_max: usize) -> Self {
        Self {
            kept: Vec::new(),
            // Room for the longest characters and a byte order mark.
            kept_bytes_max: chars_max
                .saturating_mul(4)
                .saturating_add(BYTE_ORDER_MARK.len()),
            chars_max,
            is_cut: false,
        }
    }

    /// Reads the next line. Returns false at the end. A line that is never ending, as in a sparse file, is left when
    /// stopped.
    fn read(&mut self, reader: &mut impl BufRead, stop: &CancellationToken) -> io::Result<bool> {
        self.kept.clear();
        self.is_cut = false;
        let mut has_read = false;
        loop {
            if stop.is_cancelled() {
                return Ok(has_read);
            }
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(has_read);
            }
            has_read = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = self.kept_bytes_max - self.kept.len();
            self.kept.extend_from_slice(&part[..part.len().min(room)]);
            self.is_cut |= part.len() > room;
            let used = part.len() + usize::from(end.is_some());
            reader.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn text(&self, number: usize) -> String {
        let mut bytes = self.kept.as_slice();
        if number == 1 {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        if !self.is_cut {
            bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        match text.char_indices().nth(self.chars_max) {
            Some((end, _)) => format!("{}… [line cut]", &text[..end]),
            None => text.into_owned(),
        }
    }
}

struct LineCount {
    lines: usize,
    is_exact: bool,
}

fn count_lines(
    reader: &mut impl BufRead,
    bytes_max: u64,
    stop: &CancellationToken,
) -> io::Result<Option<LineCount>> {
    let (mut lines, mut bytes, mut last) = (0, 0, b'\n');
    while bytes < bytes_max {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let buffer = reader.fill_buf()?;
        let Some(end) = buffer.last() else {
            // A last line without a line break is a line too.
            let lines = lines + usize::from(last != b'\n');
            return Ok(Some(LineCount {
                lines,
                is_exact: true,
            }));
        };
        last = *end;
        lines += buffer.iter().filter(|byte| **byte == b'\n').count();
        let len = buffer.len();
        bytes += len as u64;
        reader.consume(len);
    }
    Ok(Some(LineCount {
        lines,
        is_exact: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(offset: usize, lines_max: usize) -> Page {
        Page {
            offset,
            lines_max,
            is_numbered: true,
            chars_max: 1000,
            line_chars_max: 10,
            count_bytes_max: 100_000,
        }
    }

    fn read(bytes: &[u8], page: Page) -> PageText {
        read_page(bytes, page, &CancellationToken::new())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn lines_are_numbered_and_counted() {
        for (bytes, text, total) in [
            (&b""[..], "", 0),
            (b"a", "1|a\n", 1),
            (b"a\n", "1|a\n", 1),
            (b"a\n\n", "1|a\n2|\n", 2),
            (b"a\r\nb\r\n", "1|a\n2|b\n", 2),
            (b"\xef\xbb\xbfa\nb", "1|a\n2|b\n", 2),
            (b"0123456789a\n", "1|0123456789… [line cut]\n", 1),
        ] {
            let read = read(bytes, page(1, 100));
            assert_eq!((read.text.as_str(), read.total), (text, total), "{bytes:?}");
            assert!(read.is_total_exact && !read.is_lossy);
        }
    }

    #[test]
    fn a_page_has_a_beginning_and_an_end() {
        let text = read(b"a\nb\nc\nd\ne", page(2, 2));
        assert_eq!(
            (text.text.as_str(), text.last, text.total),
            ("2|b\n3|c\n", 3, 5)
        );
        let beyond = read(b"a\nb\n", page(7, 2));
        assert_eq!(
            (beyond.text.as_str(), beyond.last, beyond.total),
            ("", 0, 2)
        );
    }

    #[test]
    fn a_page_ends_before_it_has_too_many_characters() {
        let limited = Page {
            chars_max: 9,
            ..page(1, 100)
        };
        let text = read(b"aa\nbb\ncc\n", limited);
        assert_eq!(
            (text.text.as_str(), text.last, text.total),
            ("1|aa\n", 1, 3)
        );
    }

    #[test]
    fn invalid_bytes_are_noticed() {
        let text = read(b"a\xffb\n", page(1, 1));
        assert_eq!(text.text, "1|a\u{fffd}b\n");
        assert!(text.is_lossy);
    }

    #[test]
    fn a_line_without_end_takes_little_memory() {
        let endless = io::repeat(b'x').take(10 * 1024 * 1024);
        let text = read_page(endless, page(1, 1), &CancellationToken::new());
        assert_eq!(text.unwrap().unwrap().text, "1|xxxxxxxxxx… [line cut]\n");
    }

    #[test]
    fn a_line_that_never_ends_is_left_when_stopped() {
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(
            read_page(io::repeat(b'x'), page(1, 1), &stop).unwrap(),
            None
        );
    }

    #[test]
    fn an_endless_file_is_not_counted_to_its_end() {
        let endless = io::repeat(b'\n');
        let text = read_page(endless, page(1, 1), &CancellationToken::new());
        assert!(!text.unwrap().unwrap().is_total_exact);
    }
}
