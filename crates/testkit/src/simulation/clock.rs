//! Wall-clock time of a simulated world: it passes with tokio's paused time, and jumps besides.

use std::sync::Mutex;
use std::time::Duration;

use hermes_core::{Clock, Timestamp};
use tokio::time::Instant;

use super::lock;

/// 2026-03-02 00:00:00 UTC, a Monday.
const BEGINNING_MS: i64 = 1_772_409_600_000;

/// One clock for all processes of a world, which live one after the other, each in a tokio runtime of its own.
#[derive(Debug)]
pub struct SimClock(Mutex<Reading>);

#[derive(Debug)]
struct Reading {
    millis: i64,
    /// When the process that lives now was begun, by the time of its runtime.
    since: Option<Instant>,
}

impl Default for SimClock {
    fn default() -> Self {
        Self(Mutex::new(Reading {
            millis: BEGINNING_MS,
            since: None,
        }))
    }
}

impl SimClock {
    /// Time passes with that of this runtime from now on.
    pub fn begin_life(&self) {
        lock(&self.0).since = Some(Instant::now());
    }

    /// Time stands still until another life begins.
    pub fn end_life(&self) {
        let mut reading = lock(&self.0);
        reading.millis = millis(&reading);
        reading.since = None;
    }

    /// The clock is set, or the machine slept.
    pub fn jump(&self, by_ms: i64) {
        lock(&self.0).millis += by_ms;
    }

    /// How long until then.
    pub fn until(&self, then: Timestamp) -> Duration {
        then.since(self.now())
    }
}

fn millis(reading: &Reading) -> i64 {
    let passed = reading
        .since
        .map_or(Duration::ZERO, |since| since.elapsed());
    reading.millis + i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(millis(&lock(&self.0)))
    }
}
