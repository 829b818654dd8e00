//! When to stop asking a peer that keeps failing, and when to ask it again.
//!
//! Pure arithmetic: whoever owns a [`Breaker`] tells it what happened and when.

use std::time::{Duration, Instant};

/// How many failures in a row open the breaker, and how long it then stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Zero means that it never opens.
    pub strikes_max: u32,
    pub cooldown: Duration,
}

/// Opens after failures in a row; after a cooldown lets exactly one probe through, which decides.
#[derive(Debug, Clone)]
pub struct Breaker {
    limits: BreakerLimits,
    strikes: u32,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Open { until: Instant },
    Probing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    /// Refuses until the instant, then wants a probe.
    Open {
        until: Instant,
    },
    /// A probe is under way; everyone else waits for what it finds.
    HalfOpen,
}

impl Breaker {
    pub fn new(limits: BreakerLimits) -> Self {
        Self {
            limits,
            strikes: 0,
            phase: Phase::Closed,
        }
    }

    pub fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { until } => BreakerState::Open { until },
            Phase::Probing => BreakerState::HalfOpen,
        }
    }

    /// Returns whether ordinary requests may pass.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Closes it and forgets the strikes.
    pub fn succeed(&mut self) {
        self.strikes = 0;
        self.phase = Phase::Closed;
    }

    /// Counts a failure. A failed probe, or one strike too many, opens it for a fresh cooldown.
    ///
    /// Failures that arrive while it is open belong to requests sent before; they change nothing.
    pub fn fail(&mut self, now: Instant) {
        match self.phase {
            Phase::Open { .. } => {}
            Phase::Probing => self.open(now),
            Phase::Closed => {
                self.strikes = self.strikes.saturating_add(1);
                if self.limits.strikes_max > 0 && self.strikes >= self.limits.strikes_max {
                    self.open(now);
                }
            }
        }
    }

    /// Returns true once per cooldown, to whoever asks first after it: that one must probe, and then report.
    pub fn try_probe(&mut self, now: Instant) -> bool {
        match self.phase {
            Phase::Open { until } if now >= until => {
                self.phase = Phase::Probing;
                true
            }
            _ => false,
        }
    }

    fn open(&mut self, now: Instant) {
        self.phase = Phase::Open {
            until: now + self.limits.cooldown,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BreakerLimits = BreakerLimits {
        strikes_max: 3,
        cooldown: Duration::from_secs(60),
    };

    enum Step {
        Succeed,
        Fail,
        /// Asks for the probe and says whether it must be granted.
        Probe(bool),
        Wait(u64),
    }
    use Step::{Fail, Probe, Succeed, Wait};

    /// Plays the steps and returns whether it is closed at the end.
    fn is_closed_after(steps: &[Step]) -> bool {
        let mut breaker = Breaker::new(LIMITS);
        let mut now = Instant::now();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Succeed => breaker.succeed(),
                Fail => breaker.fail(now),
                Probe(granted) => assert_eq!(breaker.try_probe(now), *granted, "step {at}"),
                Wait(seconds) => now += Duration::from_secs(*seconds),
            }
        }
        breaker.is_closed()
    }

    #[test]
    fn three_failures_in_a_row_open_it() {
        assert!(is_closed_after(&[Fail, Fail]));
        assert!(!is_closed_after(&[Fail, Fail, Fail]));
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        assert!(is_closed_after(&[Fail, Fail, Succeed, Fail, Fail]));
    }

    #[test]
    fn no_probe_passes_before_the_cooldown_and_exactly_one_after_it() {
        is_closed_after(&[
            Fail,
            Fail,
            Fail,
            Wait(59),
            Probe(false),
            Wait(1),
            Probe(true),
            Probe(false),
            Wait(600),
            Probe(false),
        ]);
    }

    #[test]
    fn a_successful_probe_closes_it_and_resets_the_count() {
        let healed = [Fail, Fail, Fail, Wait(60), Probe(true), Succeed, Fail, Fail];
        assert!(is_closed_after(&healed));
    }

    #[test]
    fn a_failed_probe_reopens_it_with_a_fresh_cooldown() {
        assert!(!is_closed_after(&[
            Fail,
            Fail,
            Fail,
            Wait(60),
            Probe(true),
            Fail,
            Wait(59),
            Probe(false),
            Wait(1),
            Probe(true),
        ]));
    }

    #[test]
    fn late_failures_do_not_prolong_an_open_breaker() {
        is_closed_after(&[Fail, Fail, Fail, Wait(59), Fail, Wait(1), Probe(true)]);
    }

    #[test]
    fn zero_strikes_means_that_it_never_opens() {
        let mut breaker = Breaker::new(BreakerLimits {
            strikes_max: 0,
            ..LIMITS
        });
        (0..100).for_each(|_| breaker.fail(Instant::now()));
        assert!(breaker.is_closed());
    }
}
