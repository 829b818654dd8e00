//! How often a silent connection is probed. Pure: whoever asks brings the times.
//!
//! The user says how often at most. A server that forgets sessions sooner than that teaches us to ask more often: after
//! a session was lost in `idle` seconds of silence, half of that is the new interval.

use std::time::Duration;

/// More often would be a load on the server, not a sign of life.
pub(crate) const INTERVAL_MIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Keepalive {
    interval: Option<Duration>,
    /// The longest silence that a session was seen to survive.
    survived: Duration,
}

impl Keepalive {
    /// `None` switches it off.
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self {
            interval,
            survived: Duration::ZERO,
        }
    }

    pub(crate) fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// A probe after so much silence was answered.
    pub(crate) fn survived(&mut self, idle: Duration) {
        self.survived = self.survived.max(idle);
    }

    /// The session was gone after so much silence. Returns the new interval if that has taught us something.
    pub(crate) fn forgotten(&mut self, idle: Duration) -> Option<Duration> {
        // A session that was lost sooner than others were kept was lost for another reason: a restart, perhaps.
        if idle <= self.survived {
            return None;
        }
        let learnt = (idle / 2).max(INTERVAL_MIN);
        let interval = self
            .interval
            .as_mut()
            .filter(|interval| learnt < **interval)?;
        *interval = learnt;
        Some(learnt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn the_interval_shrinks_below_what_the_server_forgets() {
        let mut keepalive = Keepalive::new(Some(seconds(180)));
        assert_eq!(keepalive.forgotten(seconds(180)), Some(seconds(90)));
        assert_eq!(keepalive.forgotten(seconds(90)), Some(seconds(45)));
        assert_eq!(keepalive.forgotten(seconds(8)), Some(INTERVAL_MIN));
        assert_eq!(
            keepalive.forgotten(seconds(5)),
            None,
            "and not below the least"
        );
    }

    #[test]
    fn a_restart_teaches_nothing() {
        let mut keepalive = Keepalive::new(Some(seconds(180)));
        keepalive.survived(seconds(170));
        assert_eq!(keepalive.forgotten(seconds(20)), None);
        assert_eq!(keepalive.interval(), Some(seconds(180)));
    }

    #[test]
    fn switched_off_stays_off() {
        let mut keepalive = Keepalive::new(None);
        assert_eq!(keepalive.forgotten(seconds(600)), None);
        assert_eq!(keepalive.interval(), None);
    }
}
