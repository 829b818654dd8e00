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
}

/// Who is asked, and what tells them.
pub(crate) struct Asking<'a> {
    pub(crate) policy: ConsentPolicy,
    pub(crate) approvals: &'a Approvals,
    pub(crate) events: &'a mpsc::Sender<Event>,
    pub(crate) stop: &'a CancellationToken,
}

/// What came of a question.
enum Answer {
    Said(Verdict),
    Silence,
    Stopped,
}

impl Asking<'_> {
    /// Returns `Ok` when the call may run, or why it may not, in words for the model.
    pub(crate) async fn consent(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        arguments: &Value,
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
        match self.policy {
            ConsentPolicy::Allow => Ok(()),
            ConsentPolicy::Refuse => Err(format!(
                "Refused: {reason}, and nobody is here to allow it. Find a safer way, or tell the user what to run."
            )),
            ConsentPolicy::Ask { timeout } => {
                self.ask_person(call, describe(arguments), reason, timeout)
                    .await
            }
        }
    }

    async fn ask_person(
        &self,
        call: &ToolCall,
        what: String,
        reason: String,
        timeout: Duration,
    ) -> Result<(), String> {
        let key = (call.name.clone(), what.clone());
        if lock(&self.approvals.allowed).contains(&key) {
            return Ok(());
        }
        let question = Question {
            call: call.id.clone(),
            tool: call.name.clone(),
            what,
            reason,
            expires_in_ms: timeout.as_millis() as u64,
        };
        match self.answer(question, timeout).await {
            Answer::Said(Verdict::Once) => Ok(()),
            Answer::Said(Verdict::Session) => {
                lock(&self.approvals.allowed).insert(key);
                Ok(())
            }
            Answer::Said(Verdict::Deny) => Err(
                "The user did not allow this. Do not try it another way; ask what they want."
                    .into(),
            ),
            Answer::Silence => Err(format!(
                "Not run: nobody answered within {} s whether this is allowed. Do what does not need it, or stop and \
                 say what waits for an answer.",
                timeout.as_secs()
            )),
            Answer::Stopped => Err("Not run: the user interrupted before allowing it.".into()),
        }
    }

    async fn answer(&self, question: Question, timeout: Duration) -> Answer {
        let (sender, answered) = oneshot::channel();
        let call = question.call.clone();
        lock(&self.approvals.waiting).insert(call.clone(), sender);
        let _ = self.events.send(Event::Asked(question)).await;
        let answer = tokio::select! {
            verdict = answered => verdict.map_or(Answer::Silence, Answer::Said),
            () = tokio::time::sleep(timeout) => Answer::Silence,
            () = self.stop.cancelled() => Answer::Stopped,
        };
        lock(&self.approvals.waiting).remove(&call);
        answer
    }
}

/// What would run, as a person would write it: a command, a script, the arguments of any other call.
fn describe(arguments: &Value) -> String {
    let text = ["command", "code"]
        .iter()
        .find_map(|name| arguments.get(name)?.as_str());
    text.map_or_else(|| arguments.to_string(), str::to_owned)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
