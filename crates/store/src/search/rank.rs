//! Orders candidates by relevance: BM25 over their text, and then who said it, when, and how literally.
//!
//! FTS5 has its own, but that first counts all matches of every term, which for common words takes longer than
//! everything else together. How common a term is follows just as well from a few places where it is looked for.

use std::cmp::Reverse;

use hermes_core::Role;

use super::query::{fold, fold_char};
use super::snippet::{Edges, Needle};

/// The usual constants: how soon repetition stops to count, and how much length counts against a text.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// Texts shorter than this count as if they had so many bytes: a sentence is not better than a paragraph for being short.
const SHORT_BYTES: usize = 400;

/// How much newer counts for more: as much as one common word in a question of several, and half of it after two months.
/// What was said again later usually replaces what was said before.
const RECENCY_WEIGHT: f64 = 0.25;
const RECENCY_HALVES_AFTER_DAYS: f64 = 60.0;

/// How much it counts when the words stand in the text as they were asked for, one behind the other.
const IN_A_ROW_WEIGHT: f64 = 0.3;

const MILLIS_PER_DAY: f64 = 86_400_000.0;

/// What is looked for, and how much finding it says.
#[derive(Debug, Clone)]
pub(super) struct WeightedTerm {
    /// How it may stand in a text: several spellings, perhaps.
    pub(super) forms: Vec<Form>,
    pub(super) weight: f64,
}

/// One way in which a term may stand in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    /// Lower case.
    pub(super) text: String,
    pub(super) edges: Edges,
}

impl Form {
    pub(super) fn new(text: &str, edges: Edges) -> Self {
        Self {
            text: text.to_owned(),
            edges,
        }
    }

    pub(super) fn to_needle(&self) -> Needle {
        Needle {
            chars: self.text.chars().collect(),
            edges: self.edges,
        }
    }

    fn count(&self, folded: &str) -> usize {
        let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_edged = |at: usize, found: &str| {
            let (before, after) = (&folded[..at], &folded[at + found.len()..]);
            let is_start = || !is_inside(before.chars().next_back());
            match self.edges {
                Edges::Anywhere => true,
                Edges::BeginningOfWord => is_start(),
                Edges::WholeWord => is_start() && !is_inside(after.chars().next()),
            }
        };
        let found = folded.match_indices(&self.text);
        found.filter(|(at, found)| is_edged(*at, found)).count()
    }
}

/// What is looked for, as a whole.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) terms: Vec<WeightedTerm>,
    /// The query as it was written, when it has several words.
    pub(super) in_a_row: Option<String>,
    /// When the newest message was said.
    pub(super) now_millis: i64,
}

impl Wanted {
    pub(super) fn needles(&self) -> Vec<Needle> {
        let forms = self.terms.iter().flat_map(|term| &term.forms);
        forms.map(Form::to_needle).collect()
    }
}

/// A message as the index names it.
pub(super) struct Named<'a> {
    pub(super) message: i64,
    pub(super) role: Role,
    pub(super) at_millis: i64,
    pub(super) text: &'a str,
}

/// A message that may be shown.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) message: i64,
    bytes: usize,
    /// Occurrences of each term.
    counts: Vec<usize>,
    /// What counts besides the words.
    factor: f64,
}

/// Returns how much a term says that `matches` of `messages` messages contain.
pub(super) fn weight(matches: f64, messages: f64) -> f64 {
    (1.0 + (messages - matches + 0.5).max(0.5) / (matches + 0.5)).ln()
}

impl Candidate {
    pub(super) fn new(named: &Named<'_>, wanted: &Wanted) -> Self {
        let folded = fold(named.text);
        let count = |term: &WeightedTerm| term.forms.iter().map(|form| form.count(&folded)).sum();
        let is_in_a_row = wanted.in_a_row.as_ref();
        let is_in_a_row = is_in_a_row.is_some_and(|words| folded.contains(words.as_str()));
        let in_a_row = if is_in_a_row { IN_A_ROW_WEIGHT } else { 0.0 };
        Self {
            message: named.message,
            bytes: named.text.len().max(SHORT_BYTES),
            counts: wanted.terms.iter().map(count).collect(),
            factor: (1.0 + in_a_row)
                * of_role(named.role)
                * (1.0 + RECENCY_WEIGHT * recency(named.at_millis, wanted.now_millis)),
        }
    }

    /// Returns whether every term stands in the text as it was written: no other accents, no other punctuation.
    pub(super) fn is_literal(&self) -> bool {
        self.counts.iter().all(|count| *count > 0)
    }

    /// Returns whether it has all of these terms.
    pub(super) fn has_all(&self, terms: &[usize]) -> bool {
        terms.iter().all(|term| self.counts[*term] > 0)
    }

    /// How much it has of what is looked for: many words once say more than one word many times.
    fn coverage(&self, terms: &[WeightedTerm]) -> f64 {
        let found = self
            .counts
            .iter()
            .zip(terms)
            .filter(|(count, _)| **count > 0);
        found.map(|(_, term)| term.weight).sum()
    }
}

/// What was said counts for more than what tools printed.
fn of_role(role: Role) -> f64 {
    match role {
        Role::User => 1.1,
        Role::Assistant => 1.0,
        Role::Tool => 0.7,
    }
}

/// From 1 for now down to 0.
fn recency(at_millis: i64, now_millis: i64) -> f64 {
    let days = now_millis.saturating_sub(at_millis).max(0) as f64 / MILLIS_PER_DAY;
    // Never so small that it cannot decide between two of the same words.
    RECENCY_HALVES_AFTER_DAYS / (RECENCY_HALVES_AFTER_DAYS + days)
}

/// Sorts best first, the newer of equals first, each message once.
pub(super) fn rank(candidates: &mut Vec<Candidate>, terms: &[WeightedTerm]) {
    let bytes: usize = candidates.iter().map(|candidate| candidate.bytes).sum();
    let average = bytes as f64 / candidates.len().max(1) as f64;
    let everything: f64 = terms.iter().map(|term| term.weight).sum();
    let score = |candidate: &Candidate| -> f64 {
        let length = candidate.bytes as f64 / average.max(1.0);
        let penalty = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        let of_term = |(count, term): (&usize, &WeightedTerm)| {
            let count = *count as f64;
            term.weight * count * (SATURATION + 1.0) / (count + penalty)
        };
        let of_words: f64 = candidate.counts.iter().zip(terms).map(of_term).sum();
        of_words * candidate.factor * candidate.coverage(terms) / everything.max(f64::MIN_POSITIVE)
    };
    // Scores are not negative, so their bits sort as they do.
    candidates
        .sort_by_cached_key(|candidate| Reverse((score(candidate).to_bits(), candidate.message)));
    candidates.dedup_by_key(|candidate| candidate.message);
}

/// Returns how the words of a query stand in a text that has them one behind the other.
pub(super) fn in_a_row(query: &str) -> Option<String> {
    let words: Vec<&str> = query.split_whitespace().collect();
    let joined = || words.join(" ").chars().map(fold_char).collect();
    (words.len() > 1).then(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(terms: &[(&str, f64)], query: &str) -> Wanted {
        let terms = terms.iter().map(|(text, weight)| WeightedTerm {
            forms: vec![Form::new(text, Edges::WholeWord)],
            weight: *weight,
        });
        Wanted {
            terms: terms.collect(),
            in_a_row: in_a_row(query),
            now_millis: 0,
        }
    }

    fn order(wanted: &Wanted, named: Vec<Named<'_>>) -> Vec<i64> {
        let mut candidates = named
            .iter()
            .map(|named| Candidate::new(named, wanted))
            .collect();
        rank(&mut candidates, &wanted.terms);
        candidates.iter().map(|c| c.message).collect()
    }

    fn check(terms: &[(&str, f64)], texts: &[&str], expected: &[i64]) {
        let named = texts.iter().zip(0..).map(|(text, message)| Named {
            message,
            role: Role::User,
            at_millis: 0,
            text,
        });
        assert_eq!(order(&wanted(terms, "a b"), named.collect()), expected);
    }

    #[test]
    fn more_shorter_and_newer_come_first() {
        check(&[("a", 1.0)], &["a b", "a a"], &[1, 0]);
        check(
            &[("a", 1.0)],
            &["a", &format!("a {}", "b ".repeat(500))],
            &[0, 1],
        );
        check(&[("a", 1.0)], &["A c", "a c"], &[1, 0]);
    }

    #[test]
    fn words_in_a_row_come_before_words_apart() {
        check(&[("a", 1.0), ("b", 1.0)], &["x a b", "a x b"], &[0, 1]);
    }

    #[test]
    fn who_said_it_and_when_decide_between_equals() {
        let named = |message, role, days: i64| Named {
            message,
            role,
            at_millis: -days * 86_400_000,
            text: "a",
        };
        let wanted = wanted(&[("a", 1.0)], "a");
        let said = vec![named(1, Role::User, 400), named(2, Role::User, 1)];
        assert_eq!(order(&wanted, said), [2, 1]);
        let printed = vec![named(1, Role::User, 1), named(2, Role::Tool, 0)];
        assert_eq!(order(&wanted, printed), [1, 2]);
    }

    #[test]
    fn a_rare_term_says_more_than_a_common_one() {
        assert!(weight(1.0, 1000.0) > weight(900.0, 1000.0));
        assert!(weight(1000.0, 1000.0) > 0.0);
        check(
            &[("rare", 5.0), ("the", 0.1)],
            &["rare x", "the the"],
            &[0, 1],
        );
    }

    #[test]
    fn a_message_that_two_ways_lead_to_is_there_once() {
        let named = |message| Named {
            message,
            role: Role::User,
            at_millis: 0,
            text: "a",
        };
        let wanted = wanted(&[("a", 1.0)], "a");
        assert_eq!(order(&wanted, vec![named(1), named(2), named(1)]), [2, 1]);
    }

    #[test]
    fn only_words_count() {
        let count = |edges| Form::new("art", edges).count("art, party artful");
        assert_eq!(count(Edges::WholeWord), 1);
        assert_eq!(count(Edges::BeginningOfWord), 2);
        assert_eq!(count(Edges::Anywhere), 3);
    }
}
