//! What callers see of a server: its connection and its state, published by the supervisor.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hermes_core::CancellationToken;
use hermes_core::breaker::BreakerState;
use rmcp::model::{RequestId, Tool};
use rmcp::{Peer, RoleClient};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use crate::classify::SessionUse;
use crate::dial::Connection;
use crate::in_flight::InFlight;
use crate::status::{BreakerStatus, ServerState, ServerStatus};
use crate::stdio::{Effort, Written};

/// Answers that follow each other more closely are one sign of life: each that is told wakes the supervisor.
const SIGNS_APART: Duration = Duration::from_secs(1);

/// A list takes less, unless something is wrong.
const LIST_PROMPT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) state: ServerState,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) breaker: BreakerState,
    pub(crate) next_attempt: Option<Instant>,
    pub(crate) attempts: Attempts,
    pub(crate) last_success: Option<Instant>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) reconnects: u64,
    pub(crate) last_error: Option<String>,
    /// What the server offered when it was last asked, perhaps by an earlier run. Kept through outages.
    pub(crate) offer: Option<Arc<Offer>>,
    /// Whether the server has listed what it offers, since we know it.
    pub(crate) is_listed: bool,
    /// Since when its list is waited for.
    pub(crate) listing_since: Option<Instant>,
    /// Whether it did not list what it offers when it was last asked.
    pub(crate) cannot_list: bool,
    /// How many awakenings of the machine this takes into account.
    pub(crate) wakes: u64,
}

/// How many attempts to connect there were. Whoever waits for a new one compares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempts {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
}

/// A connection. It ends when nobody holds it any more: calls that are under way on an old one may finish.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) epoch: u64,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) session: SessionUse,
    pub(crate) in_flight: InFlight,
    written: Option<Written>,
    effort: Option<Effort>,
    /// Why the calls on it were given up, if they were.
    given_up: OnceLock<String>,
    calls: AtomicUsize,
    /// When the supervisor was last told of an answer, if there was no trouble since.
    told: Mutex<Option<Instant>>,
    _end_on_drop: DropGuard,
}

/// A call that is under way on a connection.
pub(crate) struct Calling<'a>(&'a Link);

impl Link {
    pub(crate) fn new(epoch: u64, connection: &Connection, end: CancellationToken) -> Self {
        Self {
            epoch,
            peer: connection.service.peer().clone(),
            session: connection.session,
            in_flight: connection.in_flight.clone(),
            written: connection.written.clone(),
            effort: connection.effort.clone(),
            given_up: OnceLock::new(),
            calls: AtomicUsize::new(0),
            told: Mutex::default(),
            _end_on_drop: end.drop_guard(),
        }
    }

    /// Counts a call as under way until the guard is dropped.
    pub(crate) fn calling(&self) -> Calling<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Calling(self)
    }

    /// Returns whether the connection ended before a request went into its pipe, so that it cannot have run.
    pub(crate) fn excludes(&self, id: &RequestId) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|written| written.excludes(id))
    }

    /// Returns whether the supervisor should be told of an answer: the last one is a while ago, or there was trouble.
    pub(crate) fn is_news(&self, now: Instant) -> bool {
        let mut told = self.told();
        let is_news = told.is_none_or(|at| now - at >= SIGNS_APART);
        if is_news {
            *told = Some(now);
        }
        is_news
    }

    /// Notes that the supervisor hears of trouble: the next answer ends it, and is news.
    pub(crate) fn note_trouble(&self) {
        *self.told() = None;
    }

    fn told(&self) -> MutexGuard<'_, Option<Instant>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how much its program has worked so far, if that is known.
    pub(crate) fn effort(&self) -> Option<u64> {
        self.effort.as_ref().and_then(Effort::so_far)
    }

    /// Notes why the calls on it are given up.
    pub(crate) fn give_up(&self, cause: &str) {
        self.given_up.get_or_init(|| cause.to_owned());
    }

    pub(crate) fn given_up(&self) -> Option<&str> {
        self.given_up.get().map(String::as_str)
    }

    /// Returns whether its end is that of a program.
    pub(crate) fn is_program(&self) -> bool {
        self.written.is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) has_resources: bool,
    pub(crate) has_prompts: bool,
    /// What is odd about the list, in words for people.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

impl View {
    pub(crate) fn new(state: ServerState) -> Self {
        Self {
            state,
            link: None,
            breaker: BreakerState::Closed,
            next_attempt: None,
            attempts: Attempts::default(),
            last_success: None,
            round_trip: None,
            reconnects: 0,
            last_error: None,
            offer: None,
            is_listed: false,
            listing_since: None,
            cannot_list: false,
            wakes: 0,
        }
    }

    /// Returns the connection that a call may go over now. One in doubt is waited for: a call on it might be lost.
    ///
    /// `wakes` says how often the machine has woken up: a connection that may not have survived it is in doubt, too.
    pub(crate) fn usable_link(&self, wakes: u64) -> Option<&Arc<Link>> {
        let is_sound = self.wakes >= wakes
            && self.breaker == BreakerState::Closed
            && self.state != ServerState::Degraded;
        self.link.as_ref().filter(|_| is_sound)
    }

    pub(crate) fn status(&self, name: &str) -> ServerStatus {
        let now = Instant::now();
        ServerStatus {
            name: name.to_owned(),
            state: self.honest_state(now),
            last_success: self.last_success.map(|at| now - at),
            round_trip: self.round_trip,
            reconnects: self.reconnects,
            breaker: self.breaker_status(now),
            next_attempt: self.next_attempt.map(|at| at - now),
            tools: self.offer.as_ref().map_or(0, |offer| offer.tools.len()),
            last_error: self.last_error.clone().or_else(|| {
                let late = "its list of tools does not come";
                self.is_listing_late(now).then(|| late.to_owned())
            }),
            notes: self
                .offer
                .as_ref()
                .map_or_else(Vec::new, |offer| offer.notes.clone()),
        }
    }

    fn is_listing_late(&self, now: Instant) -> bool {
        self.listing_since
            .is_some_and(|since| now - since > LIST_PROMPT_MAX)
    }

    /// Returns the state as people understand it: ready is what can be used.
    fn honest_state(&self, now: Instant) -> ServerState {
        let is_late = self.is_listing_late(now);
        match &self.state {
            ServerState::Ready if self.breaker != BreakerState::Closed => ServerState::Degraded,
            ServerState::Ready if is_late || self.cannot_list => ServerState::Degraded,
            ServerState::Ready if !self.is_listed => ServerState::Connecting,
            state => state.clone(),
        }
    }

    fn breaker_status(&self, now: Instant) -> BreakerStatus {
        match self.breaker {
            BreakerState::Closed => BreakerStatus::Closed,
            BreakerState::HalfOpen => BreakerStatus::HalfOpen,
            BreakerState::Open { until } => BreakerStatus::Open {
                probe_in: Instant::from_std(until) - now,
            },
        }
    }

    /// Says what happens next, for somebody whose call failed.
    pub(crate) fn outlook(&self) -> String {
        let now = Instant::now();
        let seconds = |at: Instant| (at - now).as_secs().max(1);
        match (&self.state, self.breaker_status(now), self.next_attempt) {
            (ServerState::NeedsAuth { reason }, ..) => reason.clone(),
            (ServerState::Misconfigured { .. }, ..) => {
                "it will work when its settings, or what they name, are put right; every call tries it"
                    .to_owned()
            }
            (ServerState::Stopped | ServerState::Disabled, ..) => "it is switched off".to_owned(),
            (ServerState::Resting, ..) => "the next call starts it".to_owned(),
            (_, BreakerStatus::Open { probe_in }, _) if self.link.is_some() => format!(
                "after repeated failures it is left alone; it will be probed in {} s",
                probe_in.as_secs().max(1)
            ),
            (ServerState::Ready, ..) => "the connection is fine; it can be tried again".to_owned(),
            (_, _, Some(at)) => format!(
                "the connection is being restored; the next attempt is in {} s",
                seconds(at)
            ),
            _ => "the connection is being restored now; try again in a few seconds".to_owned(),
        }
    }

    /// Says how the server is, for somebody whose call may have run: what to do about that is not for us to say.
    pub(crate) fn condition(&self) -> String {
        match (&self.state, self.breaker) {
            (ServerState::Ready, BreakerState::Closed) => "the connection is fine",
            (state, _) if state.is_hopeless() => return self.outlook(),
            (_, BreakerState::Closed) => "the connection is being restored",
            _ => "after repeated failures the server is left alone for a while",
        }
        .to_owned()
    }
}
