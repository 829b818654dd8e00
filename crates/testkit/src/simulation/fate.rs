//! When a process dies.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use hermes_core::{Clock as _, Random};
use tokio::sync::Notify;

use super::SimClock;

/// The end of one process: after so many steps that leave something behind. Whatever asks afterwards gets no answer, so that
/// a dead process does nothing.
pub struct Fate {
    steps_left: AtomicI64,
    is_dead: AtomicBool,
    died: Notify,
    random: Arc<Random>,
}

impl Fate {
    /// A process that dies after so many steps; of old age only, without.
    pub fn new(steps: Option<u64>, random: Arc<Random>) -> Self {
        let steps = steps.map_or(i64::MAX, |steps| i64::try_from(steps).unwrap_or(i64::MAX));
        Self {
            steps_left: AtomicI64::new(steps),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
            random,
        }
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub fn strike(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Waits for the end.
    pub async fn struck(&self) {
        self.died.notified().await;
    }

    /// A step: the process may die here, and others may have their turn.
    pub async fn step(&self) {
        if self.steps_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.strike();
        }
        self.live().await;
        match self.random.below(12) {
            0..=2 => tokio::task::yield_now().await,
            3 => {
                let millis = 1 + self.random.below(40);
                tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            }
            _ => {}
        }
        self.live().await;
    }

    /// Goes on, unless the process is dead.
    pub async fn live(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}

/// Tells what happens, to whoever replays a seed.
pub struct Trace {
    clock: Arc<SimClock>,
    is_on: bool,
}

impl Trace {
    pub fn new(clock: Arc<SimClock>, is_on: bool) -> Self {
        Self { clock, is_on }
    }

    pub fn note(&self, line: impl FnOnce() -> String) {
        if self.is_on {
            let now = self.clock.now().to_text();
            _ = writeln!(std::io::stderr().lock(), "{now} {}", line());
        }
    }
}
