//! Random numbers for ids and jitter: not for keys or tokens.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A shared generator (SplitMix64). Seeded in tests, so that a failing run can be repeated.
#[derive(Debug)]
pub struct Random(AtomicU64);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Seeds from the operating system, through the standard library's own hash keys.
    pub fn from_system() -> Self {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(u64::from(std::process::id()));
        Self::seeded(hasher.finish())
    }

    pub fn next_u64(&self) -> u64 {
        const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .0
            .fetch_add(GOLDEN_GAMMA, Ordering::Relaxed)
            .wrapping_add(GOLDEN_GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, or 0 when the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.next_u64() % bound
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (left, right) = (Random::seeded(42), Random::seeded(42));
        let numbers = |random: &Random| (0..5).map(|_| random.next_u64()).collect::<Vec<_>>();
        assert_eq!(numbers(&left), numbers(&right));
        assert_ne!(left.next_u64(), Random::seeded(43).next_u64());
    }

    #[test]
    fn below_stays_below() {
        let random = Random::seeded(1);
        assert!((0..1000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
    }
}
