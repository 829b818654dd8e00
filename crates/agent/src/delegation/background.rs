//! Subagents that outlive the turn that sent them. What they found begins a turn of its own.

use std::collections::VecDeque;
use std::time::Duration;

use hermes_core::delegation::DELEGATE_TASK;
use hermes_core::{
    CallId, CancellationToken, Dispatched, Message, Origin, SubagentReport, ToolStates, UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::subagent::Subagent;
use super::{SubagentContext, work_all};

/// Delegations that wait for the session to start them. A reply has few calls that delegate.
const LAUNCHES_WAITING_MAX: usize = 8;
/// How long subagents may take to close their sessions when their parent ends.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// The background of one session.
pub(crate) struct Background {
    launcher: mpsc::Sender<Launch>,
    launches: mpsc::Receiver<Launch>,
    running: JoinSet<Report>,
    done: VecDeque<Report>,
    stop: CancellationToken,
}

/// Subagents about to start.
pub(crate) struct Launch {
    pub(super) name: String,
    pub(super) subagents: Vec<Subagent>,
}

/// What the subagents of one delegation found.
pub(crate) struct Report {
    delegation: String,
    reports: Vec<SubagentReport>,
}

impl Default for Background {
    fn default() -> Self {
        let (launcher, launches) = mpsc::channel(LAUNCHES_WAITING_MAX);
        Self {
            launcher,
            launches,
            running: JoinSet::new(),
            done: VecDeque::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl Background {
    pub(crate) fn launcher(&self) -> mpsc::Sender<Launch> {
        self.launcher.clone()
    }

    /// Takes up what a conversation still waits for.
    pub(crate) fn take_up(
        &mut self,
        context: impl Fn(CallId) -> SubagentContext,
        states: &ToolStates,
    ) {
        for Undelivered { call, dispatched } in undelivered(states) {
            let context = context(call);
            let sessions = dispatched.sessions.into_iter().enumerate();
            let subagents = sessions.map(|(index, id)| context.subagent(id, index, None));
            self.start(Launch {
                name: dispatched.delegation_id,
                subagents: subagents.collect(),
            });
        }
    }

    /// Waits until something happens in the background, and sees to it. Nothing is lost when the future is dropped.
    pub(crate) async fn tend(&mut self) {
        tokio::select! {
            Some(launch) = self.launches.recv() => self.start(launch),
            Some(joined) = self.running.join_next() => self.done.extend(joined),
        }
    }

    /// Waits until there is a report.
    pub(crate) async fn reported(&mut self) {
        while self.done.is_empty() {
            self.tend().await;
        }
    }

    /// Whether there will be a report.
    pub(crate) fn is_working(&self) -> bool {
        !self.running.is_empty() || !self.launches.is_empty() || !self.done.is_empty()
    }

    pub(crate) fn next_report(&mut self) -> Option<Report> {
        self.done.pop_front()
    }

    pub(crate) fn put_back(&mut self, report: Report) {
        self.done.push_front(report);
    }

    /// Stops everybody; their reports say so.
    pub(crate) fn interrupt(&mut self) {
        std::mem::take(&mut self.stop).cancel();
    }

    /// Stops everybody and gives them a moment to close their sessions.
    pub(crate) async fn close(mut self) {
        self.interrupt();
        let closed = async { while self.running.join_next().await.is_some() {} };
        // Those who need longer are as after a crash: the next start finds them.
        let _ = tokio::time::timeout(CLOSING_TIME, closed).await;
    }

    fn start(&mut self, launch: Launch) {
        let Launch { name, subagents } = launch;
        let stop = self.stop.child_token();
        self.running.spawn(async move {
            Report {
                delegation: name,
                reports: work_all(subagents, stop).await,
            }
        });
    }
}

impl Report {
    pub(crate) fn subagents(&self) -> usize {
        self.reports.len()
    }

    /// The report as the model reads it.
    pub(crate) fn message(&self) -> UserMessage {
        let delegation = &self.delegation;
        let results = json!({ "results": self.reports });
        UserMessage::text(format!(
            "{HEADING_START}{delegation}{HEADING_END}\n{results}"
        ))
        .with_origin(Origin::SubagentReport {
            delegation: delegation.clone(),
        })
    }
}

/// What a report begins with: the delegation stands between the two.
const HEADING_START: &str = "[Delegation ";
const HEADING_END: &str =
    ": your background subagents have come to rest. The user did not write this.]";

/// A delegation that was dispatched and whose report no turn began with yet. `delegate_task` keeps a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Undelivered {
    /// The call that dispatched it.
    call: CallId,
    #[serde(flatten)]
    dispatched: Dispatched,
}

fn undelivered(states: &ToolStates) -> Vec<Undelivered> {
    let kept = states.get(DELEGATE_TASK).cloned();
    let list = kept.and_then(|kept| serde_json::from_value(kept).ok());
    list.unwrap_or_default()
}

/// What `delegate_task` keeps when a call has dispatched one more.
pub(crate) fn with_dispatched(states: &ToolStates, call: &CallId, dispatched: Value) -> Value {
    let mut list = undelivered(states);
    if let Ok(dispatched) = serde_json::from_value::<Dispatched>(dispatched) {
        // A call that ran again after a crash dispatched the same.
        list.retain(|other| other.dispatched.delegation_id != dispatched.delegation_id);
        list.push(Undelivered {
            call: call.clone(),
            dispatched,
        });
    }
    json!(list)
}

/// What `delegate_task` keeps when a turn begins with a message that is the report of one of them.
pub(crate) fn without_delivered(states: &ToolStates, message: &Message) -> Option<Value> {
    let Some(Origin::SubagentReport { delegation }) = &message.origin else {
        return None;
    };
    let mut list = undelivered(states);
    list.retain(|other| other.dispatched.delegation_id != *delegation);
    Some(json!(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dispatched_is_waited_for_until_it_is_reported() {
        let mut states = ToolStates::new();
        for name in ["d1", "d2", "d1"] {
            let dispatched = json!({"delegation_id": name, "sessions": [format!("sub-{name}-1")]});
            let kept = with_dispatched(&states, &"c".into(), dispatched);
            states.insert(DELEGATE_TASK.to_owned(), kept);
        }
        let names = |states: &ToolStates| -> Vec<String> {
            let waiting = undelivered(states).into_iter();
            waiting.map(|one| one.dispatched.delegation_id).collect()
        };
        assert_eq!(names(&states), ["d2", "d1"]);

        let report = Report {
            delegation: "d2".to_owned(),
            reports: Vec::new(),
        };
        let kept = without_delivered(&states, &report.message().into());
        states.insert(DELEGATE_TASK.to_owned(), kept.unwrap());
        assert_eq!(names(&states), ["d1"]);
        assert_eq!(without_delivered(&states, &Message::user("hi")), None);
    }
}
