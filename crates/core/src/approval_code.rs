//! The code of a question: who knows it has seen the question where people see it. Ids are in logs, exports and lists that
//! models may read; codes are not, so that nothing that runs for a model can answer for a person.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Wrong codes that a question bears. Nobody guesses one of 887 million in five tries; a person who slips does better.
pub const TRIES_MAX: u32 = 5;

const LENGTH: usize = 6;

/// Small letters and digits that are not taken for each other.
const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// Short, because people type it. Prints as `***` unless it is asked to show itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApprovalCode(String);

impl ApprovalCode {
    /// Makes one that nobody can foresee, not even from ids: the keys of the hash come from the operating system.
    pub fn generate() -> Self {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(u64::from(std::process::id()));
        let mut number = hasher.finish();
        let base = ALPHABET.len() as u64;
        let letters = (0..LENGTH).map(|_| {
            let letter = ALPHABET[(number % base) as usize];
            number /= base;
            char::from(letter)
        });
        Self(letters.collect())
    }

    /// One that was written down.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The code itself, for a person's eyes and for the store.
    pub fn shown(&self) -> &str {
        &self.0
    }

    /// Returns whether this was typed. Takes the same time whatever is wrong with it.
    pub fn is(&self, typed: &str) -> bool {
        let typed = typed.trim().to_ascii_lowercase();
        let (own, typed) = (self.0.as_bytes(), typed.as_bytes());
        if own.is_empty() || own.len() != typed.len() {
            return false;
        }
        let differences = own.iter().zip(typed).fold(0, |sum, (a, b)| sum | (a ^ b));
        differences == 0
    }
}

impl fmt::Debug for ApprovalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_differ_and_are_easy_to_type() {
        let codes: HashSet<String> = (0..1000).map(|_| ApprovalCode::generate().0).collect();
        assert_eq!(codes.len(), 1000);
        for code in codes {
            assert_eq!(code.len(), LENGTH);
            assert!(
                code.bytes().all(|letter| ALPHABET.contains(&letter)),
                "{code}"
            );
        }
    }

    #[test]
    fn only_the_code_itself_is_taken() {
        let code = ApprovalCode::stored("k7m2pq".into());
        assert!(code.is(" K7M2PQ\n"));
        for wrong in ["", "k7m2p", "k7m2pqq", "k7m2pr", "***"] {
            assert!(!code.is(wrong), "{wrong}");
        }
        assert!(
            !ApprovalCode::default().is(""),
            "a question without a code has none"
        );
    }

    #[test]
    fn it_does_not_show_itself() {
        assert_eq!(format!("{:?}", ApprovalCode::generate()), "***");
    }
}
