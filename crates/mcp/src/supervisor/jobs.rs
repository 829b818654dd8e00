//! What runs beside the supervisor: dialling, waiting for the end of a connection, probing, listing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use hermes_core::CancellationToken;
use rmcp::{Peer, RoleClient};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::Supervisor;
use super::probe::{Probed, fetch_offer, probe};
use crate::dial::{Connection, Dial, Wires};
use crate::failure::Failure;
use crate::listen::{Patience, follow, wants_to_be_asked};
use crate::signal::Reporter;
use crate::view::Offer;

/// For an attempt to find a server that was there before: as long as a caller waits for it.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Which of these attempts get the whole time nevertheless, for servers that have become slow.
const PATIENT_EVERY: u32 = 4;
/// A server that was there before is dialled once more, beside the first time, when it has not answered for so long: it
/// may be slow, or the first dial may have begun while it was away.
const DIAL_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A server that did not answer so many dials will not answer the next.
const DIALS_MAX: usize = 3;

/// The gate spreads a burst; it must not let four slow servers keep out a fast one.
const GATE_HELD_MAX: Duration = Duration::from_secs(3);

/// For a dialler that knows why it was late to say so.
const DIALLER_GRACE: Duration = Duration::from_millis(300);

/// What a job came to.
pub(super) enum Done {
    Dialled {
        epoch: u64,
        end: CancellationToken,
        result: Result<Connection, Failure>,
    },
    Ended {
        epoch: u64,
    },
    /// Nothing more will be announced on a connection.
    Followed,
    Probed {
        epoch: u64,
        number: u64,
        probed: Probed,
    },
    Fetched {
        epoch: u64,
        result: Result<Offer, Failure>,
    },
    WaitedForLogin {
        /// Whether somebody logged in, or we stopped waiting.
        has_come: bool,
    },
}

/// Dials, and dials again beside it each time that takes too long; the first result counts.
async fn dial_impatiently(dial: &dyn Dial, wires: &Wires) -> Result<Connection, Failure> {
    let mut dials = FuturesUnordered::from_iter([dial.dial(wires.clone())]);
    loop {
        tokio::select! {
            Some(result) = dials.next() => return result,
            () = sleep(DIAL_AGAIN_AFTER), if dials.len() < DIALS_MAX => {
                dials.push(dial.dial(wires.clone()));
            }
        }
    }
}

/// Runs a future once the gate lets it through. One that takes long gives its place to others.
async fn through<T>(gate: &Semaphore, future: impl Future<Output = T>) -> T {
    tokio::pin!(future);
    // The gate is never closed; without a permit we would only be less polite.
    let permit = gate.acquire().await;
    tokio::select! {
        result = &mut future => return result,
        () = sleep(GATE_HELD_MAX) => drop(permit),
    }
    future.await
}

impl Supervisor {
    pub(super) fn start_connecting(&mut self, now: Instant) {
        self.epoch += 1;
        let epoch = self.epoch;
        self.is_connecting = true;
        self.next_attempt = None;
        self.pace.attempting(now, self.context.dial.starts());
        let context = &self.context;
        context.view.send_modify(|view| view.attempts.begun += 1);
        let end = context.stop.child_token();
        let deadline = self.connect_deadline();
        let wires = Wires {
            reporter: Reporter::new(epoch, context.signals.0.clone()),
            stop: end.clone(),
            deadline: now + deadline,
        };
        let (dial, gate) = (Arc::clone(&context.dial), Arc::clone(&context.gate));
        let was_there = self.is_expected_back();
        let stop = context.stop.clone();
        self.jobs.spawn(async move {
            let connect = async {
                let dialling = async {
                    if was_there {
                        dial_impatiently(dial.as_ref(), &wires).await
                    } else {
                        dial.dial(wires).await
                    }
                };
                let dialled = timeout(deadline + DIALLER_GRACE, through(&gate, dialling)).await;
                dialled.unwrap_or(Err(Failure::Timeout { after: deadline }))
            };
            let result = tokio::select! {
                result = connect => result,
                () = stop.cancelled() => Err(Failure::Cancelled),
            };
            Done::Dialled { epoch, end, result }
        });
    }

    /// Returns whether the server was there before, and may be dialled twice at the same time.
    fn is_expected_back(&self) -> bool {
        self.connections > 0 && !self.context.dial.is_exclusive()
    }

    /// Returns how long an attempt may take. A server that was there before is expected back soon; now and then an
    /// attempt is patient nevertheless.
    fn connect_deadline(&self) -> Duration {
        let patient = self.context.settings.connect_timeout;
        if self.is_expected_back() && !self.pace.attempt().is_multiple_of(PATIENT_EVERY) {
            patient.min(RECONNECT_TIMEOUT)
        } else {
            patient
        }
    }

    /// Watches over a connection until it ends, by itself or because it was told to.
    pub(super) fn watch_over(&mut self, epoch: u64, connection: Connection) {
        self.open.push(epoch);
        self.jobs.spawn(async move {
            // It ends the same way whether its task finished or panicked.
            let _ = connection.service.waiting().await;
            drop(connection.copier);
            Done::Ended { epoch }
        });
    }

    /// Looks out for a login that somebody does elsewhere, until there is a connection.
    pub(super) fn start_waiting_for_login(&mut self) {
        let dial = Arc::clone(&self.context.dial);
        let wait = self.context.stop.child_token();
        self.waiting_for_login = Some(wait.clone().drop_guard());
        self.jobs.spawn(async move {
            let login = wait.run_until_cancelled(dial.logged_in()).await;
            Done::WaitedForLogin {
                has_come: login.is_some(),
            }
        });
    }

    /// Follows the announcements of a server that has to be asked for them. Does not keep the connection alive.
    pub(super) fn start_following(&mut self, epoch: u64, peer: Peer<RoleClient>) {
        if !wants_to_be_asked(&peer) {
            return;
        }
        let context = &self.context;
        let reporter = Reporter::new(epoch, context.signals.0.clone());
        let patience = Patience {
            backoff: context.settings.backoff,
            random: Arc::clone(&context.random),
        };
        let stop = context.stop.clone();
        self.jobs.spawn(async move {
            tokio::select! {
                () = follow(peer, reporter, patience) => {}
                () = stop.cancelled() => {}
            }
            Done::Followed
        });
    }

    pub(super) fn start_probe(&mut self, deadline: Duration) {
        let Some(live) = self.live.as_ref().filter(|_| !self.is_probing) else {
            return;
        };
        let (link, kind) = (Arc::clone(&live.link), live.probe);
        self.is_probing = true;
        self.probes += 1;
        let number = self.probes;
        self.jobs.spawn(async move {
            let probed = probe(link.peer.clone(), kind, deadline).await;
            Done::Probed {
                epoch: link.epoch,
                number,
                probed,
            }
        });
    }

    pub(super) fn start_fetch(&mut self, now: Instant) {
        let Some(live) = &self.live else {
            return;
        };
        let link = Arc::clone(&live.link);
        self.refresh.started(now);
        self.context
            .view
            .send_modify(|view| view.listing_since = Some(now));
        self.jobs.spawn(async move {
            let result = fetch_offer(link.peer.clone()).await;
            Done::Fetched {
                epoch: link.epoch,
                result,
            }
        });
    }
}
