//! Text for somebody who judges it: exactly what it is, and nothing that looks like something else.
//!
//! A line that is about to run is shown with everything spelt out that a terminal would obey, that cannot be seen, or that
//! looks like a character a shell knows and is not that character.

use std::fmt::Write as _;

/// Of what would run, a person reads this much at once; what is longer is shown in parts.
pub const PART_CHARS_MAX: usize = 4_000;

/// Returns the text with everything deceptive in it written as `\u{…}`. Lines stay lines; a tab is `\t`.
pub fn exact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word_bytes = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(word_bytes.max(first.len_utf8()));
        rest = after;
        // One alphabet in a word is a language; two are a disguise.
        let is_mixed = piece.chars().any(|c| c.is_ascii_alphabetic());
        for c in piece.chars() {
            match c {
                '\n' => shown.push('\n'),
                '\t' => shown.push_str("\\t"),
                c if is_deceptive(c) || (is_mixed && is_of_lookalike_alphabet(c)) => {
                    // Writing to a string cannot fail.
                    _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
                }
                c => shown.push(c),
            }
        }
    }
    shown
}

/// Cuts text into parts that a person reads one after the other; at least one.
pub fn parts(shown: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = shown;
    while let Some((end, _)) = rest.char_indices().nth(PART_CHARS_MAX) {
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic()
}

/// Whether a character is obeyed, unseen, or taken for another, wherever it stands.
fn is_deceptive(c: char) -> bool {
    if c.is_ascii() {
        return c.is_control();
    }
    c.is_control() || c.is_whitespace() || is_invisible(c) || looks_like_ascii(c)
}

/// Whether a character is not seen.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}'
        | '\u{e000}'..='\u{f8ff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{10ffff}')
}

/// Signs that are taken for those of a shell: quotes, dashes, slashes, bars, stars, hashes and the like in other blocks.
fn looks_like_ascii(c: char) -> bool {
    matches!(c,
        // Quotes, primes and accents.
        '\u{b4}' | '\u{a8}' | '\u{b8}' | '\u{2b9}'..='\u{2df}' | '\u{300}'..='\u{338}' | '\u{2018}'..='\u{201f}'
        | '\u{2032}'..='\u{203a}' | '\u{2057}' | '\u{275b}'..='\u{275e}' | '\u{301d}'..='\u{301f}'
        // Dashes, dots, slashes, colons, semicolons, bars.
        | '\u{ac}' | '\u{b7}' | '\u{1c0}' | '\u{1c3}' | '\u{37e}' | '\u{387}' | '\u{589}' | '\u{5c0}' | '\u{5c3}'
        | '\u{60c}' | '\u{61b}' | '\u{66a}' | '\u{66d}' | '\u{6d4}' | '\u{2010}'..='\u{2017}'
        | '\u{2022}'..='\u{2026}' | '\u{203c}'..='\u{203e}' | '\u{2043}'..='\u{205e}' | '\u{2212}' | '\u{2215}'..='\u{2219}'
        | '\u{2223}' | '\u{2225}' | '\u{2236}' | '\u{223c}' | '\u{2264}' | '\u{2265}' | '\u{226a}' | '\u{226b}'
        | '\u{22c4}'..='\u{22c6}' | '\u{2308}'..='\u{230b}' | '\u{2329}' | '\u{232a}' | '\u{23b8}'..='\u{23bd}'
        | '\u{244a}' | '\u{2571}'..='\u{2573}' | '\u{2758}'..='\u{275a}' | '\u{2768}'..='\u{2775}'
        | '\u{27cb}' | '\u{27cd}' | '\u{27e6}'..='\u{27ef}' | '\u{2983}'..='\u{2998}' | '\u{29f5}'..='\u{29f9}'
        | '\u{2cc6}' | '\u{2d4f}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301b}'
        | '\u{30fb}' | '\u{a78f}' | '\u{a789}'
        // Presentation forms, small and full-width signs and letters, letters of mathematics, circled ones.
        | '\u{fe10}'..='\u{fe6f}' | '\u{ff01}'..='\u{ff65}' | '\u{ffe0}'..='\u{ffee}'
        | '\u{2100}'..='\u{214f}' | '\u{2460}'..='\u{24ff}' | '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f16f}')
}

/// Letters of alphabets whose letters are taken for Latin ones.
fn is_of_lookalike_alphabet(c: char) -> bool {
    matches!(c,
        '\u{250}'..='\u{2af}' | '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{530}'..='\u{58f}'
        | '\u{13a0}'..='\u{13ff}' | '\u{1c80}'..='\u{1c8f}' | '\u{1f00}'..='\u{1fff}' | '\u{2c00}'..='\u{2c5f}'
        | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{a640}'..='\u{a69f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(exact(text), expected);
    }

    #[test]
    fn what_is_obeyed_or_unseen_is_spelt_out() {
        check("ls\u{1b}[2K\rrm x", "ls\\u{1b}[2K\\u{d}rm x");
        check("a\tb\nc", "a\\tb\nc");
        check("echo x\u{a0}# ; rm", "echo x\\u{a0}# ; rm");
        check(
            "rm\u{200b} \u{202e}x\u{2069}",
            "rm\\u{200b} \\u{202e}x\\u{2069}",
        );
        check(
            "a\u{e0061}\u{fe0f}\u{ad}\u{7f}",
            "a\\u{e0061}\\u{fe0f}\\u{ad}\\u{7f}",
        );
    }

    #[test]
    fn what_looks_like_another_sign_is_spelt_out() {
        check("echo ‘x’ ＃ y", "echo \\u{2018}x\\u{2019} \\u{ff03} y");
        check("rm –rf x；ls", "rm \\u{2013}rf x\\u{ff1b}ls");
        // A Cyrillic letter in a Latin word is a disguise, in a Russian one it is a letter.
        check("ѕudo", "\\u{455}udo");
        check("cat документы/план", "cat документы/план");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "git commit -m 'Grüße, naïve café'",
            "echo 日本語 🦀",
            "a#b \\u{1b} \"$x\" `y`",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn parts_are_the_whole() {
        let long = "ü".repeat(PART_CHARS_MAX * 2 + 1);
        let parts = super::parts(&long);
        assert_eq!(parts.len(), 3);
        assert_eq!(parts.concat(), long);
        assert_eq!(super::parts(""), [""]);
        assert_eq!(super::parts(&"x".repeat(PART_CHARS_MAX)).len(), 1);
    }
}
