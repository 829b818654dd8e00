//! How long to wait before trying again.

use std::time::Duration;

use crate::random::Random;

/// Doubling waits with a cap and jitter, so that many clients do not come back at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub base: Duration,
    pub cap: Duration,
}

impl Backoff {
    /// Returns the wait before attempt `attempt + 1`: between half and all of `base · 2^attempt`, at most `cap`.
    pub fn wait(&self, attempt: u32, random: &Random) -> Duration {
        let doubled = self
            .base
            .saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        let ceiling = doubled.min(self.cap);
        let half = ceiling / 2;
        half + Duration::from_millis(random.below(half.as_millis() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_keep_half_their_length() {
        let backoff = Backoff {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
        };
        let random = Random::seeded(3);
        for attempt in 0..80 {
            let ceiling = Duration::from_millis(500 * (1 << attempt.min(20))).min(backoff.cap);
            let wait = backoff.wait(attempt, &random);
            assert!(
                wait >= ceiling / 2 && wait <= ceiling,
                "attempt {attempt}: {wait:?} of {ceiling:?}"
            );
        }
    }
}
