//! Cuts a text into messages that a platform takes, without breaking what it looks like.

/// Room for the line that closes a fence and for the one that opens it again.
const FENCE_ROOM: usize = 40;

/// Cuts markdown into pieces of at most `max` by a platform's own measure: between paragraphs, else between lines, else
/// between words, else anywhere. A code block that is cut is closed and opened again with its language.
///
/// The same text is always cut the same way. A `max` too small for anything counts as one that fits a word.
pub fn split(markdown: &str, max: usize, length: impl Fn(&str) -> usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = markdown.trim_end().to_owned();
    while length(&rest) > max && !rest.is_empty() {
        let (piece, more) = cut(&rest, max, &length);
        pieces.push(piece);
        rest = more;
    }
    if !rest.trim().is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

fn cut(text: &str, max: usize, length: &impl Fn(&str) -> usize) -> (String, String) {
    let room = max.saturating_sub(FENCE_ROOM).max(1);
    let fitting = fitting(text, room, length);
    let at = good_place(text, fitting);
    let (piece, rest) = text.split_at(at);
    let rest = match rest.strip_prefix(' ') {
        Some(words) => words,
        None => rest.trim_start_matches('\n'),
    };
    match open_fence(piece) {
        None => (piece.trim_end().to_owned(), rest.to_owned()),
        Some(fence) => (
            format!("{}\n{}", piece.trim_end(), fence.mark),
            format!("{}{}\n{rest}", fence.mark, fence.language),
        ),
    }
}

/// The longest beginning that fits, at least a character: found by halving, since only the platform knows how long a text is.
fn fitting(text: &str, room: usize, length: &impl Fn(&str) -> usize) -> usize {
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = text.ceil_char_boundary((low + high).div_ceil(2));
        if length(&text[..middle]) <= room {
            low = middle;
        } else {
            high = text.floor_char_boundary(middle - 1);
        }
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    low.max(first)
}

/// Where to cut a text so that at most so much of it is before: not so early that the piece would be a crumb.
fn good_place(text: &str, fitting: usize) -> usize {
    let head = &text[..fitting];
    let crumb = fitting / 2;
    let places = [head.rfind("\n\n"), head.rfind('\n'), head.rfind(' ')];
    let mut places = places.into_iter().flatten();
    places.find(|at| *at > crumb).unwrap_or(fitting)
}

struct Fence<'a> {
    mark: &'a str,
    language: &'a str,
}

/// The code block that a text ends in the middle of.
fn open_fence(text: &str) -> Option<Fence<'_>> {
    let mut open = None;
    for line in text.lines() {
        let line = line.trim_start();
        let marks = line.len() - line.trim_start_matches('`').len();
        if marks < 3 {
            continue;
        }
        let (mark, language) = line.split_at(marks);
        open = match open {
            None => Some(Fence {
                mark,
                language: language.trim(),
            }),
            Some(fence) if marks >= fence.mark.len() && language.trim().is_empty() => None,
            other => other,
        };
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(text: &str) -> usize {
        text.chars().count()
    }

    #[test]
    fn what_fits_stays_whole_and_nothing_is_one_empty_piece() {
        assert_eq!(split("hello", 100, chars), ["hello"]);
        assert_eq!(split("", 100, chars), [""]);
    }

    #[test]
    fn text_is_cut_between_paragraphs_and_nothing_is_lost() {
        let text = ["one two three four"; 40].join("\n\n");
        let pieces = split(&text, 200, chars);
        assert!(pieces.len() > 3);
        for piece in &pieces {
            assert!(chars(piece) <= 200, "{piece:?}");
            assert!(piece.starts_with("one") && piece.ends_with("four"));
        }
        assert_eq!(pieces.join("\n\n"), text);
    }

    #[test]
    fn a_code_block_is_closed_and_opened_again_with_its_language() {
        let code = "let x = 1;\n".repeat(60);
        let text = format!("Look:\n\n```rust\n{code}```\n\nDone.");
        let pieces = split(&text, 200, chars);
        assert!(pieces.len() > 3);
        for piece in &pieces {
            assert!(chars(piece) <= 200);
            assert_eq!(piece.matches("```").count() % 2, 0, "{piece}");
        }
        assert!(pieces[1].starts_with("```rust\n"));
        let lines = pieces.join("\n").matches("let x = 1;").count();
        assert_eq!(lines, 60);
    }

    #[test]
    fn words_without_end_and_other_measures_are_cut_too() {
        let utf16 = |text: &str| text.encode_utf16().count();
        let text = "\u{1f980}".repeat(500);
        let pieces = split(&text, 100, utf16);
        assert!(pieces.iter().all(|piece| utf16(piece) <= 100));
        assert_eq!(pieces.concat(), text);
        // A measure that nothing satisfies still ends.
        assert_eq!(split("abc", 0, chars).concat(), "abc");
    }
}
