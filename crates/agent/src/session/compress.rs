//! Makes a conversation shorter because somebody asked for it, between two turns.

use hermes_core::{
    CancellationToken, CompactionEnd, Event, Notice, Op, StoreError, TurnId, WaitsFor,
};
use tokio::sync::mpsc;

use super::task::SessionTask;
use crate::compaction::{self, CompactionContext, Outcome};

impl SessionTask {
    /// Compacts while ops keep coming in: an interrupt stops it, and words wait for its end.
    pub(super) async fn compact(&mut self, topic: Option<&str>, ops: &mut mpsc::Receiver<Op>) {
        if let Err(error) = self.try_compact(topic, ops).await {
            self.is_stale = true;
            let reason = format!("{error}; {}", error.hint());
            let notice = Notice::NotTaken { reason };
            self.tell(Event::Notice { notice });
        }
    }

    async fn try_compact(
        &mut self,
        topic: Option<&str>,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<(), StoreError> {
        if self.is_stale {
            self.reload().await?;
        }
        if self.unwritten.is_some() || self.history.messages().is_empty() {
            let reason = "there is nothing to compress: nothing was said yet".into();
            let end = CompactionEnd::Unchanged { reason };
            self.tell(Event::CompactionEnded { end });
            return Ok(());
        }
        let turn = TurnId::generate(self.ports.clock.now(), &self.ports.random);
        let stop = CancellationToken::new();
        let mut meanwhile = Vec::new();
        let cx = CompactionContext {
            ports: &self.ports,
            settings: &self.settings,
            recorder: &self.recorder,
            events: &self.events.0,
            nested: &self.nested,
            turn: &turn,
            stop: &stop,
        };
        let compacting = compaction::asked(&cx, &mut self.history, topic);
        let outcome = until_done(compacting, ops, &stop, &mut meanwhile).await;
        for op in meanwhile {
            match op {
                Op::Say(message) | Op::Steer(message) => {
                    self.enqueue(message, WaitsFor::NextTurn);
                }
                Op::Rewind { .. } | Op::Retry | Op::Compact { .. } => {
                    let reason = "the conversation was being compressed; say it again".into();
                    let notice = Notice::NotTaken { reason };
                    self.tell(Event::Notice { notice });
                }
                Op::Interrupt | Op::Answer { .. } | Op::Respond { .. } => {}
            }
        }
        outcome.map(drop)
    }
}

/// Waits for it, hears an interrupt, and keeps the other ops.
async fn until_done(
    compacting: impl Future<Output = Result<Outcome, StoreError>>,
    ops: &mut mpsc::Receiver<Op>,
    stop: &CancellationToken,
    meanwhile: &mut Vec<Op>,
) -> Result<Outcome, StoreError> {
    tokio::pin!(compacting);
    let mut handles_open = true;
    loop {
        let op = tokio::select! {
            biased;
            outcome = &mut compacting => return outcome,
            op = ops.recv(), if handles_open => op,
        };
        match op {
            Some(Op::Interrupt) => stop.cancel(),
            Some(op) => meanwhile.push(op),
            None => handles_open = false,
        }
    }
}
