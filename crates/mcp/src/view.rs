//! What callers see of a server: its connection and its state, published by the supervisor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
