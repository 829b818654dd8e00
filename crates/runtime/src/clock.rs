//! The system's clock.

use hermes_core::{Clock, Timestamp};

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one owner of the system's clock"
    )]
    fn now(&self) -> Timestamp {
        let since_1970 = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(since_1970.as_millis() as i64)
    }
}
