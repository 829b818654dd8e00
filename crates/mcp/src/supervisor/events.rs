//! What the supervisor does when something happened.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::CancellationToken;
use hermes_core::breaker::BreakerState;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio::time::Instant;

use super::jobs::Done;
use super::probe::{ProbeKind, Probed};
use super::{DIAL_STRIKES_APART, Live, REPLACED_WITHIN, Supervisor};
use crate::classify::{Class, Health, SessionUse, classify, health};
use crate::dial::Connection;
use crate::failure::Failure;
use crate::settings::ServerSettings;
use crate::signal::{Signal, Trouble};
use crate::status::{ServerEvent, ServerState};
use crate::suspicion::suspicions;
use crate::view::{Link, Offer};

impl Supervisor {
    pub(super) fn on_signal(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Answered { epoch, round_trip } => self.on_answered(epoch, round_trip, now),
            Signal::Trouble(trouble) => self.on_trouble(trouble, now),
            Signal::Demand if self.live.is_none() => self.on_demand(now),
            Signal::ListChanged { epoch } if self.is_live(epoch) => self.refresh.announced(now),
            Signal::Doubt { epoch } if self.is_live(epoch) => self.doubt(),
            Signal::Reconnect => self.on_reconnect(now),
            // About a connection that is gone, or that is there already.
            Signal::Demand | Signal::ListChanged { .. } | Signal::Doubt { .. } => {}
        }
    }

    pub(super) fn is_live(&self, epoch: u64) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.link.epoch == epoch)
    }

    fn on_answered(&mut self, epoch: u64, round_trip: Duration, now: Instant) {
        if self.is_live(epoch) {
            self.breaker.succeed();
            self.rest.used(now);
            self.keepalive.survived(self.silence(now));
            self.heard_from(now);
            self.context.view.send_if_modified(|view| {
                view.round_trip = Some(round_trip);
                false
            });
        }
    }

    fn on_trouble(&mut self, trouble: Trouble, now: Instant) {
        let (waiter, settled) = oneshot::channel();
        self.waiters.push(waiter);
        self.on_failure(trouble.epoch, &trouble.failure, trouble.class, now);
        // Only now may the caller go on: whoever calls next must see what this has changed.
        self.publish();
        let _ = trouble.noted.send(settled);
    }

    fn on_failure(&mut self, epoch: u64, failure: &Failure, class: Class, now: Instant) {
        if !self.is_live(epoch) {
            if self.live.is_some() || self.context.view.borrow().state.is_hopeless() {
                // Replaced in the meantime, or given up: there is nothing to wait for.
                self.settle();
            }
            return;
        }
        if class == Class::Auth {
            self.on_refused(epoch, failure);
            return;
        }
        self.rest.used(now);
        if class == Class::SessionLost {
            self.learn_from_silence(now);
        }
        match health(failure, class) {
            Health::Sound => self.settle(),
            Health::Lost => self.lose(epoch, failure),
            Health::Doubtful => {
                // Only slow, perhaps: whether it is a strike, the probe decides.
                if !matches!(failure, Failure::Timeout { .. }) {
                    self.breaker.fail(now.into_std());
                }
                self.doubt();
            }
        }
    }

    fn doubt(&mut self) {
        self.set_state(ServerState::Degraded);
        self.probe_soon();
    }

    /// The machine has slept. A connection may have died of it, and an attempt need not wait any longer.
    pub(super) fn on_woken(&mut self) {
        let wakes = *self.woken.borrow_and_update();
        match &mut self.live {
            Some(live) => {
                live.has_slept = true;
                self.doubt();
            }
            None => self.hasten(Instant::now()),
        }
        // Only now: whoever waits for this must see the doubt.
        self.context.view.send_modify(|view| view.wakes = wakes);
    }

    /// Makes the next attempt as soon as it is allowed.
    fn hasten(&mut self, now: Instant) {
        let allowed = self.pace.demanded(now);
        self.next_attempt = self.next_attempt.map(|at| at.min(allowed));
    }

    /// Somebody waits for a connection.
    fn on_demand(&mut self, now: Instant) {
        let is_resting = self.context.view.borrow().state == ServerState::Resting;
        if is_resting {
            self.set_state(ServerState::Connecting);
            self.next_attempt = Some(now);
        } else {
            self.hasten(now);
        }
    }

    /// Returns for how long nothing has been heard on the connection.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        let heard = self.context.view.borrow().last_success;
        heard.map_or(Duration::ZERO, |heard| now - heard)
    }

    /// The server has forgotten our session, perhaps because it was silent for too long.
    fn learn_from_silence(&mut self, now: Instant) {
        if self.live.as_ref().is_none_or(|live| live.has_slept) {
            // It was silent for longer than our timers know.
            return;
        }
        if let Some(interval) = self.keepalive.forgotten(self.silence(now)) {
            let seconds = interval.as_secs();
            tracing::info!(
                server = self.context.settings.name,
                "it forgets silent sessions; from now on it is probed every {seconds} s"
            );
        }
    }

    fn on_reconnect(&mut self, now: Instant) {
        if let Some(live) = &self.live {
            let epoch = live.link.epoch;
            let cause = "a new connection was asked for".to_owned();
            self.lose(epoch, &Failure::Cut { cause });
        }
        if !self.is_connecting {
            self.next_attempt = Some(now);
        }
    }

    pub(super) fn on_done(&mut self, done: Result<Done, JoinError>) {
        match done {
            Ok(Done::Dialled { epoch, end, result }) => {
                self.is_connecting = false;
                match result {
                    Ok(connection) => self.on_connected(epoch, connection, end),
                    Err(failure) => self.on_not_connected(&failure),
                }
                let view = &self.context.view;
                view.send_modify(|view| view.attempts.ended += 1);
            }
            Ok(Done::Ended { epoch }) => {
                self.open.retain(|open| *open != epoch);
                let cause = "the server closed the connection".to_owned();
                self.lose(epoch, &Failure::Cut { cause });
            }
            Ok(Done::Probed {
                epoch,
                number,
                probed,
            }) if self.is_live(epoch) && number == self.probes => {
                self.on_probed(epoch, probed);
            }
            Ok(Done::Fetched { epoch, result }) if self.is_live(epoch) => {
                self.on_fetched(epoch, result);
            }
            Ok(Done::WaitedForLogin { has_come: true }) if self.live.is_none() => {
                self.on_reconnect(Instant::now());
            }
            Ok(
                Done::Probed { .. }
                | Done::Fetched { .. }
                | Done::Followed
                | Done::WaitedForLogin { .. },
            ) => {}
            Err(panic) => self.on_panic(&panic),
        }
    }

    fn on_connected(&mut self, epoch: u64, connection: Connection, end: CancellationToken) {
        let now = Instant::now();
        let link = Arc::new(Link::new(epoch, &connection, end.clone()));
        self.live = Some(Live {
            probe: ProbeKind::of(&link.peer),
            link: Arc::clone(&link),
            end,
            has_slept: false,
        });
        self.start_following(epoch, link.peer.clone());
        self.watch_over(epoch, connection);
        self.connections += 1;
        self.next_attempt = None;
        self.waiting_for_login = None;
        self.pace.connected(now);
        self.rest.started(now);
        self.breaker.succeed();
        self.refresh.at_once(now);
        self.heard_from(now);
        let reconnects = self.connections - 1;
        // Whoever waits must not see the connection beside a breaker that is still open.
        self.publish();
        self.context.view.send_modify(|view| {
            view.reconnects = reconnects;
            view.link = Some(link);
        });
        tracing::info!(server = self.context.settings.name, epoch, "connected");
        self.set_state(ServerState::Ready);
        self.settle();
    }

    fn on_not_connected(&mut self, failure: &Failure) {
        let now = Instant::now();
        let error = failure.to_string();
        tracing::debug!(server = self.context.settings.name, %failure, "cannot connect");
        self.context
            .view
            .send_modify(|view| view.last_error = Some(error.clone()));
        if let Failure::Misconfigured { .. } = failure {
            self.pace.not_started();
        }
        let was_just_there = self.lost_at.is_some_and(|at| now - at < REPLACED_WITHIN);
        if matches!(failure, Failure::Misconfigured { .. }) && !was_just_there {
            return self.despair(ServerState::Misconfigured { reason: error });
        }
        match classify(failure, SessionUse::Sessionless) {
            Class::Auth => return self.ask_for_credentials(failure),
            Class::RateLimited { after } => {
                self.next_attempt = Some(self.pace.pause(now, after));
            }
            _ => {
                self.strike_for_dialling(now);
                self.next_attempt = Some(self.pace.failed(now, &self.context.random));
            }
        }
        self.set_state(ServerState::Reconnecting {
            attempt: self.pace.attempt(),
        });
    }

    fn strike_for_dialling(&mut self, now: Instant) {
        if self
            .struck_at
            .is_none_or(|at| now - at >= DIAL_STRIKES_APART)
        {
            self.struck_at = Some(now);
            self.breaker.fail(now.into_std());
        }
    }

    /// A call, a probe or a list was refused for its credentials.
    fn on_refused(&mut self, epoch: u64, failure: &Failure) {
        self.lose(epoch, failure);
        self.ask_for_credentials(failure);
    }

    fn ask_for_credentials(&mut self, failure: &Failure) {
        let reason = how_to_authenticate(&self.context.settings, failure);
        self.despair(ServerState::NeedsAuth { reason });
        self.start_waiting_for_login();
    }

    fn on_probed(&mut self, epoch: u64, probed: Probed) {
        self.is_probing = false;
        if let Some(live) = &mut self.live {
            live.probe = probed.kind;
        }
        let now = Instant::now();
        let (is_watched, is_frozen) = (self.watch.is_some(), self.is_frozen());
        self.watch = None;
        let failure = match probed.result {
            Ok(round_trip) => {
                self.context.view.send_if_modified(|view| {
                    view.round_trip = Some(round_trip);
                    false
                });
                return self.on_alive(now);
            }
            Err(failure) => failure,
        };
        match classify(&failure, self.session()) {
            Class::Answered | Class::RateLimited { .. } => self.on_alive(now),
            Class::Auth => self.on_refused(epoch, &failure),
            // These are the words of the ping itself.
            Class::SessionLost | Class::SessionDoubted => {
                self.learn_from_silence(now);
                self.lose(epoch, &failure);
            }
            Class::OutcomeUnknown if is_frozen => self.cut(epoch, now),
            // It has said something else meanwhile, or works.
            Class::OutcomeUnknown if is_watched => self.on_alive(now),
            // It may be silent because it is at work, which the next probe that nobody waits for will see.
            Class::OutcomeUnknown if self.would_lose_calls() => {
                self.set_state(ServerState::Ready);
                self.settle();
            }
            Class::NotExecuted | Class::OutcomeUnknown | Class::Cancelled => {
                self.breaker.fail(now.into_std());
                self.lose(epoch, &failure);
            }
        }
    }

    /// A probe was answered. It says that the server lives, not that its calls work: strikes stay, unless this was the
    /// probe that an open breaker waited for.
    fn on_alive(&mut self, now: Instant) {
        if self.breaker.state() == BreakerState::HalfOpen {
            self.breaker.succeed();
        }
        self.keepalive.survived(self.silence(now));
        self.heard_from(now);
        self.set_state(ServerState::Ready);
        self.settle();
    }

    fn on_fetched(&mut self, epoch: u64, result: Result<Offer, Failure>) {
        let now = Instant::now();
        match result {
            Ok(offer) => {
                self.refresh.finished();
                self.heard_from(now);
                self.publish_offer(offer);
            }
            Err(failure) => {
                self.refresh.failed(now);
                self.context.view.send_modify(|view| {
                    (view.listing_since, view.cannot_list) = (None, true);
                    view.last_error = Some(format!("its tools cannot be listed: {failure}"));
                });
                tracing::warn!(server = self.context.settings.name, %failure, "cannot list the tools");
                let class = classify(&failure, self.session());
                match (class, health(&failure, class)) {
                    (Class::Auth, _) => self.on_refused(epoch, &failure),
                    (_, Health::Lost) => self.lose(epoch, &failure),
                    (_, Health::Doubtful) => self.doubt(),
                    (_, Health::Sound) => {}
                }
            }
        }
    }

    fn publish_offer(&mut self, offer: Offer) {
        let name = &self.context.settings.name;
        let (mut is_first, mut state) = (false, ServerState::Ready);
        self.context.view.send_if_modified(|view| {
            let has_changed = view.offer.as_deref() != Some(&offer);
            if has_changed && view.offer.is_some() {
                tracing::info!(
                    server = name,
                    tools = offer.tools.len(),
                    "the tools have changed"
                );
            }
            if has_changed {
                warn_of(name, &offer);
                view.offer = Some(Arc::new(offer));
            }
            is_first = !view.is_listed || view.cannot_list;
            state = view.state.clone();
            (view.is_listed, view.cannot_list, view.listing_since) = (true, false, None);
            is_first || has_changed
        });
        if is_first {
            // Only now it can be used, which is news even if the connection is not.
            let server = name.clone();
            let _ = self.context.events.send(ServerEvent { server, state });
        }
    }

    fn session(&self) -> SessionUse {
        self.live
            .as_ref()
            .map_or(SessionUse::Sessionless, |live| live.link.session)
    }

    /// A job fell over. Which one is not known, so all of them are started again when they are due.
    fn on_panic(&mut self, panic: &JoinError) {
        tracing::error!(server = self.context.settings.name, %panic, "a connection job fell over");
        (self.is_connecting, self.is_probing) = (false, false);
        let now = Instant::now();
        match &self.live {
            Some(live) => {
                let epoch = live.link.epoch;
                let cause = "an internal error".to_owned();
                self.lose(epoch, &Failure::Cut { cause });
            }
            None => self.next_attempt = Some(self.pace.failed(now, &self.context.random)),
        }
    }
}

/// Says what a person has to do. Their agent may be far away, so it is the exact command.
fn how_to_authenticate(settings: &ServerSettings, failure: &Failure) -> String {
    let name = &settings.name;
    match (&settings.oauth, failure) {
        (Some(_), Failure::NeedsLogin { reason }) => {
            format!("{reason}; run `hermes mcp login {name}`")
        }
        (Some(_), _) => {
            format!("it does not accept the token it was given; run `hermes mcp login {name}`")
        }
        (None, _) => format!(
            "it does not accept the credentials; set the header it expects under `mcp_servers.{name}.headers` \
             (usually `Authorization: Bearer …`); or, if it uses OAuth, set \
             `mcp_servers.{name}.auth: oauth` and run `hermes mcp login {name}`"
        ),
    }
}

/// Warns of descriptions that seem to speak to the model.
fn warn_of(server: &str, offer: &Offer) {
    for note in &offer.notes {
        tracing::warn!(server, "{note}");
    }
    for tool in &offer.tools {
        let description = tool.description.as_deref().unwrap_or_default();
        for reason in suspicions(description) {
            tracing::warn!(server, tool = %tool.name, "the description of a tool is suspicious: {reason}");
        }
    }
}
