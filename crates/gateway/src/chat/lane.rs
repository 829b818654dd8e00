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
    Address, Answers, ApprovalRequest, BoxFuture, Button, Chat, Event, Events, Followed,
    InboxEntry, InboxId, KnownChat, Lease, MessageId, NewOutboxEntry, Op, Origin, Sender,
    SessionHandle, StoreError, TurnId, WaitsFor, WantedLease, process,
};
use tokio::time::{Instant, sleep_until};

use super::lanes::{ChannelParts, Lanes, LeftTurn, Signal};
use super::owner::{self, Said};
use super::ports::ChatPorts;
use super::reply::{ReplyPlace, ReplyWriter};
use super::room::Seat;
use commands::{Awaited, Reading};
use intake::account_of;
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
/// A session that rests for so long after it was told something has not heard it.
const SAID_MAX: Duration = Duration::from_secs(5);
/// After the store refused something.
const STORE_RETRY: Duration = Duration::from_secs(2);

pub(super) struct Lane {
    lanes: Arc<Lanes>,
    key: String,
    /// The right to write for the lane, once it was taken.
    lease: Option<Lease>,
    signal: Arc<Signal>,
    /// The channel its chat is on, once it is known. Where private chats of a person are one conversation, these four are of the
    /// entry that was met last.
    parts: Option<Arc<ChannelParts>>,
    chat: Option<KnownChat>,
    /// Whoever talks here is not the owner of the home.
    is_guest: bool,
    met: Option<Met>,
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
    /// When it is looked again, by what was found at the last look: more of the same is waited for, or room.
    look_at: Option<Instant>,
    /// Numbers what the lane itself says.
    spoken: u64,
    /// What the model hears of a conversation that was closed by itself.
    reset_note: Option<String>,
    /// What the last process left, and is not settled.
    left: Vec<LeftTurn>,
    /// What a process beside the conversation has to tell it, and was not told yet.
    news: Option<String>,
    /// For the turn that is about to begin.
    seat: Option<Seat>,
    /// The place in the queue for that. The mutex is never locked: it makes the lane `Sync`.
    queue: Option<Mutex<BoxFuture<'static, Option<Seat>>>>,
}

/// Who wrote an entry, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Met {
    /// `PLATFORM:ID`.
    account: String,
    place: Address,
    /// Who that is on all platforms.
    person: String,
}

struct OpenedSession {
    handle: Arc<dyn SessionHandle>,
    /// The mutex is never locked: it makes the lane `Sync`.
    events: Mutex<Events>,
    is_idle: bool,
    /// When it was last heard to rest.
    rests_since: Option<Instant>,
    /// It has a turn that a crash cut short, or that we have not heard of, and has not said yet that it goes on.
    is_resuming: bool,
}

struct RunningTurn {
    id: TurnId,
    entries: Vec<InboxId>,
    reply: ReplyWriter,
    /// Where it was asked, and is answered.
    parts: Arc<ChannelParts>,
    chat: Chat,
    /// Who began it.
    asked_by: Option<Sender>,
    /// Who that is on all platforms; only they, and admins, answer its questions.
    asker: Option<String>,
    /// Whose limits it counts for.
    payer: Option<String>,
    /// The message it answers, for a mark.
    message: Option<MessageId>,
    next_typing: Instant,
    /// When something of it was heard last.
    heard: Instant,
    progress: Progress,
    /// What it cost so far.
    micro_usd: u64,
    is_stopping: bool,
    /// It is stopped by words of somebody else than who began it.
    is_overruled: bool,
    /// Events went by unread: the text is in the log.
    is_incomplete: bool,
    /// None while it waits for somebody's answer.
    seat: Option<Seat>,
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
    /// A process beside the conversation has something to tell.
    News(String),
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
            met: None,
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
            look_at: None,
            spoken: 0,
            reset_note: None,
            left: Vec::new(),
            news: None,
            seat: None,
            queue: None,
        }
    }

    /// Whether a turn may begin. While there is no room the lane queues up for it, and hears commands meanwhile.
    fn has_room(&mut self) -> bool {
        if self.seat.is_none() && self.queue.is_none() {
            let room = &self.lanes.room;
            self.seat = room.try_take();
            if self.seat.is_none() {
                self.queue = Some(Mutex::new(Box::pin(room.take())));
            }
        }
        self.seat.is_some()
    }

    /// No words wait any more: others have the room, unless a turn is about to begin.
    fn leave_queue(&mut self) {
        let is_beginning = !self.said.is_empty() || self.preparing.is_some();
        if self.news.is_none() && !is_beginning {
            self.seat = None;
            self.queue = None;
        }
    }

    /// A turn has its seat while it works. While it waits for somebody's answer, others may have it; once it goes on, it does so
    /// at once: answers are good for a while only, and may come from anywhere.
    fn keep_seat(&mut self) {
        let awaits_answer = self.awaits_answer();
        let Some(turn) = &mut self.turn else {
            return;
        };
        match (awaits_answer, turn.seat.is_some()) {
            (true, _) => turn.seat = None,
            (false, false) => turn.seat = Some(self.lanes.room.take_back()),
            (false, true) => {}
        }
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
            if self.is_working() || ((is_waiting || self.awaits_news()) && !is_draining) {
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
                Woken::News(news) => {
                    self.news = Some(news);
                    self.wants_look = true;
                }
                Woken::Stopped => return,
                Woken::Signal | Woken::Draining => self.wants_look = true,
                Woken::Time => {}
            }
            self.keep_seat();
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
        let is_due = self.look_at.is_some_and(|at| at <= Instant::now());
        self.signal.take() || self.wants_look || is_due || self.looked.elapsed() >= RENEWAL
    }

    async fn look(&mut self) -> Result<bool, StoreError> {
        self.wants_look = false;
        self.looked = Instant::now();
        let is_waiting = self.take_in().await?;
        self.tell_news().await;
        self.say_again().await;
        Ok(is_waiting)
    }

    /// A session that rests although it was told something has lost it: the store refused what would have come of that. It still
    /// waits in the inbox, and is said to a session that is opened anew.
    async fn say_again(&mut self) {
        let session = self.session.as_ref().filter(|session| session.is_idle);
        let Some(rests_since) = session.and_then(|session| session.rests_since) else {
            return;
        };
        if self.turn.is_some() || self.said.is_empty() {
            return;
        }
        let due = rests_since + SAID_MAX;
        if due > Instant::now() {
            self.look_at = Some(self.look_at.map_or(due, |at| at.min(due)));
            return;
        }
        tracing::warn!(lane = self.key, "what was said is said again");
        self.close_session().await;
        self.lose_session();
        self.wants_look = true;
    }

    /// What a process beside the conversation has to tell begins a turn of its own, once nothing else does.
    async fn tell_news(&mut self) {
        let is_due = self.news.is_some() && !self.is_working();
        if !is_due || !self.has_room() {
            return;
        }
        if let (Some(session), Some(news)) = (&mut self.session, self.news.take()) {
            session.is_idle = false;
            session.handle.send(Op::Say(process::news(news))).await;
        }
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
        self.news = None;
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

    /// Something goes on beside the conversation: with the session it would end, and nobody would hear of it.
    fn awaits_news(&self) -> bool {
        let session = self.session.as_ref();
        self.news.is_some() || session.is_some_and(|session| session.handle.awaits_news())
    }

    /// Where news come from, while a turn could begin with them.
    fn news_source(&self) -> Option<Arc<dyn SessionHandle>> {
        let is_open =
            !self.is_working() && self.news.is_none() && !self.lanes.shutdown.is_draining();
        let session = self.session.as_ref().filter(|_| is_open);
        session.map(|session| Arc::clone(&session.handle))
    }

    /// Something is asked that the turn waits for.
    fn awaits_answer(&self) -> bool {
        !self.approvals.is_empty() || !self.interviews.is_empty()
    }

    /// The session has not said yet with which turn it goes on.
    fn is_resuming(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.is_resuming)
    }

    async fn next(&mut self, rest_over: Instant) -> Woken {
        let wake_at = self.wake_at(rest_over);
        let source = self.news_source();
        // Made anew each time: one that waits half done could hold up what the lane does meanwhile.
        let news = async {
            match &source {
                Some(session) => session.news().await,
                None => std::future::pending().await,
            }
        };
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
            seat = room => {
                self.seat = seat;
                self.queue = None;
                Woken::Signal
            }
            fetched = fetching => Woken::Fetched(fetched),
            news = news => Woken::News(news),
            () = draining => Woken::Draining,
            () = sleep_until(wake_at) => Woken::Time,
        }
    }

    /// When there is something to do even if nothing happens.
    fn wake_at(&self, rest_over: Instant) -> Instant {
        let mut at = rest_over.min(Instant::now() + RENEWAL);
        for due in [self.look_at, self.compacting].into_iter().flatten() {
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

    /// Knows whom an entry is from, the chat and its channel: what is done with it is judged by these, and answered there.
    /// False: its platform is not set up any more.
    async fn meet(&mut self, entry: &InboxEntry) -> Result<bool, StoreError> {
        let Some(parts) = self.lanes.channel(&entry.platform, &entry.account) else {
            return Ok(false);
        };
        let chat = entry.incoming.chat();
        let (account, place) = (account_of(entry), Address::of(&entry.platform, chat));
        let is_known =
            |met: &Met| met.account == account && met.place == place && self.parts.is_some();
        if self.met.as_ref().is_some_and(is_known) {
            return Ok(true);
        }
        let is_shared = self.lanes.ports.settings.now().keys.is_shared(chat);
        let linked = self.ports().people.linked_person(&account).await?;
        let is_owner = !is_shared && self.owns_home(&account, linked.as_deref()).await?;
        let known = match self.chat.take() {
            Some(known) => Some(known),
            None => self.ports().chats.chat(&self.key).await?,
        };
        let person = linked.unwrap_or_else(|| account.clone());
        // Where several talk, nobody's own notes and conversations are for all to see.
        self.is_guest = !is_owner;
        self.parts = Some(parts);
        self.chat = Some(KnownChat {
            key: self.key.clone(),
            account: entry.account.clone(),
            address: place.clone(),
            chat: chat.clone(),
            person: Some(match is_shared {
                true => format!("{}:chat:{}", entry.platform, chat.first_id()),
                false => person.clone(),
            }),
            session: known.as_ref().and_then(|known| known.session.clone()),
            updated: known.as_ref().map_or(entry.received, |known| known.updated),
            choices: known.map(|known| known.choices).unwrap_or_default(),
            is_owners: is_owner,
        });
        self.met = Some(Met {
            account,
            place,
            person,
        });
        Ok(true)
    }

    /// The same by what entries are called, as far as they are still open.
    async fn meet_again(&mut self, entries: &[InboxId]) -> Result<(), StoreError> {
        let open = self.open_entries().await?;
        if let Some(first) = open.iter().find(|entry| entries.contains(&entry.id)) {
            self.meet(first).await?;
        }
        Ok(())
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

    /// Where the turn that runs is answered; without one, where somebody wrote last.
    fn place_of_turn(&self) -> Option<ReplyPlace> {
        match &self.turn {
            Some(turn) => Some(ReplyPlace {
                replies_to: None,
                ..turn.reply.place().clone()
            }),
            None => self.place(None),
        }
    }

    fn place(&self, replies_to: Option<MessageId>) -> Option<ReplyPlace> {
        let (parts, chat) = (self.parts.as_ref()?, self.chat.as_ref()?);
        Some(ReplyPlace {
            channel: Arc::clone(&parts.channel),
            delivery: Arc::clone(&parts.delivery),
            to: chat.address.clone(),
            replies_to,
            shows_previews: parts.manner.shows_previews,
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
        let key = match answers.first() {
            Some(InboxId(id)) => format!("inbox/{id}"),
            None => self.next_key(),
        };
        let place = self.place(None);
        self.speak_at(place, key, text.into(), Vec::new(), answers)
            .await
    }

    /// The same of the turn that runs: where that is answered, whoever wrote last.
    async fn speak_of_turn(&mut self, text: impl Into<String>) -> Result<(), StoreError> {
        let (place, key) = (self.place_of_turn(), self.next_key());
        self.speak_at(place, key, text.into(), Vec::new(), Vec::new())
            .await
    }

    fn next_key(&mut self) -> String {
        self.spoken += 1;
        let now = self.ports().clock.now().as_millis();
        format!("{}/{now}/{}", self.key, self.spoken)
    }

    async fn speak_at(
        &self,
        place: Option<ReplyPlace>,
        key: String,
        text: String,
        buttons: Vec<Vec<Button>>,
        answers: Vec<InboxId>,
    ) -> Result<(), StoreError> {
        let Some(place) = place else {
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
            session.is_idle = rests(&event).unwrap_or(session.is_idle);
            if matches!(event, Event::Idle) {
                session.rests_since = Some(Instant::now());
            }
            if matches!(
                event,
                Event::Idle | Event::TurnResumed { .. } | Event::TurnStarted { .. }
            ) {
                session.is_resuming = false;
            }
        }
        match event {
            Event::TurnStarted {
                turn,
                origin,
                queued,
                ..
            } => self.turn_started(turn, &origin, queued.is_some()).await,
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
                origin: Origin::Person { inbox, id, .. },
                waits_for: WaitsFor::ToolResult,
                ..
            } => {
                // They are part of the turn that runs, and closed.
                for entry in &inbox {
                    self.said.remove(entry);
                }
                let payer = self.payer(id.as_deref()).await?;
                self.note_turn(payer.as_deref()).await
            }
            Event::Notice { notice } => self.notice(&notice).await,
            _ => Ok(()),
        }
    }
}

/// Whether a session rests from now on, as far as an event says. Much is told of one that rests: what was learned from it, what
/// its subagents do in the background.
fn rests(event: &Event) -> Option<bool> {
    match event {
        Event::TurnStarted { .. } | Event::TurnResumed { .. } | Event::CompactionStarted { .. } => {
            Some(false)
        }
        Event::Idle => Some(true),
        _ => None,
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
