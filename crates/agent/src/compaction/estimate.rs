//! How many tokens a text has, before a provider has counted it: from the kinds of characters in it, with weights for each
//! family of tokenizers. How they were found: `tests/it/tokens/README.md`.

use hermes_core::{Message, Part, Prefix};
use serde_json::json;

/// What a picture takes, more or less, whatever its size: most providers scale it down to this.
const PICTURE_TOKENS: u64 = 1_600;
/// Role, separators, ids.
const MESSAGE_TOKENS: u64 = 4;
const CALL_TOKENS: u64 = 12;

/// Models whose tokenizers cut text alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    OpenAi,
    Claude,
    Llama,
    Qwen,
    DeepSeek,
    Gemma,
    Mistral,
}

/// Parts of lower-case names, the first match counting.
const NAMES: &[(&str, Family)] = &[
    ("claude", Family::Claude),
    ("gemini", Family::Gemma),
    ("gemma", Family::Gemma),
    ("qwen", Family::Qwen),
    ("qwq", Family::Qwen),
    ("deepseek", Family::DeepSeek),
    ("mistral", Family::Mistral),
    ("ministral", Family::Mistral),
    ("codestral", Family::Mistral),
    ("devstral", Family::Mistral),
    ("llama", Family::Llama),
    ("hermes", Family::Llama),
    ("nemotron", Family::Llama),
];

impl Family {
    /// The family of a model; models nobody knows are taken to be like those of OpenAI.
    pub(crate) fn of(model: &str) -> Self {
        let model = model.to_lowercase();
        let known = NAMES.iter().find(|(part, _)| model.contains(part));
        known.map_or(Self::OpenAi, |(_, family)| *family)
    }
}

/// Thousandths of a token that each kind of text takes.
struct Weights {
    word: u64,
    /// Each letter of a word beyond the fifth.
    letter: u64,
    /// Three digits, or what is left of them.
    digits: u64,
    digit: u64,
    /// Signs that stand together, and each beyond the first.
    signs: u64,
    sign: u64,
    /// Two or more spaces.
    spaces: u64,
    lines: u64,
    han: u64,
    /// Signs of Chinese and Japanese.
    wide: u64,
}

#[rustfmt::skip]
const fn weights(family: Family) -> Weights {
    match family {
        Family::OpenAi   => Weights { word: 994, letter: 154, digits: 1621, digit: 0, signs: 719, sign: 201, spaces: 956, lines: 46, han: 816, wide: 701 },
        Family::Claude   => Weights { word: 988, letter: 92, digits: 1072, digit: 0, signs: 1107, sign: 166, spaces: 0, lines: 739, han: 1088, wide: 1465 },
        Family::Llama    => Weights { word: 1005, letter: 145, digits: 1614, digit: 0, signs: 706, sign: 207, spaces: 948, lines: 27, han: 839, wide: 778 },
        Family::Qwen     => Weights { word: 997, letter: 144, digits: 694, digit: 988, signs: 697, sign: 209, spaces: 873, lines: 154, han: 635, wide: 795 },
        Family::DeepSeek => Weights { word: 940, letter: 180, digits: 1364, digit: 81, signs: 964, sign: 125, spaces: 627, lines: 328, han: 568, wide: 896 },
        Family::Gemma    => Weights { word: 942, letter: 85, digits: 519, digit: 930, signs: 1124, sign: 68, spaces: 825, lines: 1013, han: 646, wide: 1083 },
        Family::Mistral  => Weights { word: 952, letter: 203, digits: 580, digit: 1049, signs: 833, sign: 183, spaces: 802, lines: 228, han: 916, wide: 972 },
    }
}

/// Letters of other scripts, by their characters: between what the families need, which do not differ much.
const OTHER_LETTER: u64 = 450;
const SYLLABLE: u64 = 850;
/// Emoji, symbols, and what nobody has a word for.
const SYMBOL: u64 = 1_500;
/// Letters of a word that come with it.
const WORD_LETTERS: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Sign,
    Space,
    Line,
    Han,
    Wide,
    Syllable,
    OtherLetter,
    Symbol,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '\t' => Self::Space,
            '\n' | '\r' => Self::Line,
            '\0'..='\x7f' => Self::Sign,
            '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' | '\u{2010}'..='\u{2027}' => {
                Self::Wide
            }
            '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Self::Han,
            '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}' => Self::Syllable,
            c if c.is_alphabetic() => Self::OtherLetter,
            _ => Self::Symbol,
        }
    }
}

/// Estimates the tokens of a text.
pub(crate) fn tokens(family: Family, text: &str) -> u64 {
    let weights = weights(family);
    let mut thousandths = 0;
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        let kind = Kind::of(first);
        let mut length: u64 = 1;
        let mut last = first;
        while let Some(next) = chars.next_if(|next| {
            let goes_on = Kind::of(*next) == kind;
            // `camelCase` is two words.
            goes_on && !(next.is_ascii_uppercase() && last.is_ascii_lowercase())
        }) {
            last = next;
            length += 1;
        }
        thousandths += match kind {
            Kind::Letter => weights.word + weights.letter * length.saturating_sub(WORD_LETTERS),
            Kind::Digit => weights.digits * length.div_ceil(3) + weights.digit * length,
            Kind::Sign => weights.signs + weights.sign * (length - 1),
            Kind::Space if length == 1 => 0,
            Kind::Space => weights.spaces,
            Kind::Line => weights.lines,
            Kind::Han => weights.han * length,
            Kind::Wide => weights.wide * length,
            Kind::Syllable => SYLLABLE * length,
            Kind::OtherLetter => OTHER_LETTER * length,
            Kind::Symbol => SYMBOL * length,
        };
    }
    u64::div_ceil(thousandths, 1_000)
}

/// Estimates what a message takes in a request.
pub(crate) fn message_tokens(family: Family, message: &Message) -> u64 {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text { text } => tokens(family, text),
        Part::Image(_) | Part::Audio(_) => PICTURE_TOKENS,
        Part::Reasoning(reasoning) => tokens(family, &reasoning.text),
        Part::ToolCall(call) => {
            let arguments = match &call.arguments {
                hermes_core::Arguments::Json(value) => value.to_string(),
                hermes_core::Arguments::Malformed(text) => text.clone(),
            };
            CALL_TOKENS + tokens(family, &call.name) + tokens(family, &arguments)
        }
        Part::ToolResult(result) => {
            CALL_TOKENS + tokens(family, &result.text) + PICTURE_TOKENS * result.images.len() as u64
        }
    });
    MESSAGE_TOKENS + parts.sum::<u64>()
}

/// Estimates what prompt and tools take in a request.
pub(crate) fn prefix_tokens(family: Family, prefix: &Prefix) -> u64 {
    let tools = prefix.tools.iter();
    let tools = tools.map(|tool| tokens(family, &json!(tool).to_string()));
    MESSAGE_TOKENS + tokens(family, &prefix.system) + tools.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TEXTS: [(&str, &str); 3] = [
        ("english", include_str!("../../tests/it/tokens/english.txt")),
        ("code", include_str!("../../tests/it/tokens/code.txt")),
        ("chinese", include_str!("../../tests/it/tokens/chinese.txt")),
    ];

    #[test]
    fn an_estimate_is_within_a_tenth_of_what_real_tokenizers_count() {
        let counts = include_str!("../../tests/it/tokens/counts.json");
        let counts: BTreeMap<String, BTreeMap<String, u64>> = serde_json::from_str(counts).unwrap();
        for (name, family) in [
            ("openai", Family::OpenAi),
            ("claude", Family::Claude),
            ("llama", Family::Llama),
            ("qwen", Family::Qwen),
            ("deepseek", Family::DeepSeek),
            ("gemma", Family::Gemma),
            ("mistral", Family::Mistral),
        ] {
            for (kind, text) in TEXTS {
                let (counted, ours) = (counts[name][kind], tokens(family, text));
                let off = ours.abs_diff(counted) * 100;
                assert!(off <= counted * 10, "{name}, {kind}: {ours}, not {counted}");
            }
        }
    }

    #[test]
    fn families_are_known_by_their_names() {
        for (model, family) in [
            ("anthropic/claude-sonnet-4.6", Family::Claude),
            ("gpt-5.1", Family::OpenAi),
            ("Qwen2.5-Coder-1.5B-Instruct", Family::Qwen),
            ("deepseek-r1-distill-llama", Family::DeepSeek),
            ("gemini-3-pro", Family::Gemma),
            ("NousResearch/Hermes-4-70B", Family::Llama),
            ("who-knows", Family::OpenAi),
        ] {
            assert_eq!(Family::of(model), family, "{model}");
        }
    }

    #[test]
    fn odd_texts_have_a_size_as_well() {
        assert_eq!(tokens(Family::OpenAi, ""), 0);
        for text in [
            "\u{0}",
            "🦀🦀",
            "Привет, мир",
            "こんにちは",
            "\n\n\n",
            "          ",
        ] {
            assert!(tokens(Family::OpenAi, text) >= 1, "{text:?}");
        }
    }
}
