//! What somebody may have meant by a word that nobody wrote: the words that were said, kept once each, and those that are
//! nearly like another.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::query::fold;
use crate::failure::Failure;

/// The shortest word that is corrected: below, everything is near to something.
const CHARS_MIN: usize = 4;

/// The longest: what is longer is no word.
const CHARS_MAX: usize = 24;

/// From this length on a word may have two errors, if it has its beginning right.
const CHARS_FOR_TWO_ERRORS: usize = 8;

const BEGINNING_CHARS: usize = 4;

/// Words with one beginning that are compared.
const COMPARED_MAX: i64 = 4000;

/// Among as many is the one that the other words of a question go with.
const CORRECTIONS_MAX: usize = 8;

/// Words that people and models said; what tools print is no guide to spelling.
#[derive(Debug, Default)]
pub(super) struct Spellings(BTreeSet<String>);

impl Spellings {
    /// Takes the words of a text.
    pub(super) fn read(&mut self, text: &str) {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| (CHARS_MIN..=CHARS_MAX * 4).contains(&word.len()));
        for word in words.map(fold).filter(|word| is_word(word)) {
            self.0.insert(word);
        }
    }

    pub(super) fn keep(&self, conn: &Connection) -> Result<(), Failure> {
        let mut statement =
            conn.prepare_cached("INSERT OR IGNORE INTO spellings (word) VALUES (?1)")?;
        for word in &self.0 {
            statement.execute([word])?;
        }
        Ok(())
    }

    /// Forgets those of them that no message has any more.
    pub(super) fn forget_unused(&self, conn: &Connection) -> Result<(), Failure> {
        let mut find = conn.prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1")?;
        let mut forget = conn.prepare_cached("DELETE FROM spellings WHERE word = ?1")?;
        for word in &self.0 {
            let used = find.query_row([format!("\"{word}\"")], |_| Ok(()));
            if used.optional()?.is_none() {
                forget.execute([word])?;
            }
        }
        Ok(())
    }
}

fn is_word(word: &str) -> bool {
    let is_long_enough = (CHARS_MIN..=CHARS_MAX).contains(&word.chars().count());
    is_long_enough && word.chars().all(char::is_alphabetic)
}

/// Returns words that were said and differ from `word`, which is in lower case, by as few errors as possible.
pub(super) fn corrections(conn: &Connection, word: &str) -> Result<Vec<String>, Failure> {
    if !is_word(word) {
        return Ok(Vec::new());
    }
    let chars: Vec<char> = word.chars().collect();
    let mut found = with_one_error(conn, &chars)?;
    if found.is_empty() && chars.len() >= CHARS_FOR_TWO_ERRORS {
        found = with_two_errors(conn, &chars)?;
    }
    found.truncate(CORRECTIONS_MAX);
    Ok(found)
}

/// All words that one error makes into this one are looked up.
fn with_one_error(conn: &Connection, chars: &[char]) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare_cached("SELECT 1 FROM spellings WHERE word = ?1")?;
    let mut found = Vec::new();
    for word in one_error_away(chars) {
        if statement
            .query_row([&word], |_| Ok(()))
            .optional()?
            .is_some()
        {
            found.push(word);
        }
    }
    Ok(found)
}

fn with_two_errors(conn: &Connection, chars: &[char]) -> Result<Vec<String>, Failure> {
    let beginning: String = chars[..BEGINNING_CHARS].iter().collect();
    let end = format!("{beginning}{}", char::MAX);
    let mut statement =
        conn.prepare_cached("SELECT word FROM spellings WHERE word BETWEEN ?1 AND ?2 LIMIT ?3")?;
    let mut rows = statement.query(params![beginning, end, COMPARED_MAX])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let word = super::text(row, 0)?;
        let other: Vec<char> = word.chars().collect();
        if other.len().abs_diff(chars.len()) <= 2 && distance(chars, &other) == 2 {
            found.push(word.to_owned());
        }
    }
    Ok(found)
}

fn one_error_away(chars: &[char]) -> BTreeSet<String> {
    let letters = alphabet(chars[0]);
    let mut words = BTreeSet::new();
    for at in 0..=chars.len() {
        let with = |middle: &[char], rest: usize| -> String {
            [&chars[..at], middle, &chars[rest..]]
                .concat()
                .iter()
                .collect()
        };
        if at < chars.len() {
            words.insert(with(&[], at + 1));
        }
        if at + 1 < chars.len() {
            words.insert(with(&[chars[at + 1], chars[at]], at + 2));
        }
        for letter in letters.clone() {
            words.insert(with(&[letter], at));
            if at < chars.len() {
                words.insert(with(&[letter], at + 1));
            }
        }
    }
    words.remove(&String::from_iter(chars));
    words
}

/// The letters of the alphabet that a letter is from.
fn alphabet(letter: char) -> std::ops::RangeInclusive<char> {
    match letter {
        '\u{370}'..='\u{3ff}' => 'α'..='ω',
        '\u{400}'..='\u{4ff}' => 'а'..='я',
        _ => 'a'..='z',
    }
}

/// Counts errors: a letter too many, too few, another one, or two exchanged.
fn distance(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut rows = vec![0; width * (left.len() + 1)];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            let at = |i: usize, j: usize| rows[i * width + j];
            let value = if i == 0 || j == 0 {
                i + j
            } else {
                let is_other = usize::from(left[i - 1] != right[j - 1]);
                let edited = (at(i - 1, j) + 1).min(at(i, j - 1) + 1);
                let mut value = edited.min(at(i - 1, j - 1) + is_other);
                let is_exchanged =
                    i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
                if is_exchanged {
                    value = value.min(at(i - 2, j - 2) + 1);
                }
                value
            };
            rows[i * width + j] = value;
        }
    }
    rows[left.len() * width + right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_as_people_make_them() {
        let check = |left: &str, right: &str, expected| {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(
                distance(&chars(left), &chars(right)),
                expected,
                "{left} {right}"
            );
        };
        check("postgres", "postgres", 0);
        check("postgrse", "postgres", 1);
        check("postgre", "postgres", 1);
        check("posttgres", "postgres", 1);
        check("pastgres", "postgres", 1);
        check("potsgrse", "postgres", 2);
        check("", "ab", 2);
    }

    #[test]
    fn every_single_error_is_tried_out() {
        let words = one_error_away(&['a', 'b', 'c', 'd']);
        for word in [
            "bcd", "bacd", "xbcd", "xabcd", "acbd", "abdc", "abxcd", "abcdx", "abc",
        ] {
            assert!(words.contains(word), "{word}");
        }
        assert!(!words.contains("abcd"));
    }

    #[test]
    fn words_are_kept_in_lower_case_without_numbers() {
        let mut spellings = Spellings::default();
        spellings.read("The Postgres-Backup, of 2026: x1y2z3w4 и Москва");
        let words: Vec<&str> = spellings.0.iter().map(String::as_str).collect();
        assert_eq!(words, ["backup", "postgres", "москва"]);
    }
}
