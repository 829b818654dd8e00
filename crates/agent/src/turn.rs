//! One turn: from a user's message to rest. This file is the loop; its phases are functions elsewhere.

use std::sync::Arc;

use hermes_core::{CancellationToken, Effect, Event, StoreError, TurnEnd, TurnId};
use tokio::sync::{Semaphore, mpsc};

use crate::approvals::OpenApprovals;
use crate::calls::{self, Answered, Kept};
use crate::compaction::CompactionContext;
use crate::delegation::Launch;
use crate::elicitations::Elicitations;
use crate::events::EventLog;
use crate::history::History;
use crate::nested::NestedContext;
use crate::record::Recorder;
use crate::repeat::RepeatGuard;
use crate::session::{AgentSettings, Ports};
use crate::spill::TurnBudget;
use crate::steering::Steering;
use crate::step::{ReplyOutcome, last_words, request_reply};

/// What a turn needs and does not own.
pub(crate) struct TurnContext<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) settings: &'a AgentSettings,
    pub(crate) recorder: &'a Recorder,
    pub(crate) turn: TurnId,
    pub(crate) stop: CancellationToken,
    pub(crate) events: &'a EventLog,
    pub(crate) steering: &'a Steering,
    pub(crate) approvals: &'a OpenApprovals,
    pub(crate) elicitations: &'a Elicitations,
    pub(crate) nested: &'a NestedContext,
    pub(crate) kept: &'a Kept,
    /// Room for subagents.
    pub(crate) permits: &'a Arc<Semaphore>,
    /// Starts subagents that outlive the turn.
    pub(crate) launcher: mpsc::Sender<Launch>,
}

/// Where a turn starts: afresh, or where a crash left it.
#[derive(Debug, Default)]
pub(crate) struct TurnStart {
    pub(crate) steps_used: u32,
    /// Calls that were about to run when the process died.
    pub(crate) lost: Vec<(hermes_core::CallId, Effect)>,
    /// The first request is in the log already.
    pub(crate) is_asked: bool,
}

/// Runs one turn: asks the model, runs the tools it calls, repeats until it calls none.
pub(crate) async fn run_turn(
    cx: &TurnContext<'_>,
    history: &mut History,
    start: TurnStart,
) -> Result<TurnEnd, StoreError> {
    let (mut lost, mut is_asked) = (start.lost, start.is_asked);
    let mut repeats = RepeatGuard::default();
    let window = cx.ports.model.context_window();
    let limits = cx
        .settings
        .limits
        .within(history.gauge.known_window(window));
    let mut budget = TurnBudget::new(limits);
    for _ in start.steps_used..cx.settings.limits.steps_max {
        // After a crash the last reply may be there already, with calls that have no result.
        if history.awaits_reply() {
            match request_reply(cx, history, std::mem::take(&mut is_asked)).await? {
                ReplyOutcome::Replied => {}
                ReplyOutcome::Stopped => return Ok(TurnEnd::Interrupted),
                ReplyOutcome::Silent { reason } => return Ok(TurnEnd::Stuck { reason }),
                ReplyOutcome::Failed(error) => return Ok(TurnEnd::Failed { error }),
            }
        }
        let calls = history.unanswered_calls();
        if calls.is_empty() {
            return Ok(TurnEnd::Finished);
        }
        // One result per call, also when cancelled: providers reject a history with a hole.
        // What a crash lost are calls of this reply; later ones may carry the same ids.
        let lost = std::mem::take(&mut lost);
        let answered =
            calls::answer_all(cx, history, calls, &lost, &mut repeats, &mut budget).await?;
        assert!(
            history.unanswered_calls().is_empty(),
            "every call has its result"
        );
        match answered {
            Answered::GoOn => {}
            Answered::Stopped => return Ok(TurnEnd::Interrupted),
            Answered::Stuck { reason } => return Ok(TurnEnd::Stuck { reason }),
        }
    }
    last_words(cx, history).await?;
    Ok(TurnEnd::OutOfSteps {
        steps: cx.settings.limits.steps_max,
    })
}

impl TurnContext<'_> {
    pub(crate) fn compaction(&self) -> CompactionContext<'_> {
        CompactionContext {
            ports: self.ports,
            settings: self.settings,
            recorder: self.recorder,
            events: self.events,
            nested: self.nested,
            turn: &self.turn,
            stop: &self.stop,
        }
    }

    /// Tells whoever follows. Nobody can hold the work up by that.
    pub(crate) fn tell(&self, event: Event) {
        self.events.tell(event);
    }
}
