//! Words that braces multiply: `{a,b}.c`, `{1..3}`.

use super::Outcome;
use super::tree::{Part, Word};
use super::words::{Parser, push};

/// Words that one may become.
const WORDS_MAX: usize = 256;

impl Parser {
    /// Returns the words that a word becomes.
    pub(super) fn multiplied(&self, word: Word) -> Outcome<Vec<Word>> {
        let has = |c: char| word.contains(&Part::Brace(c));
        let has_dots = word
            .iter()
            .any(|part| matches!(part, Part::Bare(text) if text.contains("..")));
        if !has('{') || !has('}') || !(has(',') || has_dots) {
            return Ok(vec![as_text(word)]);
        }
        if word
            .iter()
            .any(|part| matches!(part, Part::Home | Part::Bare(_) if is_ambiguous(part)))
        {
            return self.fail("has `~` or `$` in a word with braces");
        }
        let mut words = vec![Word::new()];
        let mut rest = word.into_iter();
        while let Some(part) = rest.next() {
            let choices = match part {
                Part::Brace('{') => self.choices(&mut rest)?,
                Part::Brace('}') => return self.fail("has a brace without another"),
                part => vec![as_text(vec![part])],
            };
            words = product(&words, &choices);
            if words.len() > WORDS_MAX {
                return self.fail("has braces that make too many words");
            }
        }
        Ok(words)
    }

    /// Returns what stands between a brace and the next, one by one.
    fn choices(&self, rest: &mut impl Iterator<Item = Part>) -> Outcome<Vec<Word>> {
        let mut choices = vec![Word::new()];
        let mut commas = 0;
        loop {
            match rest.next() {
                None => return self.fail("has a brace without another"),
                Some(Part::Brace('{')) => return self.fail("has braces in braces"),
                Some(Part::Brace('}')) if choices == [Word::new()] => {
                    return self.fail("has empty braces in a word with others");
                }
                Some(Part::Brace('}')) => break,
                Some(Part::Brace(_)) => {
                    commas += 1;
                    choices.push(Word::new());
                }
                Some(part) => {
                    if let Some(choice) = choices.last_mut() {
                        choice.push(part);
                    }
                }
            }
        }
        if commas > 0 {
            return Ok(choices);
        }
        let only = choices.pop().unwrap_or_default();
        if let [Part::Bare(text)] = only.as_slice()
            && text.contains("..")
        {
            return self.sequence(text);
        }
        self.fail("has braces around one word beside others")
    }

    fn sequence(&self, text: &str) -> Outcome<Vec<Word>> {
        let word = |text: String| vec![Part::Bare(text)];
        let fail = || self.fail("has braces with `..` that are no plain sequence");
        let Some((first, last)) = text.split_once("..") else {
            return fail();
        };
        let letter = |text: &str| match text.as_bytes() {
            [byte] if byte.is_ascii_lowercase() => Some(*byte),
            _ => None,
        };
        if let (Some(first), Some(last)) = (letter(first), letter(last)) {
            let (low, high) = (first.min(last), first.max(last));
            let mut letters: Vec<u8> = (low..=high).collect();
            if first > last {
                letters.reverse();
            }
            return Ok(letters
                .into_iter()
                .map(|byte| word(char::from(byte).into()))
                .collect());
        }
        let number = |text: &str| {
            let number: u16 = text.parse().ok()?;
            (number.to_string() == text).then_some(number)
        };
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return fail();
        };
        if usize::from(first.abs_diff(last)) >= WORDS_MAX {
            return self.fail("has braces that make too many words");
        }
        let mut numbers: Vec<u16> = (first.min(last)..=first.max(last)).collect();
        if first > last {
            numbers.reverse();
        }
        Ok(numbers
            .into_iter()
            .map(|number| word(number.to_string()))
            .collect())
    }
}

fn is_ambiguous(part: &Part) -> bool {
    match part {
        Part::Bare(text) => text.contains(['~', '$']),
        _ => true,
    }
}

/// Makes braces that multiply nothing text.
fn as_text(word: Word) -> Word {
    let mut text = Word::new();
    for part in word {
        match part {
            Part::Brace(c) => push(&mut text, Part::Bare(c.into())),
            part => push(&mut text, part),
        }
    }
    text
}

fn product(words: &[Word], choices: &[Word]) -> Vec<Word> {
    let mut made = Vec::with_capacity(words.len() * choices.len());
    for word in words {
        for choice in choices {
            let mut joined = word.clone();
            for part in choice {
                push(&mut joined, part.clone());
            }
            made.push(joined);
        }
    }
    made
}
