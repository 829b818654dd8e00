//! What a running call shows before its result, at a pace that a person and a queue can follow.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Between two updates of one call: twenty a second look like motion, and more only fill queues.
const PAUSE: Duration = Duration::from_millis(50);

/// Texts kept from one update to the next. Of a flood the newest are shown.
const WAITING_MAX: usize = 8;

/// The texts that wait for the next update.
pub(super) struct Live {
    waiting: VecDeque<String>,
    next: Instant,
}

impl Live {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            next: Instant::now(),
        }
    }

    pub(super) fn push(&mut self, text: String) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(text);
    }

    /// Waits for the time of the next update, and for something to show in it. Dropping it loses nothing.
    pub(super) async fn due(&mut self) -> String {
        if self.waiting.is_empty() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.next).await;
        self.next = Instant::now() + PAUSE;
        self.take().unwrap_or_default()
    }

    /// Takes what waits: nothing comes after it.
    pub(super) fn take(&mut self) -> Option<String> {
        let texts: Vec<String> = self.waiting.drain(..).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_becomes_twenty_updates_a_second_with_the_newest_texts() {
        let mut live = Live::new();
        let started = Instant::now();
        let mut updates = Vec::new();
        for number in 0..10_000 {
            live.push(number.to_string());
            tokio::select! {
                biased;
                text = live.due() => updates.push(text),
                () = tokio::time::sleep(Duration::from_micros(500)) => {}
            }
        }
        let most = started.elapsed().as_millis() / PAUSE.as_millis() + 1;
        assert!(updates.len() as u128 <= most, "{}", updates.len());
        assert!(updates.len() > 50, "{}", updates.len());
        assert_eq!(updates[0], "0", "the first is shown at once");
        let last = live.take().or(updates.pop()).unwrap();
        assert!(last.ends_with("9999"), "{last}");
        assert!(last.lines().count() <= WAITING_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_too_early_is_shown_when_nothing_follows() {
        let mut live = Live::new();
        live.push("one".into());
        assert_eq!(live.due().await, "one");
        live.push("two".into());
        live.push("three".into());
        assert_eq!(live.due().await, "two\nthree");
        assert_eq!(live.take(), None);
    }
}
