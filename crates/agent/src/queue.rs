//! Words that wait for the turn that runs: for its next tool result, or for a turn of their own.
//!
//! They are in the store before anybody is told that they wait, and leave it in the commit that says them: no crash loses
//! them or has them said twice. Writing goes on beside the turn, which is not held up by it. Start at [`Queue::keep`].

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hermes_core::{
    BoxFuture, Entry, Event, Message, Notice, Origin, QueuedMessage, StoreError, WaitsFor,
};

use crate::events::EventLog;
use crate::record::Recorder;
use crate::steering::Steering;

/// Messages that may wait for the turn before them. More is a script run wild; the rest is refused visibly.
const MESSAGES_MAX: usize = 32;
/// Remarks that may wait for one result.
const REMARKS_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Queue {
    /// What begins the next turns; the store has it.
    next: VecDeque<QueuedMessage>,
    /// What is to be written, in the order it was asked for.
    changes: VecDeque<Change>,
    /// The first of them, while it is written. The mutex is never locked: it makes the queue `Sync`.
    writing: Option<Mutex<BoxFuture<'static, Result<(), StoreError>>>>,
    /// The store refused something: the next turn begins when somebody does something.
    is_paused: bool,
}

enum Change {
    Keep(QueuedMessage),
    Forget(Vec<QueuedMessage>),
}

/// Where changes go, and who is told.
pub(crate) struct QueueContext<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) steering: &'a Steering,
    pub(crate) events: &'a EventLog,
}

impl Queue {
    /// Takes what a store has. Words for a turn that is over begin turns of their own, before the others.
    pub(crate) fn load(&mut self, queued: Vec<QueuedMessage>, steering: &Steering, is_open: bool) {
        steering.take();
        self.next.clear();
        let (remarks, messages): (Vec<_>, Vec<_>) = queued
            .into_iter()
            .partition(|one| one.waits_for == WaitsFor::ToolResult);
        self.next.extend(messages);
        for remark in remarks {
            steering.push(remark);
        }
        if !is_open {
            self.take_late(steering);
        }
    }

    /// Lets the first words that came too late for a result begin the next turn. Those behind them are for that turn's results,
    /// in front of whatever is said to it. Returns whether there were any.
    pub(crate) fn take_late(&mut self, steering: &Steering) -> bool {
        let Some(first) = steering.take_first() else {
            return false;
        };
        let origin = late_origin(&first.message.origin);
        self.next.push_front(QueuedMessage {
            message: first.message.with_origin(origin),
            ..first
        });
        true
    }

    /// Everything that waits, in the order it is heard.
    pub(crate) fn waiting(&self, steering: &Steering) -> Vec<QueuedMessage> {
        let is_late = |one: &&QueuedMessage| one.waits_for == WaitsFor::ToolResult;
        let late = self.next.iter().filter(is_late).cloned();
        let next = self.next.iter().filter(|one| !is_late(one)).cloned();
        late.chain(steering.waiting()).chain(next).collect()
    }

    /// Has words wait, unless there are too many. [`Queue::tend`] does it.
    pub(crate) fn keep(&mut self, queued: QueuedMessage, steering: &Steering) -> Option<Notice> {
        let is_coming = |change: &&Change| matches!(change, Change::Keep(one) if one.waits_for == queued.waits_for);
        let coming = self.changes.iter().filter(is_coming).count();
        let (waiting, limit, what) = match queued.waits_for {
            WaitsFor::NextTurn => (self.next.len(), MESSAGES_MAX, "messages"),
            WaitsFor::ToolResult => (steering.waiting().len(), REMARKS_MAX, "remarks"),
        };
        if waiting + coming < limit {
            self.changes.push_back(Change::Keep(queued));
            return None;
        }
        let reason = format!("{limit} {what} wait already");
        Some(not_queued(reason, queued))
    }

    /// Forgets everything that waits: who stops the agent does not want it to go on with the next thing.
    pub(crate) fn forget(&mut self, steering: &Steering) {
        // At once, so that the turn does not take them any more.
        let remarks = steering.take();
        self.changes.push_back(Change::Forget(remarks));
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedMessage> {
        if self.is_paused {
            return None;
        }
        self.next.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Puts words back that no turn could begin with.
    pub(crate) fn put_back(&mut self, queued: QueuedMessage) {
        self.next.push_front(queued);
    }

    /// Begins no turn until it goes on: a store that is broken would break one after the other.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    pub(crate) fn go_on(&mut self) {
        self.is_paused = false;
    }

    /// Does everything that is to be done.
    pub(crate) async fn settle(&mut self, cx: QueueContext<'_>) {
        while !self.changes.is_empty() {
            self.tend(&cx).await;
        }
    }

    /// Makes the next change, and tells of it. Waits for ever when there is none. Nothing is lost or done twice when the
    /// future is dropped.
    pub(crate) async fn tend(&mut self, cx: &QueueContext<'_>) {
        let Some(change) = self.changes.front_mut() else {
            return std::future::pending().await;
        };
        if self.writing.is_none() {
            let entry = match change {
                Change::Keep(queued) => Some(Entry::Queued {
                    queued: queued.clone(),
                }),
                Change::Forget(forgotten) => {
                    forgotten.extend(cx.steering.take());
                    forgotten.extend(self.next.drain(..));
                    let queued: Vec<_> = forgotten.iter().map(|one| one.id.clone()).collect();
                    (!queued.is_empty()).then_some(Entry::Dequeued { queued })
                }
            };
            self.writing = Some(Mutex::new(match entry {
                Some(entry) => cx.recorder.append_apart(entry),
                None => Box::pin(std::future::ready(Ok(()))),
            }));
        }
        let written = match &mut self.writing {
            Some(writing) => {
                writing
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .await
            }
            None => Ok(()),
        };
        self.writing = None;
        match self.changes.pop_front() {
            Some(Change::Keep(queued)) => self.kept(queued, written, cx),
            Some(Change::Forget(forgotten)) => self.forgotten(forgotten, written, cx),
            None => {}
        }
    }

    fn kept(
        &mut self,
        queued: QueuedMessage,
        written: Result<(), StoreError>,
        cx: &QueueContext<'_>,
    ) {
        if let Err(error) = written {
            let reason = format!("{error}; {}", error.hint());
            let notice = not_queued(reason, queued);
            return cx.events.tell(Event::Notice { notice });
        }
        cx.events.tell(told(&queued));
        match queued.waits_for {
            WaitsFor::NextTurn => self.next.push_back(queued),
            WaitsFor::ToolResult => cx.steering.push(queued),
        }
    }

    fn forgotten(
        &mut self,
        forgotten: Vec<QueuedMessage>,
        written: Result<(), StoreError>,
        cx: &QueueContext<'_>,
    ) {
        let notice = match written {
            Ok(()) if forgotten.is_empty() => return,
            Ok(()) => Notice::Forgotten {
                messages: forgotten.len(),
            },
            Err(error) => {
                for one in forgotten.into_iter().rev() {
                    self.put_back(one);
                }
                self.pause();
                let reason = format!("what waits cannot be dropped: {error}; {}", error.hint());
                Notice::NotTaken { reason }
            }
        };
        cx.events.tell(Event::Notice { notice });
    }
}

/// Tells that words wait.
pub(crate) fn told(queued: &QueuedMessage) -> Event {
    let message = Message::from(queued.message.clone());
    Event::Queued {
        queued: queued.id.clone(),
        waits_for: queued.waits_for,
        origin: queued.message.origin.clone(),
        text: message.shown(),
        images: message.images().count(),
    }
}

fn not_queued(reason: String, queued: QueuedMessage) -> Notice {
    let text = Message::from(queued.message).said();
    Notice::NotQueued { reason, text }
}

/// Where steering words come from that are a turn of their own: whose they are is not forgotten. Who brought them was told so.
fn late_origin(origin: &Origin) -> Origin {
    match origin {
        Origin::Person {
            surface,
            id: Some(id),
            request,
            inbox: _,
            mirrored: _,
        } => Origin::Person {
            surface: surface.clone(),
            id: Some(id.clone()),
            request: request.clone(),
            inbox: Vec::new(),
            mirrored: None,
        },
        _ => Origin::Steering,
    }
}
