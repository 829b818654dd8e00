//! Delegation: what a running call has subagents do for it.
//!
//! A tool hands [`SubagentTask`]s over through the [`Delegates`] in its context. The loop gives each a session of its own,
//! linked to the caller's, and answers with what became of them. The names of those sessions follow from the call, so
//! that a call which runs again after a crash finds what its subagents have done instead of doing it twice.

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::id::SessionId;

/// The tool that delegates. Sessions know it by name: subagents may not have it, and its results say what runs on.
pub const DELEGATE_TASK: &str = "delegate_task";
/// Where sessions of subagents come from; see [`crate::SessionRecord::source`].
pub const SUBAGENT_SOURCE: &str = "subagent";

/// A call delegates once; more waiting delegations than this mean that it has gone wild.
const WAITING_MAX: usize = 4;

/// One task for one subagent, which knows nothing but this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentTask {
    pub goal: String,
    /// What the subagent needs to know; may be empty.
    pub context: String,
    pub role: SubagentRole,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentRole {
    /// Does the work itself.
    #[default]
    Leaf,
    /// May delegate in turn, as deep as the settings allow.
    Orchestrator,
}

/// Whether the call waits for its subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Foreground,
    /// They run on while the conversation does; what they found arrives as a message. Where nobody could receive that,
    /// it is as in the foreground.
    Background,
}

/// Where a call hands tasks to subagents, if it may have any.
#[derive(Debug, Clone, Default)]
pub struct Delegates(Option<mpsc::Sender<Delegation>>);

/// Tasks on their way to the loop.
#[derive(Debug)]
pub struct Delegation {
    pub tasks: Vec<SubagentTask>,
    pub manner: Manner,
    pub answer: oneshot::Sender<Result<Delegated, String>>,
}

/// What came of a delegation.
#[derive(Debug, Clone, PartialEq)]
pub enum Delegated {
    /// All have come to rest; the reports stand in the order of the tasks.
    Done(Vec<SubagentReport>),
    Dispatched(Dispatched),
}

/// Subagents that run in the background. `delegate_task` keeps this, and that is where a restarted session finds what it
/// still waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatched {
    pub delegation_id: String,
    pub sessions: Vec<SessionId>,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubagentReport {
    /// From 0, in the order of the tasks.
    pub task_index: usize,
    pub status: SubagentStatus,
    /// The subagent's last words.
    pub summary: String,
    /// What went wrong, if it did not complete.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    pub session: SessionId,
    pub model: String,
    pub api_calls: u64,
    pub duration_seconds: f64,
    pub tokens: SubagentTokens,
    pub tool_trace: Vec<TracedCall>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    Completed,
    /// It came to an end, but not to the one it was sent for.
    Failed,
    Interrupted,
    Timeout,
    /// It could not be started, or something of our own broke.
    Error,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentTokens {
    pub input: u64,
    pub output: u64,
}

/// One call of a subagent, without what was said in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedCall {
    pub tool: String,
    pub args_bytes: usize,
    pub result_bytes: usize,
    pub status: crate::ResultStatus,
}

impl Delegates {
    /// Makes the handle of a call, and what its delegations come out of.
    pub fn reachable() -> (Self, mpsc::Receiver<Delegation>) {
        let (sender, delegations) = mpsc::channel(WAITING_MAX);
        (Self(Some(sender)), delegations)
    }

    /// Hands tasks over, and waits for what comes of them. The error is written for the model.
    ///
    /// When the call is stopped, so are its subagents, and their reports say so. Dropping the future leaves subagents
    /// in the foreground without a chance to close their sessions properly; they are taken up or closed later.
    pub async fn delegate(
        &self,
        tasks: Vec<SubagentTask>,
        manner: Manner,
    ) -> Result<Delegated, String> {
        let Some(delegates) = &self.0 else {
            return Err("no subagents can be had here; do it yourself".to_owned());
        };
        let (answer, answered) = oneshot::channel();
        let delegation = Delegation {
            tasks,
            manner,
            answer,
        };
        let lost = || "the subagents are gone; do it yourself, or try again".to_owned();
        if delegates.send(delegation).await.is_err() {
            return Err(lost());
        }
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}
