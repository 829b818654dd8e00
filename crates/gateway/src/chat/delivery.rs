//! Sends what the outbox has, for one channel: in order for each chat, side by side for different ones.
//!
//! Every step is committed before it counts ([`hermes_core::outbox`]). A chat that has to wait holds up itself and nobody else.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::backoff::Backoff;
use hermes_core::{
    Address, Answers, Arrival, Body, CancellationToken, Channel, ChannelError, Clock, Outbox,
    OutboxChange, OutboxEntry, OutboxId, OutboxPart, OutboxStep, Outgoing, Random, StoreError,
    Timestamp, Trouble,
};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::manner::ReplyTo;
use super::words;
use crate::shutdown::Shutdown;

/// Entries looked at when the gateway starts: more than can have been on their way.
const LEFT_MAX: usize = 100_000;
/// Chats that are sent to at a time: each has a request under way, and platforms take only so many.
const SENDS_MAX: usize = 32;
/// Entries that are kept in hand between two looks at the outbox.
const IN_HAND_MAX: usize = 512;
/// After a look that took long, the next one comes so many times that later: a crowded outbox is read less often.
const LOOK_PAUSE: u32 = 4;
/// Waits after a failure that may pass.
const RETRY: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
};
/// Waits longer than this are looked at again: clocks jump, and other processes have something to say too.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// What could not be delivered for so long is not news any more.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// For a platform that answers nothing at all; channels have shorter ones of their own.
const CALL_PATIENCE: Duration = Duration::from_secs(300);
/// How long nothing is tried at an address that refused us, unless somebody is heard from there.
const DEAD_RETRY: Duration = Duration::from_secs(3600);
/// Of what a platform says about a refusal, in a chat.
const REASON_CHARS_MAX: usize = 200;
/// What stands before a message that may have arrived once already.
const MAY_BE_DOUBLE: &str =
    "(This may be a duplicate: the connection was lost while it was being sent.)\n\n";

pub struct Delivery {
    channel: Arc<dyn Channel>,
    outbox: Arc<dyn Outbox>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    wake: Notify,
    /// Something came since it was looked: nobody knows for whom.
    has_news: AtomicBool,
    /// Addresses that something waits for, as far as was looked.
    waiting: Mutex<HashSet<Address>>,
    /// Addresses where nothing can be delivered to, when that was last found out, and why.
    dead: Mutex<HashMap<Address, (Timestamp, String)>>,
    /// What came of sending, and could not be written down yet: it is, before anything else is done for its entry.
    unwritten: Mutex<HashMap<OutboxId, OutboxChange>>,
    /// Which parts of an answer point at what they answer.
    reply_to: ReplyTo,
    /// It begins nothing more.
    retired: CancellationToken,
    /// Who sends in its place.
    successor: OnceLock<Arc<Delivery>>,
}

/// What a step came to.
enum Next {
    /// There is more to do for the entry.
    Again,
    /// Not now.
    Rest,
}

/// When the outbox is looked at.
struct Looks {
    is_wanted: bool,
    ended: Instant,
    took: Duration,
    next_due: Timestamp,
}

impl Looks {
    fn new(now: Timestamp) -> Self {
        Self {
            is_wanted: true,
            ended: Instant::now(),
            took: Duration::ZERO,
            next_due: now,
        }
    }

    fn end(&mut self, began: Instant, next_due: Timestamp) {
        self.is_wanted = false;
        self.ended = Instant::now();
        self.took = began.elapsed();
        self.next_due = next_due;
    }

    /// What is left of the pause after the last one.
    fn pause(&self) -> Duration {
        let pause = self.took.saturating_mul(LOOK_PAUSE).min(LOOK_AGAIN);
        pause.saturating_sub(self.ended.elapsed())
    }

    /// How long nobody needs to look.
    fn wait(&self, now: Timestamp) -> Duration {
        if self.is_wanted {
            self.pause()
        } else {
            self.next_due.since(now).min(LOOK_AGAIN)
        }
    }
}

impl Delivery {
    pub fn new(
        channel: Arc<dyn Channel>,
        outbox: Arc<dyn Outbox>,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
    ) -> Self {
        Self {
            channel,
            outbox,
            clock,
            random,
            wake: Notify::new(),
            has_news: AtomicBool::new(true),
            waiting: Mutex::default(),
            dead: Mutex::default(),
            unwritten: Mutex::default(),
            reply_to: ReplyTo::default(),
            retired: CancellationToken::new(),
            successor: OnceLock::new(),
        }
    }

    pub(super) fn with_replies(self, reply_to: ReplyTo) -> Self {
        Self { reply_to, ..self }
    }

    /// Lets another send in its place; what is on its way comes to its end first.
    pub(super) fn retire(&self, successor: Option<Arc<Self>>) {
        if let Some(successor) = successor {
            _ = self.successor.set(successor);
        }
        self.retired.cancel();
    }

    /// Something new is in the outbox.
    pub fn wake(&self) {
        self.has_news.store(true, Ordering::Release);
        match self.successor.get() {
            Some(successor) => successor.wake(),
            None => self.wake.notify_one(),
        }
    }

    /// Nothing waits to be sent there: what is sent now comes behind everything before it.
    pub fn is_clear(&self, to: &Address) -> bool {
        !self.has_news.load(Ordering::Acquire) && !self.waiting().contains(to)
    }

    fn waiting(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody was heard from there: what could not be delivered is sent after all.
    pub(super) async fn heard_from(&self, address: &Address) -> Result<(), StoreError> {
        if self.dead().remove(address).is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        let since = now.minus(OLD);
        let revived = self.outbox.revive_address(address, since, now).await?;
        tracing::info!(to = %address, waiting = revived.len(), "an address lives again");
        self.wake();
        Ok(())
    }

    fn dead(&self) -> MutexGuard<'_, HashMap<Address, (Timestamp, String)>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing is tried there now.
    fn why_dead(&self, address: &Address) -> Option<String> {
        let now = self.clock.now();
        let dead = self.dead();
        let (at, why) = dead.get(address)?;
        (now.since(*at) < DEAD_RETRY).then(|| why.clone())
    }

    /// Sends until the gateway ends. What is on its way then comes to its end first.
    pub async fn run(&self, shutdown: &Shutdown) {
        while let Err(error) = self.take_up().await {
            tracing::warn!(%error, "what a crash left in the outbox cannot be looked at");
            tokio::time::sleep(RETRY.base).await;
        }
        let mut sending = FuturesUnordered::new();
        let mut busy: HashMap<Address, OutboxId> = HashMap::new();
        let mut in_hand: VecDeque<OutboxEntry> = VecDeque::new();
        let mut looks = Looks::new(self.clock.now());
        loop {
            let is_retired = self.retired.is_cancelled();
            if is_retired && sending.is_empty() {
                return;
            }
            if is_retired {
                in_hand.clear();
            } else if looks.is_wanted && looks.pause().is_zero() {
                let began = Instant::now();
                let next_due = match self.ready(&busy).await {
                    Ok((entries, next_due)) => {
                        in_hand = entries.into();
                        next_due
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the outbox cannot be read");
                        self.clock.now().plus(RETRY.base)
                    }
                };
                looks.end(began, next_due);
            }
            while sending.len() < SENDS_MAX
                && let Some(entry) = in_hand.pop_front()
            {
                busy.insert(entry.to.clone(), entry.id);
                sending.push(self.send(entry));
            }
            let wait = if is_retired {
                LOOK_AGAIN
            } else {
                looks.wait(self.clock.now())
            };
            tokio::select! {
                Some(address) = sending.next() => {
                    busy.remove(&address);
                    looks.is_wanted |= in_hand.is_empty();
                }
                () = self.wake.notified() => looks.is_wanted = true,
                () = tokio::time::sleep(wait) => looks.is_wanted = true,
                () = self.retired.cancelled(), if !is_retired => {}
                () = shutdown.stopped() => return,
            }
        }
    }

    /// What was on its way when the last process ended: did it arrive?
    async fn take_up(&self) -> Result<(), StoreError> {
        let platform = self.channel.facts().platform;
        let dead = self.outbox.dead_addresses().await?.into_iter();
        let here = dead.filter(|dead| dead.to.platform == platform);
        self.dead()
            .extend(here.map(|dead| (dead.to, (dead.since, dead.error))));
        let open = self.outbox.open_outgoing(platform, LEFT_MAX).await?;
        for entry in open.into_iter().filter(|entry| self.is_ours(entry)) {
            self.settle(entry).await?;
        }
        Ok(())
    }

    /// Finds out what came of a part that was on its way, where nobody wrote that down.
    async fn settle(&self, entry: OutboxEntry) -> Result<OutboxEntry, StoreError> {
        let known = self.unwritten().get(&entry.id).cloned();
        let change = match (known, entry.sending) {
            (Some(known), _) => known,
            (None, Some(part)) => self.look_for(&entry, part).await,
            (None, None) => return Ok(entry),
        };
        self.keep(entry.id, change, Answers::none()).await
    }

    async fn look_for(&self, entry: &OutboxEntry, part: usize) -> OutboxChange {
        let arrival = match self.outgoing(entry, part) {
            Some(outgoing) => bounded(self.channel.find_sent(&outgoing)).await,
            None => Ok(Arrival::Unknown),
        };
        match arrival {
            // What is there may be a preview of it: where messages can be edited, it is brought to its text.
            Ok(Arrival::Arrived(id)) => OutboxChange::Arrived {
                part,
                id,
                is_current: entry.parts[part].body.is_some() && !self.can_edit(),
            },
            Ok(Arrival::NotArrived) => self.later("it was not sent"),
            _ => OutboxChange::Doubt {
                due: self.clock.now(),
                error: "nobody knows whether it was sent".into(),
            },
        }
    }

    fn can_edit(&self) -> bool {
        self.channel.facts().edit_interval.is_some()
    }

    /// Writes down what came of sending something. What the store refuses is known all the same, and written before anything
    /// else is done for the entry: it would be sent twice otherwise.
    pub(super) async fn keep(
        &self,
        id: OutboxId,
        what: OutboxChange,
        answers: Answers,
    ) -> Result<OutboxEntry, StoreError> {
        let step = OutboxStep {
            at: self.clock.now(),
            what: what.clone(),
        };
        let kept = self.outbox.step_outgoing(id, step, answers).await;
        // What does not fit never will; what belongs to another process is that one's to find out.
        let may_pass = !matches!(
            kept,
            Ok(_) | Err(StoreError::Overtaken { .. } | StoreError::Refused { .. })
        );
        match may_pass {
            true => _ = self.unwritten().insert(id, what),
            false => _ = self.unwritten().remove(&id),
        }
        kept
    }

    fn unwritten(&self) -> MutexGuard<'_, HashMap<OutboxId, OutboxChange>> {
        let unwritten = self.unwritten.lock();
        unwritten.unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ours(&self, entry: &OutboxEntry) -> bool {
        let account = entry.account.as_ref();
        account.is_none_or(|account| *account == self.channel.facts().account)
    }

    /// The first entry of each chat that is due, and when the next one is.
    async fn ready(
        &self,
        busy: &HashMap<Address, OutboxId>,
    ) -> Result<(Vec<OutboxEntry>, Timestamp), StoreError> {
        self.has_news.store(false, Ordering::Release);
        let now = self.clock.now();
        let mut next_due = now.plus(LOOK_AGAIN);
        let mut seen = HashSet::new();
        let mut ready = Vec::new();
        // A reply that is still being written holds nobody up: its text comes later.
        let next = self
            .outbox
            .next_outgoing(self.channel.facts().platform)
            .await?;
        for entry in next.into_iter().filter(|entry| self.is_ours(entry)) {
            if !seen.insert(entry.to.clone()) {
                continue;
            }
            if busy.contains_key(&entry.to) {
                continue;
            }
            if entry.due > now {
                next_due = next_due.min(entry.due);
            } else if ready.len() < IN_HAND_MAX {
                ready.push(entry);
            }
        }
        *self.waiting() = seen;
        Ok((ready, next_due))
    }

    /// Sends one entry as far as it goes. Returns whose turn is over.
    async fn send(&self, entry: OutboxEntry) -> Address {
        let to = entry.to.clone();
        let key = entry.key.clone();
        let mut entry = match self.settle(entry).await {
            Ok(entry) => entry,
            Err(error) => {
                tracing::warn!(%error, key, "what came of a message cannot be kept");
                tokio::time::sleep(RETRY.base).await;
                return to;
            }
        };
        // It may have to wait now, or be over.
        let is_due = entry.due <= self.clock.now() && !entry.stage.is_end();
        while let Some(part) = entry.next_part().filter(|_| is_due) {
            let done = match entry.parts[part].id.is_some() {
                true => self.correct(&entry, part).await,
                false => self.send_part(&entry, part).await,
            };
            match done {
                Ok((next, after)) => {
                    entry = after;
                    if matches!(next, Next::Rest) || entry.stage.is_end() {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, key = entry.key, "a step of the outbox cannot be kept");
                    tokio::time::sleep(RETRY.base).await;
                    break;
                }
            }
        }
        to
    }

    async fn send_part(
        &self,
        entry: &OutboxEntry,
        part: usize,
    ) -> Result<(Next, OutboxEntry), StoreError> {
        let Some(outgoing) = self.outgoing(entry, part) else {
            let change = OutboxChange::GiveUp {
                error: "a part of it says nothing".into(),
                is_dead: false,
            };
            return Ok((Next::Rest, self.step(entry.id, change).await?));
        };
        if let Some(error) = self.why_dead(&entry.to) {
            let is_dead = true;
            let change = OutboxChange::GiveUp { error, is_dead };
            return Ok((Next::Rest, self.step(entry.id, change).await?));
        }
        self.step(entry.id, OutboxChange::Send { part }).await?;
        match bounded(self.channel.send(&outgoing)).await {
            Ok(id) => {
                // A platform that knows the key may have a preview under it, and say that this is there.
                let is_doubtful = entry.parts[part].is_doubtful;
                let may_be_preview =
                    is_doubtful && self.can_edit() && self.channel.knows_keys(&entry.to);
                let change = OutboxChange::Arrived {
                    part,
                    id,
                    is_current: !may_be_preview,
                };
                self.dead().remove(&entry.to);
                let kept = self.keep(entry.id, change, Answers::none()).await?;
                Ok((Next::Again, kept))
            }
            Err(error) => self.failed(entry, error).await,
        }
    }

    /// Brings a message that is there to what it is to say.
    async fn correct(
        &self,
        entry: &OutboxEntry,
        part: usize,
    ) -> Result<(Next, OutboxEntry), StoreError> {
        let Some(id) = &entry.parts[part].id else {
            return Ok((Next::Rest, entry.clone()));
        };
        let done = match self.outgoing(entry, part) {
            Some(outgoing) => bounded(self.channel.edit(id, &outgoing)).await,
            None => bounded(self.channel.delete(&entry.to, id)).await,
        };
        let is_gone = |error: &ChannelError| {
            matches!(
                error.trouble,
                Trouble::NotFound | Trouble::Unsupported | Trouble::Refused
            )
        };
        match done {
            Ok(()) => {
                let change = OutboxChange::Edited { part };
                Ok((Next::Again, self.step(entry.id, change).await?))
            }
            // Somebody deleted the preview, or it cannot be edited any more: the text is sent anew.
            Err(error) if is_gone(&error) => {
                let change = match entry.parts[part].body {
                    Some(_) => OutboxChange::Lost { part },
                    None => OutboxChange::Edited { part },
                };
                Ok((Next::Again, self.step(entry.id, change).await?))
            }
            // An edit that may have been made is made again: that changes nothing.
            Err(error) if error.trouble == Trouble::Ambiguous => {
                let passing = ChannelError::new(Trouble::Passing, error.message);
                self.failed(entry, passing).await
            }
            Err(error) => self.failed(entry, error).await,
        }
    }

    async fn failed(
        &self,
        entry: &OutboxEntry,
        error: ChannelError,
    ) -> Result<(Next, OutboxEntry), StoreError> {
        let now = self.clock.now();
        let message = error.message.clone();
        let number = entry.next_part();
        let part = number.and_then(|part| entry.parts.get(part));
        let is_doubtful = part.is_some_and(|part| part.is_doubtful);
        let is_old = now.since(entry.created) > OLD;
        let is_refused = match error.trouble {
            Trouble::TooLong | Trouble::BadFormat | Trouble::Unsupported | Trouble::Refused => true,
            Trouble::Forbidden => part.is_some_and(is_file) && takes_words(entry),
            _ => false,
        };
        let change = match error.trouble {
            _ if is_refused && part.is_some_and(|part| !part.is_replaced) => {
                OutboxChange::Replace {
                    part: number.unwrap_or_default(),
                    body: instead(part.and_then(|part| part.body.as_ref()), &message),
                    error: message,
                }
            }
            Trouble::Forbidden | Trouble::NotFound => {
                self.dead().insert(entry.to.clone(), (now, message.clone()));
                OutboxChange::GiveUp {
                    error: message,
                    is_dead: true,
                }
            }
            Trouble::TooLong | Trouble::BadFormat | Trouble::Unsupported | Trouble::Refused => {
                OutboxChange::GiveUp {
                    error: message,
                    is_dead: false,
                }
            }
            Trouble::Throttled { wait } => OutboxChange::Later {
                due: now.plus(wait),
                error: message,
            },
            // Sent again once, and marked. Who does not answer twice would get it again and again.
            Trouble::Ambiguous if !self.channel.knows_keys(&entry.to) && is_doubtful => {
                OutboxChange::GiveUp {
                    error: format!("it may have arrived, or not: {message}"),
                    is_dead: false,
                }
            }
            Trouble::Ambiguous if !self.channel.knows_keys(&entry.to) => {
                let due = now.plus(RETRY.wait(entry.attempts, &self.random));
                OutboxChange::Doubt {
                    due,
                    error: message,
                }
            }
            _ if is_old => OutboxChange::GiveUp {
                error: format!("given up after a day: {message}"),
                is_dead: false,
            },
            _ => {
                let wait = RETRY.wait(entry.attempts, &self.random);
                let due = now.plus(wait);
                OutboxChange::Later {
                    due,
                    error: message,
                }
            }
        };
        tracing::info!(key = entry.key, to = %entry.to, %error, "a message was not delivered");
        let next = match change {
            OutboxChange::Replace { .. } => Next::Again,
            _ => Next::Rest,
        };
        let after = self.keep(entry.id, change, Answers::none()).await?;
        Ok((next, after))
    }

    fn later(&self, why: &str) -> OutboxChange {
        OutboxChange::Later {
            due: self.clock.now(),
            error: why.to_owned(),
        }
    }

    async fn step(&self, id: OutboxId, what: OutboxChange) -> Result<OutboxEntry, StoreError> {
        let at = self.clock.now();
        self.outbox
            .step_outgoing(id, OutboxStep { at, what }, Answers::none())
            .await
    }

    /// One part as the platform is to have it. Buttons are below the last one.
    fn outgoing(&self, entry: &OutboxEntry, part: usize) -> Option<Outgoing> {
        let one = entry.parts.get(part)?;
        let mut body = one.body.clone()?;
        if one.is_doubtful
            && !self.channel.knows_keys(&entry.to)
            && let Body::Text { markdown, .. } = &mut body
        {
            markdown.insert_str(0, MAY_BE_DOUBLE);
        }
        let is_last = part + 1 == entry.parts.len();
        Some(Outgoing {
            to: entry.to.clone(),
            key: format!("{}#{part}", entry.key),
            body,
            replies_to: entry
                .replies_to
                .clone()
                .filter(|_| part == 0 || self.reply_to == ReplyTo::All),
            follows: part
                .checked_sub(1)
                .and_then(|before| entry.parts[before].id.clone()),
            buttons: if is_last {
                entry.buttons.clone()
            } else {
                Vec::new()
            },
            is_silent: entry.is_silent,
        })
    }
}

fn is_file(part: &OutboxPart) -> bool {
    matches!(part.body, Some(Body::File { .. }))
}

/// Whether words are welcome where a file is not: some of the same reply arrived, or somebody was heard from there since the
/// address was taken for dead.
fn takes_words(entry: &OutboxEntry) -> bool {
    let was_revived = entry.attempts == 0 && entry.error.is_some();
    was_revived || entry.parts.iter().any(|part| part.id.is_some())
}

/// What a chat is told in place of something that its platform refuses.
fn instead(refused: Option<&Body>, why: &str) -> Body {
    let why = hermes_core::text::printable(why);
    let why = hermes_core::text::shorten(&why, REASON_CHARS_MAX);
    let words = match refused {
        Some(Body::File { name, .. }) => format!("(I could not send {name}: {why})"),
        _ => format!("(A part of what I wrote could not be sent: {why})"),
    };
    words::body(words)
}

async fn bounded<T>(
    call: impl Future<Output = Result<T, ChannelError>>,
) -> Result<T, ChannelError> {
    match timeout(CALL_PATIENCE, call).await {
        Ok(done) => done,
        Err(_) => {
            let words = format!("no answer for {} s", CALL_PATIENCE.as_secs());
            Err(ChannelError::new(Trouble::Ambiguous, words))
        }
    }
}
