//! The outbox: what is to be said on chat platforms, until the platform has confirmed it.
//!
//! An entry is one reply: one or several parts, each a message on the platform. Every step is committed before it counts, so
//! that after a crash only what is missing is sent, and what may have arrived is known to be in doubt. How an entry goes from
//! step to step is [`OutboxEntry::apply`], the same for every store.

use serde::{Deserialize, Serialize};

use crate::channel::{Address, Body, Button};
use crate::clock::Timestamp;
use crate::id::MessageId;
use crate::inbox::Answers;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait Outbox: Send + Sync {
    /// Writes down what is to be sent, and closes the inbox entries it answers, in one commit. A key that is known already
    /// means the same reply: nothing changes but that those entries are closed.
    fn put_outgoing(
        &self,
        entry: NewOutboxEntry,
        answers: Answers,
    ) -> BoxFuture<'_, Result<OutboxId, StoreError>>;

    /// Takes an entry a step further, and closes the inbox entries it answers by that. A step that does not fit is refused.
    fn step_outgoing(
        &self,
        id: OutboxId,
        step: OutboxStep,
        answers: Answers,
    ) -> BoxFuture<'_, Result<OutboxEntry, StoreError>>;

    fn outgoing(&self, id: OutboxId) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>>;

    fn outgoing_by_key(&self, key: &str) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>>;

    /// Entries that are not at their end, oldest first: those to one address are sent in this order.
    fn open_outgoing(
        &self,
        platform: &str,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<OutboxEntry>, StoreError>>;

    /// Of every address, the first entry that is written and not at its end, oldest first. However many wait for one
    /// address, they hide nothing of the others.
    fn next_outgoing(&self, platform: &str) -> BoxFuture<'_, Result<Vec<OutboxEntry>, StoreError>>;

    /// Somebody was heard from at a dead address: it lives again, and what was given up there for its death since then is
    /// sent after all. Returns those entries.
    fn revive_address(
        &self,
        to: &Address,
        since: Timestamp,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<OutboxEntry>, StoreError>>;

    /// Where nothing can be delivered to, and since when.
    fn dead_addresses(&self) -> BoxFuture<'_, Result<Vec<DeadAddress>, StoreError>>;

    fn outbox_depth(&self) -> BoxFuture<'_, Result<OutboxDepth, StoreError>>;

    /// Forgets entries that came to their end before this.
    fn forget_outgoing(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutboxId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutboxEntry {
    /// The same for the same reply, whoever makes it and how often: a turn and a number, a schedule's run.
    pub key: String,
    pub to: Address,
    pub account: Option<String>,
    pub replies_to: Option<MessageId>,
    pub buttons: Vec<Vec<Button>>,
    pub is_silent: bool,
    /// None while it is still being written: [`OutboxStep::Write`] says them later.
    pub bodies: Vec<Body>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    pub id: OutboxId,
    pub key: String,
    pub to: Address,
    pub account: Option<String>,
    pub replies_to: Option<MessageId>,
    pub buttons: Vec<Vec<Button>>,
    pub is_silent: bool,
    pub parts: Vec<OutboxPart>,
    pub stage: Stage,
    /// The part that is on its way. After a crash nobody knows whether it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<usize>,
    /// How often sending failed since something last went well.
    pub attempts: u32,
    /// Not before this.
    pub due: Timestamp,
    /// What went wrong last.
    pub error: Option<String>,
    /// It was given up because nothing can be delivered there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead: bool,
    /// Why a part of it was refused; the chat has a word about that in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
}

/// One message on the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxPart {
    /// What it is to say; a message that was begun and has no place in the final text says nothing, and is taken away.
    pub body: Option<Body>,
    /// The platform's word that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// It says what `body` says.
    #[serde(default)]
    pub is_current: bool,
    /// It was sent once before, perhaps: whether that arrived is not known.
    #[serde(default)]
    pub is_doubtful: bool,
    /// The platform refused what it was to say, and it says that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The reply is still being written; a preview of it may be shown.
    Writing,
    Pending,
    Sending,
    Sent,
    /// Given up, with an error that people are shown.
    Failed,
}

impl Stage {
    pub fn is_end(self) -> bool {
        matches!(self, Self::Sent | Self::Failed)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxStep {
    pub at: Timestamp,
    pub what: OutboxChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutboxChange {
    /// This is what it is to say: the end of writing it.
    Write {
        bodies: Vec<Body>,
    },
    /// A part is about to be sent.
    Send {
        part: usize,
    },
    /// The platform has a part. `is_current`: it says what it is to say, and not a preview of it.
    Arrived {
        part: usize,
        id: MessageId,
        is_current: bool,
    },
    /// A part that was there says what it is to say, or is gone where it is to say nothing.
    Edited {
        part: usize,
    },
    /// It was not sent; again then.
    Later {
        due: Timestamp,
        error: String,
    },
    /// Nobody knows whether the part that was on its way arrived. It is sent again, marked.
    Doubt {
        due: Timestamp,
        error: String,
    },
    /// The message of a part is gone from the platform: it has to be sent anew.
    Lost {
        part: usize,
    },
    /// The platform refuses what a part is to say: it says this instead.
    Replace {
        part: usize,
        body: Body,
        error: String,
    },
    GiveUp {
        error: String,
        is_dead: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadAddress {
    pub to: Address,
    pub since: Timestamp,
    pub error: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboxDepth {
    pub open: u64,
    /// Given up, or refused in part.
    pub failed: u64,
    pub oldest: Option<Timestamp>,
}

/// Parts of one entry: more is not a reply but a file.
pub const PARTS_MAX: usize = 64;

impl NewOutboxEntry {
    /// The entry as it begins.
    pub fn begin(self, id: OutboxId) -> OutboxEntry {
        let stage = if self.bodies.is_empty() {
            Stage::Writing
        } else {
            Stage::Pending
        };
        OutboxEntry {
            id,
            key: self.key,
            to: self.to,
            account: self.account,
            replies_to: self.replies_to,
            buttons: self.buttons,
            is_silent: self.is_silent,
            parts: self.bodies.into_iter().map(OutboxPart::new).collect(),
            stage,
            sending: None,
            attempts: 0,
            due: self.at,
            error: None,
            is_dead: false,
            refused: None,
            created: self.at,
            updated: self.at,
        }
    }
}

impl OutboxPart {
    fn new(body: Body) -> Self {
        Self {
            body: Some(body),
            id: None,
            is_current: false,
            is_doubtful: false,
            is_replaced: false,
        }
    }

    /// Nothing is left to do for it.
    pub fn is_settled(&self) -> bool {
        match self.body {
            Some(_) => self.id.is_some() && self.is_current,
            None => self.id.is_none(),
        }
    }
}

impl OutboxEntry {
    /// Takes the entry a step further, or says why the step does not fit.
    pub fn apply(&mut self, step: OutboxStep) -> Result<(), String> {
        self.fits(&step.what)?;
        self.updated = step.at;
        match step.what {
            OutboxChange::Write { bodies } => self.write(bodies),
            OutboxChange::Send { part } => {
                self.grow(part);
                if self.stage != Stage::Writing {
                    self.stage = Stage::Sending;
                }
                self.sending = Some(part);
            }
            OutboxChange::Arrived {
                part,
                id,
                is_current,
            } => {
                let part = &mut self.parts[part];
                part.id = Some(id);
                part.is_current = is_current;
                part.is_doubtful = false;
                self.went_well();
            }
            OutboxChange::Edited { part } => {
                let part = &mut self.parts[part];
                part.is_current = true;
                if part.body.is_none() {
                    part.id = None;
                }
                self.went_well();
            }
            OutboxChange::Later { due, error } => self.retry(due, error),
            OutboxChange::Doubt { due, error } => {
                if let Some(part) = self.sending {
                    self.parts[part].is_doubtful = true;
                }
                self.retry(due, error);
            }
            OutboxChange::Lost { part } => {
                self.parts[part].id = None;
                self.parts[part].is_current = false;
            }
            OutboxChange::Replace { part, body, error } => {
                self.parts[part].body = Some(body);
                self.parts[part].is_current = false;
                self.parts[part].is_doubtful = false;
                self.parts[part].is_replaced = true;
                self.went_well();
                self.refused = Some(error);
            }
            OutboxChange::GiveUp { error, is_dead } => {
                self.stage = Stage::Failed;
                self.sending = None;
                self.error = Some(error);
                self.is_dead = is_dead;
            }
        }
        self.settle();
        Ok(())
    }

    /// Takes up what was given up because its address was dead. Nothing for others.
    pub fn revive(&mut self, at: Timestamp) {
        if self.stage == Stage::Failed && self.is_dead {
            self.is_dead = false;
            self.stage = Stage::Pending;
            self.attempts = 0;
            self.due = at;
            self.updated = at;
        }
    }

    /// The first part with something left to do.
    pub fn next_part(&self) -> Option<usize> {
        self.parts.iter().position(|part| !part.is_settled())
    }

    fn fits(&self, change: &OutboxChange) -> Result<(), String> {
        let stage = self.stage.name();
        if self.stage.is_end() {
            return Err(format!("the entry is {stage} already"));
        }
        let (part, may_be_new) = match change {
            OutboxChange::Write { bodies } if bodies.len() > PARTS_MAX => {
                return Err(format!("{} parts are more than {PARTS_MAX}", bodies.len()));
            }
            OutboxChange::Write { .. } if self.stage != Stage::Writing => {
                return Err(format!("the entry is {stage}: it is written already"));
            }
            OutboxChange::Send { part } => (*part, self.stage == Stage::Writing),
            OutboxChange::Arrived { part, .. }
            | OutboxChange::Edited { part }
            | OutboxChange::Replace { part, .. }
            | OutboxChange::Lost { part } => (*part, false),
            _ => return Ok(()),
        };
        let limit = if may_be_new {
            PARTS_MAX
        } else {
            self.parts.len()
        };
        if part >= limit {
            return Err(format!("the entry has no part {part}"));
        }
        Ok(())
    }

    /// Makes room for a preview.
    fn grow(&mut self, part: usize) {
        let empty = OutboxPart {
            body: None,
            id: None,
            is_current: false,
            is_doubtful: false,
            is_replaced: false,
        };
        if self.parts.len() <= part {
            self.parts.resize(part + 1, empty);
        }
    }

    /// Puts the text in place of what was a preview: messages that are there are edited, those without text go.
    fn write(&mut self, bodies: Vec<Body>) {
        self.stage = Stage::Pending;
        let count = self.parts.len().max(bodies.len());
        let mut bodies = bodies.into_iter();
        self.grow(count.saturating_sub(1));
        for part in &mut self.parts {
            part.body = bodies.next();
            part.is_current = false;
        }
    }

    fn went_well(&mut self) {
        if self.stage == Stage::Sending {
            self.stage = Stage::Pending;
        }
        self.sending = None;
        self.attempts = 0;
        self.error = None;
    }

    fn retry(&mut self, due: Timestamp, error: String) {
        if self.stage == Stage::Sending {
            self.stage = Stage::Pending;
        }
        self.sending = None;
        self.attempts = self.attempts.saturating_add(1);
        self.due = due;
        self.error = Some(error);
    }

    fn settle(&mut self) {
        if self.stage == Stage::Pending && self.next_part().is_none() {
            self.stage = Stage::Sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(markdown: &str) -> Body {
        Body::Text {
            markdown: markdown.into(),
            is_preview: false,
        }
    }

    fn entry(bodies: &[&str]) -> OutboxEntry {
        NewOutboxEntry {
            key: "turn".into(),
            to: Address::parse("fake:1").expect("an address"),
            account: None,
            replies_to: None,
            buttons: Vec::new(),
            is_silent: false,
            bodies: bodies.iter().map(|body| text(body)).collect(),
            at: Timestamp::from_millis(0),
        }
        .begin(OutboxId(1))
    }

    fn step(entry: &mut OutboxEntry, what: OutboxChange) {
        let at = Timestamp::from_millis(1);
        entry.apply(OutboxStep { at, what }).expect("a step");
    }

    fn arrived(part: usize, id: &str, is_current: bool) -> OutboxChange {
        OutboxChange::Arrived {
            part,
            id: id.into(),
            is_current,
        }
    }

    #[test]
    fn only_what_is_missing_is_sent() {
        let mut entry = entry(&["a", "b"]);
        step(&mut entry, OutboxChange::Send { part: 0 });
        step(&mut entry, arrived(0, "m1", true));
        assert_eq!((entry.stage, entry.next_part()), (Stage::Pending, Some(1)));
        step(&mut entry, OutboxChange::Send { part: 1 });
        step(&mut entry, arrived(1, "m2", true));
        assert_eq!(entry.stage, Stage::Sent);
    }

    #[test]
    fn a_preview_becomes_the_first_part_and_one_too_many_is_taken_away() {
        let mut entry = entry(&[]);
        for (part, id) in [(0, "m1"), (1, "m2")] {
            step(&mut entry, OutboxChange::Send { part });
            step(&mut entry, arrived(part, id, false));
        }
        assert_eq!(entry.stage, Stage::Writing);
        let bodies = vec![text("all of it")];
        step(&mut entry, OutboxChange::Write { bodies });
        assert_eq!(entry.next_part(), Some(0));
        step(&mut entry, OutboxChange::Edited { part: 0 });
        assert_eq!(entry.next_part(), Some(1));
        assert_eq!(entry.parts[1].body, None);
        step(&mut entry, OutboxChange::Edited { part: 1 });
        assert_eq!(entry.stage, Stage::Sent);
    }

    #[test]
    fn doubt_stays_with_the_part_it_is_about_until_that_arrives() {
        let mut entry = entry(&["a"]);
        step(&mut entry, OutboxChange::Send { part: 0 });
        let (due, error) = (Timestamp::from_millis(1), "it ended".to_owned());
        step(&mut entry, OutboxChange::Doubt { due, error });
        step(&mut entry, OutboxChange::Send { part: 0 });
        let (due, error) = (Timestamp::from_millis(9), "flood".to_owned());
        step(&mut entry, OutboxChange::Later { due, error });
        assert!(entry.parts[0].is_doubtful);
        assert_eq!((entry.attempts, entry.due), (2, due));
        step(&mut entry, OutboxChange::Send { part: 0 });
        step(&mut entry, arrived(0, "m1", true));
        assert!(!entry.parts[0].is_doubtful);
    }

    #[test]
    fn a_part_that_is_refused_does_not_take_the_others_with_it() {
        let mut entry = entry(&["a", "b"]);
        step(&mut entry, OutboxChange::Send { part: 0 });
        let (body, error) = (text("not this"), "refused".to_owned());
        let part = 0;
        step(&mut entry, OutboxChange::Replace { part, body, error });
        assert_eq!((entry.stage, entry.next_part()), (Stage::Pending, Some(0)));
        for (part, id) in [(0, "m1"), (1, "m2")] {
            step(&mut entry, OutboxChange::Send { part });
            step(&mut entry, arrived(part, id, true));
        }
        assert_eq!(entry.stage, Stage::Sent);
        assert_eq!(entry.refused.as_deref(), Some("refused"));
    }

    #[test]
    fn steps_that_do_not_fit_change_nothing() {
        let mut sent = entry(&["a"]);
        let before = sent.clone();
        for what in [
            OutboxChange::Send { part: 1 },
            OutboxChange::Edited { part: 7 },
            OutboxChange::Write { bodies: vec![] },
        ] {
            let at = Timestamp::from_millis(1);
            assert!(sent.apply(OutboxStep { at, what }).is_err());
            assert_eq!(sent, before);
        }
    }
}
