//! When a program may be put to rest: after idling for long, or after running for long. Pure: whoever asks brings the
//! time.
//!
//! A program that rests is started again by the next call.

use std::time::Duration;

use tokio::time::Instant;

/// How often we look whether a program that should rest has finished its calls.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// How long a program may go on. `None`: for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestSettings {
    /// Without a call.
    pub idle_max: Option<Duration>,
    /// In all.
    pub lifetime_max: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Rest {
    settings: RestSettings,
    started: Option<Instant>,
    used: Option<Instant>,
    not_before: Option<Instant>,
}

impl Rest {
    pub(crate) fn new(settings: RestSettings) -> Self {
        Self {
            settings,
            started: None,
            used: None,
            not_before: None,
        }
    }

    pub(crate) fn started(&mut self, now: Instant) {
        (self.started, self.used, self.not_before) = (Some(now), Some(now), None);
    }

    /// A call was made. Probes and lists of our own are not.
    pub(crate) fn used(&mut self, now: Instant) {
        self.used = Some(now);
    }

    /// It should rest, but a call is under way.
    pub(crate) fn busy(&mut self, now: Instant) {
        self.used = Some(now);
        self.not_before = Some(now + BUSY_WAIT);
    }

    pub(crate) fn ended(&mut self) {
        (self.started, self.used, self.not_before) = (None, None, None);
    }

    /// Returns when the program should rest.
    pub(crate) fn due(&self) -> Option<Instant> {
        let after = |since: Option<Instant>, wait: Option<Duration>| Some(since? + wait?);
        let idle = after(self.used, self.settings.idle_max);
        let old = after(self.started, self.settings.lifetime_max);
        let due = [idle, old].into_iter().flatten().min()?;
        Some(self.not_before.map_or(due, |at| at.max(due)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn rest(idle: Option<u64>, lifetime: Option<u64>) -> (Rest, Instant) {
        let settings = RestSettings {
            idle_max: idle.map(seconds),
            lifetime_max: lifetime.map(seconds),
        };
        let (mut rest, now) = (Rest::new(settings), Instant::now());
        rest.started(now);
        (rest, now)
    }

    #[tokio::test]
    async fn use_puts_off_the_rest_of_the_idle_but_not_of_the_old() {
        let (mut rest, start) = rest(Some(60), Some(100));
        assert_eq!(rest.due(), Some(start + seconds(60)));
        rest.used(start + seconds(50));
        assert_eq!(rest.due(), Some(start + seconds(100)));
        rest.ended();
        assert_eq!(rest.due(), None);
    }

    #[tokio::test]
    async fn one_that_is_busy_is_looked_at_again_soon() {
        let (mut rest, start) = rest(None, Some(100));
        rest.busy(start + seconds(100));
        assert_eq!(rest.due(), Some(start + seconds(101)));
    }

    #[tokio::test]
    async fn without_settings_nothing_rests() {
        assert_eq!(rest(None, None).0.due(), None);
    }
}
