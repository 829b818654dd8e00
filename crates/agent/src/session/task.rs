//! The task behind a session: takes ops one after the other, and owns everything the conversation needs.

use std::sync::Arc;

use hermes_core::{
    Claim, Entry, Event, NewSession, Op, OpenTurn, Person, Prefix, QueuedId, QueuedMessage,
    SessionId, UserMessage, WaitsFor,
};
use tokio::sync::{Semaphore, mpsc};

use super::equip::Equipped;
use super::{Activity, AgentSettings, Ports};
use crate::approvals::OpenApprovals;
use crate::calls::Kept;
use crate::delegation::{Background, Report, SubagentContext};
use crate::elicitations::Elicitations;
use crate::events::{ClosesLog, EventLog};
use crate::history::History;
use crate::nested::NestedContext;
use crate::queue::{self, Queue, QueueContext};
use crate::record::Recorder;
use crate::steering::Steering;

pub(super) struct SessionTask {
    pub(super) ports: Ports,
    pub(super) settings: AgentSettings,
    pub(super) events: ClosesLog,
    pub(super) recorder: Recorder,
    pub(super) history: History,
    /// What to write with the first message.
    pub(super) unwritten: Option<NewSession>,
    /// What was said elsewhere before, to be written with it.
    pub(super) inherited: Vec<Entry>,
    pub(super) claim: Option<Claim>,
    pub(super) open_turn: Option<OpenTurn>,
    pub(super) queue: Queue,
    pub(super) steering: Steering,
    pub(super) approvals: OpenApprovals,
    pub(super) elicitations: Elicitations,
    pub(super) nested: NestedContext,
    pub(super) kept: Kept,
    /// Room for subagents.
    pub(super) permits: Arc<Semaphore>,
    pub(super) background: Background,
    pub(super) equipped: Equipped,
    /// Told to whoever closes sessions that rest.
    pub(super) activity: Activity,
    /// The store refused something: what is in memory may be ahead of it.
    pub(super) is_stale: bool,
}

/// What a turn begins with.
pub(super) enum Input {
    Said(UserMessage),
    /// Words that waited for the turn before.
    Queued(QueuedMessage),
    /// What subagents found that ran in the background.
    Reported(Report),
}

impl SessionTask {
    pub(super) fn new(ports: Ports, settings: AgentSettings, events: EventLog) -> Self {
        let id = SessionId::generate(ports.clock.now(), &ports.random);
        Self {
            recorder: Recorder::new(ports.store.clone(), ports.clock.clone(), id),
            nested: NestedContext::below(&settings.cwd, settings.nested_context),
            history: History::new(Prefix::default()),
            unwritten: None,
            inherited: Vec::new(),
            claim: None,
            open_turn: None,
            queue: Queue::default(),
            steering: Steering::default(),
            approvals: OpenApprovals::default(),
            elicitations: Elicitations::default(),
            kept: Kept::default(),
            permits: Arc::new(Semaphore::new(settings.delegation.subagents_max)),
            background: Background::default(),
            equipped: Equipped::default(),
            activity: Activity::default(),
            is_stale: false,
            ports,
            settings,
            events: ClosesLog(events),
        }
    }

    /// Takes ops until every handle is dropped and the work is done. What a session needs only while it works is in boxes: most rest.
    pub(super) async fn run(mut self, mut ops: mpsc::Receiver<Op>) {
        self.take_up_background();
        for queued in self.queue.waiting(&self.steering) {
            self.tell(queue::told(&queued));
        }
        loop {
            if let Some(open) = self.open_turn.take() {
                Box::pin(self.take_up(open, &mut ops)).await;
                continue;
            }
            let Some(input) = self.next_input(&mut ops).await else {
                return self.close().await;
            };
            Box::pin(self.begin_turn(input, &mut ops)).await;
        }
    }

    /// Ends what runs beside the conversation, and lets tools forget what they keep for it.
    async fn close(self) {
        let Self {
            ports,
            recorder,
            background,
            ..
        } = self;
        background.close().await;
        for tool in ports.tools.iter().chain(&ports.unlisted) {
            tool.close_session(recorder.session());
        }
    }

    /// Goes on waiting for subagents that this conversation sent out before it was closed, where a person follows it.
    fn take_up_background(&mut self) {
        if !self.settings.is_attended {
            return;
        }
        let context = |call| SubagentContext {
            parent: self.recorder.session().clone(),
            ports: self.ports.clone(),
            settings: self.settings.clone(),
            permits: Arc::clone(&self.permits),
            events: self.events.0.clone(),
            call,
            person: Person::default(),
        };
        self.background.take_up(context, self.history.states());
    }

    /// Returns what to begin a turn with, or nothing when every handle is dropped.
    async fn next_input(&mut self, ops: &mut mpsc::Receiver<Op>) -> Option<Input> {
        loop {
            let cx = QueueContext {
                recorder: &self.recorder,
                steering: &self.steering,
                events: &self.events.0,
            };
            self.queue.settle(cx).await;
            if let Some(queued) = self.queue.pop() {
                return Some(Input::Queued(queued));
            }
            if let Some(report) = self.background.next_report() {
                return Some(Input::Reported(report));
            }
            let op = match ops.try_recv() {
                Ok(op) => op,
                Err(_) => {
                    self.activity.note_background(self.background.is_working());
                    self.tell(Event::Idle);
                    self.activity.rest();
                    let next = tokio::select! {
                        op = ops.recv() => Some(op?),
                        () = self.background.reported() => None,
                    };
                    self.activity.wake();
                    match next {
                        Some(op) => op,
                        None => continue,
                    }
                }
            };
            self.queue.go_on();
            match op {
                Op::Say(message) | Op::Steer(message) => {
                    if self.queue.is_empty() {
                        return Some(Input::Said(message));
                    }
                    self.enqueue(message, WaitsFor::NextTurn);
                }
                Op::Rewind { turns } => {
                    Box::pin(self.rewind(turns)).await;
                }
                Op::Retry => {
                    if let Some(again) = Box::pin(self.rewind(1)).await {
                        return Some(Input::Said(again));
                    }
                }
                Op::Compact { topic } => Box::pin(self.compact(topic.as_deref(), ops)).await,
                Op::Interrupt => self.background.interrupt(),
                Op::Answer { .. } | Op::Respond { .. } => {}
            }
        }
    }

    /// Has words wait for what runs. They are told of once they are in the store.
    pub(super) fn enqueue(&mut self, message: UserMessage, waits_for: WaitsFor) {
        let queued = QueuedMessage {
            id: QueuedId::generate(self.ports.clock.now(), &self.ports.random),
            waits_for,
            message,
        };
        if let Some(notice) = self.queue.keep(queued, &self.steering) {
            self.tell(Event::Notice { notice });
        }
    }

    pub(super) fn tell(&self, event: Event) {
        self.events.0.tell(event);
    }
}
