//! How long a search may go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hermes_core::CancellationToken;

/// Ends a search that was stopped, or that takes too long.
pub(super) struct Watch {
    stop: CancellationToken,
    deadline: Instant,
    has_timed_out: AtomicBool,
}

impl Watch {
    pub(super) fn new(stop: CancellationToken, time_max: Duration) -> Self {
        Self {
            stop,
            deadline: Instant::now() + time_max,
            has_timed_out: AtomicBool::new(false),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        if Instant::now() >= self.deadline {
            self.has_timed_out.store(true, Ordering::Relaxed);
        }
        self.has_timed_out() || self.stop.is_cancelled()
    }

    /// Returns whether a search was told to end before it had looked everywhere.
    pub(super) fn has_timed_out(&self) -> bool {
        self.has_timed_out.load(Ordering::Relaxed)
    }
}
