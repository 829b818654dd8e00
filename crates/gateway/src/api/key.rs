//! The key that keeps strangers out.

use hermes_core::Secret;
use ring::digest;

/// Fewer characters can be guessed.
const KEY_CHARS_MIN: usize = 16;

/// A key that is long enough to keep strangers out.
#[derive(Debug, Clone)]
pub struct ApiKey {
    digest: digest::Digest,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeakKey {
    #[error("the API server has no key, and does not start without one")]
    Missing,
    #[error("the key of the API server has {chars} characters; it needs {KEY_CHARS_MIN} at least")]
    Short { chars: usize },
    #[error("the key of the API server is one that anybody would guess")]
    Obvious,
}

impl ApiKey {
    pub fn new(key: &Secret) -> Result<Self, WeakKey> {
        let text = key.expose();
        let chars = text.chars().count();
        if chars == 0 {
            return Err(WeakKey::Missing);
        }
        if chars < KEY_CHARS_MIN {
            return Err(WeakKey::Short { chars });
        }
        if is_obvious(text) {
            return Err(WeakKey::Obvious);
        }
        Ok(Self {
            digest: digested(text.as_bytes()),
        })
    }

    /// Whether this is the key. How long it takes says nothing of where the two differ, nor of their lengths.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let given = digested(given);
        let pairs = given.as_ref().iter().zip(self.digest.as_ref());
        pairs.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

fn digested(text: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, text)
}

/// What stands in examples, and what takes a second to guess.
fn is_obvious(key: &str) -> bool {
    let key = key.to_lowercase();
    let mut kinds: Vec<char> = key.chars().collect();
    kinds.sort_unstable();
    kinds.dedup();
    let words = [
        "your-api-key",
        "your_api_key",
        "changeme",
        "change-me",
        "placeholder",
    ];
    kinds.len() < 4 || words.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_cannot_be_guessed_is_one() {
        let key = |text: &str| ApiKey::new(&Secret::new(text)).map(|_| ());
        assert_eq!(key(""), Err(WeakKey::Missing));
        assert_eq!(key("0123456789abcde"), Err(WeakKey::Short { chars: 15 }));
        assert_eq!(key("aaaaaaaaaaaaaaaaaaaa"), Err(WeakKey::Obvious));
        assert_eq!(key("your-api-key-goes-here"), Err(WeakKey::Obvious));
        assert_eq!(key("0123456789abcdef"), Ok(()));
    }

    #[test]
    fn a_key_is_compared_whole() {
        let key = ApiKey::new(&Secret::new("0123456789abcdef")).unwrap();
        assert!(key.is(b"0123456789abcdef"));
        for given in [
            &b"0123456789abcde"[..],
            b"0123456789abcdef0",
            b"",
            b"0123456789abcdeF",
        ] {
            assert!(!key.is(given));
        }
    }
}
