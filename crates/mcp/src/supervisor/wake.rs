//! Notices that the machine has slept, so that no call meets a connection that died meanwhile.
//!
//! While a machine sleeps its wall clock goes on and the clock of its timers does not. When the first has run ahead of
//! the second, every connection is in doubt: each supervisor probes its own, and calls wait for that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{Clock, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A shorter sleep kills no connection; a smaller step is somebody setting the clock.
const SLEEP_MIN: Duration = Duration::from_secs(30);

/// How often we look when nobody calls.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Wake {
    clock: Arc<dyn Clock>,
    last: Mutex<Reading>,
    /// How often the machine has woken up since we started.
    count: watch::Sender<u64>,
}

/// Both clocks at one moment.
#[derive(Clone, Copy)]
struct Reading {
    wall: Timestamp,
    steady: Instant,
}

impl Wake {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let reading = Reading::now(&*clock);
        Self {
            clock,
            last: Mutex::new(reading),
            count: watch::Sender::new(0),
        }
    }

    /// Looks at the clocks, tells everybody if the machine has slept, and returns how often it has woken up so far.
    pub(crate) fn look(&self) -> u64 {
        let now = Reading::now(&*self.clock);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, now);
        if before.slept_until(now) >= SLEEP_MIN {
            self.count.send_modify(|count| *count += 1);
        }
        *self.count.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Looks now and then, for ever.
    pub(crate) async fn keep_looking(self: Arc<Self>) {
        loop {
            sleep(LOOK_INTERVAL).await;
            self.look();
        }
    }
}

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Wake").field(&*self.count.borrow()).finish()
    }
}

impl Reading {
    fn now(clock: &dyn Clock) -> Self {
        Self {
            wall: clock.now(),
            steady: Instant::now(),
        }
    }

    /// Returns by how much the wall clock has run ahead. One that was set back counts as nothing.
    fn slept_until(self, later: Self) -> Duration {
        let wall = later.wall.as_millis().saturating_sub(self.wall.as_millis());
        let wall = Duration::from_millis(u64::try_from(wall).unwrap_or(0));
        wall.saturating_sub(later.steady.saturating_duration_since(self.steady))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_testkit::TestClock;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn only_a_wall_clock_that_runs_ahead_is_a_sleep() {
        let clock = Arc::new(TestClock::default());
        let wake = Wake::new(Arc::clone(&clock) as Arc<dyn Clock>);
        clock.advance(Duration::from_secs(20));
        assert_eq!(wake.look(), 0, "somebody set the clock");
        clock.advance(HOUR);
        tokio::time::advance(HOUR).await;
        assert_eq!(wake.look(), 0, "an hour has passed for both");
        tokio::time::advance(HOUR).await;
        assert_eq!(wake.look(), 0, "the clock was set back");
        clock.advance(HOUR);
        assert_eq!(wake.look(), 1, "the machine slept");
        assert_eq!(wake.look(), 1, "once");
    }
}
