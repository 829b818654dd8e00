//! Halves of characters in JSON. Beyond the first 65,536 a character may be escaped in two halves, and a server that cuts
//! its text between them sends JSON that no parser takes. One letter is lost then, and not the reply.

use std::borrow::Cow;

/// Stands for a half without its other half.
const REPLACEMENT: &str = "\\ufffd";

/// The length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// Replaces the escapes of lone halves. Other text is returned as it is.
pub(super) fn without_lone(json: Cow<'_, str>) -> Cow<'_, str> {
    let mut mended: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(backslash) = json[at..].find('\\') {
        let start = at + backslash;
        at = match (unit(&json, start), unit(&json, start + ESCAPE_BYTES)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 2 * ESCAPE_BYTES,
            (Some(0xd800..=0xdfff), _) => {
                let mended = mended.get_or_insert_default();
                mended.push_str(&json[copied..start]);
                mended.push_str(REPLACEMENT);
                copied = start + ESCAPE_BYTES;
                copied
            }
            (Some(_), _) => start + ESCAPE_BYTES,
            // The character behind the backslash means nothing by itself.
            (None, _) => start + 1 + json[start + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    match mended {
        None => json,
        Some(mended) => Cow::Owned(mended + &json[copied..]),
    }
}

/// Returns what the escape at a place stands for, if there is one.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (json, expected) in [
            (r#""plain""#, None),
            (r#""😀 \ud83d\ude00 \\ud83d \n""#, None),
            (r#""\\\\ud83d""#, None),
            (r#""<\ud83d>""#, Some(r#""<\ufffd>""#)),
            (r#""<\uDE00>""#, Some(r#""<\ufffd>""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83dé\\\ud83d""#, Some(r#""\ufffdé\\\ufffd""#)),
            (r#""\ud83d\n\u00e9""#, Some(r#""\ufffd\n\u00e9""#)),
            ("\\", None),
            ("\\ud8", None),
            ("\\é", None),
        ] {
            let mended = without_lone(Cow::Borrowed(json));
            assert_eq!(mended, expected.unwrap_or(json));
            assert_eq!(matches!(mended, Cow::Borrowed(_)), expected.is_none());
        }
    }
}
