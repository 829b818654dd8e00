//! The model of the user: what is known of a person, from what, and how sure it is.
//!
//! [`UserModel`] is the port; the model that is kept on this machine and services elsewhere are behind it. What is kept here
//! is a [`Representation`]: *premises*, which the person said, and *conclusions*, which were drawn from them. Nothing is
//! overwritten: what a newer word replaces stays, marked as superseded. [`UserModels`] is where it survives.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::learning::{ChangeId, NewLearnedChange};
use crate::store::StoreError;
use crate::tool::{BoxFuture, Tool};

/// What is known of one person, by whoever keeps it.
///
/// A conversation reads the [block](Self::block) when it begins, and offers the [tools](Self::tools); what was said in it is
/// [heard](Self::hear) afterwards, while nobody waits. Whatever a provider does, each of these ends within its deadline.
pub trait UserModel: Send + Sync {
    /// The provider, as `memory.provider` names it.
    fn provider(&self) -> &'static str;

    /// What a prompt says of the person. It is asked for once in a conversation.
    fn block(&self) -> BoxFuture<'_, UserBlock>;

    /// What the model of a conversation may ask or tell it.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Takes in what was said in a conversation since the last time. Returns soon after `stop` is cancelled; what is not
    /// taken in stays due.
    fn hear<'a>(
        &'a self,
        session: &'a SessionId,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Heard, StoreError>>;

    /// Answers a question about the person.
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<UserAnswer, String>>;

    /// Why it does not work at the moment, where it does not.
    fn degraded(&self) -> Option<String> {
        None
    }
}

/// What a prompt says of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserBlock {
    /// A paragraph; nothing is known without one.
    pub text: Option<String>,
    /// What the person should know of the provider.
    pub notice: Option<String>,
}

/// How hearing a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Nothing was due, or somebody else is at it.
    NotDue,
    /// It was taken in. The change, where the model of the user changed, and what it is in a line.
    Done { learned: Option<(ChangeId, String)> },
    /// It stays due: somebody spoke, or the process ends.
    PutOff,
    /// It stays due: today's budget does not allow it.
    OutOfBudget,
    /// It stays due for another try.
    Failed(String),
    /// It failed too often, and is left out.
    GivenUp(String),
}

/// An answer about a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserAnswer {
    pub text: String,
    /// Whether it is known at all.
    pub is_known: bool,
    /// The facts it goes by.
    pub cites: Vec<FactId>,
}

/// What is known of one person, and what was believed before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Representation {
    /// The number of the next fact: none is used twice.
    #[serde(default)]
    pub next: u32,
    #[serde(default)]
    pub premises: Vec<Premise>,
    #[serde(default)]
    pub conclusions: Vec<Conclusion>,
}

/// Something the person said of themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Premise {
    pub id: FactId,
    pub text: String,
    pub kind: PremiseKind,
    /// Where they said it; the oldest first.
    pub evidence: Vec<Evidence>,
    /// Per cent.
    pub confidence: u8,
    /// When it was last said.
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Superseded>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PremiseKind {
    /// Who they are: name, place, work.
    Identity,
    /// How they want things done.
    Instruction,
    Preference,
    /// Whom and what they have to do with.
    Relationship,
    /// What else holds for them.
    Attribute,
}

impl PremiseKind {
    pub const ALL: [Self; 5] = [
        Self::Identity,
        Self::Instruction,
        Self::Preference,
        Self::Relationship,
        Self::Attribute,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Instruction => "instruction",
            Self::Preference => "preference",
            Self::Relationship => "relationship",
            Self::Attribute => "attribute",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Something that follows from what the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conclusion {
    pub id: FactId,
    pub text: String,
    /// What it follows from.
    pub premises: Vec<FactId>,
    /// Per cent.
    pub confidence: u8,
    /// When it was drawn.
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Superseded>,
}

/// Why a fact does not count any more. It is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superseded {
    /// The newer one that contradicts it; without one, what it followed from does not hold any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<FactId>,
    pub at: Timestamp,
}

/// Words of the person, and where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `None` where the person told it outside of any conversation, by a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Its place in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    pub at: Timestamp,
    /// Their words.
    pub quote: String,
}

/// The name of a fact: `p3` for a premise, `c4` for a conclusion. Short, because people type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactId {
    Premise(u32),
    Conclusion(u32),
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Premise(number) => write!(f, "p{number}"),
            Self::Conclusion(number) => write!(f, "c{number}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a fact, such as p3 or c4")]
pub struct NoFactId(pub String);

impl FromStr for FactId {
    type Err = NoFactId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| digits.parse().ok();
        let id = match text.split_at_checked(1) {
            Some(("p" | "P", digits)) => number(digits).map(Self::Premise),
            Some(("c" | "C", digits)) => number(digits).map(Self::Conclusion),
            _ => None,
        };
        id.ok_or_else(|| NoFactId(text.to_owned()))
    }
}

impl Serialize for FactId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where the models of people survive, and which conversations they have not heard yet.
///
/// A hearing is [due](Self::set_hearing_due) from the moment somebody spoke; it is [taken](Self::take_hearing) for a time,
/// and whoever dies with it loses it when that is over.
pub trait UserModels: Send + Sync {
    /// The model of a person as it is now; `None` where nothing was ever known.
    fn user_model<'a>(
        &'a self,
        person: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<StoredUserModel>, StoreError>>;

    /// Replaces a model and writes the change into the learning log, both or neither. The change's `after` is the new
    /// text. `None` when somebody else replaced it first: version 0 is the one of nothing.
    fn replace_user_model(
        &self,
        version: u64,
        change: NewLearnedChange,
    ) -> BoxFuture<'_, Result<Option<ChangeId>, StoreError>>;

    /// Somebody spoke in a conversation. What is due already is due from now.
    fn set_hearing_due(&self, due: DueHearing) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Hearings of a person that are due and that nobody has taken, the longest waiting first.
    fn due_hearings<'a>(
        &'a self,
        person: Option<&'a str>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<DueHearing>, StoreError>>;

    /// Takes a hearing until a moment, and counts the try. `None` when it is not due, or somebody else has it.
    fn take_hearing<'a>(
        &'a self,
        session: &'a SessionId,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TakenHearing>, StoreError>>;

    /// Gives a hearing back: it stays due, and the try does not count.
    fn put_off_hearing<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// What stands up to a place was heard. It stays due where there is more, or somebody spoke since it was taken.
    fn finish_hearing<'a>(
        &'a self,
        taken: &'a TakenHearing,
        heard: u64,
        more: MoreToHear,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreToHear {
    Yes,
    No,
}

/// The model of a person as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUserModel {
    /// Rises with every change, from 1.
    pub version: u64,
    /// JSON: a [`Representation`].
    pub text: String,
}

/// A conversation that is to be heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueHearing {
    pub session: SessionId,
    /// Who talks in it, where a process serves several.
    pub person: Option<String>,
    /// When somebody last spoke.
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenHearing {
    pub due: DueHearing,
    /// How often it was taken and neither finished nor given back, this time included.
    pub tries: u32,
    /// The place of the last message that was heard.
    pub heard: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_facts_are_read_as_they_are_written_and_nothing_else_is() {
        for id in [FactId::Premise(3), FactId::Conclusion(41)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "p", "3", "px", "p-1", "ü3", "p99999999999"] {
            assert_eq!(text.parse::<FactId>(), Err(NoFactId(text.to_owned())));
        }
    }
}
