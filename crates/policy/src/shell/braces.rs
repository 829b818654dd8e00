//! `{rm,-rf,/}`: one word that is several.

use super::draft::Glyph;
use super::{Budget, TooComplex};

/// Returns the words that a word with braces stands for; one without stays as it is.
pub(super) fn expand(word: Vec<Glyph>, budget: &Budget) -> Result<Vec<Vec<Glyph>>, TooComplex> {
    if !word.iter().any(|glyph| glyph.is('{')) {
        return Ok(vec![word]);
    }
    let mut done = Vec::new();
    // Each entry waits to have its first braces expanded, from the given place on. The stack keeps their order.
    let mut waiting = vec![(word, 0)];
    while let Some((word, from)) = waiting.pop() {
        budget.spend(word.len())?;
        let Some(open) = (from..word.len()).find(|at| word[*at].is('{')) else {
            done.push(word);
            continue;
        };
        let Some((close, alternatives)) = alternatives(&word, open) else {
            waiting.push((word, open + 1));
            continue;
        };
        for alternative in alternatives.into_iter().rev() {
            let parts = [&word[..open], &alternative, &word[close + 1..]];
            budget.spend(word.len())?;
            waiting.push((parts.concat(), open));
        }
    }
    Ok(done)
}

/// Returns where the braces close and what they offer, if they offer a choice.
fn alternatives(word: &[Glyph], open: usize) -> Option<(usize, Vec<Vec<Glyph>>)> {
    let mut depth = 0;
    let mut found = vec![Vec::new()];
    for (at, glyph) in word.iter().enumerate().skip(open + 1) {
        match glyph.c {
            '}' if glyph.is('}') && depth == 0 => {
                let inside = &word[open + 1..at];
                let choice = if found.len() > 1 {
                    Some(found)
                } else {
                    letters(inside)
                };
                return choice.map(|choice| (at, choice));
            }
            ',' if glyph.is(',') && depth == 0 => {
                found.push(Vec::new());
                continue;
            }
            '{' if glyph.is('{') => depth += 1,
            '}' if glyph.is('}') => depth -= 1,
            _ => {}
        }
        found.last_mut()?.push(*glyph);
    }
    None
}

/// Returns the letters that `a..e` stands for. Numbers disguise nothing and stay as they are.
fn letters(inside: &[Glyph]) -> Option<Vec<Vec<Glyph>>> {
    let text: String = inside.iter().map(|glyph| glyph.c).collect();
    let (first, last) = text.split_once("..")?;
    let letter = |text: &str| {
        let mut chars = text.chars();
        chars
            .next()
            .filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
    };
    let (first, last) = (letter(first)?, letter(last)?);
    let range = first.min(last)..=first.max(last);
    Some(range.map(|c| vec![Glyph::plain(c)]).collect())
}
