//! Orders candidates by relevance: BM25 over their text.
//!
//! FTS5 has its own, but that first counts all matches of every term, which for common words takes longer than
//! everything else together. How common a term is follows just as well from how far back its newest matches reach.

use std::cmp::Reverse;

use super::query::fold;
use super::snippet::Edges;

/// The usual constants: how soon repetition stops to count, and how much length counts against a text.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// A term and how much finding it says.
#[derive(Debug)]
pub(super) struct WeightedTerm {
    /// Lower case.
    pub(super) text: String,
    pub(super) edges: Edges,
    pub(super) weight: f64,
}

/// A message that may be shown.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) message: i64,
    bytes: usize,
    /// Occurrences of each term.
    counts: Vec<usize>,
}

/// Returns how much a term says that `matches` of `messages` messages contain.
pub(super) fn weight(matches: f64, messages: f64) -> f64 {
    (1.0 + (messages - matches + 0.5).max(0.5) / (matches + 0.5)).ln()
}

impl Candidate {
    pub(super) fn new(message: i64, text: &str, terms: &[WeightedTerm]) -> Self {
        let folded = fold(text);
        Self {
            message,
            bytes: text.len(),
            counts: terms.iter().map(|term| count(&folded, term)).collect(),
        }
    }

    /// Returns whether every term stands in the text as it was written: no other accents, no other punctuation.
    pub(super) fn is_literal(&self) -> bool {
        self.counts.iter().all(|count| *count > 0)
    }
}

/// Sorts best first, the newer of equals first.
pub(super) fn rank(candidates: &mut [Candidate], terms: &[WeightedTerm]) {
    let bytes: usize = candidates.iter().map(|candidate| candidate.bytes).sum();
    let average = bytes as f64 / candidates.len().max(1) as f64;
    let score = |candidate: &Candidate| -> f64 {
        let length = candidate.bytes as f64 / average.max(1.0);
        let penalty = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        let of_term = |(count, term): (&usize, &WeightedTerm)| {
            let count = *count as f64;
            term.weight * count * (SATURATION + 1.0) / (count + penalty)
        };
        candidate.counts.iter().zip(terms).map(of_term).sum()
    };
    // Scores are not negative, so their bits sort as they do.
    candidates
        .sort_by_cached_key(|candidate| Reverse((score(candidate).to_bits(), candidate.message)));
}

/// Counts a term where it is a word, or begins one.
fn count(folded: &str, term: &WeightedTerm) -> usize {
    let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    folded
        .match_indices(&term.text)
        .filter(|(at, found)| {
            let (before, after) = (&folded[..*at], &folded[at + found.len()..]);
            let is_start = !is_inside(before.chars().next_back());
            is_start && (term.edges == Edges::BeginningOfWord || !is_inside(after.chars().next()))
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(terms: &[(&str, f64)], texts: &[&str], expected: &[i64]) {
        let terms: Vec<WeightedTerm> = terms
            .iter()
            .map(|(text, weight)| WeightedTerm {
                text: (*text).into(),
                edges: Edges::WholeWord,
                weight: *weight,
            })
            .collect();
        let mut candidates: Vec<Candidate> = texts
            .iter()
            .zip(0..)
            .map(|(text, message)| Candidate::new(message, text, &terms))
            .collect();
        rank(&mut candidates, &terms);
        let order: Vec<i64> = candidates.iter().map(|c| c.message).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn more_shorter_and_newer_come_first() {
        check(&[("a", 1.0)], &["a b", "a a"], &[1, 0]);
        check(&[("a", 1.0)], &["a", "a b c d e f g"], &[0, 1]);
        check(&[("a", 1.0)], &["A b", "a c"], &[1, 0]);
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
    fn only_words_count() {
        let term = |edges| WeightedTerm {
            text: "art".into(),
            edges,
            weight: 1.0,
        };
        assert_eq!(count("art, party artful", &term(Edges::WholeWord)), 1);
        assert_eq!(count("art, party artful", &term(Edges::BeginningOfWord)), 2);
    }
}
