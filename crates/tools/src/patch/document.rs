//! A text file taken apart into its text and how it is stored.

use std::borrow::Cow;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A text without byte order mark and, if all its lines end in `\r\n`, without the `\r`.
pub(super) struct Document<'a> {
    pub(super) text: Cow<'a, str>,
    has_mark: bool,
    is_crlf: bool,
}

impl<'a> Document<'a> {
    /// Returns `None` for what is not UTF-8 text.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let stored = std::str::from_utf8(bytes).ok()?;
        if stored.contains('\0') {
            return None;
        }
        let text = stored.strip_prefix(BYTE_ORDER_MARK);
        let has_mark = text.is_some();
        let text = text.unwrap_or(stored);
        let breaks = text.matches('\n').count();
        let is_crlf = breaks > 0 && text.matches("\r\n").count() == breaks;
        Some(Self {
            text: if is_crlf {
                Cow::Owned(text.replace("\r\n", "\n"))
            } else {
                Cow::Borrowed(text)
            },
            has_mark,
            is_crlf,
        })
    }

    /// Returns another text as it is stored in the same way.
    pub(super) fn stored(&self, text: &str) -> Vec<u8> {
        let text = if self.is_crlf {
            Cow::Owned(text.replace('\n', "\r\n"))
        } else {
            Cow::Borrowed(text)
        };
        let mark = if self.has_mark { BYTE_ORDER_MARK } else { "" };
        format!("{mark}{text}").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_storing_is_kept() {
        for (stored, text) in [
            ("a\nb\n", "a\nb\n"),
            ("\u{feff}a\r\nb\r\n", "a\nb\n"),
            ("a\r\nb\n", "a\r\nb\n"),
            ("", ""),
        ] {
            let document = Document::read(stored.as_bytes()).unwrap();
            assert_eq!(document.text, text);
            assert_eq!(document.stored(&document.text), stored.as_bytes());
        }
        assert!(Document::read(b"\xff").is_none());
        assert!(Document::read(b"a\0").is_none());
    }
}
