//! Finds the connection for a request, and waits for one as long as there is hope.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::breaker::BreakerState;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{LINK_WAIT_MAX, Server};
use crate::classify::Class;
use crate::failure::Failure;
use crate::signal::Signal;
use crate::view::{Link, View};

/// How often a waiting caller asks for another attempt.
const DEMAND_INTERVAL: Duration = Duration::from_secs(1);

impl Server {
    /// Returns the connection for a new call. With an open breaker the answer, or rather the refusal, is fast.
    pub(super) async fn link_for_new_call(&self) -> Result<Arc<Link>, String> {
        let wakes = self.wake.look();
        let refusal = {
            let view = self.view();
            if let Some(link) = view.usable_link(wakes) {
                return Ok(Arc::clone(link));
            }
            (view.breaker != BreakerState::Closed).then(|| cause(&view))
        };
        if let Some(cause) = refusal {
            self.demand();
            return Err(cause);
        }
        Box::pin(self.link(wakes, Instant::now() + LINK_WAIT_MAX)).await
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
                if Instant::now() >= deadline {
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
        loop {
            let view = views.borrow_and_update().clone();
            if let Some(link) = view.usable_link(wakes) {
                return Ok(Arc::clone(link));
            }
            if view.state.is_hopeless() || Instant::now() >= deadline {
                return Err(cause(&view));
            }
            self.demand();
            let tick = (Instant::now() + DEMAND_INTERVAL).min(deadline);
            // Whether something changed or the tick came, the next round looks.
            let _ = timeout_at(tick, views.changed()).await;
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
