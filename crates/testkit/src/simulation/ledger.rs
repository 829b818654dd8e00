//! What was promised, and whether it was kept: every commit of inbox and outbox is written down here, and compared with what
//! people saw in the end.

mod judge;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use hermes_core::{
    Accepted, Address, Body, Closed, InboxId, Incoming, NewOutboxEntry, NewUpdates, OutboxEntry,
    OutboxId, Timestamp,
};

use super::{lock, tokens};

pub use self::judge::Verdict;

/// Outlives all processes of a world.
#[derive(Default)]
pub struct Ledger(Mutex<Book>);

#[derive(Default)]
struct Book {
    kept: BTreeMap<InboxId, Kept>,
    by_update: HashMap<(String, String), InboxId>,
    closings: HashMap<InboxId, Vec<Closing>>,
    outbox: BTreeMap<OutboxId, OutboxEntry>,
    by_key: HashMap<String, OutboxId>,
    wrong: Vec<String>,
}

/// An update that was accepted.
#[derive(Debug, Clone)]
struct Kept {
    lane: String,
    /// The messages it is about; none for commands, presses and answers.
    tokens: Vec<u64>,
    received: Timestamp,
    to: Address,
    is_edit: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Closing {
    how: Closed,
    by: Option<OutboxId>,
    at: Timestamp,
}

impl Ledger {
    pub(super) fn accepted(&self, batch: &NewUpdates, accepted: &[Accepted]) {
        let mut book = lock(&self.0);
        for (update, accepted) in batch.updates.iter().zip(accepted) {
            let known = (batch.platform.clone(), update.update.clone());
            let Accepted::New(id) = accepted else {
                if !book.by_update.contains_key(&known) {
                    let wrong = format!("update {known:?} counts as known, and never came");
                    book.wrong.push(wrong);
                }
                continue;
            };
            let kept = Kept {
                lane: update.lane.clone(),
                tokens: match &update.incoming {
                    Incoming::Message(message) | Incoming::Edited(message) => tokens(&message.text),
                    Incoming::Press(_) => Vec::new(),
                },
                received: batch.received,
                to: Address::of(&batch.platform, update.incoming.chat()),
                is_edit: matches!(update.incoming, Incoming::Edited(_)),
            };
            if let Some(before) = book.by_update.insert(known.clone(), *id) {
                let wrong = format!("update {known:?} was accepted twice: {before:?}, {id:?}");
                book.wrong.push(wrong);
            }
            book.kept.insert(*id, kept);
        }
    }

    pub(super) fn closed(
        &self,
        entries: &[InboxId],
        how: Closed,
        by: Option<OutboxId>,
        at: Timestamp,
    ) {
        let mut book = lock(&self.0);
        for entry in entries {
            let closing = Closing { how, by, at };
            book.closings.entry(*entry).or_default().push(closing);
        }
    }

    pub(super) fn put(&self, id: OutboxId, new: &NewOutboxEntry) {
        let book = &mut *lock(&self.0);
        if let Entry::Vacant(vacant) = book.outbox.entry(id) {
            vacant.insert(new.clone().begin(id));
            book.by_key.insert(new.key.clone(), id);
        }
    }

    pub(super) fn stepped(&self, entry: &OutboxEntry) {
        lock(&self.0).outbox.insert(entry.id, entry.clone());
    }
}

/// All that an entry says.
fn text(entry: &OutboxEntry) -> String {
    let bodies = entry.parts.iter().filter_map(|part| part.body.as_ref());
    let texts = bodies.map(body_text);
    texts.collect::<Vec<_>>().join("\n")
}

fn body_text(body: &Body) -> &str {
    match body {
        Body::Text { markdown, .. } => markdown,
        Body::File { caption, .. } => caption,
    }
}
