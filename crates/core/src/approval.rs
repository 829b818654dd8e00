//! Approvals: questions asked before a call runs. They live in the store, so that any process can show and answer
//! them, and a crash of the one that asks loses none.
//!
//! What needs consent is the tool's word ([`crate::Consent`]); this is only about who answers, and how it ends.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::approval_code::ApprovalCode;
use crate::clock::Timestamp;
use crate::id::{ApprovalId, CallId, SessionId};
use crate::review::Preview;
use crate::store::StoreError;
use crate::tool::BoxFuture;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    /// Whoever answers from elsewhere must know it. Never leaves with the rest: it is for people to see.
    #[serde(skip)]
    pub code: ApprovalCode,
    pub session: SessionId,
    pub call: CallId,
    /// The tool that would run: that of the call, or of another that the call makes.
    pub tool: String,
    /// What would run, as the person would write it.
    pub what: String,
    /// Where it would run, if that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Why it is asked.
    pub reason: String,
    /// Of which a yes for longer may cover one, instead of exactly this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The change it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// The answers it takes.
    pub choices: Vec<Verdict>,
    pub created: Timestamp,
    /// Without an answer by then it counts as "no".
    pub expires: Timestamp,
    pub settled: Option<Settlement>,
}

/// What a person says to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Once,
    /// Also for the same question again in this session.
    Session,
    /// From now on, in every session: it goes to `approvals.allow`.
    Always,
    Deny,
}

/// A verdict, and what a person says with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    pub verdict: Verdict,
    /// Which of the question's patterns a yes for longer covers; without one, exactly what was asked.
    pub pattern: Option<String>,
    /// For the model: what to do instead.
    pub words: Option<String>,
}

impl From<Verdict> for ApprovalAnswer {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            pattern: None,
            words: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    pub at: Timestamp,
    #[serde(flatten)]
    pub how: Settled,
    #[serde(flatten)]
    pub said: Said,
}

/// What an answer says besides yes or no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// As [`ApprovalAnswer::pattern`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// As [`ApprovalAnswer::words`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl Settlement {
    /// An end without words.
    pub fn new(at: Timestamp, how: Settled) -> Self {
        Self {
            at,
            how,
            said: Said::default(),
        }
    }

    pub fn answered(at: Timestamp, answer: ApprovalAnswer, by: AnswerSource) -> Self {
        let ApprovalAnswer {
            verdict,
            pattern,
            words,
        } = answer;
        Self {
            at,
            how: Settled::Answered { verdict, by },
            said: Said { pattern, words },
        }
    }
}

/// How an approval came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Settled {
    Answered {
        verdict: Verdict,
        by: AnswerSource,
    },
    /// Nobody answered in time.
    Expired,
    /// The call does not wait any more: its turn was interrupted, or it has a result.
    Withdrawn,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// The conversation that asked.
    Chat,
    /// `hermes approvals`.
    Command,
    /// A client of `hermes mcp serve`.
    Mcp,
}

/// What became of an attempt to settle an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling {
    /// How it stands now, whoever did it.
    pub settlement: Settlement,
    /// Whether it was this attempt.
    pub is_ours: bool,
}

/// Where approvals are kept. Promises what [`crate::Store`] promises: what is acknowledged is on disk.
pub trait Approvals: Send + Sync {
    /// Writes a question down. Refused unless its call is one of the session's last reply and has no result.
    fn open_approval(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Settles an approval, or learns how it is settled already: the first attempt is final, across processes.
    ///
    /// An answer that comes too late for its question settles it as expired or withdrawn instead.
    fn settle(
        &self,
        id: &ApprovalId,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<Settling, StoreError>>;

    /// Settles the approval that has this code: the way for everybody but the conversation that asks. A wrong code is held
    /// against all that are open, and after [`crate::approval_code::TRIES_MAX`] of them they can no longer be answered so.
    fn settle_by_code(
        &self,
        code: &str,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<(ApprovalId, Settling), StoreError>>;

    fn approval(&self, id: &ApprovalId) -> BoxFuture<'_, Result<Approval, StoreError>>;

    /// The newest approval for a call of the session's last reply: what a crash has left behind.
    fn approval_of_call(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> BoxFuture<'_, Result<Option<Approval>, StoreError>>;

    /// Those that can be answered now, oldest first.
    fn open_approvals(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>>;
}

impl Verdict {
    pub const ALL: [Self; 4] = [Self::Once, Self::Session, Self::Always, Self::Deny];
}

impl Approval {
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.settled.is_none() && now < self.expires
    }

    /// Returns whether an answer is one of those it takes.
    pub fn offers(&self, verdict: Verdict, said: &Said) -> bool {
        let pattern = said.pattern.as_ref();
        let is_known = pattern.is_none_or(|pattern| self.patterns.contains(pattern));
        self.choices.contains(&verdict) && is_known
    }
}
