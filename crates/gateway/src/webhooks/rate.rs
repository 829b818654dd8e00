//! How often a route may be used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hermes_core::Timestamp;

const WINDOW_MS: i64 = 60_000;

/// Counts what came to each route within the minute.
pub(super) struct Rates {
    per_minute: u32,
    windows: Mutex<HashMap<String, Window>>,
}

struct Window {
    began: Timestamp,
    count: u32,
}

impl Rates {
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            windows: Mutex::default(),
        }
    }

    /// Counts one more. The error is in how many seconds the next may come.
    pub(super) fn count(&self, route: &str, now: Timestamp) -> Result<(), u64> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.entry(route.to_owned()).or_insert(Window {
            began: now,
            count: 0,
        });
        let age = now.as_millis() - window.began.as_millis();
        if !(0..WINDOW_MS).contains(&age) {
            *window = Window {
                began: now,
                count: 0,
            };
        }
        if window.count >= self.per_minute {
            return Err(((WINDOW_MS - age).max(0) as u64).div_ceil(1000));
        }
        window.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_takes_so_many_in_a_minute() {
        let rates = Rates::new(2);
        let at = Timestamp::from_millis;
        assert_eq!(rates.count("a", at(0)), Ok(()));
        assert_eq!(rates.count("a", at(1_000)), Ok(()));
        assert_eq!(rates.count("a", at(1_500)), Err(59));
        assert_eq!(rates.count("b", at(1_500)), Ok(()));
        assert_eq!(rates.count("a", at(60_000)), Ok(()));
        // A clock that was set back must not keep anybody out.
        assert_eq!(rates.count("a", at(-9_000_000)), Ok(()));
    }
}
