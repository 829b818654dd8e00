//! What the lane says of its own while something runs: that words wait, that room is made, what came of a command.

use std::time::Duration;

use hermes_core::{
    CompactionEnd, CompactionReason, InboxEntry, InboxId, Notice, Reaction, StoreError, text,
    wording,
};
use tokio::time::{Instant, timeout};

use super::Lane;
use super::commands::Awaited;
use super::intake::account_of;
use super::turn::COURTESY;
use crate::chat::words;

/// A chat is told so often, at most, that words wait.
const WAITING_NOTICES: Duration = Duration::from_secs(30);
/// Making a conversation shorter is told of when it takes longer: whoever waits should know for what.
const COMPACTION_QUIET: Duration = Duration::from_secs(10);
/// Of what was said, to know it by.
const SAID_CHARS_MAX: usize = 120;

impl Lane {
    /// Gives everybody whose words wait a sign that they are here: a mark, or these words where a platform has none.
    pub(super) async fn notice_waiting(
        &mut self,
        waiting: &[InboxEntry],
        words: &str,
    ) -> Result<(), StoreError> {
        let is_new = |entry: &&InboxEntry| !self.noticed.contains(&entry.id);
        let new: Vec<&InboxEntry> = waiting.iter().filter(is_new).collect();
        self.noticed.extend(new.iter().map(|entry| entry.id));
        for (at, entry) in new.iter().enumerate() {
            let writer = account_of(entry);
            let is_last = !new[at + 1..]
                .iter()
                .any(|later| account_of(later) == writer);
            if is_last && self.meet(entry).await? {
                self.give_sign(entry, words).await?;
            }
        }
        Ok(())
    }

    async fn give_sign(&mut self, entry: &InboxEntry, words: &str) -> Result<(), StoreError> {
        let (Some(parts), Some(chat)) = (self.parts.clone(), &self.chat) else {
            return Ok(());
        };
        if parts.channel.facts().has_reactions {
            if let Some(message) = super::intake::message_of(entry) {
                let seen = Some(Reaction::Seen);
                let marked = parts.channel.react(&chat.address, &message.id, seen);
                _ = timeout(COURTESY, marked).await;
            }
            return Ok(());
        }
        let now = Instant::now();
        if self.next_notice.is_some_and(|at| now < at) {
            return Ok(());
        }
        self.next_notice = Some(now + WAITING_NOTICES);
        self.speak(words, Vec::new()).await
    }

    pub(super) async fn notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        match notice {
            Notice::NotTaken { reason } | Notice::NotQueued { reason, .. } => {
                self.awaited = None;
                let answers: Vec<InboxId> = self.said.drain().collect();
                self.meet_again(&answers).await?;
                self.speak(format!("{}{reason}", words::NOT_NOW), answers)
                    .await
            }
            Notice::Learned { .. } | Notice::Context { .. } => {
                self.speak_of_turn(wording::notice(notice)).await
            }
            _ => Ok(()),
        }
    }

    pub(super) fn compaction_started(&mut self, reason: CompactionReason) {
        if reason != CompactionReason::Asked {
            self.compacting = Some(Instant::now() + COMPACTION_QUIET);
        }
    }

    /// Making room takes long.
    pub(super) async fn show_compaction(&mut self) -> Result<(), StoreError> {
        let now = Instant::now();
        if self.compacting.take_if(|due| *due <= now).is_some() {
            self.speak_of_turn(words::COMPACTING).await?;
        }
        Ok(())
    }

    pub(super) async fn compaction_ended(&mut self, end: &CompactionEnd) -> Result<(), StoreError> {
        self.compacting = None;
        match self.awaited.take_if(|one| *one == Awaited::Compaction) {
            Some(_) => {
                let lines = wording::compaction_ended(end).join("\n");
                self.speak(lines, Vec::new()).await
            }
            None => Ok(()),
        }
    }

    pub(super) async fn rewound(&mut self, said: &str) -> Result<(), StoreError> {
        if self.awaited.take_if(|one| *one == Awaited::Undo).is_none() {
            return Ok(());
        }
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = text::shorten(&said, SAID_CHARS_MAX);
        let words = format!("Taken back. We are where we were before you said: “{said}”");
        self.speak(words, Vec::new()).await
    }
}
