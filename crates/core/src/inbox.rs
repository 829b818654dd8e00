//! The inbox: what chat platforms said, from the moment we have it until it is answered.
//!
//! An entry is committed before its platform is told that we have it. It is *taken* by the very commit that begins a turn with
//! it (its number is in the message's [`crate::Origin`]), and *closed* by the commit that puts the answer into the outbox
//! ([`crate::outbox`]): after a crash at any instant it is plain how far it came.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channel::Incoming;
use crate::clock::Timestamp;
use crate::id::{SessionId, TurnId};
use crate::lease::Lease;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait Inbox: Send + Sync {
    /// Keeps updates in their order, and how far the platform was read, in one commit. Says which are new; those that were
    /// known already, be it for years, are left as they are.
    fn accept_updates(&self, batch: NewUpdates)
    -> BoxFuture<'_, Result<Vec<Accepted>, StoreError>>;

    /// How far an account was read.
    fn read_cursor(
        &self,
        platform: &str,
        account: &str,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>>;

    /// Lanes with entries that are not closed, the one that waits longest first.
    fn open_lanes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// The entries of a lane that are not closed, in order; at most so many.
    fn open_entries(
        &self,
        lane: &str,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<InboxEntry>, StoreError>>;

    /// Closes entries that get no answer of their own.
    fn close_entries(
        &self,
        closing: Answers,
        how: Closed,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// How much waits, and since when.
    fn inbox_depth(&self) -> BoxFuture<'_, Result<InboxDepth, StoreError>>;

    /// Forgets what platforms told word for word, of entries that were closed before this. That they were here stays known.
    fn forget_raw_updates(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// The number of an entry; later ones have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboxId(pub u64);

/// The entries that a commit closes, and by what right: under a lease that was overtaken nothing is written at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    pub entries: Vec<InboxId>,
    /// That of their lane; none for what is nobody's lane.
    pub lease: Option<Lease>,
}

impl Answers {
    /// Closes nothing, and is nobody's.
    pub fn none() -> Self {
        Self::default()
    }
}

impl From<Vec<InboxId>> for Answers {
    fn from(entries: Vec<InboxId>) -> Self {
        let lease = None;
        Self { entries, lease }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewUpdates {
    pub platform: String,
    pub account: String,
    pub received: Timestamp,
    pub updates: Vec<NewUpdate>,
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewUpdate {
    /// As in [`crate::channel::Update::id`].
    pub update: String,
    /// The conversation it belongs to: entries of one lane are answered one after the other.
    pub lane: String,
    pub sent: Option<Timestamp>,
    pub raw: Value,
    pub incoming: Incoming,
}

/// What became of one update of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    New(InboxId),
    /// It was here before.
    Known,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InboxEntry {
    pub id: InboxId,
    pub platform: String,
    pub account: String,
    pub lane: String,
    pub received: Timestamp,
    pub sent: Option<Timestamp>,
    pub incoming: Incoming,
    /// The turn that began with it.
    pub taken: Option<Taken>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub session: SessionId,
    pub turn: TurnId,
}

/// How an entry came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    /// The outbox has the answer.
    Answered,
    /// It was a command, a button or an answer to a question.
    Handled,
    /// It became part of another entry's turn: a burst, an album, words for a running turn.
    Joined,
    /// It is not for us, or nobody wants an answer to it.
    Ignored,
    /// It had waited too long; whoever sent it was told.
    Expired,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxDepth {
    pub open: u64,
    /// When the oldest of them was received.
    pub oldest: Option<Timestamp>,
}
