//! How much work a line may cause.

use std::cell::Cell;

/// What a judgement may take. A step is about what it takes to read a character: this is ten times the longest line there
/// is, and a tenth of a second at worst where nothing is optimised.
const STEPS_MAX: usize = 1_000_000;

/// What a word takes beside its characters.
const WORD_STEPS: usize = 10;

/// The line is nested too deeply, or takes too long, to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooComplex;

/// The steps that are left for a line and everything it runs. Whatever repeats or multiplies text spends them first.
#[derive(Debug)]
pub(crate) struct Budget {
    steps_left: Cell<usize>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps_left: Cell::new(STEPS_MAX),
        }
    }
}

impl Budget {
    pub(crate) fn spend(&self, steps: usize) -> Result<(), TooComplex> {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or_default());
        left.map(drop).ok_or(TooComplex)
    }

    /// Spends what it takes to go through words.
    pub(crate) fn spend_on(&self, words: &[String]) -> Result<(), TooComplex> {
        self.spend(words.iter().map(|word| word.len() + WORD_STEPS).sum())
    }
}
