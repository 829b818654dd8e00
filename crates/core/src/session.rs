//! What goes into a session and what comes out: the only interface every door has.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, TurnId};
use crate::message::{Message, Part, ResultStatus, Role};
use crate::model::{Cost, ModelError, ModelName, ModelNotice, Usage};

/// A request to a session. Accepted in order; [`Op::Say`] waits for the turn before it.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    Say(UserMessage),
    /// Words for the turn that is running: they arrive with the next tool result, or become the next turn.
    Steer(UserMessage),
    Interrupt,
    Answer {
        call: CallId,
        verdict: Verdict,
    },
}

/// What a person sent: text, and pictures or sound beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub parts: Vec<Part>,
}

impl UserMessage {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::text(text)],
        }
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self {
            role: Role::User,
            parts: message.parts,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Once,
    /// Also for the same question again in this session.
    Session,
    Deny,
}

/// What happens in a session, in the order it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    TurnStarted {
        turn: TurnId,
    },
    /// A turn that a crash cut short goes on.
    TurnResumed {
        turn: TurnId,
        attempt: u32,
    },
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    /// The text shown since the last reply ended is void: the model starts again.
    TextDiscarded,
    CallStarted {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    CallProgress {
        call: CallId,
        text: String,
    },
    CallFinished {
        call: CallId,
        tool: String,
        status: ResultStatus,
        text: String,
        elapsed_ms: u64,
    },
    Asked(Question),
    Notice {
        notice: Notice,
    },
    ReplyFinished {
        usage: Usage,
        cost: Cost,
        model: ModelName,
    },
    TurnEnded {
        turn: TurnId,
        end: TurnEnd,
    },
}

/// Something only a person can decide. Without an answer in time it counts as "no".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub call: CallId,
    pub tool: String,
    /// What would run, as the person would write it.
    pub what: String,
    pub reason: String,
    pub expires_in_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    Model(ModelNotice),
    /// Why the model is asked again without a word from the user.
    AskedAgain {
        reason: String,
    },
    /// A reference or a context file could not be used as written.
    Context {
        text: String,
    },
    /// Steering words came too late for a tool result and wait for the next turn.
    SteeringQueued,
}

/// How a turn came to rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TurnEnd {
    Finished,
    Interrupted,
    OutOfSteps {
        steps: u32,
    },
    /// The model repeated itself, or kept calling tools that do not exist.
    Stuck {
        reason: String,
    },
    Failed {
        error: ModelError,
    },
    /// Something of our own broke: the store, the disk.
    Broken {
        error: String,
        hint: String,
    },
    /// The turn took the process down too often to be tried again.
    Abandoned {
        crashes: u32,
    },
}

impl TurnEnd {
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Finished)
    }
}
