//! Runs one call to its result, whatever happens to it.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hermes_core::{
    Action, CallId, CallMessage, CallMessages, Effect, Event, Finished, ResultStatus, Tool,
    ToolCall, ToolContext, ToolError, ToolOutput, ToolResult, call_channel,
};
use serde_json::Value;
use tokio::time::Instant;

use super::Ready;
use super::inner::InnerCalls;
use super::live::Live;
use crate::delegation::{CallPlace, Caller, delegate};
use crate::elicitations::elicit;
use crate::turn::TurnContext;

/// A tool has its own deadlines; this one is for a tool that broke them. Longer than any of theirs. The time that a
/// person is given to answer comes on top.
const CALL_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Runs a call to its end.
pub(super) async fn run(
    cx: &TurnContext<'_>,
    ready: Ready,
    place: CallPlace,
    state: Option<Value>,
) -> Ran {
    let started = Instant::now();
    let Ready {
        call,
        tool,
        plan,
        agreement,
        ..
    } = ready;
    let (sender, messages) = call_channel();
    let session = cx.recorder.session().clone();
    let context = ToolContext {
        turn: Some(cx.turn.clone()),
        stop: cx.stop.child_token(),
        state,
        agreement,
        ..ToolContext::alone(session, call.id.clone(), &cx.settings.cwd).telling(&sender)
    };
    let running = Running {
        call: &call,
        place,
        context: &context,
    };
    let outcome = running.outcome(cx, plan.action, messages).await;
    let effect = plan.effect;
    let (mut shown, mut kept) = (Vec::new(), None);
    let (status, text) = match outcome {
        Outcome::Returned(Ok(ToolOutput {
            text,
            images,
            state,
        })) => {
            (shown, kept) = (images, state);
            (ResultStatus::Ok, text)
        }
        Outcome::Returned(Err(ToolError::Answer(text))) => (ResultStatus::Failed, text),
        Outcome::Returned(Err(ToolError::OutcomeUnknown(text))) => {
            (ResultStatus::OutcomeUnknown, text)
        }
        Outcome::Returned(Err(ToolError::Stopped(text))) => (stopped_status(effect), text),
        Outcome::Panicked => (
            stopped_status(effect),
            format!("`{}` crashed; this is a bug in it.", call.name),
        ),
        Outcome::Overdue => (
            stopped_status(effect),
            format!(
                "`{}` did not return within {} s and was abandoned.",
                call.name,
                CALL_TIME_MAX.as_secs()
            ),
        ),
        Outcome::Interrupted => (
            stopped_status(effect),
            "Interrupted by the user while it ran.".into(),
        ),
    };
    Ran {
        result: ToolResult::new(&call, status, text).with_images(shown),
        call,
        tool,
        touched: plan.touched,
        kept,
        elapsed_ms: started.elapsed().as_millis() as u64,
    }
}

/// A call that has come to its end.
pub(super) struct Ran {
    pub(super) call: ToolCall,
    pub(super) tool: Arc<dyn Tool>,
    /// Paths it touched.
    pub(super) touched: Vec<PathBuf>,
    pub(super) result: ToolResult,
    /// What its tool keeps for the next call.
    pub(super) kept: Option<Value>,
    pub(super) elapsed_ms: u64,
}

enum Outcome {
    Returned(Result<ToolOutput, ToolError>),
    Panicked,
    Overdue,
    Interrupted,
}

/// A call that runs.
struct Running<'a> {
    call: &'a ToolCall,
    place: CallPlace,
    context: &'a ToolContext,
}

impl Running<'_> {
    async fn outcome(
        &self,
        cx: &TurnContext<'_>,
        action: Box<dyn Action>,
        mut messages: CallMessages,
    ) -> Outcome {
        let work = AssertUnwindSafe(action.run(self.context)).catch_unwind();
        let grace = stop_grace(cx.settings.delegation.depth);
        let give_up = async {
            cx.stop.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::pin!(work, give_up);
        let deadline = tokio::time::sleep(CALL_TIME_MAX);
        tokio::pin!(deadline);
        let mut open_elicitations = FuturesUnordered::new();
        let mut at_work = FuturesUnordered::new();
        let mut live = Live::new();
        let mut inner_calls = InnerCalls::of(cx, self.context);
        let outcome = loop {
            tokio::select! {
                biased;
                text = live.due() => tell_progress(cx, &self.call.id, text),
                Some(message) = messages.recv() => match message {
                    CallMessage::Progress(text) => live.push(text),
                    CallMessage::Spent(spent) => tell_spent(cx, &self.call.id, spent),
                    CallMessage::Elicitation(asked) => {
                        let later = deadline.deadline() + asked.request.timeout;
                        deadline.as_mut().reset(later);
                        open_elicitations.push(elicit(cx, self.call, asked));
                    }
                    CallMessage::Delegated(delegation) => {
                        let caller = Caller {
                            call: self.call.id.clone(),
                            place: self.place,
                            person: self.context.person.clone(),
                        };
                        at_work.push(delegate(cx, caller, delegation));
                    }
                    CallMessage::Used(wanted) => inner_calls.take(wanted),
                },
                returned = &mut work => {
                    tell_rest(cx, &self.call.id, &mut messages, &mut live);
                    break returned.map_or(Outcome::Panicked, Outcome::Returned);
                }
                Some(()) = open_elicitations.next() => {}
                Some(()) = at_work.next() => {}
                Some(()) = inner_calls.next_step() => {}
                () = &mut give_up => return Outcome::Interrupted,
                // Subagents have limits of their own.
                () = &mut deadline, if at_work.is_empty() => break Outcome::Overdue,
            }
        };
        inner_calls.close(grace).await;
        outcome
    }
}

/// Tells what a call said in its last moment: what it spent counts too.
fn tell_rest(cx: &TurnContext<'_>, call: &CallId, messages: &mut CallMessages, live: &mut Live) {
    while let Some(message) = messages.try_recv() {
        match message {
            CallMessage::Spent(spent) => tell_spent(cx, call, spent),
            CallMessage::Progress(text) => live.push(text),
            // Nobody waits for these any more.
            CallMessage::Elicitation(_) | CallMessage::Delegated(_) | CallMessage::Used(_) => {}
        }
    }
    if let Some(text) = live.take() {
        tell_progress(cx, call, text);
    }
}

fn tell_progress(cx: &TurnContext<'_>, call: &CallId, text: String) {
    let text = cx.ports.safety.hide_keys(text);
    let call = call.clone();
    cx.tell(Event::CallProgress { call, text });
}

fn tell_spent(cx: &TurnContext<'_>, call: &CallId, spent: Finished) {
    cx.tell(Event::CallSpent {
        call: call.clone(),
        usage: spent.usage,
        cost: spent.cost,
        model: spent.model,
    });
}

/// How long a stopped tool may take to say what it did, so that an interrupt is done within 100 ms. A subagent has
/// half the time of its parent, which waits for it.
fn stop_grace(depth: u32) -> Duration {
    Duration::from_millis(70 >> depth.min(6))
}

/// What is known of a call that did not come to its own end.
fn stopped_status(effect: Effect) -> ResultStatus {
    match effect {
        Effect::Read => ResultStatus::Failed,
        Effect::Idempotent | Effect::Effect => ResultStatus::OutcomeUnknown,
    }
}
