//! Asks a person before something dangerous runs.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{CallId, CancellationToken, Consent, Event, Question, Tool, ToolCall, Verdict};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// What happens when a call needs a person's consent. What is forbidden stays forbidden under every policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentPolicy {
    /// Ask, and take silence for "no".
    Ask { timeout: Duration },
    /// Nobody is there to ask: refuse.
    Refuse,
    /// The user said yes to everything (`--yolo`).
    Allow,
}

/// Questions that wait for an answer, and what was allowed for the whole session.
#[derive(Default)]
pub(crate) struct Approvals {
    waiting: Mutex<HashMap<CallId, oneshot::Sender<Verdict>>>,
    allowed: Mutex<HashSet<(String, String)>>,
}

impl Approvals {
    /// Hands a person's answer to the call that waits for it. An answer nobody waits for is ignored.
    pub(crate) fn resolve(&self, call: &CallId, verdict: Verdict) {
        if let Some(waiting) = lock(&self.waiting).remove(call) {
            let _ = waiting.send(verdict);
        }
    }

    fn is_allowed(&self, key: &(String, String)) -> bool {
        lock(&self.allowed).contains(key)
    }
}

/// Returns `Ok` when the call may run, or why it may not, in words for the model.
pub(crate) async fn consent(
    policy: ConsentPolicy,
    approvals: &Approvals,
    tool: &dyn Tool,
    call: &ToolCall,
    arguments: &Value,
    events: &mpsc::Sender<Event>,
    stop: &CancellationToken,
) -> Result<(), String> {
    let reason = match tool.consent(arguments) {
        Consent::NotNeeded => return Ok(()),
        Consent::Forbidden { reason } => {
            return Err(format!(
                "Refused: {reason}. Nobody can allow this. Find another way, or tell the user."
            ));
        }
        Consent::Needed { reason } => reason,
    };
    let key = (call.name.clone(), describe(arguments));
    match policy {
        ConsentPolicy::Allow => Ok(()),
        ConsentPolicy::Refuse => Err(format!(
            "Refused: {reason}, and nobody is here to allow it. Find a safer way, or tell the user what to run."
        )),
        ConsentPolicy::Ask { .. } if approvals.is_allowed(&key) => Ok(()),
        ConsentPolicy::Ask { timeout } => {
            let question = Question {
                call: call.id.clone(),
                tool: call.name.clone(),
                what: key.1.clone(),
                reason,
                expires_in_ms: timeout.as_millis() as u64,
            };
            match ask(approvals, question, timeout, events, stop).await {
                Verdict::Once => Ok(()),
                Verdict::Session => {
                    lock(&approvals.allowed).insert(key);
                    Ok(())
                }
                Verdict::Deny => Err(
                    "The user did not allow this. Do not try it another way; ask what they want."
                        .into(),
                ),
            }
        }
    }
}

async fn ask(
    approvals: &Approvals,
    question: Question,
    timeout: Duration,
    events: &mpsc::Sender<Event>,
    stop: &CancellationToken,
) -> Verdict {
    let (answer, answered) = oneshot::channel();
    let call = question.call.clone();
    lock(&approvals.waiting).insert(call.clone(), answer);
    let _ = events.send(Event::Asked(question)).await;
    let verdict = tokio::select! {
        verdict = answered => verdict.unwrap_or(Verdict::Deny),
        () = tokio::time::sleep(timeout) => Verdict::Deny,
        () = stop.cancelled() => Verdict::Deny,
    };
    lock(&approvals.waiting).remove(&call);
    verdict
}

/// What would run, as a person would write it: the command of a terminal call, the arguments of any other.
fn describe(arguments: &Value) -> String {
    match arguments.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => arguments.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
