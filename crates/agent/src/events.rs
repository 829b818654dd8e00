//! The events of one session: the session tells them, any number of followers read them, and none of those can hold it up.
//!
//! The log keeps what the running turn told, so that a late follower catches up, and what a follower has not read yet.
//! Both within limits: who falls too far behind is told how much was missed. Deltas of one text are kept as one string,
//! so that a long answer costs little more than its letters. Start at [`EventLog::tell`] and [`Follower::next`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hermes_core::{Event, FollowFrom, Followed, NumberedEvent};
use serde_json::Value;
use tokio::sync::Notify;

/// Bytes of events that are kept: a hundred long tool results, or a million words. Most turns tell a hundredth of it.
const BYTES_KEPT_MAX: usize = 4 * 1024 * 1024;
/// Events that are kept, the deltas of one text counted as one: a turn of 90 steps tells some hundred, besides progress.
const EVENTS_KEPT_MAX: usize = 4_096;
/// What is left of a turn when it is over, for a client that comes back a moment later: how it ended, and a short answer.
const BYTES_KEPT_AT_REST: usize = 4 * 1024;
/// Deltas of one text are kept together up to here, so that the oldest can be let go alone.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// Where a session's events are told. Clones tell to the same followers.
#[derive(Clone, Default)]
pub struct EventLog(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl EventLog {
    /// Tells whoever follows. Never waits.
    pub fn tell(&self, event: Event) {
        self.0.lock().push(event);
        self.0.changed.notify_waiters();
    }

    pub fn follow(&self, from: FollowFrom) -> Follower {
        let place = self.0.lock().add_follower(from);
        Follower {
            log: Arc::clone(&self.0),
            place,
        }
    }

    /// Nothing is told any more: followers read what is left, and are done.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a log when its session's task ends, however it does.
pub(crate) struct ClosesLog(pub(crate) EventLog);

impl Drop for ClosesLog {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Somebody who reads a session's events in order, at their own pace.
pub struct Follower {
    log: Arc<Shared>,
    /// Its place in [`State::followers`].
    place: usize,
}

impl Follower {
    /// Waits for the next event. `None` when the session is over. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Followed> {
        // A follower who always finds something must let others have their turn.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Read::Got(followed) = self.read() {
                return Some(followed);
            }
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // It may have come between the reading and the waiting.
            match self.read() {
                Read::Got(followed) => return Some(followed),
                Read::Over => return None,
                Read::Nothing => changed.await,
            }
        }
    }

    /// The same as a stream.
    pub fn into_stream(self) -> BoxStream<'static, Followed> {
        stream::unfold(self, |mut follower| async move {
            let followed = follower.next().await?;
            Some((followed, follower))
        })
        .boxed()
    }

    fn read(&self) -> Read {
        self.log.lock().read(self.place)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        state.followers[self.place] = None;
        state.let_go_of_the_past();
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "returned once per event, kept nowhere"
)]
enum Read {
    Got(Followed),
    Nothing,
    Over,
}

struct State {
    /// In order. Numbers may be missing in between.
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Of `bytes`, those of events before the turn that runs.
    bytes_past: usize,
    /// The number of the next event.
    next: u64,
    /// The number of the event that began the turn that runs.
    turn: Option<u64>,
    /// The number that each follower reads next; `None` where one left.
    followers: Vec<Option<u64>>,
    is_closed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            bytes_past: 0,
            next: 1,
            turn: None,
            followers: Vec::new(),
            is_closed: false,
        }
    }
}

enum Kept {
    Event { number: u64, event: Box<Event> },
    Deltas(Deltas),
}

/// Deltas of one text that came one after the other.
struct Deltas {
    first: u64,
    is_reasoning: bool,
    text: String,
    /// Where each of them ends in `text`.
    ends: Vec<u32>,
}

impl State {
    fn push(&mut self, event: Event) {
        let number = self.next;
        self.next += 1;
        match &event {
            Event::TurnStarted { .. } | Event::TurnResumed { .. } => {
                self.turn = Some(number);
                self.bytes_past = self.bytes;
            }
            Event::TurnEnded { .. } => self.turn = None,
            _ => {}
        }
        match event {
            Event::Text { text } => self.push_delta(number, false, &text),
            Event::Reasoning { text } => self.push_delta(number, true, &text),
            event => {
                self.bytes += size_of::<Kept>() + size_of::<Event>() + weight(&event);
                let event = Box::new(event);
                self.kept.push_back(Kept::Event { number, event });
            }
        }
        if self.turn.is_none() {
            // All of it is past, also what was told in the turn that has just ended.
            self.bytes_past = self.bytes;
            self.let_go_of_the_past();
        }
        if self.bytes > BYTES_KEPT_MAX || self.kept.len() > EVENTS_KEPT_MAX {
            self.shed();
        }
    }

    fn push_delta(&mut self, number: u64, is_reasoning: bool, text: &str) {
        if let Some(Kept::Deltas(deltas)) = self.kept.back_mut()
            && deltas.is_reasoning == is_reasoning
            && deltas.text.len() + text.len() <= JOINED_BYTES_MAX
        {
            deltas.text.push_str(text);
            deltas.ends.push(deltas.text.len() as u32);
            self.bytes += text.len() + size_of::<u32>();
            return;
        }
        let deltas = Deltas {
            first: number,
            is_reasoning,
            text: text.to_owned(),
            ends: vec![text.len() as u32],
        };
        let kept = Kept::Deltas(deltas);
        self.bytes += kept.bytes();
        self.kept.push_back(kept);
    }

    fn add_follower(&mut self, from: FollowFrom) -> usize {
        let turn = self.turn.unwrap_or(self.next);
        let next = match from {
            FollowFrom::Now => self.next,
            FollowFrom::After(number) if number < self.next => number + 1,
            FollowFrom::Turn | FollowFrom::After(_) => turn,
        };
        match self.followers.iter().position(Option::is_none) {
            Some(place) => {
                self.followers[place] = Some(next);
                place
            }
            None => {
                self.followers.push(Some(next));
                self.followers.len() - 1
            }
        }
    }

    /// Gives a follower its next event, or tells how many are gone.
    fn read(&mut self, follower: usize) -> Read {
        let wanted = self.followers[follower].unwrap_or(self.next);
        if wanted == self.next {
            return if self.is_closed {
                Read::Over
            } else {
                Read::Nothing
            };
        }
        let at = self.kept.partition_point(|kept| kept.last() < wanted);
        let first = self.kept.get(at).map_or(self.next, Kept::first);
        let (followed, next) = if first > wanted {
            let events = first - wanted;
            (Followed::Missed { events }, first)
        } else {
            let event = self.kept[at].event(wanted);
            let number = wanted;
            (Followed::Event(NumberedEvent { number, event }), wanted + 1)
        };
        self.followers[follower] = Some(next);
        self.let_go_of_the_past();
        Read::Got(followed)
    }

    /// Drops events of earlier turns that everybody has read, but for the last of them.
    fn let_go_of_the_past(&mut self) {
        if self.bytes_past <= BYTES_KEPT_AT_REST {
            return;
        }
        let turn = self.turn.unwrap_or(self.next);
        let read_by_all = self.followers.iter().flatten().min().copied();
        let needed = read_by_all.unwrap_or(self.next).min(turn);
        while self.bytes_past > BYTES_KEPT_AT_REST
            && self.kept.front().is_some_and(|kept| kept.last() < needed)
        {
            self.drop_first();
        }
        if self.turn.is_none() {
            self.shrink();
        }
    }

    fn drop_first(&mut self) {
        if let Some(kept) = self.kept.pop_front() {
            let bytes = kept.bytes();
            self.bytes -= bytes;
            self.bytes_past = self.bytes_past.saturating_sub(bytes);
        }
    }

    /// Gives memory back that the turn needed.
    fn shrink(&mut self) {
        self.kept.shrink_to_fit();
        for kept in &mut self.kept {
            if let Kept::Deltas(deltas) = kept {
                deltas.text.shrink_to_fit();
                deltas.ends.shrink_to_fit();
            }
        }
    }

    /// Makes room: first goes what is past, then progress, then the oldest of the rest, text last. How the turn began and
    /// the newest event stay. Leaves a quarter free, so that it is not done at every event.
    fn shed(&mut self) {
        let (bytes_max, events_max) = (BYTES_KEPT_MAX / 4 * 3, EVENTS_KEPT_MAX / 4 * 3);
        let turn = self.turn.unwrap_or(self.next);
        let newest = self.next - 1;
        let is_expendable: [fn(&Kept) -> bool; 4] = [
            |_| true,
            Kept::is_progress,
            |kept| !kept.is_text(),
            |_| true,
        ];
        for (round, is_expendable) in is_expendable.into_iter().enumerate() {
            let (mut bytes, mut events) = (self.bytes, self.kept.len());
            self.kept.retain(|kept| {
                let has_room = bytes <= bytes_max && events <= events_max;
                let last = kept.last();
                let is_past = last < turn;
                let must_stay = last == turn || last == newest || (round == 0 && !is_past);
                if has_room || must_stay || !is_expendable(kept) {
                    return true;
                }
                bytes -= kept.bytes();
                events -= 1;
                false
            });
            self.bytes = bytes;
        }
        let past = self.kept.iter().take_while(|kept| kept.last() < turn);
        self.bytes_past = past.map(Kept::bytes).sum();
    }
}

impl Kept {
    fn first(&self) -> u64 {
        match self {
            Self::Event { number, .. } => *number,
            Self::Deltas(deltas) => deltas.first,
        }
    }

    fn last(&self) -> u64 {
        match self {
            Self::Event { number, .. } => *number,
            Self::Deltas(deltas) => deltas.first + deltas.ends.len() as u64 - 1,
        }
    }

    /// The event of a number that is among these.
    fn event(&self, number: u64) -> Event {
        match self {
            Self::Event { event, .. } => (**event).clone(),
            Self::Deltas(deltas) => deltas.event((number - deltas.first) as usize),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Event { event, .. } => size_of::<Event>() + weight(event),
                Self::Deltas(deltas) => deltas.text.len() + deltas.ends.len() * size_of::<u32>(),
            }
    }

    fn is_progress(&self) -> bool {
        let Self::Event { event, .. } = self else {
            return false;
        };
        matches!(
            **event,
            Event::CallProgress { .. } | Event::SubagentProgress { .. }
        )
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Deltas(deltas) if !deltas.is_reasoning)
    }
}

impl Deltas {
    fn event(&self, index: usize) -> Event {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let text = self.text[start as usize..self.ends[index] as usize].to_owned();
        if self.is_reasoning {
            Event::Reasoning { text }
        } else {
            Event::Text { text }
        }
    }
}

/// What an event takes beside its own size, more or less.
fn weight(event: &Event) -> usize {
    match event {
        Event::TurnStarted { text, .. }
        | Event::Text { text }
        | Event::Reasoning { text }
        | Event::CallProgress { text, .. }
        | Event::SubagentProgress { text, .. }
        | Event::CallFinished { text, .. }
        | Event::CompactionProgress { text }
        | Event::Rewound { said: text, .. } => text.len(),
        Event::CallStarted { arguments, .. } => weight_of_json(arguments),
        Event::ApprovalRequested(question) => {
            question.what.len()
                + question.reason.len()
                + question.diff.as_ref().map_or(0, String::len)
        }
        Event::ElicitationRequested(elicitation) => elicitation.message.len(),
        _ => 0,
    }
}

fn weight_of_json(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(weight_of_json).sum(),
            Value::Object(values) => values
                .iter()
                .map(|(name, value)| name.len() + weight_of_json(value))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Origin, TurnEnd};
    use serde_json::json;

    use super::*;

    fn started() -> Event {
        Event::TurnStarted {
            turn: "t".into(),
            origin: Origin::person(),
            text: "go".into(),
            images: 0,
            queued: None,
        }
    }

    fn ended() -> Event {
        Event::TurnEnded {
            turn: "t".into(),
            end: TurnEnd::Finished,
        }
    }

    fn text(text: &str) -> Event {
        Event::Text { text: text.into() }
    }

    fn progress(number: usize) -> Event {
        Event::CallProgress {
            call: "c".into(),
            text: format!("line {number}"),
        }
    }

    /// Everything that can be read without waiting.
    fn read(follower: &Follower) -> Vec<Followed> {
        let mut all = Vec::new();
        while let Read::Got(followed) = follower.read() {
            all.push(followed);
        }
        all
    }

    fn missed(followed: &[Followed]) -> u64 {
        let missed = followed.iter().map(|one| match one {
            Followed::Missed { events } => *events,
            Followed::Event(_) => 0,
        });
        missed.sum()
    }

    fn text_of(followed: &[Followed]) -> String {
        let texts = followed.iter().filter_map(|one| match one.event() {
            Some(Event::Text { text }) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn deltas_come_out_as_they_went_in_wherever_one_begins() {
        let log = EventLog::default();
        let pieces = ["a", "", "你", "好 ", "\u{1f980}"];
        log.tell(started());
        pieces.iter().for_each(|piece| log.tell(text(piece)));
        log.tell(Event::Reasoning { text: "hm".into() });
        pieces.iter().for_each(|piece| log.tell(text(piece)));
        let whole = read(&log.follow(FollowFrom::Turn));
        assert_eq!(whole.len(), 12);
        for behind in 0..12 {
            let rest = read(&log.follow(FollowFrom::After(behind)));
            assert_eq!(rest, whole[behind as usize..]);
        }
        assert_eq!(read(&log.follow(FollowFrom::Now)), []);
    }

    #[test]
    fn a_session_at_rest_keeps_little_and_what_followers_have_not_read() {
        let log = EventLog::default();
        let slow = log.follow(FollowFrom::Now);
        for _ in 0..3 {
            log.tell(started());
            (0..10_000).for_each(|_| log.tell(text("some words ")));
            log.tell(ended());
        }
        log.tell(Event::Idle);
        let all = read(&slow);
        assert_eq!((all.len(), missed(&all)), (30_007, 0));
        let state = log.0.lock();
        assert!(state.bytes <= BYTES_KEPT_AT_REST, "{}", state.bytes);
        assert!(state.kept.capacity() <= 8, "{}", state.kept.capacity());
        drop(state);
        // How the turn ended is still there, for who comes back.
        let last = read(&log.follow(FollowFrom::After(30_000)));
        let is_end = |one: &Followed| matches!(one.event(), Some(Event::TurnEnded { .. }));
        assert!(last.iter().any(is_end), "{last:?}");
    }

    #[test]
    fn who_never_reads_costs_no_more_than_the_limits() {
        let log = EventLog::default();
        let _never_reads = log.follow(FollowFrom::Now);
        for turn in 0..20 {
            log.tell(started());
            for call in 0..20 {
                log.tell(Event::CallStarted {
                    call: "c".into(),
                    tool: "t".into(),
                    arguments: json!({"text": "x".repeat(50_000), "n": call}),
                });
            }
            log.tell(text("said"));
            let state = log.0.lock();
            let limit = BYTES_KEPT_MAX + 60_000;
            assert!(state.bytes <= limit, "turn {turn}: {}", state.bytes);
            let counted: usize = state.kept.iter().map(Kept::bytes).sum();
            assert_eq!(state.bytes, counted);
            drop(state);
            log.tell(ended());
        }
    }

    #[test]
    fn progress_goes_first_and_text_last() {
        let log = EventLog::default();
        log.tell(started());
        log.tell(text("the beginning, "));
        (0..EVENTS_KEPT_MAX * 3).for_each(|number| log.tell(progress(number)));
        log.tell(text("the end"));
        let late = read(&log.follow(FollowFrom::Turn));
        assert_eq!(text_of(&late), "the beginning, the end");
        assert!(matches!(late[0].event(), Some(Event::TurnStarted { .. })));
        assert!(missed(&late) > 0 && late.len() <= EVENTS_KEPT_MAX + 2);
        let told = late.iter().filter(|one| one.event().is_some()).count() as u64;
        assert_eq!(told + missed(&late), EVENTS_KEPT_MAX as u64 * 3 + 3);
        let newest = format!("line {}", EVENTS_KEPT_MAX * 3 - 1);
        assert!(late.iter().any(
            |one| matches!(one.event(), Some(Event::CallProgress { text, .. }) if *text == newest)
        ));
    }
}
