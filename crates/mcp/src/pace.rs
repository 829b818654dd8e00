//! When to connect again. Pure: whoever asks brings the time.

use std::collections::VecDeque;
use std::time::Duration;

use hermes_core::Random;
use hermes_core::backoff::Backoff;
use tokio::time::Instant;

/// A connection that lasted this long makes earlier failures history.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);
/// Losses in this window are counted together.
const LOSSES_WINDOW: Duration = Duration::from_secs(60);
/// So many losses are bad luck and healed at once; more are a pattern and wait.
const LOSSES_FREE: usize = 3;
/// So many ends of a program are a crash loop.
const CRASHES_MAX: usize = 5;
const CRASH_LOOP_WAIT: Duration = Duration::from_secs(30);
/// However many callers wait, attempts are this far apart.
const DEMAND_GAP: Duration = Duration::from_secs(1);

/// Whether what was lost was a process that we would start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Connection,
    Process,
}

#[derive(Debug)]
pub(crate) struct Pace {
    backoff: Backoff,
    /// Failed attempts since the last healthy time.
    failures: u32,
    losses: VecDeque<Instant>,
    connected_at: Option<Instant>,
    attempted_at: Option<Instant>,
    /// Before this instant not even a waiting caller may cause an attempt.
    not_before: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failures: 0,
            losses: VecDeque::new(),
            connected_at: None,
            attempted_at: None,
            not_before: None,
        }
    }

    /// Returns the number of the attempt that is under way or comes next.
    pub(crate) fn attempt(&self) -> u32 {
        self.failures + 1
    }

    pub(crate) fn attempting(&mut self, now: Instant) {
        self.attempted_at = Some(now);
        self.not_before = None;
    }

    pub(crate) fn connected(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// Counts a failed attempt and returns when the next is due.
    pub(crate) fn failed(&mut self, now: Instant, random: &Random) -> Instant {
        let wait = self.backoff.wait(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        now + wait
    }

    /// Counts a lost connection and returns when the next attempt is due.
    pub(crate) fn lost(&mut self, now: Instant, what: Lost, random: &Random) -> Instant {
        let was_healthy = self
            .connected_at
            .take()
            .is_some_and(|since| now - since >= HEALTHY_AFTER);
        if was_healthy {
            self.failures = 0;
            self.losses.clear();
        }
        self.losses.push_back(now);
        while self
            .losses
            .front()
            .is_some_and(|at| now - *at > LOSSES_WINDOW)
        {
            self.losses.pop_front();
        }
        if what == Lost::Process && self.losses.len() >= CRASHES_MAX {
            return self.pause(now, CRASH_LOOP_WAIT);
        }
        match self.losses.len().checked_sub(LOSSES_FREE + 1) {
            None => now,
            Some(surplus) => now + self.backoff.wait(surplus as u32, random),
        }
    }

    /// Returns whether connections are lost so often that it is a pattern.
    pub(crate) fn is_pattern(&self) -> bool {
        self.losses.len() > LOSSES_FREE
    }

    /// Forbids attempts for a while, also those that callers ask for, and returns when the next is due.
    pub(crate) fn pause(&mut self, now: Instant, wait: Duration) -> Instant {
        let until = now + wait;
        self.not_before = Some(until);
        until
    }

    /// Returns when an attempt may be made for somebody who waits, at the earliest.
    pub(crate) fn demanded(&self, now: Instant) -> Instant {
        let gap_ends = self.attempted_at.map(|at| at + DEMAND_GAP);
        [Some(now), gap_ends, self.not_before]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> (Pace, Random, Instant) {
        let backoff = Backoff {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
        };
        (Pace::new(backoff), Random::seeded(1), Instant::now())
    }

    #[tokio::test]
    async fn failed_attempts_wait_longer_and_longer_up_to_the_cap() {
        let (mut pace, random, now) = pace();
        let waits: Vec<Duration> = (0..12).map(|_| pace.failed(now, &random) - now).collect();
        assert!(waits[0] <= Duration::from_millis(500));
        assert!(waits[11] >= Duration::from_secs(15) && waits[11] <= Duration::from_secs(30));
    }

    #[tokio::test]
    async fn the_first_losses_are_healed_at_once_and_a_pattern_of_them_waits() {
        let (mut pace, random, mut now) = pace();
        for _ in 0..3 {
            pace.connected(now);
            now += Duration::from_secs(1);
            assert_eq!(pace.lost(now, Lost::Connection, &random), now);
        }
        pace.connected(now);
        assert!(pace.lost(now, Lost::Connection, &random) > now);
    }

    #[tokio::test]
    async fn a_healthy_minute_makes_failures_history() {
        let (mut pace, random, mut now) = pace();
        for _ in 0..10 {
            pace.failed(now, &random);
        }
        pace.connected(now);
        now += Duration::from_secs(60);
        assert_eq!(pace.lost(now, Lost::Connection, &random), now);
        assert_eq!(pace.attempt(), 1);
    }

    #[tokio::test]
    async fn a_crash_loop_waits_and_demand_does_not_shorten_it() {
        let (mut pace, random, now) = pace();
        let mut next = now;
        for _ in 0..5 {
            next = pace.lost(now, Lost::Process, &random);
        }
        assert_eq!(next, now + Duration::from_secs(30));
        assert_eq!(pace.demanded(now), next);
    }

    #[tokio::test]
    async fn demand_gets_an_attempt_each_second() {
        let (mut pace, _, now) = pace();
        assert_eq!(pace.demanded(now), now);
        pace.attempting(now);
        assert_eq!(pace.demanded(now), now + Duration::from_secs(1));
    }
}
