//! Keeps one channel connected for ever: connects again after every loss, with waits that grow to a cap, and notices
//! connections that are dead without saying so.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hermes_core::backoff::Backoff;
use hermes_core::{Channel, ChannelError, Clock, Identity, Inlet, Random, Timestamp, Trouble};
use tokio::time::{Instant, sleep};

use super::identity::IdentityLock;
use crate::shutdown::Shutdown;

const RETRY: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
};
/// Between attempts with an account that is not accepted: a person has to change something first.
const REFUSED_RETRY: Duration = Duration::from_secs(600);
/// How often it is looked whether anything was heard.
const WATCH: Duration = Duration::from_secs(5);
/// Two clocks that differ by more than this since the last look: the machine slept.
const CLOCK_JUMP: Duration = Duration::from_secs(30);
/// Connected for this long, the next loss is the first one again.
const STEADY: Duration = Duration::from_secs(60);

/// What a channel is doing, for people who look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    pub platform: &'static str,
    pub account: String,
    pub state: ChannelState,
    pub since: Timestamp,
    /// Who we are there, once we know.
    pub identity: Option<Identity>,
    /// When the platform was last heard from.
    pub heard: Option<Timestamp>,
    /// What went wrong last, and what to do about it.
    pub error: Option<String>,
    /// What came last of that which was not taken, and why.
    pub passed_over: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelState {
    Connecting,
    /// The platform has proven it.
    Connected,
    /// Lost; tried again then.
    Waiting {
        until: Timestamp,
    },
    /// The account is not accepted: a person has to change something.
    Refused {
        until: Timestamp,
    },
}

/// One channel, kept connected.
pub struct Supervisor {
    channel: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    status: Mutex<ChannelStatus>,
    heard: Mutex<Instant>,
    /// Held while it receives: one account is for one process on a machine.
    identity_lock: OnceLock<IdentityLock>,
}

impl Supervisor {
    pub fn new(channel: Arc<dyn Channel>, clock: Arc<dyn Clock>, random: Arc<Random>) -> Self {
        let facts = channel.facts();
        let status = ChannelStatus {
            platform: facts.platform,
            account: facts.account.clone(),
            state: ChannelState::Connecting,
            since: clock.now(),
            identity: None,
            heard: None,
            error: None,
            passed_over: None,
        };
        Self {
            channel,
            clock,
            random,
            status: Mutex::new(status),
            heard: Mutex::new(Instant::now()),
            identity_lock: OnceLock::new(),
        }
    }

    pub fn status(&self) -> ChannelStatus {
        lock(&self.status).clone()
    }

    /// The platform has proven who we are.
    pub(super) fn connected(&self, identity: Identity) {
        self.heard();
        let mut status = lock(&self.status);
        if status.state != ChannelState::Connected {
            let (platform, name) = (status.platform, &identity.name);
            tracing::info!(platform, name, "connected");
            status.since = self.clock.now();
            status.state = ChannelState::Connected;
        }
        status.error = None;
        status.identity = Some(identity);
    }

    pub(super) fn heard(&self) {
        *lock(&self.heard) = Instant::now();
        lock(&self.status).heard = Some(self.clock.now());
    }

    /// Something that came will never be taken.
    pub(super) fn passed_over(&self, what: &str) {
        let mut status = lock(&self.status);
        tracing::warn!(platform = status.platform, what, "passed over");
        status.passed_over = Some(what.to_owned());
    }

    /// Receives only while nobody else on this machine does with the same account.
    pub(super) fn alone(&self, identity_lock: IdentityLock) {
        _ = self.identity_lock.set(identity_lock);
    }

    /// Receives until the gateway takes nothing new.
    pub async fn run(&self, inlet: &dyn Inlet, shutdown: &Shutdown) {
        let mut attempt = 0;
        loop {
            self.enter(ChannelState::Connecting, None);
            *lock(&self.heard) = Instant::now();
            let began = Instant::now();
            let error = tokio::select! {
                error = self.receive(inlet) => error,
                error = self.watch() => error,
                () = shutdown.draining() => return,
            };
            if began.elapsed() > STEADY {
                attempt = 0;
            }
            let wait = self.wait(&error, attempt);
            attempt += 1;
            self.lost(&error, wait);
            tokio::select! {
                () = sleep(wait) => {}
                () = shutdown.draining() => return,
            }
        }
    }

    async fn receive(&self, inlet: &dyn Inlet) -> ChannelError {
        let held = self.identity_lock.get().map(IdentityLock::take);
        match held.transpose() {
            Ok(_held) => self.channel.receive(inlet).await,
            Err(error) => error,
        }
    }

    /// Ends when nothing was heard for too long, or when the machine slept: connections do not survive that, and some do
    /// not notice.
    async fn watch(&self) -> ChannelError {
        let silence_max = self.channel.facts().silence_max;
        let mut last = (Instant::now(), self.clock.now());
        loop {
            sleep(WATCH).await;
            let now = (Instant::now(), self.clock.now());
            let slept = now.1.since(last.1).saturating_sub(now.0 - last.0);
            if slept > CLOCK_JUMP {
                let words = format!("the machine slept for {} s", slept.as_secs());
                return ChannelError::new(Trouble::Passing, words);
            }
            last = now;
            let silent = lock(&self.heard).elapsed();
            if silent > silence_max {
                let words = format!("nothing was heard for {} s", silent.as_secs());
                return ChannelError::new(Trouble::Passing, words);
            }
        }
    }

    fn wait(&self, error: &ChannelError, attempt: u32) -> Duration {
        match error.trouble {
            Trouble::NotAuthorised => REFUSED_RETRY,
            Trouble::Throttled { wait } => wait,
            _ => RETRY.wait(attempt, &self.random),
        }
    }

    fn lost(&self, error: &ChannelError, wait: Duration) {
        let until = self.clock.now().plus(wait);
        let words = match &error.hint {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        let platform = self.channel.facts().platform;
        tracing::warn!(platform, error = %words, wait_s = wait.as_secs(), "disconnected");
        let state = match error.trouble {
            Trouble::NotAuthorised => ChannelState::Refused { until },
            _ => ChannelState::Waiting { until },
        };
        self.enter(state, Some(words));
    }

    fn enter(&self, state: ChannelState, error: Option<String>) {
        let mut status = lock(&self.status);
        // It is lost since it was, however often it was tried since.
        if status.state == ChannelState::Connected {
            status.since = self.clock.now();
        }
        status.state = state;
        if error.is_some() {
            status.error = error;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
