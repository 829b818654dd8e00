//! When to ask for the list of tools. Pure: whoever asks brings the time.
//!
//! A server may announce a changed list two hundred times in a second; it is asked at most twice.

use std::time::Duration;

use tokio::time::Instant;

/// Changes rarely come alone.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// However often the list changes, it is fetched this far apart. What a connection began with does not count: the first
/// change may be what a call has just brought about, and what the next one is for.
const GAP_MIN: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Refresh {
    due: Option<Instant>,
    is_running: bool,
    is_first: bool,
    /// The last fetch that a change was the reason of.
    fetched_at: Option<Instant>,
}

impl Refresh {
    /// A new connection: what we know may be out of date.
    pub(crate) fn at_once(&mut self, now: Instant) {
        self.due = Some(now);
        self.is_first = true;
    }

    /// The server announced a change.
    pub(crate) fn announced(&mut self, now: Instant) {
        let gap_ends = self.fetched_at.map_or(now, |at| at + GAP_MIN);
        self.due.get_or_insert(gap_ends.max(now + DEBOUNCE));
    }

    /// Fetching failed on a connection that is still there.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.is_running = false;
        self.due.get_or_insert(now + GAP_MIN);
    }

    /// Returns when the next fetch should start: never while one is running.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.is_running)
    }

    pub(crate) fn started(&mut self, now: Instant) {
        self.due = None;
        self.is_running = true;
        if !std::mem::take(&mut self.is_first) {
            self.fetched_at = Some(now);
        }
    }

    pub(crate) fn finished(&mut self) {
        self.is_running = false;
    }

    /// The connection is gone, and a running fetch with it.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_storm_of_announcements_is_two_fetches() {
        let start = Instant::now();
        let mut refresh = Refresh::default();
        let mut fetches = 0;
        for millis in 0..2000 {
            let now = start + Duration::from_millis(millis);
            if millis % 10 == 0 {
                refresh.announced(now);
            }
            if refresh.due().is_some_and(|due| due <= now) {
                refresh.started(now);
                fetches += 1;
                refresh.finished();
            }
        }
        assert_eq!(fetches, 1);
        assert_eq!(
            refresh.due(),
            Some(start + Duration::from_millis(300) + GAP_MIN),
            "the last announcements are served once more, after the gap"
        );
    }

    #[tokio::test]
    async fn an_announcement_during_a_fetch_waits_for_its_end() {
        let now = Instant::now();
        let mut refresh = Refresh::default();
        refresh.at_once(now);
        refresh.started(now);
        refresh.announced(now);
        assert_eq!(refresh.due(), None);
        refresh.finished();
        assert_eq!(refresh.due(), Some(now + DEBOUNCE));
        refresh.started(now + DEBOUNCE);
        refresh.finished();
        refresh.announced(now + DEBOUNCE);
        assert_eq!(refresh.due(), Some(now + DEBOUNCE + GAP_MIN));
    }
}
