//! Subagents that outlive the turn that sent them. What they found begins a turn of its own.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use hermes_core::delegation::DELEGATE_TASK;
use hermes_core::{
    CallId, CancellationToken, Dispatched, ErrandReport, Message, Part, Role, UserMessage,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::subagent::Subagent;
use super::{Crew, work_all};

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
    errands: Vec<ErrandReport>,
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
    pub(crate) fn take_up(&mut self, crew: impl Fn(CallId) -> Crew, messages: &[Message]) {
        for (call, dispatched) in undelivered(messages) {
            let crew = crew(call);
            let sessions = dispatched.sessions.into_iter().enumerate();
            let subagents = sessions.map(|(index, id)| crew.subagent(id, index, None));
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
                errands: work_all(subagents, stop).await,
            }
        });
    }
}

impl Report {
    pub(crate) fn subagents(&self) -> usize {
        self.errands.len()
    }

    /// The report as the model reads it.
    pub(crate) fn message(&self) -> UserMessage {
        let delegation = &self.delegation;
        let results = json!({ "results": self.errands });
        UserMessage::text(format!(
            "{HEADING_START}{delegation}{HEADING_END}\n{results}"
        ))
    }
}

/// What a report begins with: the delegation stands between the two. The conversation has it from the moment the report
/// is delivered.
const HEADING_START: &str = "[Delegation ";
const HEADING_END: &str =
    ": your background subagents have come to rest. The user did not write this.]";

/// Finds the delegations that were dispatched in a conversation and not reported in it, with the calls that did it.
fn undelivered(messages: &[Message]) -> Vec<(CallId, Dispatched)> {
    let reported: HashSet<&str> = messages.iter().filter_map(reported).collect();
    let results = messages.iter().filter_map(Message::tool_result);
    results
        .filter(|result| result.tool == DELEGATE_TASK)
        .filter_map(|result| Some((result.call.clone(), dispatched(&result.text)?)))
        .filter(|(_, dispatched)| !reported.contains(dispatched.delegation_id.as_str()))
        .collect()
}

/// The delegation that a message is the report of, if it is one.
fn reported(message: &Message) -> Option<&str> {
    let (Role::User, Some(Part::Text { text })) = (message.role, message.parts.first()) else {
        return None;
    };
    let (delegation, _) = text.strip_prefix(HEADING_START)?.split_once(HEADING_END)?;
    Some(delegation)
}

/// Reads a result of the tool. Words of the user may follow what the tool wrote.
fn dispatched(result: &str) -> Option<Dispatched> {
    let mut values = serde_json::Deserializer::from_str(result).into_iter();
    values.next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Arguments, ResultStatus, ToolCall, ToolResult};

    fn result(tool: &str, text: &str) -> Message {
        let call = ToolCall {
            id: "c".into(),
            name: tool.to_owned(),
            arguments: Arguments::Json(json!({})),
            signatures: Vec::new(),
        };
        Message::result(ToolResult::new(&call, ResultStatus::Ok, text))
    }

    #[test]
    fn what_was_dispatched_is_waited_for_until_it_is_reported() {
        let text = r#"{"status":"dispatched","delegation_id":"d1","sessions":["sub-d1-1"]}

[words of the user]"#;
        let mut messages = vec![
            result("other", text),
            result(DELEGATE_TASK, r#"{"results":[]}"#),
            result(DELEGATE_TASK, "no json"),
            result(DELEGATE_TASK, text),
        ];
        let waiting = undelivered(&messages);
        assert_eq!(waiting.len(), 1);
        assert_eq!(waiting[0].1.sessions, ["sub-d1-1".into()]);
        let report = Report {
            delegation: "d1".to_owned(),
            errands: Vec::new(),
        };
        messages.push(report.message().into());
        assert_eq!(undelivered(&messages), []);
    }
}
