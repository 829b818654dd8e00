//! Small rules about text that several crates share.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Cuts text to at most `chars_max` characters, marking the cut.
pub fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let end = text
                .char_indices()
                .nth(chars_max.saturating_sub(1))
                .map_or(0, |(at, _)| at);
            format!("{}…", &text[..end])
        }
    }
}

/// Returns the longest prefix of at most `bytes_max` bytes that ends on a character boundary.
pub fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max.min(text.len()))]
}

/// Returns the longest suffix of at most `bytes_max` bytes that starts on a character boundary.
pub fn tail(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

/// Removes everything a terminal would obey instead of showing it: models, tools and servers wrote the text.
///
/// Lines and tabs stay. An escape sequence goes as a whole; one that is cut off loses its escape character, which makes
/// the rest of it harmless text. Runs on every streamed chunk, so clean text is returned as it is.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        let (shown, obeyed) = rest.split_at(at);
        clean.push_str(shown);
        rest = &obeyed[sequence_bytes(obeyed)..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Makes everything a terminal would obey visible (`\x1b`, `\r`, `<U+202E>`), for text that a person is to judge.
/// Lines and tabs stay.
pub fn escaped(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' => visible.push_str("\\r"),
            c if !is_obeyed(c) => visible.push(c),
            // Writing to a string cannot fail.
            c if c.is_ascii() => _ = write!(visible, "\\x{:02x}", u32::from(c)),
            c => _ = write!(visible, "<U+{:04X}>", u32::from(c)),
        }
    }
    visible
}

/// Returns whether a terminal acts on a character: controls, and marks that reorder what is around them.
fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Returns the length of the escape sequence that `text` begins with; of its first character if it is none.
fn sequence_bytes(text: &str) -> usize {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return 0;
    };
    let after = match first {
        '\x1b' => after_escape(chars.as_str()),
        '\u{9b}' => Some(after_parameters(chars.as_str())),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => after_string(chars.as_str()),
        _ => None,
    };
    after.map_or(first.len_utf8(), |after| text.len() - after.len())
}

/// Returns what follows the sequence whose escape character was just read, if it is one.
fn after_escape(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    match chars.next()? {
        '[' => Some(after_parameters(chars.as_str())),
        'P' | 'X' | ']' | '^' | '_' => after_string(chars.as_str()),
        ' '..='/' => chars
            .as_str()
            .trim_start_matches(|c| matches!(c, ' '..='/'))
            .strip_prefix(|c| matches!(c, '0'..='~')),
        '0'..='~' => Some(chars.as_str()),
        _ => None,
    }
}

/// Returns what follows the parameters of a control sequence and the letter that ends them.
fn after_parameters(text: &str) -> &str {
    let end = text.trim_start_matches(|c| matches!(c, ' '..='?'));
    end.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(end)
}

/// Returns what follows the string of a sequence (a title, a link), if it ends before anything else is to be obeyed.
/// That the search stops there also keeps the whole in linear time.
fn after_string(text: &str) -> Option<&str> {
    let end = &text[text.find(char::is_control)?..];
    ["\x07", "\x1b\\", "\u{9c}"]
        .iter()
        .find_map(|terminator| end.strip_prefix(terminator))
}

/// Returns the candidates closest to `word`, best first: for "did you mean".
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const SHOWN_MAX: usize = 3;
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(&word, &candidate.to_lowercase());
            let longer = word.chars().count().max(candidate.chars().count());
            // A third of the letters may differ; a name inside the other counts as close.
            let is_close = distance * 3 <= longer
                || (word.len() >= 3 && candidate.to_lowercase().contains(&word));
            is_close.then_some((distance, candidate))
        })
        .collect();
    scored.sort_by_key(|(distance, candidate)| (*distance, *candidate));
    scored
        .into_iter()
        .take(SHOWN_MAX)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Counts the insertions, deletions, substitutions and swaps of neighbours between two words.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    // The rows for the last two letters of `left`, and for the present one.
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let changed = last[j] + usize::from(l != r);
            let mut least = changed.min(row[j] + 1).min(last[j + 1] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_counts_characters_not_bytes() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo", 3), "hé…");
        assert_eq!(shorten("", 0), "");
    }

    #[test]
    fn head_and_tail_never_split_a_character() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(tail("éa", 2), "a");
        assert_eq!((head("ab", 9), tail("ab", 9)), ("ab", "ab"));
    }

    #[test]
    fn clean_text_is_returned_as_it_is() {
        for text in ["", "plain\n\ttext", "naïve 👨\u{200d}👩\u{200d}👧 שלום"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
            assert_eq!(escaped(text), text);
        }
    }

    #[test]
    fn printable_text_holds_nothing_a_terminal_obeys() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected, "{text:?}");
        check("a\r\nb\x07\x00\x7f\u{85}", "a\nb");
        check("\x1b[1;31mred\x1b[0m and \u{9b}2Jblank", "red and blank");
        check(
            "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\u{9d}0;t\u{9c}c",
            "abc",
        );
        check("\x1bPq#0\x1b\\a\x1b(Bb\x1bcd\x1b7e", "abde");
        check("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "abcde");
    }

    #[test]
    fn a_sequence_that_is_cut_off_hides_no_text() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected, "{text:?}");
        check("a\x1b", "a");
        check("a\x1b[2", "a");
        check("a\x1b[2é", "aé");
        check("a\x1b]0;title", "a]0;title");
        check("a\x1b]0;title\nrest\x07", "a]0;title\nrest");
        check("\x1b\x1b[2Ja\x1bé", "aé");
    }

    #[test]
    fn endless_sequences_take_linear_time() {
        let text = "\x1b]".repeat(500_000);
        assert_eq!(printable(&text).len(), 500_000);
    }

    #[test]
    fn escaped_text_shows_what_a_terminal_would_obey() {
        assert_eq!(
            escaped("rm\r\n\t\x1b[2K\u{9b}\u{7f}\u{202e}txt"),
            "rm\\r\n\t\\x1b[2K<U+009B>\\x7f<U+202E>txt"
        );
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["read_file", "write_file", "terminal", "todo"];
        assert_eq!(nearest("readfile", names), ["read_file"]);
        assert_eq!(nearest("Terminl", names), ["terminal"]);
        assert_eq!(nearest("tood", names), ["todo"]);
        assert_eq!(nearest("file", names), ["read_file", "write_file"]);
        assert!(nearest("browser", names).is_empty());
    }
}
