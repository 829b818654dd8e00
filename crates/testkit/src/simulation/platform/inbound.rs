//! How a platform tells what people did, by its kind.

use std::time::Duration;

use hermes_core::{ChannelError, Clock as _, Identity, Inlet, Timestamp, Trouble, Update, Updates};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{PlatformKind, SimChannel, SimPlatform};
use crate::simulation::lock;

/// How long a poll waits for something to tell.
const POLL: Duration = Duration::from_secs(50);
/// Updates of one answer.
const BATCH_MAX: usize = 10;
/// After this long a platform calls no more.
const CALLING: Duration = Duration::from_secs(12 * 3600);
/// What a platform tells again that does not know where we were.
const REPLAYED: usize = 5;

impl SimChannel {
    pub(super) async fn listen(&self, inlet: &dyn Inlet) -> ChannelError {
        let platform = &self.platform;
        self.fate.step().await;
        sleep(Duration::from_millis(50)).await;
        self.fate.live().await;
        if platform.is_away() {
            return lost("no route to it");
        }
        inlet.connected(Identity {
            id: "us".into(),
            name: "us".into(),
        });
        loop {
            if let Err(error) = self.hear(inlet).await {
                return error;
            }
            if platform.is_away() || platform.strikes(200) {
                return lost("the connection was reset");
            }
            if platform.strikes(400) {
                // Half open: nobody says that it is gone.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits for something to be told, and tells it.
    async fn hear(&self, inlet: &dyn Inlet) -> Result<(), ChannelError> {
        let platform = &self.platform;
        self.fate.live().await;
        let said = platform.said.notified();
        tokio::pin!(said);
        said.as_mut().enable();
        let batch = match platform.kind {
            PlatformKind::Webhook => platform.due_calls(),
            PlatformKind::Polling | PlatformKind::Socket => {
                let cursor = inlet.cursor().and_then(|cursor| cursor.parse().ok());
                platform.behind(cursor.unwrap_or_default())
            }
        };
        inlet.heard();
        if batch.is_empty() {
            let wait = platform.until_next_call().min(POLL);
            _ = timeout(wait, said).await;
            return Ok(());
        }
        self.hand_over(inlet, batch).await
    }

    async fn hand_over(&self, inlet: &dyn Inlet, batch: Vec<usize>) -> Result<(), ChannelError> {
        let platform = &self.platform;
        let newest = batch.iter().max().map_or(0, |seq| seq + 1);
        let has_cursor = platform.kind != PlatformKind::Webhook;
        let before = inlet.cursor().and_then(|cursor| cursor.parse().ok());
        let cursor = newest.max(before.unwrap_or_default());
        let updates = Updates {
            updates: batch.iter().map(|seq| platform.update(*seq)).collect(),
            cursor: has_cursor.then(|| cursor.to_string()),
        };
        self.fate.step().await;
        let taken = inlet.accept(updates).await;
        self.fate.step().await;
        platform.trace.note(|| {
            let name = platform.facts.platform;
            format!("{name} handed over {batch:?}: {}", taken.is_ok())
        });
        match taken {
            // The answer may be lost on its way back.
            Ok(()) if has_cursor || !platform.strikes(15) => platform.confirm(&batch),
            Ok(()) => platform.call_again(&batch),
            Err(_) if has_cursor => {
                sleep(Duration::from_secs(1)).await;
                return Err(lost("updates were not taken"));
            }
            Err(_) => platform.call_again(&batch),
        }
        Ok(())
    }
}

impl SimPlatform {
    /// What comes behind a place, and now and then what came before it once more, or in another order.
    fn behind(&self, place: usize) -> Vec<usize> {
        let count = {
            let mut state = lock(&self.state);
            let read = place.min(state.updates.len());
            // Whoever asks for what comes next has what was before.
            for told in &mut state.updates[..read] {
                told.is_confirmed = true;
            }
            state.updates.len()
        };
        let mut from = place.min(count);
        if from < count && self.strikes(15) {
            from = from.saturating_sub(REPLAYED);
        }
        let mut batch: Vec<usize> = (from..count)
            .take(BATCH_MAX.max(place - from + 1))
            .collect();
        if batch.len() > 1 && self.strikes(10) {
            let last = batch.len() - 1;
            batch.swap(last - 1, last);
        }
        batch
    }

    /// A platform that calls tells one thing at a time, and not always in order.
    fn due_calls(&self) -> Vec<usize> {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        for told in &mut state.updates {
            if !told.is_confirmed && now.since(told.at) > CALLING {
                told.is_dropped = true;
            }
        }
        let mut updates = state.updates.iter().enumerate();
        let due = updates
            .find(|(_, told)| !told.is_confirmed && !told.is_dropped && told.next_call <= now);
        due.map(|(seq, _)| seq).into_iter().collect()
    }

    fn until_next_call(&self) -> Duration {
        if self.kind != PlatformKind::Webhook {
            return POLL;
        }
        let now = self.clock.now();
        let state = lock(&self.state);
        let open = state
            .updates
            .iter()
            .filter(|told| !told.is_confirmed && !told.is_dropped);
        let next: Option<Timestamp> = open.map(|told| told.next_call).min();
        next.map_or(POLL, |next| next.since(now).max(Duration::from_millis(1)))
    }

    fn call_again(&self, batch: &[usize]) {
        let now = self.clock.now();
        let wait = Duration::from_secs(2 + self.random.below(60));
        let mut state = lock(&self.state);
        for seq in batch {
            let told = &mut state.updates[*seq];
            told.calls += 1;
            told.next_call = now.plus(wait * told.calls.min(10));
        }
    }

    fn confirm(&self, batch: &[usize]) {
        let mut state = lock(&self.state);
        for seq in batch {
            state.updates[*seq].is_confirmed = true;
        }
    }

    fn update(&self, seq: usize) -> Update {
        let state = lock(&self.state);
        let told = &state.updates[seq];
        Update {
            id: self.update_id(seq),
            sent: Some(told.at),
            raw: Value::Null,
            incoming: told.incoming.clone(),
        }
    }
}

fn lost(why: &str) -> ChannelError {
    ChannelError::new(Trouble::Passing, why)
}
