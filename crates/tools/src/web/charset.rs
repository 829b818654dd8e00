//! From the bytes of a page to its text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page must have said how it is written.
const DECLARATION_BYTES: usize = 1024;

/// Decodes a page. A mark at its beginning counts most, then what the server says, then what the page says itself; but
/// a statement that the bytes contradict counts less than one that they do not.
pub(super) fn decode<'a>(bytes: &'a [u8], label: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark_bytes..]).0;
    }
    let said_by_server = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let stated: Vec<&'static Encoding> =
        said_by_server.into_iter().chain(declared(bytes)).collect();
    for encoding in &stated {
        if let (text, false) = encoding.decode_without_bom_handling(bytes) {
            return text;
        }
    }
    let encoding = match stated.first() {
        Some(encoding) => encoding,
        None if is_utf_8(bytes) => UTF_8,
        None => WINDOWS_1252,
    };
    encoding.decode_without_bom_handling(bytes).0
}

/// A page that was cut may end inside a character.
fn is_utf_8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Reads `<meta charset="…">`, `<meta … content="…; charset=…">` and `<?xml encoding="…"?>`.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let beginning = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let beginning = String::from_utf8_lossy(beginning).to_ascii_lowercase();
    ["charset", "encoding"].iter().find_map(|word| {
        let (_, after) = beginning.split_once(word)?;
        let value = after.trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|c: char| c.is_whitespace() || "\"';/>?".contains(c))?;
        // A page that can be read as far as this is not in UTF-16, whatever it says.
        match Encoding::for_label(&value.as_bytes()[..end])? {
            wide if !wide.is_ascii_compatible() => Some(UTF_8),
            encoding => Some(encoding),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_count_unless_the_bytes_contradict_them() {
        let check = |bytes: &[u8], label: Option<&str>, expected: &str| {
            assert_eq!(decode(bytes, label), expected, "{label:?}");
        };
        check("größe".as_bytes(), None, "größe");
        check(b"gr\xf6\xdfe", None, "größe");
        check(b"gr\xf6\xdfe", Some("iso-8859-1"), "größe");
        check(b"\x93\xfa\x96{", Some("Shift_JIS"), "日本");
        check(b"\xef\xbb\xbfgr\xc3\xb6\xc3\x9fe", Some("latin1"), "größe");
        check(b"\xff\xfeh\0i\0", None, "hi");
        check(
            b"<meta charset=koi8-r>\xd0\xd2\xc9",
            None,
            "<meta charset=koi8-r>при",
        );
        check(
            b"<meta content='text/html; charset=windows-1251'>\xff",
            Some("utf-8"),
            "<meta content='text/html; charset=windows-1251'>я",
        );
        check(b"a\xffb", Some("utf-8"), "a\u{fffd}b");
        check("größe".as_bytes(), Some("no-such-charset"), "größe");
        check(
            b"<meta charset=\"utf-16\">\xc3\xb6",
            None,
            "<meta charset=\"utf-16\">ö",
        );
    }

    #[test]
    fn a_cut_inside_a_character_does_not_change_the_rest() {
        let text = decode(b"gr\xc3\xb6\xc3", None);
        assert!(text.starts_with("grö"), "{text}");
    }
}
