//! Finds the connection for a request, and waits for one as long as there is hope.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::breaker::BreakerState;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{LINK_WAIT_MAX, Server};
use crate::classify::Class;
use crate::failure::Failure;
use crate::signal::Signal;
use crate::status::ServerState;
use crate::view::{Link, View};

/// How often a waiting caller asks for another attempt.
const DEMAND_INTERVAL: Duration = Duration::from_secs(1);

impl Server {
    /// Returns the connection for a new call. Where the last attempt at one failed, a new attempt decides.
    pub(super) async fn link_for_new_call(&self) -> Result<Arc<Link>, String> {
        let wakes = self.wake.look();
        let is_in_trouble = {
            let view = self.view();
            if let Some(link) = view.usable_link(wakes) {
                return Ok(Arc::clone(link));
            }
            view.breaker != BreakerState::Closed || view.state.is_hopeless()
        };
        let deadline = Instant::now() + LINK_WAIT_MAX;
        if is_in_trouble {
            Box::pin(self.link_by_new_attempt(wakes, deadline)).await
        } else {
            Box::pin(self.link(wakes, deadline)).await
        }
    }

    /// Has a connection tried now, whatever the waits between attempts are: what was wrong may be mended. With a breaker
    /// that is open over a connection, the answer, or rather the refusal, is fast.
    async fn link_by_new_attempt(
        &self,
        wakes: u64,
        deadline: Instant,
    ) -> Result<Arc<Link>, String> {
        let mut views = self.watch();
        let wanted = views.borrow().attempts.begun + 1;
        let mut is_told = false;
        loop {
            let view = views.borrow_and_update().clone();
            if let Some(link) = view.usable_link(wakes) {
                return Ok(Arc::clone(link));
            }
            // The supervisor has heard of us, and may not try before we are gone.
            let is_forbidden = is_told && view.next_attempt.is_some_and(|at| at > deadline);
            let is_over = view.attempts.ended >= wanted
                || view.link.is_some()
                || view.state.is_off()
                || Instant::now() >= deadline;
            if is_over || is_forbidden || self.is_removed() {
                return Err(cause(&view));
            }
            self.demand();
            let tick = (Instant::now() + DEMAND_INTERVAL).min(deadline);
            is_told = timeout_at(tick, views.changed()).await.is_err();
        }
    }

    /// Waits until the trouble with a connection is over, and returns the connection to use then.
    pub(super) async fn link_after_trouble(
        &self,
        link: &Link,
        failure: &Failure,
        class: Class,
    ) -> Option<Arc<Link>> {
        let deadline = Instant::now() + LINK_WAIT_MAX;
        if let Class::RateLimited { after } = class {
            sleep(after).await;
        } else if let Some(mut settled) = self.report(link, failure, class).await {
            // Settled, or dropped by a supervisor that has stopped: either way, the view says what there is now.
            while timeout(DEMAND_INTERVAL, &mut settled).await.is_err() {
                if Instant::now() >= deadline || self.is_removed() {
                    return None;
                }
                self.demand();
            }
        }
        self.link(self.wake.look(), deadline).await.ok()
    }

    /// Waits for a connection that has survived all `wakes` of the machine.
    async fn link(&self, wakes: u64, deadline: Instant) -> Result<Arc<Link>, String> {
        let mut views = self.watch();
        let first_attempt_ends = Instant::now() + self.settings.connect_timeout;
        loop {
            let view = views.borrow_and_update().clone();
            if let Some(link) = view.usable_link(wakes) {
                return Ok(Arc::clone(link));
            }
            let deadline = match view.state {
                // A server that is slow to start has as much time as its settings give it.
                ServerState::Connecting => deadline.max(first_attempt_ends),
                _ => deadline,
            };
            if view.state.is_hopeless() || Instant::now() >= deadline || self.is_removed() {
                return Err(cause(&view));
            }
            self.demand();
            let tick = (Instant::now() + DEMAND_INTERVAL).min(deadline);
            // Whether something changed or the tick came, the next round looks.
            let _ = timeout_at(tick, views.changed()).await;
        }
    }

    /// Asks for an attempt to connect, unless there is a connection or nobody needs one.
    pub(crate) fn hasten(&self) {
        if self.view().state != ServerState::Resting {
            self.demand();
        }
    }

    fn demand(&self) {
        // A full queue means that the supervisor has enough to do.
        let _ = self.signals.try_send(Signal::Demand);
    }
}

/// Says why there is no connection.
fn cause(view: &View) -> String {
    match (&view.last_error, view.breaker) {
        (Some(error), _) => error.clone(),
        (None, BreakerState::Closed) => view.state.to_string(),
        (None, _) => "its last calls have failed".to_owned(),
    }
}
