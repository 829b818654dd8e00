//! Words, and what else of a text says where it comes from. The same rules for every language: no list of words.

use crate::threats;

/// Words shorter than this say nothing about where a text comes from.
const WORD_CHARS_MIN: usize = 4;

/// Forms of one word share their beginning, and differ in so many characters at most.
const STEM_CHARS: usize = 4;
const ENDING_CHARS_MAX: usize = 2;

/// Words as somebody reads them; scripts without spaces by pairs of characters.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut split = Vec::new();
    for word in threats::words(text) {
        if !word.chars().any(is_unspaced) {
            split.push(word);
            continue;
        }
        let chars: Vec<char> = word.chars().collect();
        match chars.len() {
            1 => split.push(word),
            _ => split.extend(chars.windows(2).map(|pair| pair.iter().collect())),
        }
    }
    split
}

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af)
}

/// Whether a word says something about where a text comes from.
pub(super) fn is_telling(word: &str) -> bool {
    word.chars().count() >= WORD_CHARS_MIN || word.chars().any(is_unspaced)
}

/// What the forms of a word begin with.
pub(super) fn stem(word: &str) -> &str {
    let end = word.char_indices().nth(STEM_CHARS);
    end.map_or(word, |(end, _)| &word[..end])
}

/// Whether two words may be forms of one: `live` and `lives`, `Antwort` and `Antworten`.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let shared = one.chars().zip(other.chars());
    let shared = shared.take_while(|(one, other)| one == other).count();
    let rest = one.chars().count().max(other.chars().count()) - shared;
    shared >= STEM_CHARS && rest <= ENDING_CHARS_MAX
}

/// Pieces of text that stand for somebody or some place: addresses, account numbers, keys.
pub fn marks(text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = text.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;".contains(c));
    let pieces = pieces.map(|piece| {
        piece
            .trim_matches(|c: char| ".:!?".contains(c))
            .to_lowercase()
    });
    pieces.filter(|piece| {
        let digits = piece.chars().filter(char::is_ascii_digit).count();
        piece.contains("://")
            || (piece.contains('@') && piece.contains('.'))
            || piece.starts_with("www.")
            || digits >= 6
            || (digits >= 2 && piece.chars().count() >= 12)
    })
}
