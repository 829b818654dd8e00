//! Turns the bytes a command prints into plain text: UTF-8 with replacement, no escape sequences, no control characters.
//!
//! Works on chunks: a character or a sequence may be cut anywhere between them.

/// Longest UTF-8 character, so the most bytes that can wait for the rest of theirs.
const CHAR_BYTES_MAX: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The beginning of a character whose other bytes have not come yet.
    partial: Vec<u8>,
    state: State,
}

/// Where we are in an escape sequence (ECMA-48).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC, perhaps with intermediate characters.
    Escape,
    /// After ESC `[`: ends with a letter or similar.
    Control,
    /// After ESC `]`, `P`, `X`, `^` or `_`: ends with BEL or ESC `\`.
    Quoted,
    /// After an ESC inside such a string.
    QuotedEscape,
}

impl Cleaner {
    /// Appends the clean text of the next chunk to `text`.
    pub(crate) fn feed(&mut self, chunk: &[u8], text: &mut String) {
        if self.partial.is_empty() {
            self.decode(chunk, text);
            return;
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(chunk);
        self.decode(&joined, text);
    }

    /// Says that no more bytes come: half a character becomes a replacement character.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.push(char::REPLACEMENT_CHARACTER, text);
        }
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(valid) => return self.push_all(valid, text),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.push_all(&String::from_utf8_lossy(valid), text);
            let Some(invalid_len) = error.error_len() else {
                debug_assert!(rest.len() < CHAR_BYTES_MAX);
                self.partial = rest.to_vec();
                return;
            };
            self.push(char::REPLACEMENT_CHARACTER, text);
            bytes = &rest[invalid_len..];
        }
    }

    fn push_all(&mut self, valid: &str, text: &mut String) {
        let mut rest = valid;
        while !rest.is_empty() {
            if self.state == State::Text {
                // Nearly everything is plain text, and there may be gigabytes of it.
                let plain = rest.find(|c| !is_text(c)).unwrap_or(rest.len());
                text.push_str(&rest[..plain]);
                rest = &rest[plain..];
            }
            if let Some(c) = rest.chars().next() {
                self.push(c, text);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    fn push(&mut self, c: char, text: &mut String) {
        self.state = match (self.state, c) {
            (State::QuotedEscape, '\\') => State::Text,
            (State::Quoted, '\x1b') => State::QuotedEscape,
            (State::Quoted, '\x07' | '\u{9c}') => State::Text,
            (State::Quoted | State::QuotedEscape, _) => State::Quoted,
            (_, '\x1b') => State::Escape,
            (_, '\u{9b}') => State::Control,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => State::Quoted,
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Quoted,
            (State::Escape, ' '..='/') => State::Escape,
            (State::Control, '\x20'..='\x3f') => State::Control,
            // A sequence cannot contain a line break: this one was broken off.
            (State::Escape | State::Control, '\n') | (State::Text, _) => {
                if is_text(c) {
                    text.push(c);
                }
                State::Text
            }
            (State::Escape | State::Control, _) => State::Text,
        };
    }
}

fn is_text(c: char) -> bool {
    matches!(c, '\n' | '\t' | '\r') || !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(chunks: &[&[u8]]) -> String {
        let mut cleaner = Cleaner::default();
        let mut text = String::new();
        for chunk in chunks {
            cleaner.feed(chunk, &mut text);
        }
        cleaner.finish(&mut text);
        text
    }

    #[test]
    fn escape_sequences_are_removed() {
        let cases: &[(&[u8], &str)] = &[
            (b"plain\n", "plain\n"),
            (b"\x1b[1;31mred\x1b[0m", "red"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b(Bcharset", "charset"),
            (b"\x1bPdevice\x1b\\after", "after"),
            (b"\x1b[?25lhidden", "hidden"),
            ("\u{9b}31mc1".as_bytes(), "c1"),
            (b"bell\x07 nul\0 back\x08space", "bell nul backspace"),
            (b"\x1b[12\nnext", "\nnext"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(clean(&[bytes]), *expected, "{bytes:?}");
        }
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(clean(&[b"a\xff\xfeb"]), "a\u{fffd}\u{fffd}b");
        assert_eq!(clean(&["é".as_bytes(), b"\xc3"]), "é\u{fffd}");
    }

    #[test]
    fn it_does_not_matter_where_chunks_are_cut() {
        let bytes = "\x1b[31m→ é\x1b]0;títle\x1b\\ \u{1f980}\x1b[0m end".as_bytes();
        let whole = clean(&[bytes]);
        assert_eq!(whole, "→ é \u{1f980} end");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(clean(&[left, right]), whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(clean(&single), whole);
    }
}
