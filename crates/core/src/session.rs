//! What goes into a session and what comes out: the only interface every surface has.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalAnswer, Settled, Verdict};
use crate::approval_code::ApprovalCode;
use crate::compaction::{CompactionEnd, CompactionReason};
use crate::elicitation::{Elicitation, Response};
use crate::id::{ApprovalId, CallId, ElicitationId, QueuedId, TurnId};
use crate::message::{Message, Origin, Part, ResultStatus, Role};
use crate::model::{Cost, ModelError, ModelName, ModelNotice, Usage};

/// A request to a session. Accepted in order; [`Op::Say`] waits for the turn before it, and is told as
/// [`Event::Queued`] once it does so safely.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    Say(UserMessage),
    /// Words for the turn that is running: they arrive with the next tool result, or become the next turn.
    Steer(UserMessage),
    /// Stops the turn that runs, and forgets what waits behind it.
    Interrupt,
    /// Answers an approval request. An answer that comes too late, or that was not offered, is not taken.
    Answer {
        approval: ApprovalId,
        answer: ApprovalAnswer,
    },
    /// Answers an elicitation. One that does not fit is not taken; the elicitation stays open.
    Respond {
        elicitation: ElicitationId,
        response: Response,
    },
    /// Takes the last turns back. Not while one runs.
    Rewind {
        turns: u32,
    },
    /// Takes the last turn back and says the same again. Not while one runs.
    Retry,
    /// Makes the conversation shorter for its model, with an eye on a topic if one is named. Not while a turn runs.
    Compact {
        topic: Option<String>,
    },
}

/// What a person sent: text, and pictures or sound beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    pub parts: Vec<Part>,
    pub origin: Origin,
}

impl UserMessage {
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(vec![Part::text(text)])
    }

    /// What somebody on the session's own surface sent.
    pub fn of(parts: Vec<Part>) -> Self {
        Self {
            parts,
            origin: Origin::person(),
        }
    }

    /// The same words from elsewhere.
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }
}

/// Words that wait for the turn that runs. They are in the store until a turn begins with them, the running one is told
/// them, or an interrupt forgets them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub id: QueuedId,
    pub waits_for: WaitsFor,
    pub message: UserMessage,
}

/// What queued words wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// They begin a turn of their own.
    NextTurn,
    /// They are steering: the next tool result of the running turn brings them along.
    ToolResult,
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self {
            role: Role::User,
            origin: Some(message.origin),
            parts: message.parts,
        }
    }
}

/// What happens in a session, in the order it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    TurnStarted {
        turn: TurnId,
        /// Who or what began it.
        origin: Origin,
        /// What was said: [`Message::said`].
        text: String,
        /// How many pictures came with it; they are in the store.
        #[serde(default, skip_serializing_if = "is_zero")]
        images: usize,
        /// Which queued words these are, if they had to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<QueuedId>,
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
    /// The text of the current reply was not meant to be shown: it was a tool call.
    TextDiscarded,
    CallStarted {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    /// The newest of what a running call shows, at most twenty times a second: several lines when they came close together.
    CallProgress {
        call: CallId,
        text: String,
    },
    /// What a subagent of a running call is doing. Each line replaces the one before it of the same subagent.
    SubagentProgress {
        call: CallId,
        /// From 1, in the order of the tasks.
        subagent: usize,
        text: String,
    },
    CallFinished {
        call: CallId,
        tool: String,
        status: ResultStatus,
        text: String,
        elapsed_ms: u64,
        /// How many pictures the model gets with the text; they are in the store.
        #[serde(default, skip_serializing_if = "is_zero")]
        images: usize,
    },
    /// A running call had a model answer something, beside the replies of the turn.
    CallSpent {
        call: CallId,
        usage: Usage,
        cost: Cost,
        model: ModelName,
    },
    /// A call waits for consent.
    ApprovalRequested(ApprovalRequest),
    /// An approval request is over: answered, by whatever surface or process, or out of time.
    ApprovalClosed {
        approval: ApprovalId,
        #[serde(flatten)]
        how: Settled,
    },
    /// A running call wants to know something from a person.
    ElicitationRequested(Elicitation),
    /// Answered, by whatever surface, or out of time.
    ElicitationClosed {
        elicitation: ElicitationId,
    },
    Notice {
        notice: Notice,
    },
    /// One reply is complete; it may have taken several requests.
    ReplyFinished {
        usage: Usage,
        cost: Cost,
        model: ModelName,
        requests: u32,
    },
    TurnEnded {
        turn: TurnId,
        end: TurnEnd,
    },
    /// Words wait for the turn that runs. They are in the store: from now on no crash loses them.
    Queued {
        queued: QueuedId,
        waits_for: WaitsFor,
        origin: Origin,
        text: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        images: usize,
    },
    /// The model is told queued words with a tool result: they wait no longer.
    Steered {
        queued: QueuedId,
    },
    /// The last turns were taken back. `said` is what the user said in the first of them.
    Rewound {
        turns: u32,
        said: String,
    },
    /// The conversation is being made shorter for its model.
    CompactionStarted {
        reason: CompactionReason,
        /// What a request takes now.
        tokens: u64,
        /// What fits into one, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// How far it is. Each line replaces the one before it.
    CompactionProgress {
        text: String,
    },
    CompactionEnded {
        end: CompactionEnd,
    },
    /// Nothing runs and nothing waits: it is the user's turn.
    Idle,
}

/// A call that runs only if a person allows it. Without an answer in time it counts as "no".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    pub approval: ApprovalId,
    /// What an answer from elsewhere takes. For people's eyes only: it is not written out.
    #[serde(skip)]
    pub code: ApprovalCode,
    pub call: CallId,
    pub tool: String,
    /// What would run, as the person would write it.
    pub what: String,
    /// The change it is about, as a unified diff. Not made safe for a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Where it would run, if that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    pub reason: String,
    /// Patterns, the narrowest first, of which a yes for longer may cover one. Without it, exactly this is covered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    pub choices: Vec<Verdict>,
    pub expires_in_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    Model {
        notice: ModelNotice,
    },
    /// Why the model is asked again without a word from the user.
    AskedAgain {
        reason: String,
    },
    /// A reference or a context file could not be used as written.
    Context {
        text: String,
    },
    /// Steering words came too late for a tool result and are the next turn.
    SteeringQueued,
    /// A message was not accepted.
    NotTaken {
        reason: String,
    },
    /// Words could not wait for the running turn, and are kept nowhere.
    NotQueued {
        reason: String,
        text: String,
    },
    /// A running call wanted to know something, and nobody is here to answer.
    ElicitationDeclined {
        asker: String,
        message: String,
    },
    /// A call needed somebody's consent, and nobody is here to give it.
    NotAllowed {
        tool: String,
        reason: String,
    },
    /// What this turn changes cannot be taken back with a rollback.
    NoCheckpoint {
        reason: String,
    },
    /// Which tools there are has changed, or is waited for.
    Tools {
        text: String,
    },
    /// Subagents that ran in the background have come to rest; what they found begins a turn.
    SubagentsDone {
        subagents: usize,
    },
    /// Something was learned from the conversation: what, and how to take it back.
    Learned {
        text: String,
    },
    /// An interrupt made the session forget messages that waited.
    Forgotten {
        messages: usize,
    },
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

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elicitation() -> Elicitation {
        let kind = crate::FieldKind::Integer {
            min: None,
            max: Some(3),
            default: None,
        };
        let fields = vec![crate::Field::new("n", kind)];
        Elicitation {
            id: "q1".into(),
            call: "c".into(),
            tool: "t".into(),
            asker: "a".into(),
            message: "m".into(),
            wanted: crate::Wanted::Form { fields },
            expires_in_ms: 1,
        }
    }

    #[test]
    fn every_kind_of_event_survives_json() {
        let model = ModelName {
            provider: "p".into(),
            model: "m".into(),
        };
        let error = ModelError {
            model: model.clone(),
            kind: crate::model::ModelErrorKind::Auth,
            message: "no".into(),
            hint: "yes".into(),
        };
        let retrying = ModelNotice::Retrying {
            reason: "r".into(),
            attempt: 1,
            wait_ms: 2,
        };
        let notices = [
            Notice::Model { notice: retrying },
            Notice::AskedAgain { reason: "r".into() },
            Notice::Context { text: "t".into() },
            Notice::Tools { text: "t".into() },
            Notice::SteeringQueued,
            Notice::NotTaken { reason: "r".into() },
            Notice::NotQueued {
                reason: "r".into(),
                text: "t".into(),
            },
            Notice::Forgotten { messages: 2 },
            Notice::SubagentsDone { subagents: 2 },
            Notice::Learned { text: "t".into() },
            Notice::NotAllowed {
                tool: "t".into(),
                reason: "r".into(),
            },
            Notice::ElicitationDeclined {
                asker: "a".into(),
                message: "m".into(),
            },
        ];
        let ends = [
            TurnEnd::Finished,
            TurnEnd::OutOfSteps { steps: 3 },
            TurnEnd::Failed { error },
            TurnEnd::Abandoned { crashes: 3 },
        ];
        let mut events: Vec<Event> = notices.map(|notice| Event::Notice { notice }).into();
        events.extend(ends.map(|end| Event::TurnEnded {
            turn: "t".into(),
            end,
        }));
        let (usage, cost) = (Usage::default(), Cost::Estimated(1));
        events.push(Event::ReplyFinished {
            usage,
            cost,
            model,
            requests: 2,
        });
        events.push(Event::Rewound {
            turns: 2,
            said: "again".into(),
        });
        events.push(Event::TurnStarted {
            turn: "t".into(),
            origin: Origin::person(),
            text: "hi".into(),
            images: 1,
            queued: Some("q".into()),
        });
        events.push(Event::Queued {
            queued: "q".into(),
            waits_for: WaitsFor::ToolResult,
            origin: Origin::person(),
            text: "hi".into(),
            images: 0,
        });
        events.push(Event::Steered { queued: "q".into() });
        events.push(Event::ElicitationRequested(elicitation()));
        let by = crate::AnswerSource::Command;
        let verdict = Verdict::Deny;
        for how in [Settled::Answered { verdict, by }, Settled::Expired] {
            let approval = "a1".into();
            events.push(Event::ApprovalClosed { approval, how });
        }
        events.push(Event::Idle);
        events.push(Event::CompactionStarted {
            reason: CompactionReason::Full,
            tokens: 1,
            window: None,
        });
        let report = crate::CompactionReport {
            summary: crate::SummarySource::Digest,
            tokens_before: 4,
            tokens_after: 1,
            summarised: 3,
            shortened: 2,
            kept: 1,
            elapsed_ms: 5,
            usage,
            cost: Some(cost),
            notes: vec!["n".into()],
        };
        let reason = "r".into();
        for end in [
            CompactionEnd::Done { report },
            CompactionEnd::Unchanged { reason },
            CompactionEnd::Stopped,
        ] {
            events.push(Event::CompactionEnded { end });
        }
        for event in events {
            let json = serde_json::to_string(&event).unwrap();
            assert_eq!(
                serde_json::from_str::<Event>(&json).unwrap(),
                event,
                "{json}"
            );
        }
    }
}
