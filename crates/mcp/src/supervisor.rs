//! Keeps one server connected, for ever.
//!
//! One task owns the connection and everything that is known about it. It never waits for anything but the next event:
//! dialling, probing and listing are jobs beside it. Callers see what it publishes as a [`View`] and tell it what they
//! meet as [`Signal`]s. Start at [`Supervisor::run`].
//!
//! `pace` says when to dial again, `keepalive` and `refresh` when to probe and to list again, `rest` when a server that
//! nobody uses may sleep, `wake` that the machine was asleep; `probe` asks a server whether it is there.

mod events;
mod jobs;

pub(crate) mod keepalive;
mod pace;
pub(crate) mod probe;
mod refresh;
mod rest;
pub(crate) mod wake;

use std::sync::Arc;
use std::time::Duration;

use hermes_core::breaker::{Breaker, BreakerState};
use hermes_core::{CancellationToken, Random};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::DropGuard;

use crate::classify::{Class, classify};
use crate::dial::Dial;
use crate::failure::Failure;
use crate::server::AFFINITY_HINT;
use crate::settings::ServerSettings;
use crate::signal::Signal;
use crate::status::{ServerEvent, ServerState};
use crate::view::{Link, View};

use jobs::Done;
use keepalive::Keepalive;
use pace::Pace;
use probe::ProbeKind;
use refresh::Refresh;
use rest::Rest;
pub use rest::RestSettings;
use wake::Wake;

/// A probe takes at most this long, and never longer than the interval between probes.
const PROBE_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// A probe of a connection with calls under way takes at least this long.
const BUSY_PROBE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// A probe that somebody waits for.
const DOUBT_PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A program or a certificate that was fine so shortly ago is being replaced, not missing.
const REPLACED_WITHIN: Duration = Duration::from_secs(15);
/// For the ends of connections and processes when we stop: a process group gets two seconds, a session five.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);
/// Attempts to connect follow each other quickly at first; those closer together than this are one strike, so that a
/// restart of a few seconds is waited for and not refused.
const DIAL_STRIKES_APART: Duration = Duration::from_secs(5);
/// Keeps the probes of many servers apart.
const JITTER_PERCENT: u64 = 10;

/// What a supervisor is given by whoever starts it.
pub(crate) struct SupervisorContext {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) dial: Arc<dyn Dial>,
    /// Shared by all servers: how many connect at the same time.
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) random: Arc<Random>,
    pub(crate) signals: (mpsc::Sender<Signal>, mpsc::Receiver<Signal>),
    pub(crate) view: watch::Sender<View>,
    pub(crate) events: broadcast::Sender<ServerEvent>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) stop: CancellationToken,
}

pub(crate) struct Supervisor {
    context: SupervisorContext,
    woken: watch::Receiver<u64>,
    jobs: JoinSet<Done>,
    /// Counts connections, also failed attempts at them.
    epoch: u64,
    /// Counts the attempts that succeeded.
    connections: u64,
    live: Option<Live>,
    is_connecting: bool,
    /// Connections that have not ended yet, the live one included.
    open: Vec<u64>,
    next_attempt: Option<Instant>,
    pace: Pace,
    breaker: Breaker,
    /// When a connection was last lost.
    lost_at: Option<Instant>,
    /// When a failed attempt to connect was last a strike.
    struck_at: Option<Instant>,
    refresh: Refresh,
    rest: Rest,
    keepalive: Keepalive,
    /// When the connection has been silent for too long.
    next_probe: Option<Instant>,
    is_probing: bool,
    /// Counts the probes: only what the last one finds matters.
    probes: u64,
    /// How things were when a busy connection was probed.
    watch: Option<Watch>,
    /// Ends the lookout for a login when it is dropped.
    waiting_for_login: Option<DropGuard>,
    /// Callers whose trouble is not settled yet.
    waiters: Vec<oneshot::Sender<()>>,
}

struct Watch {
    since: Instant,
    /// What the program had worked by then, if that is known.
    effort: Option<u64>,
}

struct Live {
    link: Arc<Link>,
    probe: ProbeKind,
    end: CancellationToken,
    /// The machine has slept while it was open.
    has_slept: bool,
}

impl Supervisor {
    pub(crate) fn new(context: SupervisorContext) -> Self {
        let woken = context.wake.watch();
        let wakes = *woken.borrow();
        context.view.send_modify(|view| view.wakes = wakes);
        Self {
            woken,
            pace: Pace::new(context.settings.backoff),
            breaker: Breaker::new(context.settings.breaker),
            rest: Rest::new(context.settings.rest),
            keepalive: Keepalive::new(context.settings.keepalive_interval),
            context,
            jobs: JoinSet::new(),
            epoch: 0,
            connections: 0,
            live: None,
            is_connecting: false,
            open: Vec::new(),
            next_attempt: None,
            lost_at: None,
            struck_at: None,
            refresh: Refresh::default(),
            next_probe: None,
            is_probing: false,
            probes: 0,
            watch: None,
            waiting_for_login: None,
            waiters: Vec::new(),
        }
    }

    /// Runs until it is told to stop, then ends the connection.
    pub(crate) async fn run(mut self) {
        self.next_attempt = Some(Instant::now());
        let stop = self.context.stop.clone();
        loop {
            self.do_what_is_due(Instant::now());
            self.publish();
            let timer = self.next_timer();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(signal) = self.context.signals.1.recv() => self.on_signal(signal),
                Some(done) = self.jobs.join_next() => self.on_done(done),
                Ok(()) = self.woken.changed() => self.on_woken(),
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {}
            }
        }
        self.shut_down().await;
    }

    fn next_timer(&self) -> Option<Instant> {
        let when_live = [
            self.probe_due(),
            self.refresh.due(),
            self.breaker_probe_due(),
            self.rest_due(),
        ];
        match self.live {
            Some(_) => when_live.into_iter().flatten().min(),
            None => self.next_attempt.filter(|_| self.may_connect()),
        }
    }

    fn do_what_is_due(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.live.is_none() {
            if is_due(self.next_attempt) && self.may_connect() {
                self.start_connecting(now);
            }
            return;
        }
        if is_due(self.breaker_probe_due()) && self.breaker.try_probe(now.into_std()) {
            self.probe_soon();
        }
        if is_due(self.probe_due()) {
            self.probe_silent(now);
        }
        if is_due(self.refresh.due()) {
            self.start_fetch(now);
        }
        if is_due(self.rest_due()) {
            self.rest_unless_busy(now);
        }
    }

    /// Lets a program end that nobody needs. Whoever has just taken hold of it keeps it until the call is over.
    fn rest_unless_busy(&mut self, now: Instant) {
        if self.live.as_ref().is_some_and(|live| live.link.is_busy()) {
            return self.rest.busy(now);
        }
        tracing::info!(server = self.context.settings.name, "its program may rest");
        self.context.view.send_modify(|view| view.link = None);
        self.forget_connection();
        self.pace.rested();
        self.set_state(ServerState::Resting);
    }

    /// Forgets the connection and all that was planned for it. It ends when the last call on it is over.
    fn forget_connection(&mut self) -> Option<Live> {
        self.refresh.reset();
        self.rest.ended();
        (self.is_probing, self.next_probe, self.watch) = (false, None, None);
        self.live.take()
    }

    /// Returns when the program should rest: not before we know its tools, which stay when it rests.
    fn rest_due(&self) -> Option<Instant> {
        let is_program = self.context.dial.is_exclusive();
        let is_listed = || self.context.view.borrow().is_listed;
        self.rest.due().filter(|_| is_program && is_listed())
    }

    /// Probes a silent connection. One with calls under way gets more time, because a server that works on one thing at
    /// a time cannot answer; but not more than two intervals in all.
    fn probe_silent(&mut self, now: Instant) {
        let interval = self.keepalive.interval().unwrap_or(PROBE_TIMEOUT_MAX);
        let Some(live) = self.live.as_ref().filter(|live| live.link.is_busy()) else {
            return self.start_probe(PROBE_TIMEOUT_MAX.min(interval));
        };
        let watch = Watch {
            since: now,
            effort: live.link.effort(),
        };
        let deadline = (2 * interval).saturating_sub(self.silence(now));
        self.start_probe(deadline.max(BUSY_PROBE_TIMEOUT_MIN));
        self.watch = Some(watch);
    }

    /// Probes for somebody who waits. A patient probe of a busy connection gives way.
    fn probe_soon(&mut self) {
        if self.watch.take().is_some() {
            self.is_probing = false;
        }
        self.start_probe(DOUBT_PROBE_TIMEOUT);
    }

    /// Returns whether a server that did not answer a probe shows no other sign of life either.
    fn is_frozen(&self) -> bool {
        let (Some(live), Some(watch)) = (&self.live, &self.watch) else {
            return false;
        };
        let has_answered = self.context.view.borrow().last_success > Some(watch.since);
        let has_worked = matches!(
            (watch.effort, live.link.effort()), (Some(before), Some(now)) if now > before
        );
        !has_answered && !has_worked && !live.link.in_flight.has_spoken_since(watch.since)
    }

    /// Gives up a connection together with the calls on it, which would wait in vain.
    fn cut(&mut self, epoch: u64, now: Instant) {
        let silence = self.silence(now).as_secs();
        let cause = format!("it has been silent for {silence} s, and does not answer a ping");
        if let Some(live) = self.live.as_ref().filter(|live| live.link.epoch == epoch) {
            live.link.give_up(&cause);
            live.end.cancel();
        }
        self.breaker.fail(now.into_std());
        self.lose(epoch, &Failure::Cut { cause });
    }

    /// Returns whether giving up the connection would cut off calls: those of a process end with it.
    fn would_lose_calls(&self) -> bool {
        let is_busy = |live: &Live| live.link.is_busy();
        self.context.dial.is_exclusive() && self.live.as_ref().is_some_and(is_busy)
    }

    fn probe_due(&self) -> Option<Instant> {
        self.next_probe.filter(|_| !self.is_probing)
    }

    fn breaker_probe_due(&self) -> Option<Instant> {
        match self.breaker.state() {
            BreakerState::Open { until } if !self.is_probing || self.watch.is_some() => {
                Some(Instant::from_std(until))
            }
            _ => None,
        }
    }

    /// Returns whether a connection may be started as far as the old one is concerned.
    fn may_connect(&self) -> bool {
        !self.is_connecting && (self.open.is_empty() || !self.context.dial.is_exclusive())
    }

    /// Puts off the next probe: the server has just shown that it lives.
    fn heard_from(&mut self, now: Instant) {
        let interval = self.keepalive.interval();
        self.next_probe = interval.map(|interval| {
            let spread = self.context.random.below(2 * JITTER_PERCENT + 1);
            now + interval * (100 - JITTER_PERCENT + spread) as u32 / 100
        });
        self.context.view.send_if_modified(|view| {
            view.last_success = Some(now);
            false
        });
    }

    /// Gives up the connection of `epoch`, if it is the one we have, and arranges for another.
    fn lose(&mut self, epoch: u64, failure: &Failure) {
        if !self.is_live(epoch) {
            return;
        }
        let Some(live) = self.forget_connection() else {
            return;
        };
        let now = Instant::now();
        tracing::info!(server = self.context.settings.name, epoch, %failure, "lost the connection");
        if self.context.dial.is_exclusive() {
            // A program that hangs must go before another is started; calls on it are lost anyway.
            live.end.cancel();
        }
        self.lost_at = Some(now);
        let due = self.pace.lost(now, &self.context.random);
        self.next_attempt = Some(due);
        let class = classify(failure, live.link.session);
        let is_forgotten = matches!(class, Class::SessionLost | Class::SessionDoubted);
        let error = if is_forgotten && self.pace.is_pattern() {
            format!("{failure}; {AFFINITY_HINT}")
        } else {
            failure.to_string()
        };
        self.context.view.send_modify(|view| {
            view.link = None;
            view.listing_since = None;
            view.last_error = Some(error);
        });
        self.set_state(ServerState::Reconnecting {
            attempt: self.pace.attempt(),
        });
    }

    /// Tells that somebody has to change something. They may have done so, or need not: attempts go on all the same.
    fn despair(&mut self, state: ServerState) {
        let due = self.pace.failed(Instant::now(), &self.context.random);
        self.next_attempt = Some(due);
        self.set_state(state);
        self.settle();
    }

    /// Tells everybody who waits that things are as they are.
    fn settle(&mut self) {
        self.publish();
        for waiter in self.waiters.drain(..) {
            // One who went away in the meantime needs no answer.
            let _ = waiter.send(());
        }
    }

    fn set_state(&mut self, state: ServerState) {
        let has_changed = self.context.view.send_if_modified(|view| {
            let has_changed = view.state != state;
            view.state.clone_from(&state);
            has_changed
        });
        if has_changed {
            // Nobody may be listening.
            let _ = self.context.events.send(ServerEvent {
                server: self.context.settings.name.clone(),
                state,
            });
        }
    }

    /// Publishes what changed in passing.
    fn publish(&mut self) {
        let next_attempt = self.next_attempt.filter(|_| self.live.is_none());
        let breaker = self.breaker.state();
        self.context.view.send_if_modified(|view| {
            let has_changed = view.next_attempt != next_attempt || view.breaker != breaker;
            view.next_attempt = next_attempt;
            view.breaker = breaker;
            has_changed
        });
    }

    async fn shut_down(mut self) {
        self.set_state(ServerState::Stopped);
        self.context.view.send_modify(|view| view.link = None);
        self.live = None;
        self.settle();
        // Every connection hangs on the token that stopped us; their ends are among the jobs.
        let ended = timeout(SHUTDOWN_TIMEOUT, async {
            while self.jobs.join_next().await.is_some() {}
        });
        if ended.await.is_err() {
            tracing::warn!(
                server = self.context.settings.name,
                "the connection did not end in time"
            );
        }
    }
}

#[cfg(test)]
mod tests;
