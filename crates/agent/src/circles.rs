//! Notices a reply that goes round in circles, as small models write them: the same line or sentence over and over, word for
//! word, until the output limit ends it. Pure.

/// How much of the end of a reply is looked at.
const TAIL_BYTES: usize = 8 * 1024;
/// How much must be repetition. People do ask for the same line twenty times; this is far more.
const COVERED_BYTES_MIN: usize = 1200;
/// How often something must stand there, by its length: a long paragraph does not come four times by chance.
const REPEATS_MIN: usize = 10;
const REPEATS_OF_LONG_MIN: usize = 4;
const LONG_BYTES: usize = 200;
/// How often the end is looked at. A model writes a few tokens in this many bytes.
const LOOK_EVERY_BYTES: usize = 256;

const ENDS_OF_SENTENCES: [char; 4] = ['.', '!', '?', '\n'];

/// What was said so far, as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    tail: Vec<u8>,
    unseen: usize,
}

impl Watch {
    /// Takes in what was said next and returns whether it goes round in circles.
    pub(crate) fn hears(&mut self, text: &str) -> bool {
        self.tail.extend_from_slice(text.as_bytes());
        self.unseen += text.len();
        if self.unseen < LOOK_EVERY_BYTES {
            return false;
        }
        self.unseen = 0;
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        circle(&self.tail).is_some()
    }
}

/// Leaves of a text that ends in circles one round.
pub(crate) fn without_circles(text: &str) -> &str {
    let bytes = text.as_bytes();
    let Some(round) = circle(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]) else {
        return text;
    };
    let mut start = bytes.len() - round;
    while start > 0 && bytes[start - 1] == bytes[start - 1 + round] {
        start -= 1;
    }
    let kept = hermes_core::text::head(text, start + round).trim_end();
    // Where the words before the circles end like it, a round begins in the middle: the sentence is finished.
    let rest = hermes_core::text::head(&text[kept.len()..], round);
    match rest.find(ENDS_OF_SENTENCES) {
        Some(end) if !kept.ends_with(ENDS_OF_SENTENCES) => text[..=kept.len() + end].trim_end(),
        _ => kept,
    }
}

/// Returns the length of what the end of a text consists of, again and again.
fn circle(tail: &[u8]) -> Option<usize> {
    let reversed: Vec<u8> = tail.iter().rev().copied().collect();
    let borders = borders(&reversed);
    let found = (COVERED_BYTES_MIN..=reversed.len()).find_map(|covered| {
        let round = covered - borders[covered - 1];
        let repeats = match round {
            0..LONG_BYTES => REPEATS_MIN,
            _ => REPEATS_OF_LONG_MIN,
        };
        (round * repeats <= covered).then_some(round)
    })?;
    // Rulers, rows of zeros and blank lines are no words.
    let has_words = reversed[..found]
        .iter()
        .any(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
    has_words.then_some(found)
}

/// For every beginning of a text, the length of the longest one that it also ends with: what is left is how long one round
/// of it is.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len()];
    for at in 1..text.len() {
        let mut length = borders[at - 1];
        while length > 0 && text[at] != text[length] {
            length = borders[length - 1];
        }
        if text[at] == text[length] {
            length += 1;
        }
        borders[at] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(text: &str) -> bool {
        let mut watch = Watch::default();
        let chars: Vec<char> = text.chars().collect();
        chars
            .chunks(7)
            .any(|piece| watch.hears(&piece.iter().collect::<String>()))
    }

    #[test]
    fn the_same_line_over_and_over_is_noticed() {
        assert!(hears(&"I will now read the file.\n".repeat(100)));
        assert!(hears(&format!("Sure! {}", "ha ".repeat(900))));
        let paragraph = format!(
            "{}\n\n",
            "A long paragraph that says nothing new. ".repeat(10)
        );
        let numbered = (1..=9)
            .map(|n| format!("{n} {paragraph}"))
            .collect::<String>();
        assert!(hears(&paragraph.repeat(6)) && !hears(&numbered[..1000]));
        assert!(hears(&"mañana será otro día. ".repeat(120)));
    }

    #[test]
    fn what_only_looks_alike_is_left_alone() {
        let lines: String = (1..400).map(|n| format!("line {n}: ok\n")).collect();
        assert!(!hears(&lines));
        assert!(!hears(&"-".repeat(4000)));
        assert!(!hears(&"0, ".repeat(2000)));
        assert!(!hears(&"I will say this twenty times.\n".repeat(20)));
        assert!(!hears(include_str!("circles.rs")));
    }

    #[test]
    fn one_round_is_kept() {
        let text = format!("The answer is 42. {}", "So it is. ".repeat(300));
        assert_eq!(without_circles(&text), "The answer is 42. So it is.");
        assert_eq!(without_circles("no circles"), "no circles");
    }
}
