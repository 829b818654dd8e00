//! One conversation of a chat: takes its messages in order, has the session answer, and puts answers into the outbox.
//!
//! The lane is a task that reads two things: the inbox, when something came, and the events of its session. What it knows is
//! in the store, so that it can end at any instant: the next one finds every entry where it was. Start at [`Lane::run`].

mod answers;
mod commands;
mod hooks;
mod intake;
mod limits;
mod linking;
mod notices;
mod opening;
mod preparing;
mod turn;
mod working;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::interview::Interview;
use hermes_core::{
    Address, Answers, ApprovalRequest, BoxFuture, Event, Events, Followed, InboxEntry, InboxId,
    KnownChat, Lease, MessageId, NewOutboxEntry, Origin, Sender, SessionHandle, StoreError, TurnId,
    WaitsFor, WantedLease,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use super::lanes::{ChannelParts, Lanes, LeftTurn, Signal};
use super::owner::{self, Said};
use super::ports::ChatPorts;
use super::reply::{ReplyPlace, ReplyWriter};
use commands::{Awaited, Reading};
use preparing::{Fetched, Preparing};
use working::Progress;

/// How long a lane with nothing to do stays, and its session with it.
const REST: Duration = Duration::from_secs(300);
/// The same where so many stay already that memory is worth more than a quick beginning.
const REST_IN_A_CROWD: Duration = Duration::from_secs(2);
const CROWD: usize = 64;
/// A lane belongs to its process for so long, unless that says otherwise in time.
const LEASE: Duration = Duration::from_secs(60);
const RENEWAL: Duration = Duration::from_secs(20);
/// After the store refused something.
const STORE_RETRY: Duration = Duration::from_secs(2);

pub(super) struct Lane {
    lanes: Arc<Lanes>,
    key: String,
    /// The right to write for the lane, once it was taken.
    lease: Option<Lease>,
    signal: Arc<Signal>,
    /// The channel its chat is on, once it is known.
    parts: Option<Arc<ChannelParts>>,
    chat: Option<KnownChat>,
    /// Whoever talks here is not the owner of the home.
    is_guest: bool,
    session: Option<OpenedSession>,
    turn: Option<RunningTurn>,
    /// Handed to the session, and not yet heard of.
    said: HashSet<InboxId>,
    approvals: Vec<ApprovalRequest>,
    /// What running calls want to know: the first is asked, the others wait.
    interviews: VecDeque<Interview>,
    /// What lines with a slash say to the model.
    readings: HashMap<InboxId, Reading>,
    /// Commands that wait for the words in front of them.
    held: HashSet<InboxId>,
    /// Words that wait for the turn that runs, and whose writers were given a sign.
    noticed: HashSet<InboxId>,
    /// No words about that before this.
    next_notice: Option<Instant>,
    /// Files of the next words are being fetched.
    preparing: Option<Preparing>,
    /// The inbox is to be looked at: something came, or became possible.
    wants_look: bool,
    looked: Instant,
    awaited: Option<Awaited>,
    /// The conversation is being made shorter, which is told of then.
    compacting: Option<Instant>,
    /// What the next conversation is called.
    title: Option<String>,
    /// What waits for more of the same is not begun before this.
    joining_until: Option<Instant>,
    /// Numbers what the lane itself says.
    spoken: u64,
    /// What the model hears of a conversation that was closed by itself.
    reset_note: Option<String>,
    /// What the last process left, and is not settled.
    left: Vec<LeftTurn>,
    /// Room for the turn that is about to begin.
    permit: Option<OwnedSemaphorePermit>,
    /// The place in the queue for that. The mutex is never locked: it makes the lane `Sync`.
    queue: Option<Mutex<BoxFuture<'static, Option<OwnedSemaphorePermit>>>>,
}

struct OpenedSession {
    handle: Arc<dyn SessionHandle>,
    /// The mutex is never locked: it makes the lane `Sync`.
    events: Mutex<Events>,
    is_idle: bool,
    /// It has a turn that a crash cut short, or that we have not heard of, and has not said yet that it goes on.
    is_resuming: bool,
}

struct RunningTurn {
    id: TurnId,
    entries: Vec<InboxId>,
    reply: ReplyWriter,
    /// Who began it; only they, and admins, answer its questions.
    asked_by: Option<Sender>,
    /// The message it answers, for a mark.
    message: Option<MessageId>,
    next_typing: Instant,
    /// When something of it was heard last.
    heard: Instant,
    progress: Progress,
    /// What it cost so far.
    micro_usd: u64,
    is_stopping: bool,
    /// Events went by unread: the text is in the log.
    is_incomplete: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl RunningTurn {
    /// When its reply is to be shown as far as it is written. One that is being stopped, or whose beginning was not heard, is
    /// shown in the end or not at all.
    fn preview_due(&self, ports: &ChatPorts) -> Option<Instant> {
        let is_shown = !self.is_stopping && !self.is_incomplete;
        self.reply.preview_due(ports).filter(|_| is_shown)
    }
}

/// What woke the lane.
enum Woken {
    Signal,
    Event(Box<Followed>),
    /// The session is closed.
    Closed,
    /// The files are here that words came with.
    Fetched(Fetched),
    Time,
    Draining,
    Stopped,
}

impl Lane {
    pub(super) fn new(lanes: Arc<Lanes>, key: String, signal: Arc<Signal>) -> Self {
        Self {
            lanes,
            key,
            lease: None,
            signal,
            parts: None,
            chat: None,
            is_guest: true,
            session: None,
            turn: None,
            said: HashSet::new(),
            approvals: Vec::new(),
            interviews: VecDeque::new(),
            readings: HashMap::new(),
            held: HashSet::new(),
            noticed: HashSet::new(),
            next_notice: None,
            preparing: None,
            wants_look: true,
            looked: Instant::now(),
            awaited: None,
            compacting: None,
            title: None,
            joining_until: None,
            spoken: 0,
            reset_note: None,
            left: Vec::new(),
            permit: None,
            queue: None,
        }
    }

    /// Whether a turn may begin. While there is no room the lane queues up for it, and hears commands meanwhile.
    fn has_room(&mut self) -> bool {
        if self.permit.is_none() && self.queue.is_none() {
            let turns = Arc::clone(&self.lanes.turns);
            match Arc::clone(&turns).try_acquire_owned() {
                Ok(permit) => self.permit = Some(permit),
                Err(_) => {
                    let room = async move { turns.acquire_owned().await.ok() };
                    self.queue = Some(Mutex::new(Box::pin(room)));
                }
            }
        }
        self.permit.is_some()
    }

    /// Nothing waits any more: others have the room.
    fn leave_queue(&mut self) {
        self.permit = None;
        self.queue = None;
    }

    fn ports(&self) -> Arc<ChatPorts> {
        Arc::clone(&self.lanes.ports)
    }

    /// Works until there is nothing to do for a while, or the gateway ends.
    pub(super) async fn run(mut self) {
        let Some(lease) = self.own().await else {
            return;
        };
        self.lease = Some(lease.clone());
        let mut renewed = Instant::now();
        let mut resting_since = Instant::now();
        let mut is_waiting = false;
        loop {
            if renewed.elapsed() >= RENEWAL {
                if !self.renew(&lease).await {
                    tracing::warn!(lane = self.key, "the lane belongs to another process now");
                    return;
                }
                renewed = Instant::now();
            }
            if self.is_to_look() {
                is_waiting = match self.look().await {
                    Ok(is_waiting) => is_waiting,
                    Err(error @ StoreError::Overtaken { .. }) => {
                        tracing::warn!(lane = self.key, %error, "the lane ends here");
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(lane = self.key, %error, "the lane cannot go on for now");
                        self.wants_look = true;
                        tokio::time::sleep(STORE_RETRY).await;
                        continue;
                    }
                };
            }
            let is_draining = self.lanes.shutdown.is_draining();
            let mut rest = REST;
            if self.is_working() || (is_waiting && !is_draining) {
                resting_since = Instant::now();
            } else {
                rest = self.rest();
                let is_over = is_draining || resting_since.elapsed() >= rest;
                if is_over && self.lanes.leave(&self.key, &self.signal) {
                    break;
                }
            }
            match self.next(resting_since + rest).await {
                Woken::Event(followed) => {
                    if let Err(error) = self.hear(*followed).await {
                        tracing::warn!(lane = self.key, %error, "an event could not be kept");
                        tokio::time::sleep(STORE_RETRY).await;
                    }
                }
                Woken::Closed => {
                    self.lose_session();
                    self.wants_look = true;
                }
                Woken::Fetched(fetched) => self.fetched(fetched).await,
                Woken::Stopped => return,
                Woken::Signal | Woken::Draining => self.wants_look = true,
                Woken::Time => {}
            }
            if let Err(error) = self.show().await {
                tracing::warn!(lane = self.key, %error, "a preview could not be kept");
            }
        }
        self.close_session().await;
        _ = self.ports().leases.release_lease(&lease).await;
    }

    fn rest(&self) -> Duration {
        if self.lanes.count() > CROWD {
            REST_IN_A_CROWD
        } else {
            REST
        }
    }

    /// Whether the inbox may have something to do. While a reply streams it is not looked at.
    fn is_to_look(&mut self) -> bool {
        let is_joined = self.joining_until.is_some_and(|at| at <= Instant::now());
        self.signal.take() || self.wants_look || is_joined || self.looked.elapsed() >= RENEWAL
    }

    async fn look(&mut self) -> Result<bool, StoreError> {
        self.wants_look = false;
        self.looked = Instant::now();
        self.take_in().await
    }

    async fn fetched(&mut self, fetched: Fetched) {
        if let Some(mut prepared) = self.preparing.take() {
            prepared.fetched = fetched;
            self.hand_over(prepared).await;
        }
        self.wants_look = true;
    }

    /// The session is closed without our doing. What it had is in the store: the next look takes it up.
    fn lose_session(&mut self) {
        self.session = None;
        self.turn = None;
        self.preparing = None;
        self.said.clear();
        self.forget_questions();
        self.awaited = None;
        self.compacting = None;
    }

    /// A turn runs, or the session has something to say.
    fn is_working(&self) -> bool {
        self.turn.is_some()
            || self.preparing.is_some()
            || !self.said.is_empty()
            || self
                .session
                .as_ref()
                .is_some_and(|session| !session.is_idle)
    }

    /// The session has not said yet with which turn it goes on.
    fn is_resuming(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.is_resuming)
    }

    async fn next(&mut self, rest_over: Instant) -> Woken {
        let wake_at = self.wake_at(rest_over);
        let events = async {
            match &mut self.session {
                Some(session) => {
                    let events = session.events.get_mut();
                    events.unwrap_or_else(PoisonError::into_inner).next().await
                }
                None => std::future::pending().await,
            }
        };
        let room = async {
            match &mut self.queue {
                Some(room) => room.get_mut().unwrap_or_else(PoisonError::into_inner).await,
                None => std::future::pending().await,
            }
        };
        let fetching = async {
            let preparing = self.preparing.as_mut();
            match preparing.and_then(|preparing| preparing.future.as_mut()) {
                Some(future) => {
                    let future = future.get_mut().unwrap_or_else(PoisonError::into_inner);
                    future.await
                }
                None => std::future::pending().await,
            }
        };
        let draining = async {
            if self.lanes.shutdown.is_draining() {
                std::future::pending::<()>().await;
            } else {
                self.lanes.shutdown.draining().await;
            }
        };
        tokio::select! {
            biased;
            () = self.lanes.shutdown.stopped() => Woken::Stopped,
            followed = events => match followed {
                Some(followed) => Woken::Event(Box::new(followed)),
                None => Woken::Closed,
            },
            () = self.signal.wait() => Woken::Signal,
            permit = room => {
                self.permit = permit;
                self.queue = None;
                Woken::Signal
            }
            fetched = fetching => Woken::Fetched(fetched),
            () = draining => Woken::Draining,
            () = sleep_until(wake_at) => Woken::Time,
        }
    }

    /// When there is something to do even if nothing happens.
    fn wake_at(&self, rest_over: Instant) -> Instant {
        let mut at = rest_over.min(Instant::now() + RENEWAL);
        for due in [self.joining_until, self.compacting].into_iter().flatten() {
            at = at.min(due);
        }
        if let Some(turn) = &self.turn {
            at = at.min(turn.next_typing);
            if let Some(due) = self.giving_up_at(turn) {
                at = at.min(due);
            }
            if let Some(due) = turn.preview_due(&self.lanes.ports) {
                at = at.min(due);
            }
            if let Some(due) = self.sign_of_life_due(turn) {
                at = at.min(due);
            }
        }
        at
    }

    async fn own(&self) -> Option<Lease> {
        let ports = self.ports();
        let now = ports.clock.now();
        let wanted = WantedLease {
            name: format!("lane:{}", self.key),
            holder: ports.settings.now().holder.clone(),
            now,
            until: now.plus(LEASE),
        };
        match ports.leases.acquire_lease(wanted).await {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(lane = self.key, %error, "the lane cannot be taken");
                None
            }
        }
    }

    async fn renew(&self, lease: &Lease) -> bool {
        let ports = self.ports();
        let until = ports.clock.now().plus(LEASE);
        // A store that cannot be asked took the lane from nobody else either.
        ports.leases.renew_lease(lease, until).await.unwrap_or(true)
    }

    /// Knows the chat and the channel that an entry came from.
    async fn meet(&mut self, entry: &InboxEntry) -> Result<bool, StoreError> {
        let Some(parts) = self.lanes.channel(&entry.platform, &entry.account) else {
            return Ok(false);
        };
        let sender = entry.incoming.sender();
        let is_shared = self
            .lanes
            .ports
            .settings
            .now()
            .keys
            .is_shared(entry.incoming.chat());
        let account = format!("{}:{}", entry.platform, sender.id);
        let linked = self.ports().people.linked_person(&account).await?;
        let is_owner = self.owns_home(&account, linked.as_deref()).await?;
        // Where several talk, nobody's own notes and conversations are for all to see.
        self.is_guest = is_shared || !is_owner;
        self.parts = Some(parts);
        if self.chat.is_none() {
            self.chat = self.ports().chats.chat(&self.key).await?;
        }
        let incoming = &entry.incoming;
        let chat = incoming.chat();
        let person = if is_shared {
            format!("{}:chat:{}", entry.platform, chat.first_id())
        } else {
            linked.unwrap_or(account)
        };
        let known = self.chat.take();
        self.chat = Some(KnownChat {
            key: self.key.clone(),
            account: entry.account.clone(),
            address: Address::of(&entry.platform, chat),
            chat: chat.clone(),
            person: Some(person),
            session: known.as_ref().and_then(|known| known.session.clone()),
            updated: known.as_ref().map_or(entry.received, |known| known.updated),
            choices: known.map(|known| known.choices).unwrap_or_default(),
            is_owners: !self.is_guest,
        });
        Ok(true)
    }

    /// Several people talk in this conversation.
    fn is_shared(&self) -> bool {
        let settings = self.lanes.ports.settings.now();
        let chat = self.chat.as_ref();
        chat.is_some_and(|chat| settings.keys.is_shared(&chat.chat))
    }

    /// Whether somebody is the owner of the home, with any of their accounts.
    async fn owns_home(&self, account: &str, person: Option<&str>) -> Result<bool, StoreError> {
        let accounts = match person {
            Some(person) => self.ports().people.accounts_of(person).await?,
            None => vec![account.to_owned()],
        };
        let ports = self.ports();
        let (records, clock) = (ports.records.as_ref(), ports.clock.as_ref());
        let owner = match ports.settings.now().named.say_of(&accounts) {
            Said::Owner => return Ok(true),
            Said::SomebodyElse => return Ok(false),
            Said::AsWrittenDown => owner::known_owner(records, clock).await?,
            Said::AsLetIn => owner::owner(records, ports.pairings.as_ref(), clock).await?,
        };
        Ok(owner.is_some_and(|owner| accounts.contains(&owner)))
    }

    async fn keep_chat(&mut self) -> Result<(), StoreError> {
        let ports = self.ports();
        if let Some(chat) = &mut self.chat {
            chat.updated = ports.clock.now();
            ports.chats.keep_chat(chat.clone()).await?;
        }
        Ok(())
    }

    /// Whose conversation it is, unless it is the owner's.
    fn guest(&self) -> Option<String> {
        let person = self.chat.as_ref().and_then(|chat| chat.person.clone());
        // Nobody is taken for the owner because a chat does not say whose it is.
        self.is_guest
            .then(|| person.unwrap_or_else(|| self.key.clone()))
    }

    /// Entries that are closed by what the lane writes, as long as it is ours.
    fn under_lease(&self, entries: Vec<InboxId>) -> Answers {
        let lease = self.lease.clone();
        Answers { entries, lease }
    }

    fn place(&self, replies_to: Option<MessageId>) -> Option<ReplyPlace> {
        let (parts, chat) = (self.parts.as_ref()?, self.chat.as_ref()?);
        Some(ReplyPlace {
            channel: Arc::clone(&parts.channel),
            delivery: Arc::clone(&parts.delivery),
            to: chat.address.clone(),
            replies_to,
            guest: self.guest(),
            lease: self.lease.clone(),
        })
    }

    /// Says something of the gateway's own, in answer to these entries.
    async fn speak(
        &mut self,
        text: impl Into<String>,
        answers: Vec<InboxId>,
    ) -> Result<(), StoreError> {
        self.spoken += 1;
        let key = match answers.first() {
            Some(InboxId(id)) => format!("inbox/{id}"),
            None => format!(
                "{}/{}/{}",
                self.key,
                self.ports().clock.now().as_millis(),
                self.spoken
            ),
        };
        self.speak_as(key, text.into(), Vec::new(), answers).await
    }

    async fn speak_as(
        &mut self,
        key: String,
        text: String,
        buttons: Vec<Vec<hermes_core::Button>>,
        answers: Vec<InboxId>,
    ) -> Result<(), StoreError> {
        let Some(place) = self.place(None) else {
            return Ok(());
        };
        let has_buttons = place.channel.facts().has_buttons;
        let entry = NewOutboxEntry {
            key,
            account: Some(place.channel.facts().account.clone()),
            to: place.to,
            replies_to: None,
            buttons: if has_buttons { buttons } else { Vec::new() },
            is_silent: false,
            bodies: super::reply::text_bodies(place.channel.as_ref(), &text),
            at: self.ports().clock.now(),
        };
        let answers = self.under_lease(answers);
        self.ports().outbox.put_outgoing(entry, answers).await?;
        place.delivery.wake();
        Ok(())
    }

    async fn hear(&mut self, followed: Followed) -> Result<(), StoreError> {
        let Some(event) = followed.into_event() else {
            if let Some(turn) = &mut self.turn {
                turn.is_incomplete = true;
            }
            return Ok(());
        };
        self.wants_look |= frees_lane(&event);
        if let Some(turn) = &mut self.turn {
            turn.heard = Instant::now();
        }
        if let Some(session) = &mut self.session {
            session.is_idle = matches!(event, Event::Idle);
            if matches!(
                event,
                Event::Idle | Event::TurnResumed { .. } | Event::TurnStarted { .. }
            ) {
                session.is_resuming = false;
            }
        }
        match event {
            Event::TurnStarted { turn, origin, .. } => self.turn_started(turn, &origin).await,
            Event::TurnResumed { turn, .. } => self.turn_resumed(turn).await,
            Event::Text { text } => match &mut self.turn {
                Some(turn) => turn.say(&self.lanes.ports, &text).await,
                None => Ok(()),
            },
            Event::TextDiscarded => {
                if let Some(turn) = &mut self.turn {
                    turn.reply.discard();
                }
                Ok(())
            }
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => {
                self.tell_hooks("agent:step", &[("tool", tool.clone().into())]);
                self.call_started(call, tool, &arguments).await
            }
            Event::CallFinished {
                call, status, text, ..
            } => self.call_finished(&call, status, &text).await,
            Event::ReplyFinished { cost, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.micro_usd += cost.micro_usd().unwrap_or_default();
                    turn.progress.step_done();
                }
                Ok(())
            }
            Event::CallSpent { cost, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.micro_usd += cost.micro_usd().unwrap_or_default();
                }
                Ok(())
            }
            Event::TurnEnded { turn, end } => self.turn_ended(&turn, &end).await,
            Event::ApprovalRequested(request) => self.ask_approval(request).await,
            Event::ApprovalClosed { approval, .. } => {
                self.approval_closed(&approval);
                Ok(())
            }
            Event::ElicitationRequested(elicitation) => {
                self.elicited(Interview::in_chat(elicitation)).await
            }
            Event::ElicitationClosed { elicitation } => self.elicitation_closed(&elicitation).await,
            Event::CompactionStarted { reason, .. } => {
                self.compaction_started(reason);
                Ok(())
            }
            Event::CompactionEnded { end } => self.compaction_ended(&end).await,
            Event::Rewound { said, .. } => self.rewound(&said).await,
            Event::Queued {
                origin: Origin::Person { inbox, .. },
                waits_for: WaitsFor::ToolResult,
                ..
            } => {
                // They are part of the turn that runs, and closed.
                for entry in &inbox {
                    self.said.remove(entry);
                }
                Ok(())
            }
            Event::Notice { notice } => self.notice(&notice).await,
            _ => Ok(()),
        }
    }
}

/// Whether something may be possible now that was not before.
fn frees_lane(event: &Event) -> bool {
    !matches!(
        event,
        Event::Text { .. }
            | Event::Reasoning { .. }
            | Event::TextDiscarded
            | Event::CallStarted { .. }
            | Event::CallProgress { .. }
            | Event::SubagentProgress { .. }
            | Event::CallFinished { .. }
            | Event::CallSpent { .. }
            | Event::CompactionProgress { .. }
            | Event::ReplyFinished { .. }
    )
}
