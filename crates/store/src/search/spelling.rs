//! What somebody may have meant by a word that nobody wrote.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use crate::failure::Failure;

/// The shortest word that is corrected: below, everything is near to something.
const CHARS_MIN: usize = 4;

/// The longest: what is longer is no word.
const CHARS_MAX: usize = 24;

/// From this length on a word may have two errors.
const CHARS_FOR_TWO_ERRORS: usize = 8;

/// The beginning that most misspelt words have right, by which the others are found.
const BEGINNING_CHARS: usize = 3;

/// Words with one beginning that are compared.
const COMPARED_MAX: i64 = 4000;

/// Matches that are counted to see which of two corrections people use.
const COUNTED_MAX: i64 = 32;

const CORRECTIONS_MAX: usize = 3;

/// A word that exists.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Correction {
    errors: usize,
    /// The more the better, so the other way round.
    rarity: i64,
    word: String,
}

/// Returns existing words that differ from `word`, which is in lower case, by as few errors as possible.
pub(super) fn corrections(conn: &Connection, word: &str) -> Result<Vec<String>, Failure> {
    let chars: Vec<char> = word.chars().collect();
    let is_word = chars.iter().all(|c| c.is_alphabetic());
    if !is_word || !(CHARS_MIN..=CHARS_MAX).contains(&chars.len()) {
        return Ok(Vec::new());
    }
    let mut found = beginning_alike(conn, &chars)?;
    found.extend(beginning_otherwise(conn, &chars)?);
    let Some(best) = found.iter().map(|correction| correction.errors).min() else {
        return Ok(Vec::new());
    };
    let words = found.into_iter().take_while(|one| one.errors == best);
    Ok(words.take(CORRECTIONS_MAX).map(|one| one.word).collect())
}

fn beginning_alike(
    conn: &Connection,
    chars: &[char],
) -> Result<BTreeSet<Correction>, Failure> {
    let errors_max = if chars.len() >= CHARS_FOR_TWO_ERRORS { 2 } else { 1 };
    let beginning: String = chars[..BEGINNING_CHARS].iter().collect();
    let mut statement = conn.prepare_cached(
        "SELECT term, doc FROM vocabulary WHERE term >= ?1 AND term <= ?2 LIMIT ?3",
    )?;
    let end = format!("{beginning}{}", char::MAX);
    let mut rows = statement.query(params![beginning, end, COMPARED_MAX])?;
    let mut found = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        let other: Vec<char> = word.chars().collect();
        if other.len().abs_diff(chars.len()) > errors_max {
            continue;
        }
        let errors = distance(chars, &other);
        if (1..=errors_max).contains(&errors) {
            let rarity = -row.get::<_, i64>(1)?.min(COUNTED_MAX);
            found.insert(Correction { errors, rarity, word });
        }
    }
    Ok(found)
}

/// One error among the first characters: all words that it can have come from are looked up.
fn beginning_otherwise(
    conn: &Connection,
    chars: &[char],
) -> Result<BTreeSet<Correction>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)",
    )?;
    let mut found = BTreeSet::new();
    for word in with_one_error_at_the_beginning(chars) {
        let count: i64 =
            statement.query_row(params![format!("\"{word}\""), COUNTED_MAX], |row| row.get(0))?;
        if count > 0 {
            found.insert(Correction {
                errors: 1,
                rarity: -count,
                word,
            });
        }
    }
    Ok(found)
}

fn with_one_error_at_the_beginning(chars: &[char]) -> BTreeSet<String> {
    let letters = alphabet(chars[0]);
    let mut words = BTreeSet::new();
    for at in 0..BEGINNING_CHARS {
        let with = |middle: &[char], rest: usize| -> String {
            [&chars[..at], middle, &chars[rest..]].concat().iter().collect()
        };
        words.insert(with(&[], at + 1));
        words.insert(with(&[chars[at + 1], chars[at]], at + 2));
        for letter in letters.clone() {
            words.insert(with(&[letter], at + 1));
            words.insert(with(&[letter], at));
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
                let is_exchanged = i > 1
                    && j > 1
                    && left[i - 1] == right[j - 2]
                    && left[i - 2] == right[j - 1];
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
            assert_eq!(distance(&chars(left), &chars(right)), expected, "{left} {right}");
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
    fn errors_at_the_beginning_are_tried_out() {
        let words = with_one_error_at_the_beginning(&['a', 'b', 'c', 'd']);
        for word in ["bcd", "bacd", "xbcd", "xabcd", "acbd", "abdc", "abxcd"] {
            assert!(words.contains(word), "{word}");
        }
        assert!(!words.contains("abcd"));
    }
}
