//! What people see of a turn while it works: its calls, and that it still does something.

use std::time::Duration;

use hermes_core::{CallId, ResultStatus, StoreError};
use serde_json::Value;
use tokio::time::Instant;

use super::{Lane, RunningTurn};
use crate::chat::ports::ChatPorts;
use crate::chat::work::ShowsCalls;

/// How far a turn has come.
pub(super) struct Progress {
    began: Instant,
    /// When people last saw something new of it.
    seen: Instant,
    /// Replies of the model that are done.
    steps: u64,
    running: Vec<(CallId, String)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            seen: Instant::now(),
            steps: 0,
            running: Vec::new(),
        }
    }

    pub(super) fn seen(&mut self) {
        self.seen = Instant::now();
    }

    pub(super) fn step_done(&mut self) {
        self.steps += 1;
    }
}

impl RunningTurn {
    /// Nobody sees more of it: it is being stopped, or its text is in the log alone.
    fn is_hidden(&self) -> bool {
        self.is_stopping || self.is_incomplete
    }

    /// What was said of it can be changed where it is shown.
    fn can_edit(&self) -> bool {
        self.parts.channel.facts().edit_interval.is_some()
    }

    pub(super) async fn say(&mut self, ports: &ChatPorts, text: &str) -> Result<(), StoreError> {
        if self.is_hidden() {
            return Ok(());
        }
        self.reply.push(ports, text).await
    }
}

impl Lane {
    pub(super) async fn call_started(
        &mut self,
        call: CallId,
        tool: String,
        arguments: &Value,
    ) -> Result<(), StoreError> {
        let turn = self.turn.as_ref();
        // The calls between two texts share a message.
        if turn.is_some_and(|turn| !turn.reply.shows_work()) {
            self.segment_over().await?;
        }
        let shows = self.shows_calls();
        let ports = self.ports();
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        turn.progress.running.push((call.clone(), tool.clone()));
        if shows == ShowsCalls::Nothing || turn.is_hidden() {
            return Ok(());
        }
        turn.reply
            .work(&ports, |work| work.started(shows, call, tool, arguments))
            .await
    }

    pub(super) async fn call_finished(
        &mut self,
        call: &CallId,
        status: ResultStatus,
        result: &str,
    ) -> Result<(), StoreError> {
        let ports = self.ports();
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        turn.progress.running.retain(|(running, _)| running != call);
        if turn.is_hidden() || !turn.reply.shows_work() {
            return Ok(());
        }
        turn.reply
            .work(&ports, |work| _ = work.finished(call, status, result))
            .await
    }

    /// What this chat is shown of calls: nothing where a message cannot be changed, since each would be a message more.
    fn shows_calls(&self) -> ShowsCalls {
        let turn = self.turn.as_ref().filter(|turn| turn.can_edit());
        turn.map_or(ShowsCalls::Nothing, |turn| turn.parts.manner.shows_calls)
    }

    /// When people are to be told that a turn goes on of which they saw nothing new for a while.
    pub(super) fn sign_of_life_due(&self, turn: &RunningTurn) -> Option<Instant> {
        let every = self.lanes.ports.settings.now().sign_of_life?;
        let is_due = !self.awaits_answer() && !turn.is_hidden() && turn.can_edit();
        is_due.then(|| turn.progress.seen + every.max(Duration::from_secs(1)))
    }

    pub(super) async fn show_sign_of_life(&mut self) -> Result<(), StoreError> {
        let due = self
            .turn
            .as_ref()
            .and_then(|turn| self.sign_of_life_due(turn));
        if due.is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        let ports = self.ports();
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        let progress = &mut turn.progress;
        progress.seen();
        if turn.reply.has_text() && !turn.reply.shows_work() {
            // Words are being written: they show that it lives.
            return Ok(());
        }
        let (elapsed, steps) = (progress.began.elapsed(), progress.steps);
        let tool = progress.running.first().map(|(_, tool)| tool.as_str());
        turn.reply
            .work(&ports, |work| work.note(elapsed, steps, tool))
            .await
    }
}
