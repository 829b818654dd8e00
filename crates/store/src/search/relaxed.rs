//! What comes closest when no message has all the words of a question.
//!
//! Words that nobody wrote are corrected. Of the others the rarest lead to candidates: first those that have most of them,
//! then those with fewer. All but the most common count for the order of what is found. A term of a script without spaces is
//! a sentence rather than a word, so that a few characters in a row take the place of words.

use super::Looking;
use super::query::{Index, Term};
use super::rank::{Form, WeightedTerm, weight};
use super::script::{pieces, pieces_to_find};
use super::snippet::Edges;
use super::spelling::corrections;
use crate::failure::Failure;

/// Words that lead to candidates; with more the ways to leave some out become too many.
const LEADING_MAX: usize = 6;

/// The share of messages above which a word leads nowhere.
const COMMON_SHARE: f64 = 0.01;

/// In a short history every word is common by that measure. So few matches are always few.
const FEW_MATCHES: f64 = 100.0;

/// How much a corrected word counts beside one that was written so.
const CORRECTED_WEIGHT: f64 = 0.8;

/// The share of messages above which a word says nothing at all.
const EMPTY_SHARE: f64 = 0.2;

/// Pieces of a sentence without spaces that are looked for: those of a long one.
const PIECES_MAX: usize = 16;

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
            for piece in pieces(term.text()).into_iter().take(PIECES_MAX) {
                let form = Form::new(&piece, Edges::Anywhere);
                clues.extend(clue(looking, index, &[form], 1.0)?);
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
    let empty = (looking.newest as f64 * EMPTY_SHARE).max(FEW_MATCHES);
    let full = clues
        .iter()
        .take_while(|clue| clue.matches <= empty)
        .count();
    clues.truncate(full.max(1));
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
        .map(|form| format!("\"{}\"", pieces_to_find(&form.text).0))
        .collect();
    let expression = match words.as_slice() {
        [word] => word.clone(),
        several => format!("({})", several.join(" OR ")),
    };
    let matches = looking.matches(index, &expression)?;
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

/// Returns what leads to candidates, in the language of FTS5: what asks for most first.
pub(super) fn ways(clues: &[Clue], newest: i64) -> Vec<String> {
    let common = (newest as f64 * COMMON_SHARE).max(FEW_MATCHES);
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
        let clues = [clue("a", 1.0), clue("b", 2.0), clue("the", 9000.0)];
        assert_eq!(ways(&clues, 10_000), ["(a AND b)", "(a) OR (b)"]);
        assert_eq!(ways(&clues[2..], 10_000), ["(the)"]);
        assert!(ways(&[], 10_000).is_empty());
    }
}
