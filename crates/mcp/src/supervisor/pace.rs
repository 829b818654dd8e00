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
/// A program that ends again and again is started at most so often in the window, however many callers wait.
const STARTS_MAX: usize = 5;
const STARTS_WINDOW: Duration = Duration::from_secs(60);
/// However many callers wait, attempts are this far apart.
const DEMAND_GAP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Pace {
    backoff: Backoff,
    /// Failed attempts since the last healthy time.
    failures: u32,
    losses: VecDeque<Instant>,
    /// When programs were started that nobody told to end.
    starts: VecDeque<Instant>,
    /// How many the next attempt may start.
    starts_next: usize,
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
            starts: VecDeque::new(),
            starts_next: 0,
            connected_at: None,
            attempted_at: None,
            not_before: None,
        }
    }

    /// Returns the number of the attempt that is under way or comes next.
    pub(crate) fn attempt(&self) -> u32 {
        self.failures + 1
    }

    /// An attempt begins, which may start so many programs.
    pub(crate) fn attempting(&mut self, now: Instant, starts: usize) {
        self.attempted_at = Some(now);
        self.not_before = None;
        self.starts.extend(std::iter::repeat_n(now, starts));
        self.starts_next = starts;
        while self
            .starts
            .front()
            .is_some_and(|at| now - *at > STARTS_WINDOW)
        {
            self.starts.pop_front();
        }
    }

    /// Takes back the starts of the last attempt: there was no program to start.
    pub(crate) fn not_started(&mut self) {
        self.take_back(self.starts_next);
    }

    /// Takes back the last start: we ended the program ourselves, and will need it again.
    pub(crate) fn rested(&mut self) {
        self.take_back(1);
    }

    fn take_back(&mut self, starts: usize) {
        let rest = self.starts.len().saturating_sub(starts);
        self.starts.truncate(rest);
    }

    /// Returns when the next attempt may start what it may start.
    fn start_allowed(&self) -> Option<Instant> {
        let room = STARTS_MAX.saturating_sub(self.starts_next);
        let surplus = self.starts.len().checked_sub(room + 1)?;
        let blocking = self.starts.get(surplus).filter(|_| self.starts_next > 0)?;
        Some(*blocking + STARTS_WINDOW)
    }

    /// Puts an attempt off until it may start its programs.
    fn allowed(&self, due: Instant) -> Instant {
        self.start_allowed().map_or(due, |at| at.max(due))
    }

    pub(crate) fn connected(&mut self, now: Instant) {
        // It took one start, as far as we know, and the next attempt knows better what to say.
        self.take_back(self.starts_next.saturating_sub(1));
        self.starts_next = self.starts_next.min(1);
        self.connected_at = Some(now);
    }

    /// Counts a failed attempt and returns when the next is due.
    pub(crate) fn failed(&mut self, now: Instant, random: &Random) -> Instant {
        let wait = self.backoff.wait(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.allowed(now + wait)
    }

    /// Counts a lost connection and returns when the next attempt is due.
    pub(crate) fn lost(&mut self, now: Instant, random: &Random) -> Instant {
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
        self.allowed(match self.losses.len().checked_sub(LOSSES_FREE + 1) {
            None => now,
            Some(surplus) => now + self.backoff.wait(surplus as u32, random),
        })
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
        [Some(now), gap_ends, self.not_before, self.start_allowed()]
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
            assert_eq!(pace.lost(now, &random), now);
        }
        pace.connected(now);
        assert!(pace.lost(now, &random) > now);
    }

    #[tokio::test]
    async fn a_healthy_minute_makes_failures_history() {
        let (mut pace, random, mut now) = pace();
        for _ in 0..10 {
            pace.failed(now, &random);
        }
        pace.connected(now);
        now += Duration::from_secs(60);
        assert_eq!(pace.lost(now, &random), now);
        assert_eq!(pace.attempt(), 1);
    }

    #[tokio::test]
    async fn a_crash_loop_starts_five_times_a_minute_whoever_waits() {
        let (mut pace, random, start) = pace();
        let (mut now, mut starts) = (start, Vec::new());
        while now - start < Duration::from_secs(180) {
            pace.attempting(now, 1);
            starts.push(now);
            pace.connected(now);
            now += Duration::from_millis(10);
            pace.lost(now, &random);
            now = pace.demanded(now);
        }
        assert!(starts.len() >= 10, "it is not given up: {}", starts.len());
        for window in starts.windows(6) {
            assert!(
                window[5] - window[0] >= Duration::from_secs(60),
                "{window:?}"
            );
        }
    }

    #[tokio::test]
    async fn programs_that_need_two_starts_to_fail_are_counted_twice() {
        let (mut pace, random, start) = pace();
        pace.attempting(start, 2);
        pace.failed(start, &random);
        pace.attempting(start, 2);
        let due = pace.failed(start, &random);
        assert_eq!(due, start + Duration::from_secs(60));
        pace.not_started();
        assert!(pace.demanded(start) <= start + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn demand_gets_an_attempt_each_second() {
        let (mut pace, _, now) = pace();
        assert_eq!(pace.demanded(now), now);
        pace.attempting(now, 0);
        assert_eq!(pace.demanded(now), now + Duration::from_secs(1));
    }
}
