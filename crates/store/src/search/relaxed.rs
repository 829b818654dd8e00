//! What comes closest when no message has all the words of a question.
//!
//! Words that nobody wrote are corrected. Of the others the rarest lead to candidates: first those that have most of them,
//! then those with fewer. All words count for the order of what is found. A term of a script without spaces is a sentence
//! rather than a word, so that its pairs of characters take the place of words.

use std::collections::BTreeSet;

use super::frequency;
use super::query::{Index, Term};
use super::rank::{Form, WeightedTerm, weight};
use super::script::is_unspaced;
use super::snippet::Edges;
use super::spelling::corrections;
use super::Looking;
use crate::failure::Failure;

/// Words that lead to candidates; with more the ways to leave some out become too many.
const LEADING_MAX: usize = 6;

/// The share of messages above which a word leads nowhere.
const COMMON_SHARE: f64 = 0.05;

/// How much a corrected word counts beside one that was written so.
const CORRECTED_WEIGHT: f64 = 0.8;

/// Pairs of characters that are looked for: those of a long sentence.
const PAIRS_MAX: usize = 24;

/// A word that may be missing.
pub(super) struct Clue {
    /// In the language of FTS5.
    expression: String,
    matches: f64,
    pub(super) term: WeightedTerm,
}

/// Returns the clues that are in some message, those that say most first.
pub(super) fn clues(
    looking: &Looking<'_>,
    index: Index,
    terms: &[Term],
) -> Result<Vec<Clue>, Failure> {
    let mut clues = Vec::new();
    for term in terms {
        if term.is_unspaced() {
            for pair in pairs_of(term.text()) {
                clues.extend(clue(looking, index, &[Form::new(&pair, Edges::Anywhere)], 1.0)?);
            }
            continue;
        }
        let known = clue(looking, index, &[term.to_form()], 1.0)?;
        let known = match known {
            Some(known) => Some(known),
            None => {
                let words = corrections(looking.conn, term.text())?;
                let forms: Vec<Form> = words
                    .iter()
                    .map(|word| Form::new(word, Edges::WholeWord))
                    .collect();
                clue(looking, index, &forms, CORRECTED_WEIGHT)?
            }
        };
        clues.extend(known);
    }
    clues.sort_by(|left, right| right.term.weight.total_cmp(&left.term.weight));
    Ok(clues)
}

fn clue(
    looking: &Looking<'_>,
    index: Index,
    forms: &[Form],
    factor: f64,
) -> Result<Option<Clue>, Failure> {
    if forms.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = forms
        .iter()
        .map(|form| format!("\"{}\"", form.text))
        .collect();
    let expression = format!("({})", words.join(" OR "));
    let matches = frequency::matches(looking.conn, index, &expression, looking.newest)?;
    let term = WeightedTerm {
        forms: forms.to_vec(),
        weight: factor * weight(matches, looking.newest as f64),
    };
    Ok((matches > 0.0).then_some(Clue {
        expression,
        matches,
        term,
    }))
}

/// The pairs of characters in the runs of a text, each once.
fn pairs_of(text: &str) -> BTreeSet<String> {
    let chars: Vec<char> = text.chars().collect();
    let runs = chars.chunk_by(|left, right| is_unspaced(*left) == is_unspaced(*right));
    let pairs = runs.filter(|run| is_unspaced(run[0])).flat_map(|run| run.windows(2));
    pairs.take(PAIRS_MAX).map(String::from_iter).collect()
}

/// Returns what leads to candidates, in the language of FTS5: what asks for most first.
pub(super) fn ways(clues: &[Clue], newest: i64) -> Vec<String> {
    let common = newest as f64 * COMMON_SHARE;
    let rare = clues.iter().filter(|clue| clue.matches <= common);
    let mut leading: Vec<&str> = rare
        .take(LEADING_MAX)
        .map(|clue| clue.expression.as_str())
        .collect();
    if leading.is_empty() {
        leading.extend(clues.first().map(|clue| clue.expression.as_str()));
    }
    let sizes = (1..=leading.len()).rev();
    sizes.map(|size| choose(&leading, size)).collect()
}

/// Any `size` of the expressions.
fn choose(expressions: &[&str], size: usize) -> String {
    let subsets = 1_u32..1 << expressions.len();
    let of_size = subsets.filter(|subset| subset.count_ones() as usize == size);
    let groups = of_size.map(|subset| {
        let is_in = |(at, _): &(usize, &&str)| subset & (1 << at) != 0;
        let chosen = expressions.iter().enumerate().filter(is_in);
        let chosen: Vec<&str> = chosen.map(|(_, expression)| *expression).collect();
        format!("({})", chosen.join(" AND "))
    });
    groups.collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_most_comes_first() {
        let clue = |expression: &str, matches: f64| Clue {
            expression: expression.to_owned(),
            matches,
            term: WeightedTerm {
                forms: Vec::new(),
                weight: 1.0,
            },
        };
        let clues = [clue("a", 1.0), clue("b", 2.0), clue("the", 900.0)];
        assert_eq!(ways(&clues, 1000), ["(a AND b)", "(a) OR (b)"]);
        assert_eq!(ways(&clues[2..], 1000), ["(the)"]);
        assert!(ways(&[], 1000).is_empty());
    }

    #[test]
    fn a_sentence_without_spaces_is_looked_for_in_pairs() {
        let pairs: Vec<String> = pairs_of("部署docker容器吗").into_iter().collect();
        assert_eq!(pairs, ["器吗", "容器", "部署"]);
        assert!(pairs_of("容").is_empty());
    }
}
