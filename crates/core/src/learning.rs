//! The learning log: every change of a note, a skill or the model of a person, with where it came from, so that each can
//! be shown and taken back.
//!
//! The things themselves are files that people may edit; the log has what they were before and after each change of ours.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{SessionId, TurnId};
use crate::store::StoreError;
use crate::tool::BoxFuture;

/// Where changes are written down before they are made.
///
/// A change is [begun](Self::begin), made, and [finished](Self::finish). One that was begun and not finished met a crash:
/// whether it was made is told by comparing the thing with `before` and `after`.
pub trait LearningLog: Send + Sync {
    /// Writes down that a change is about to be made. It is durable when this returns.
    fn begin(&self, change: NewLearnedChange) -> BoxFuture<'_, Result<ChangeId, StoreError>>;

    /// The change was made, or, with `is_made` false, was not: it is forgotten then.
    fn finish(&self, id: ChangeId, is_made: bool) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Changes, the newest first.
    fn changes(
        &self,
        filter: ChangeFilter,
    ) -> BoxFuture<'_, Result<Vec<LearnedChange>, StoreError>>;

    fn change(&self, id: ChangeId) -> BoxFuture<'_, Result<Option<LearnedChange>, StoreError>>;
}

/// The number of a change; later ones have higher ones. Short, because people type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub u64);

impl std::fmt::Display for ChangeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLearnedChange {
    pub at: Timestamp,
    pub subject: Subject,
    pub author: Author,
    /// Where it was learned.
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    /// What it is, in one line for people.
    pub summary: String,
    /// All of the thing before; `None` where there was nothing.
    pub before: Option<String>,
    /// All of it afterwards; `None` where it is gone.
    pub after: Option<String>,
    /// The change that this one takes back.
    pub undoes: Option<ChangeId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedChange {
    pub id: ChangeId,
    #[serde(flatten)]
    pub change: NewLearnedChange,
    /// Whether it is known to have been made.
    pub is_finished: bool,
    /// The change that took this one back.
    pub undone_by: Option<ChangeId>,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A file of notes: `memory` or `user`, of one person where a process serves several.
    Notes {
        file: String,
        person: Option<String>,
    },
    /// A file of a skill, by its path below the skill's folder.
    Skill { name: String, path: String },
    /// What is known of a person.
    UserModel { person: Option<String> },
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person, by a command or an editor.
    Person,
    /// The agent, in a conversation.
    Agent,
    /// The review of a conversation, afterwards.
    Review,
    /// The upkeep of skills.
    Curator,
    /// An installation from elsewhere.
    Hub,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// The kind of subject: `notes`, `skill`, `user_model`.
    pub kind: Option<String>,
    /// Exactly this subject.
    pub subject: Option<Subject>,
    pub session: Option<SessionId>,
    pub author: Option<Author>,
    pub since: Option<Timestamp>,
    /// 0 means all.
    pub limit: usize,
}
