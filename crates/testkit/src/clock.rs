//! Time that a test moves.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hermes_core::{Clock, Timestamp};

/// Starts on 2026-01-02 03:04:05 UTC and stands still until it is moved.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_767_323_045_000))
    }
}

impl TestClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
    }
}

impl TestClock {
    /// Shows this time from now on, also an earlier one.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}
