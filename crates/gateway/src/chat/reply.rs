//! One turn's answer on its way to the outbox: shown while it is written, kept when it is done.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Address, Answers, Body, Channel, ChannelError, InboxId, Lease, MessageId, NewOutboxEntry,
    OutboxChange, OutboxEntry, OutboxId, OutboxStep, Outgoing, SessionId, Stage, StoreError,
    Trouble, TurnId, split,
};
use tokio::time::{Instant, timeout};

use super::delivery::Delivery;
use super::files::{self, FilePolicy, Marked};
use super::ports::ChatPorts;
use super::words;
use super::work::Work;
use crate::silence::{MARKERS, is_silence};

/// What a preview ends with.
const CURSOR: &str = " ▉";
/// A preview that failed so often is not worth another try.
const FAILURES_MAX: u32 = 3;
/// A preview takes no longer: while it is on its way the lane hears nothing.
const PREVIEW_MAX: Duration = Duration::from_secs(20);
/// Texts that begin with the same so many characters are the same text: the rest of a long one is in other messages.
const ALIKE_CHARS: usize = 200;
/// One answer rings once; what comes so much later rings again, for who has put the phone away.
const RING_AGAIN: Duration = Duration::from_secs(60);

/// Where a reply goes.
#[derive(Clone)]
pub(super) struct ReplyPlace {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) delivery: Arc<Delivery>,
    pub(super) to: Address,
    pub(super) replies_to: Option<MessageId>,
    /// It is shown there while it is written.
    pub(super) shows_previews: bool,
    /// Whoever reads it is not the owner of the home.
    pub(super) guest: Option<String>,
    /// The lane's right to write.
    pub(super) lease: Option<Lease>,
}

impl ReplyPlace {
    fn answers(&self, entries: Vec<InboxId>) -> Answers {
        let lease = self.lease.clone();
        Answers { entries, lease }
    }
}

/// Whether people are called to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ring {
    Aloud,
    Silently,
}

/// The answer of one turn.
pub(super) struct ReplyWriter {
    place: ReplyPlace,
    /// `SESSION/TURN`.
    key: String,
    /// How many replies of this turn with words in them went before.
    segment: usize,
    notes_ahead: bool,
    text: String,
    /// What was done since the last words. While there is some, it stands in `text`, and words begin a message of their own.
    work: Work,
    preview: Option<Preview>,
    /// What is shown where no message is yet.
    draft: Option<String>,
    /// The platform did not take a draft: there will be messages.
    has_no_drafts: bool,
    /// No preview before this.
    next_preview: Instant,
    failures: u32,
    /// When a message of this answer was last announced to people.
    rang: Option<Instant>,
}

struct Preview {
    message: MessageId,
    /// As far as the reply was written when it was brought up to date.
    text: String,
    /// What it says: of a long reply, the beginning.
    shown: Body,
}

impl ReplyWriter {
    pub(super) fn new(place: ReplyPlace, session: &str, turn: &TurnId) -> Self {
        Self {
            place,
            key: format!("{session}/{turn}"),
            segment: 0,
            notes_ahead: false,
            text: String::new(),
            work: Work::default(),
            preview: None,
            draft: None,
            has_no_drafts: false,
            next_preview: Instant::now(),
            failures: 0,
            rang: None,
        }
    }

    /// The answer of a turn that no entry of the inbox stands for: each of its replies is noted before there is anything to
    /// say, so that a crash does not lose it.
    pub(super) fn noting_ahead(mut self) -> Self {
        self.notes_ahead = true;
        self
    }

    pub(super) fn place(&self) -> &ReplyPlace {
        &self.place
    }

    pub(super) async fn begin(&self, ports: &ChatPorts) -> Result<(), StoreError> {
        if !self.notes_ahead {
            return Ok(());
        }
        self.note(ports, self.segment).await
    }

    /// Notes that there will be a reply.
    async fn note(&self, ports: &ChatPorts, segment: usize) -> Result<(), StoreError> {
        let entry = NewOutboxEntry {
            key: self.key_of(segment),
            ..self.entry(ports, Vec::new(), Ring::Aloud)
        };
        ports
            .outbox
            .put_outgoing(entry, self.place.answers(Vec::new()))
            .await?;
        Ok(())
    }

    /// Adds words of the answer, below what was done before them.
    pub(super) async fn push(&mut self, ports: &ChatPorts, text: &str) -> Result<(), StoreError> {
        if self.shows_work() {
            self.close_segment(ports).await?;
        }
        self.text.push_str(text);
        Ok(())
    }

    pub(super) fn discard(&mut self) {
        if !self.shows_work() {
            self.text.clear();
        }
    }

    /// Changes what is shown of the work that is being done, below the words before it.
    pub(super) async fn work(
        &mut self,
        ports: &ChatPorts,
        change: impl FnOnce(&mut Work),
    ) -> Result<(), StoreError> {
        if !self.shows_work() {
            self.close_segment(ports).await?;
        }
        change(&mut self.work);
        self.text = self.work.markdown();
        Ok(())
    }

    pub(super) fn shows_work(&self) -> bool {
        !self.work.is_empty()
    }

    pub(super) fn has_text(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// When a preview is worth looking at again; `None` when there is nothing new to show.
    pub(super) fn preview_due(&self, ports: &ChatPorts) -> Option<Instant> {
        let can_edit = self.place.channel.facts().edit_interval.is_some() || self.drafts(ports);
        let is_new = self.shown() != Some(&self.text);
        let shows_words = self.place.shows_previews && ports.settings.now().shows_previews;
        let is_shown = shows_words || self.shows_work();
        let is_wanted = is_shown && can_edit && self.failures < FAILURES_MAX;
        (is_wanted && is_new && self.has_text() && !may_be_silence(&self.text))
            .then_some(self.next_preview)
    }

    /// Shows what there is of the reply.
    pub(super) async fn show(&mut self, ports: &ChatPorts) -> Result<(), StoreError> {
        let interval = self.place.channel.facts().edit_interval.unwrap_or_default();
        self.next_preview = Instant::now() + interval.max(ports.settings.now().preview_interval);
        if self.drafts(ports) {
            self.show_draft().await;
            return Ok(());
        }
        if self.preview.is_none() {
            return self.show_first(ports).await;
        }
        let outgoing = self.outgoing(self.cursor(), Ring::Silently);
        let Some(preview) = &mut self.preview else {
            return Ok(());
        };
        if preview.shown == outgoing.body {
            preview.text.clone_from(&self.text);
            return Ok(());
        }
        let edited = self.place.channel.edit(&preview.message, &outgoing);
        match timeout(PREVIEW_MAX, edited).await {
            Ok(Ok(())) => {
                preview.text.clone_from(&self.text);
                preview.shown = outgoing.body;
            }
            Ok(Err(error)) => self.slow_down(error.trouble),
            Err(_) => self.slow_down(Trouble::Ambiguous),
        }
        Ok(())
    }

    /// How much of it people see so far.
    fn shown(&self) -> Option<&String> {
        let preview = self.preview.as_ref().map(|preview| &preview.text);
        preview.or(self.draft.as_ref())
    }

    fn drafts(&self, ports: &ChatPorts) -> bool {
        let is_open = self.preview.is_none() && !self.has_no_drafts && !self.shows_work();
        is_open
            && ports.settings.now().shows_drafts
            && self.place.channel.has_drafts(&self.place.to)
    }

    async fn show_draft(&mut self) {
        let outgoing = self.outgoing("", Ring::Silently);
        let drafted = timeout(PREVIEW_MAX, self.place.channel.draft(&outgoing)).await;
        match drafted.unwrap_or_else(|_| Err(too_slow())) {
            Ok(()) => self.draft = Some(self.text.clone()),
            Err(error) if matches!(error.trouble, Trouble::Throttled { .. }) => {
                self.slow_down(error.trouble);
            }
            Err(_) => self.has_no_drafts = true,
        }
    }

    async fn show_first(&mut self, ports: &ChatPorts) -> Result<(), StoreError> {
        // What was said before goes first.
        if !self.place.delivery.is_clear(&self.place.to) {
            return Ok(());
        }
        let ring = self.ring();
        let entry = self.entry(ports, Vec::new(), ring);
        let id = ports
            .outbox
            .put_outgoing(entry, self.place.answers(Vec::new()))
            .await?;
        self.step(ports, id, OutboxChange::Send { part: 0 }).await?;
        let outgoing = self.outgoing(self.cursor(), ring);
        let sent = timeout(PREVIEW_MAX, self.place.channel.send(&outgoing)).await;
        let change = match sent.unwrap_or_else(|_| Err(too_slow())) {
            Ok(message) => {
                self.rang = (ring == Ring::Aloud).then(Instant::now).or(self.rang);
                self.preview = Some(Preview {
                    message: message.clone(),
                    text: self.text.clone(),
                    shown: outgoing.body,
                });
                OutboxChange::Arrived {
                    part: 0,
                    id: message,
                    is_current: false,
                }
            }
            Err(error) => {
                self.slow_down(error.trouble);
                let knows_keys = self.place.channel.knows_keys(&self.place.to);
                if error.trouble == Trouble::Ambiguous && !knows_keys {
                    // It may be there. Another one beside it would stay there for good.
                    self.failures = FAILURES_MAX;
                }
                let (due, why) = (ports.clock.now(), error.to_string());
                match error.trouble {
                    Trouble::Ambiguous => OutboxChange::Doubt { due, error: why },
                    _ => OutboxChange::Later { due, error: why },
                }
            }
        };
        let (delivery, answers) = (&self.place.delivery, self.place.answers(Vec::new()));
        delivery.keep(id, change, answers).await?;
        Ok(())
    }

    fn slow_down(&mut self, trouble: Trouble) {
        self.failures += 1;
        let wait = match trouble {
            Trouble::Throttled { wait } => wait,
            _ => Duration::from_secs(2),
        };
        self.next_preview = Instant::now() + wait;
    }

    /// The words before a tool call are a message of their own.
    pub(super) async fn close_segment(&mut self, ports: &ChatPorts) -> Result<(), StoreError> {
        if !self.has_text() {
            return Ok(());
        }
        if self.notes_ahead {
            self.note(ports, self.segment + 1).await?;
        }
        self.write(ports, Vec::new(), Ring::Silently).await?;
        self.segment += 1;
        self.text.clear();
        self.work = Work::default();
        self.preview = None;
        self.draft = None;
        Ok(())
    }

    /// The end of the turn: what is left to say, and what it answers, in one commit.
    pub(super) async fn finish(
        &mut self,
        ports: &ChatPorts,
        answers: Vec<InboxId>,
        closing: Option<String>,
    ) -> Result<(), StoreError> {
        if self.shows_work() {
            self.close_segment(ports).await?;
        }
        if let Some(closing) = closing {
            let gap = if self.has_text() { "\n\n" } else { "" };
            self.text = format!("{}{gap}{closing}", self.text.trim_end());
        }
        self.write(ports, answers, self.ring()).await
    }

    /// A turn that was stopped says nothing more; what was shown of it says so.
    pub(super) async fn stop(
        &mut self,
        ports: &ChatPorts,
        answers: Vec<InboxId>,
    ) -> Result<(), StoreError> {
        let left = self.find_open_segment(ports).await?;
        self.text = match (self.shown(), left) {
            (Some(shown), _) => format!("{}{}", shown.trim_end(), words::STOPPED),
            // Shown by the process before this one: what it said is not known.
            (None, Some(entry)) if entry.parts.iter().any(|part| part.id.is_some()) => {
                words::STOPPED.to_owned()
            }
            (None, _) => String::new(),
        };
        self.write(ports, answers, Ring::Silently).await
    }

    /// Goes on to where a text of the log is, or belongs: a model that was asked again after a crash may have said something else
    /// than what had gone out already.
    pub(super) async fn find_place_of(
        &mut self,
        ports: &ChatPorts,
        text: &str,
    ) -> Result<(), StoreError> {
        while let Some(known) = ports.outbox.outgoing_by_key(&self.segment_key()).await? {
            if known.stage == Stage::Writing || begins_like(&known, text) {
                break;
            }
            self.segment += 1;
        }
        Ok(())
    }

    /// Goes on to the reply that is still being written, where replies of this turn went before a crash.
    async fn find_open_segment(
        &mut self,
        ports: &ChatPorts,
    ) -> Result<Option<OutboxEntry>, StoreError> {
        loop {
            let known = ports.outbox.outgoing_by_key(&self.segment_key()).await?;
            match known {
                Some(entry) if entry.stage != Stage::Writing => self.segment += 1,
                known => return Ok(known),
            }
        }
    }

    /// What is shown behind words that are being written.
    fn cursor(&self) -> &'static str {
        if self.shows_work() { "" } else { CURSOR }
    }

    /// Whether the next message of this answer is announced: the first is, and one that comes long after it.
    fn ring(&self) -> Ring {
        match self.rang {
            _ if self.shows_work() => Ring::Silently,
            Some(at) if at.elapsed() < RING_AGAIN => Ring::Silently,
            _ => Ring::Aloud,
        }
    }

    async fn write(
        &mut self,
        ports: &ChatPorts,
        answers: Vec<InboxId>,
        ring: Ring,
    ) -> Result<(), StoreError> {
        let place = &self.place;
        let channel = place.channel.as_ref();
        let bodies = if self.shows_work() {
            text_bodies(channel, &self.text)
        } else {
            bodies(channel, &self.text, &ports.files, place.guest.as_deref()).await
        };
        let key = self.segment_key();
        let known = ports.outbox.outgoing_by_key(&key).await?;
        let answers = place.answers(answers);
        match known {
            Some(entry) if entry.stage == Stage::Writing => {
                step(ports, entry.id, OutboxChange::Write { bodies }, answers).await?;
            }
            Some(_) => close(ports, answers).await?,
            None if bodies.is_empty() => close(ports, answers).await?,
            None => {
                let entry = self.entry(ports, bodies, ring);
                ports.outbox.put_outgoing(entry, answers).await?;
            }
        }
        self.place.delivery.wake();
        Ok(())
    }

    async fn step(
        &self,
        ports: &ChatPorts,
        id: OutboxId,
        change: OutboxChange,
    ) -> Result<(), StoreError> {
        step(ports, id, change, self.place.answers(Vec::new())).await
    }

    fn segment_key(&self) -> String {
        self.key_of(self.segment)
    }

    fn key_of(&self, segment: usize) -> String {
        format!("{}/{segment}", self.key)
    }

    fn entry(&self, ports: &ChatPorts, bodies: Vec<Body>, ring: Ring) -> NewOutboxEntry {
        NewOutboxEntry {
            key: self.segment_key(),
            to: self.place.to.clone(),
            account: Some(self.place.channel.facts().account.clone()),
            replies_to: self.place.replies_to.clone().filter(|_| self.segment == 0),
            buttons: Vec::new(),
            is_silent: ring == Ring::Silently,
            bodies,
            at: ports.clock.now(),
        }
    }

    fn outgoing(&self, cursor: &str, ring: Ring) -> Outgoing {
        let channel = &self.place.channel;
        let max = channel.facts().length_max;
        let text = if self.shows_work() {
            self.text.clone()
        } else {
            files::without_marks(&self.text)
        };
        let text = format!("{}{cursor}", text.trim_end());
        // Longer replies are shown from their beginning; the end comes with the whole.
        let mut pieces = split::split(&text, max, |text| channel.length(text));
        Outgoing {
            to: self.place.to.clone(),
            key: format!("{}#0", self.segment_key()),
            body: Body::Text {
                markdown: pieces.swap_remove(0),
                is_preview: true,
            },
            replies_to: self.place.replies_to.clone().filter(|_| self.segment == 0),
            follows: None,
            buttons: Vec::new(),
            is_silent: ring == Ring::Silently,
        }
    }
}

/// Whether what went out is the beginning of a text. What is no text, or was replaced, is taken for it.
fn begins_like(known: &OutboxEntry, text: &str) -> bool {
    let said = known.parts.first().filter(|part| !part.is_replaced);
    let Some(Body::Text { markdown, .. }) = said.and_then(|part| part.body.as_ref()) else {
        return true;
    };
    let text = files::without_marks(text);
    let mut said = markdown.trim().chars().zip(text.trim().chars());
    said.by_ref()
        .take(ALIKE_CHARS)
        .all(|(said, written)| said == written)
}

fn too_slow() -> ChannelError {
    ChannelError::new(Trouble::Ambiguous, "it took too long")
}

/// The turn that an entry of the outbox is the answer of.
pub(super) fn turn_of(key: &str) -> Option<(SessionId, TurnId)> {
    let mut parts = key.split('/');
    let (session, turn, segment) = (parts.next()?, parts.next()?, parts.next()?);
    let is_segment = segment.parse::<usize>().is_ok() && parts.next().is_none();
    is_segment.then(|| (SessionId::from(session), TurnId::from(turn)))
}

async fn step(
    ports: &ChatPorts,
    id: OutboxId,
    what: OutboxChange,
    answers: Answers,
) -> Result<(), StoreError> {
    let at = ports.clock.now();
    ports
        .outbox
        .step_outgoing(id, OutboxStep { at, what }, answers)
        .await?;
    Ok(())
}

async fn close(ports: &ChatPorts, answers: Answers) -> Result<(), StoreError> {
    let at = ports.clock.now();
    ports
        .inbox
        .close_entries(answers, hermes_core::Closed::Answered, at)
        .await
}

/// A reply as messages that the platform takes, with the files it hands over; none when it is a model's way of saying
/// nothing.
pub(super) async fn bodies(
    channel: &dyn Channel,
    text: &str,
    policy: &Arc<dyn FilePolicy>,
    guest: Option<&str>,
) -> Vec<Body> {
    if is_silence(text.trim()) {
        return Vec::new();
    }
    let mut marked = Marked::read(text);
    let mut bodies = text_bodies(channel, &std::mem::take(&mut marked.text));
    if !marked.files.is_empty() {
        let room = hermes_core::outbox::PARTS_MAX - bodies.len();
        let files = files::bodies(marked, channel, policy, guest).await;
        bodies.extend(files.into_iter().take(room));
    }
    bodies
}

/// Words as messages that the platform takes.
pub(super) fn text_bodies(channel: &dyn Channel, text: &str) -> Vec<Body> {
    let text = text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    let max = channel.facts().length_max;
    let pieces = split::split(text, max, |text| channel.length(text));
    let mut bodies: Vec<Body> = pieces.into_iter().map(words::body).collect();
    if bodies.len() > hermes_core::outbox::PARTS_MAX {
        bodies.truncate(hermes_core::outbox::PARTS_MAX - 1);
        bodies.push(words::body(
            "_(The rest is too long for a chat; it is in the conversation.)_",
        ));
    }
    bodies
}

fn may_be_silence(text: &str) -> bool {
    let text = text.trim().to_uppercase();
    MARKERS.iter().any(|word| word.starts_with(&text))
}
