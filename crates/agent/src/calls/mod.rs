//! Answers the calls of one reply: checks them, prepares each once, runs them in ordered segments, records each result.

mod check;
mod coerce;
mod inner;
mod keep;
mod live;
mod plan;
mod run;
mod schema;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hermes_core::delegation::DELEGATE_TASK;
use hermes_core::{
    Agreement, Arguments, CallId, Effect, Entry, Event, Plan, ResultStatus, StoreError, Tool,
    ToolCall, ToolResult,
};
use serde_json::Value;

use crate::approvals::Asker;
use crate::consent::{Decision, decide};
use crate::delegation;
use crate::history::History;
use crate::repeat::RepeatGuard;
use crate::spill::{TurnBudget, fit};
use crate::steering;
use crate::turn::TurnContext;
use plan::{Checked, Queue};
use run::Ran;

pub(crate) use keep::Kept;

pub(crate) enum Answered {
    GoOn,
    Stopped,
    Stuck { reason: String },
}

/// A call that passed its checks and was prepared.
pub(crate) struct Ready {
    pub(crate) call: ToolCall,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) arguments: Arc<Value>,
    pub(crate) plan: Plan,
    /// What was agreed to, once it was decided that the call runs.
    agreement: Agreement,
}

impl Ready {
    /// The name of the tool that is really meant.
    pub(crate) fn tool_name(&self) -> &str {
        &self.tool.spec().name
    }

    fn unprepared(self) -> Checked {
        Checked {
            call: self.call,
            tool: self.tool,
            arguments: self.arguments,
        }
    }
}

/// Gives every call its one result and puts them into the history.
///
/// `lost` are calls that a crash caught while they ran: what may be repeated runs again, for the rest the model is told
/// that nobody knows.
pub(crate) async fn answer_all(
    cx: &TurnContext<'_>,
    history: &mut History,
    calls: Vec<ToolCall>,
    lost: &[(CallId, Effect)],
    repeats: &mut RepeatGuard,
    budget: &mut TurnBudget,
) -> Result<Answered, StoreError> {
    let mut results = Vec::with_capacity(calls.len());
    let mut checked = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        match check_one(cx, call, &calls[..position], lost) {
            Ok(call) => checked.push(call),
            Err(result) => results.push(result),
        }
    }
    let any_call_runs = !checked.is_empty();
    for refused in &results {
        tell_refusal(cx, &calls, refused);
        cx.recorder.add(finished(cx, refused.clone()));
    }

    let mut queue = Queue::of(checked);
    loop {
        let segment = queue.next_segment(cx).await;
        if segment.is_empty() {
            break;
        }
        run_segment(cx, history, segment, repeats, budget, &mut results).await?;
    }

    repeats.note_reply(any_call_runs);
    assert_eq!(results.len(), calls.len(), "exactly one result per call");
    history.push_results(results);
    Ok(match repeats.stuck() {
        _ if cx.stop.is_cancelled() => Answered::Stopped,
        Some(reason) => Answered::Stuck {
            reason: reason.to_owned(),
        },
        None => Answered::GoOn,
    })
}

/// Decides what becomes of a call before anything runs.
fn check_one(
    cx: &TurnContext<'_>,
    call: &ToolCall,
    earlier: &[ToolCall],
    lost: &[(CallId, Effect)],
) -> Result<Checked, ToolResult> {
    if let Some((_, effect)) = lost.iter().find(|(id, _)| *id == call.id)
        && !effect.may_repeat()
    {
        return Err(ToolResult::new(
            call,
            ResultStatus::OutcomeUnknown,
            OUTCOME_UNKNOWN_CRASH,
        ));
    }
    let same = |other: &&ToolCall| other.name == call.name && other.arguments == call.arguments;
    if let Some(twin) = earlier.iter().find(same) {
        let text = format!(
            "Not run again: the same call as `{}` in this reply; see its result.",
            twin.id
        );
        return Err(ToolResult::new(call, ResultStatus::NotRun, text));
    }
    check::check(call, cx.ports).map_err(|problem| {
        let text = hermes_core::text::shorten(&problem, REFUSAL_CHARS_MAX);
        ToolResult::new(call, ResultStatus::Failed, text)
    })
}

/// Enough to say what is wrong with a call; the model knows what it wrote.
const REFUSAL_CHARS_MAX: usize = 2_000;

const OUTCOME_UNKNOWN_CRASH: &str = "outcome_unknown: the program was interrupted while this ran. It may have happened, \
     partly or wholly, or not at all. Look at the actual state before you decide whether to do it again.";

/// Runs calls side by side. Their intents are durable before the first starts.
async fn run_segment(
    cx: &TurnContext<'_>,
    history: &mut History,
    segment: Vec<Ready>,
    repeats: &mut RepeatGuard,
    budget: &mut TurnBudget,
    results: &mut Vec<ToolResult>,
) -> Result<(), StoreError> {
    let mut allowed = Vec::with_capacity(segment.len());
    for ready in segment {
        match decision(cx, &ready).await? {
            Decision::Run(agreement) => allowed.push(Ready { agreement, ..ready }),
            Decision::NotRun(why) => refuse(cx, &ready, why, results),
        }
    }
    keep::keep_before(cx, &allowed).await?;
    // An interrupt may have come while a person was asked or a copy was made.
    if cx.stop.is_cancelled() {
        for ready in allowed.drain(..) {
            refuse(cx, &ready, NOT_RUN_INTERRUPTED.to_owned(), results);
        }
    }
    for ready in &allowed {
        cx.recorder.add(Entry::CallIntended {
            turn: cx.turn.clone(),
            call: ready.call.id.clone(),
            tool: ready.tool_name().to_owned(),
            effect: ready.plan.effect,
            arguments: ready.arguments.as_ref().clone(),
        });
    }
    cx.recorder.commit().await?;

    let mut running: FuturesUnordered<_> = allowed
        .into_iter()
        .map(|ready| {
            let place = history.place_of(&ready.call.id);
            let state = history.state_of(ready.tool_name());
            run::run(cx, ready, place, state)
        })
        .collect();
    loop {
        // Results that come together are committed together, the last of all with what follows it.
        let ran = match running.next().now_or_never() {
            Some(ran) => ran,
            None => {
                cx.recorder.commit().await?;
                running.next().await
            }
        };
        let Some(ran) = ran else {
            return Ok(());
        };
        let Ran {
            call,
            tool,
            touched,
            mut result,
            kept,
            elapsed_ms,
        } = ran;
        let warning = repeats.note(&call, &result);
        finish_text(cx, touched, &mut result, budget).await;
        if let Some(warning) = warning {
            result.text.push_str(&format!("\n\n{warning}"));
        }
        let tool = &tool.spec().name;
        tell_finished(cx, tool, &result, elapsed_ms);
        cx.recorder.add(finished(cx, result.clone()));
        results.push(result);
        if let Some(state) = kept {
            keep_state(cx, history, &call.id, tool, state);
        }
    }
}

/// Keeps what a tool wants to find at its next call, in the same commit as the result.
fn keep_state(
    cx: &TurnContext<'_>,
    history: &mut History,
    call: &CallId,
    tool: &str,
    state: Value,
) {
    let state = if tool == DELEGATE_TASK {
        // Delegations run side by side, so that each knows only its own.
        delegation::with_dispatched(history.states(), call, state)
    } else {
        state
    };
    cx.recorder.add(Entry::ToolKept {
        turn: cx.turn.clone(),
        tool: tool.to_owned(),
        state: state.clone(),
    });
    history.keep(tool.to_owned(), state);
}

/// Decides whether a call runs: not after an interrupt, and not without consent.
async fn decision(cx: &TurnContext<'_>, ready: &Ready) -> Result<Decision, StoreError> {
    if cx.stop.is_cancelled() {
        return Ok(Decision::NotRun(NOT_RUN_INTERRUPTED.to_owned()));
    }
    cx.tell(Event::CallStarted {
        call: ready.call.id.clone(),
        tool: ready.tool_name().to_owned(),
        arguments: ready.arguments.as_ref().clone(),
    });
    let asker = Asker {
        call: &ready.call.id,
        is_inner: false,
        stop: &cx.stop,
    };
    decide(cx, ready, asker).await
}

const NOT_RUN_INTERRUPTED: &str = "Not run: the user interrupted before this started.";

/// Gives a call its result without running it.
fn refuse(cx: &TurnContext<'_>, ready: &Ready, why: String, results: &mut Vec<ToolResult>) {
    let result = ToolResult::new(&ready.call, ResultStatus::NotRun, why);
    tell_finished(cx, ready.tool_name(), &result, 0);
    cx.recorder.add(finished(cx, result.clone()));
    results.push(result);
}

/// Brings a result into the form the model will see: without keys, fitted, with context files and the user's words beside it.
async fn finish_text(
    cx: &TurnContext<'_>,
    touched: Vec<PathBuf>,
    result: &mut ToolResult,
    budget: &mut TurnBudget,
) {
    let text = std::mem::take(&mut result.text);
    result.text = cx.ports.safety.hide_keys(text);
    steering::neutralise(&mut result.text);
    let chars_max = budget.allowance();
    let folder = cx
        .settings
        .results_folder
        .join(cx.recorder.session().as_str());
    let text = std::mem::take(&mut result.text);
    result.text = fit(text, chars_max, folder, &result.call).await;
    budget.spend(result.text.len());
    if let Some(mut context) = cx.nested.beside(touched).await {
        steering::neutralise(&mut context);
        result.text.push_str(&context);
    }
    let attached = cx.steering.attach(result);
    for queued in &attached {
        cx.tell(Event::Steered {
            queued: queued.clone(),
        });
    }
    if !attached.is_empty() {
        cx.recorder.add(Entry::Dequeued { queued: attached });
    }
}

fn finished(cx: &TurnContext<'_>, result: ToolResult) -> Entry {
    Entry::CallFinished {
        turn: cx.turn.clone(),
        result,
    }
}

fn tell_refusal(cx: &TurnContext<'_>, calls: &[ToolCall], result: &ToolResult) {
    let Some(call) = calls.iter().find(|call| call.id == result.call) else {
        return;
    };
    let arguments = match &call.arguments {
        Arguments::Json(value) => value.clone(),
        Arguments::Malformed(text) => Value::String(text.clone()),
    };
    cx.tell(Event::CallStarted {
        call: call.id.clone(),
        tool: call.name.clone(),
        arguments,
    });
    tell_finished(cx, &call.name, result, 0);
}

/// Tells the end of a call under the name that its start was told under: that of the tool that is really meant.
fn tell_finished(cx: &TurnContext<'_>, tool: &str, result: &ToolResult, elapsed_ms: u64) {
    cx.tell(Event::CallFinished {
        call: result.call.clone(),
        tool: tool.to_owned(),
        status: result.status,
        text: result.text.clone(),
        elapsed_ms,
        images: result.images.len(),
    });
}
