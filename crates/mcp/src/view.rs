//! What callers see of a server: its connection and its state, published by the supervisor.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::CancellationToken;
use hermes_core::breaker::BreakerState;
use rmcp::model::{RequestId, Tool};
use rmcp::{Peer, RoleClient};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use crate::classify::SessionUse;
use crate::dial::Connection;
use crate::in_flight::InFlight;
use crate::status::{BreakerStatus, ServerState, ServerStatus};
use crate::stdio::Written;

/// Answers that follow each other more closely are one sign of life: each that is told wakes the supervisor.
const SIGNS_APART: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) state: ServerState,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) breaker: BreakerState,
    pub(crate) next_attempt: Option<Instant>,
    pub(crate) last_success: Option<Instant>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) reconnects: u64,
    pub(crate) last_error: Option<String>,
    /// What the server offered when it was last asked. Kept through outages.
    pub(crate) offer: Option<Arc<Offer>>,
    /// How many awakenings of the machine this takes into account.
    pub(crate) wakes: u64,
}

/// A connection. It ends when nobody holds it any more: calls that are under way on an old one may finish.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) epoch: u64,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) session: SessionUse,
    pub(crate) in_flight: InFlight,
    written: Option<Written>,
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

    pub(crate) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) has_resources: bool,
    pub(crate) has_prompts: bool,
}

impl View {
    pub(crate) fn new(state: ServerState) -> Self {
        Self {
            state,
            link: None,
            breaker: BreakerState::Closed,
            next_attempt: None,
            last_success: None,
            round_trip: None,
            reconnects: 0,
            last_error: None,
            offer: None,
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
            state: self.state.clone(),
            last_success: self.last_success.map(|at| now - at),
            round_trip: self.round_trip,
            reconnects: self.reconnects,
            breaker: self.breaker_status(now),
            next_attempt: self.next_attempt.map(|at| at - now),
            tools: self.offer.as_ref().map_or(0, |offer| offer.tools.len()),
            last_error: self.last_error.clone(),
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
                "it will work when its settings are put right; then reconnect it".to_owned()
            }
            (ServerState::Stopped | ServerState::Disabled, ..) => "it is switched off".to_owned(),
            (ServerState::Resting, ..) => "the next call starts it".to_owned(),
            (_, BreakerStatus::Open { probe_in }, _) if self.link.is_some() => format!(
                "after repeated failures it is left alone; it will be probed in {} s",
                probe_in.as_secs().max(1)
            ),
            (ServerState::Ready, ..) => {
                "the connection is fine; try again if it is safe".to_owned()
            }
            (_, _, Some(at)) => format!(
                "the connection is being restored; the next attempt is in {} s",
                seconds(at)
            ),
            _ => "the connection is being restored now; try again in a few seconds".to_owned(),
        }
    }
}
