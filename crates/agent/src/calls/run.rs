//! Runs one call to its result, whatever happens to it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hermes_core::{
    Delegates, Delegation, Effect, Event, Finished, PendingElicitation, Person, Progress, Reader,
    ResultStatus, Spending, ToolContext, ToolError, ToolOutput, ToolResult, Toolbox, Use,
};
use serde_json::Value;
use tokio::sync::mpsc;
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
/// Answers of models that a call may be ahead of its account.
const SPENDING_WAITING_MAX: usize = 16;
/// Progress lines kept for a slow watcher.
const PROGRESS_LINES_MAX: usize = 64;

/// Runs a call to its end.
pub(super) async fn run<'a>(
    cx: &TurnContext<'_>,
    ready: &'a Ready,
    place: CallPlace,
    state: Option<Value>,
) -> Ran<'a> {
    let started = Instant::now();
    let (watcher, progress) = mpsc::channel(PROGRESS_LINES_MAX);
    let (person, elicitations) = Person::reachable();
    let (delegates, delegations) = Delegates::reachable();
    let (account, spending) = mpsc::channel(SPENDING_WAITING_MAX);
    let (toolbox, uses) = Toolbox::open();
    let context = ToolContext {
        session: cx.recorder.session().clone(),
        call: ready.call.id.clone(),
        cwd: cx.settings.cwd.clone(),
        stop: cx.stop.child_token(),
        progress: Progress::to(watcher),
        person,
        delegates,
        spending: Spending::to(account),
        state,
        toolbox,
        reader: Reader::Model,
        agreement: ready.agreement.clone(),
    };
    let outcome = outcome(
        cx,
        ready,
        place,
        &context,
        News {
            progress,
            elicitations,
            delegations,
            spending,
            uses,
        },
    )
    .await;
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
        Outcome::Returned(Err(ToolError::Stopped(text))) => (stopped_status(ready.effect), text),
        Outcome::Panicked => (
            stopped_status(ready.effect),
            format!("`{}` crashed; this is a bug in it.", ready.call.name),
        ),
        Outcome::Overdue => (
            stopped_status(ready.effect),
            format!(
                "`{}` did not return within {} s and was abandoned.",
                ready.call.name,
                CALL_TIME_MAX.as_secs()
            ),
        ),
        Outcome::Interrupted => (
            stopped_status(ready.effect),
            "Interrupted by the user while it ran.".into(),
        ),
    };
    Ran {
        ready,
        result: ToolResult::new(&ready.call, status, text).with_images(shown),
        kept,
        elapsed_ms: started.elapsed().as_millis() as u64,
    }
}

/// A call that has come to its end.
pub(super) struct Ran<'a> {
    pub(super) ready: &'a Ready,
    pub(super) result: ToolResult,
    /// What its tool keeps for the next call.
    pub(super) kept: Option<Value>,
    pub(super) elapsed_ms: u64,
}

/// What a running call has to say before its result.
struct News {
    progress: mpsc::Receiver<String>,
    elicitations: mpsc::Receiver<PendingElicitation>,
    delegations: mpsc::Receiver<Delegation>,
    spending: mpsc::Receiver<Finished>,
    uses: mpsc::Receiver<Use>,
}

enum Outcome {
    Returned(Result<ToolOutput, ToolError>),
    Panicked,
    Overdue,
    Interrupted,
}

async fn outcome(
    cx: &TurnContext<'_>,
    ready: &Ready,
    place: CallPlace,
    context: &ToolContext,
    mut news: News,
) -> Outcome {
    let work = AssertUnwindSafe(ready.tool.run(ready.arguments.clone(), context)).catch_unwind();
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
    let mut inner_calls = InnerCalls::of(cx, context);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(spent) = news.spending.recv() => tell_spent(cx, ready, spent).await,
            returned = &mut work => {
                // What was spent in the last moment counts too.
                while let Ok(spent) = news.spending.try_recv() {
                    tell_spent(cx, ready, spent).await;
                }
                while let Ok(text) = news.progress.try_recv() {
                    live.push(text);
                }
                if let Some(text) = live.take() {
                    tell_progress(cx, ready, text).await;
                }
                break returned.map_or(Outcome::Panicked, Outcome::Returned);
            }
            text = live.due() => tell_progress(cx, ready, text).await,
            Some(text) = news.progress.recv() => live.push(text),
            Some(asked) = news.elicitations.recv() => {
                let later = deadline.deadline() + asked.request.timeout;
                deadline.as_mut().reset(later);
                open_elicitations.push(elicit(cx, &ready.call, asked));
            }
            Some(()) = open_elicitations.next() => {}
            Some(delegation) = news.delegations.recv() => {
                let caller = Caller {
                    call: ready.call.id.clone(),
                    place,
                    person: context.person.clone(),
                };
                at_work.push(delegate(cx, caller, delegation));
            }
            Some(()) = at_work.next() => {}
            Some(wanted) = news.uses.recv() => inner_calls.take(wanted),
            Some(()) = inner_calls.next_end() => {}
            () = &mut give_up => return Outcome::Interrupted,
            // Subagents have limits of their own.
            () = &mut deadline, if at_work.is_empty() => break Outcome::Overdue,
        }
    };
    inner_calls.close(grace).await;
    outcome
}

async fn tell_progress(cx: &TurnContext<'_>, ready: &Ready, text: String) {
    let text = cx.ports.safety.hide_keys(text);
    let call = ready.call.id.clone();
    cx.tell(Event::CallProgress { call, text }).await;
}

async fn tell_spent(cx: &TurnContext<'_>, ready: &Ready, spent: Finished) {
    cx.tell(Event::CallSpent {
        call: ready.call.id.clone(),
        usage: spent.usage,
        cost: spent.cost,
        model: spent.model,
    })
    .await;
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
