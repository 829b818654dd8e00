//! The runs of this process, by their names: those that go on, and those that are over for a short while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{Events, Timestamp};

use crate::api::error::{ApiError, ApiResult};
use crate::api::run::Run;

/// How long events wait for whoever reads them, from the end of the run.
const EVENTS_KEPT: Duration = Duration::from_secs(5 * 60);
/// Runs that are over and still known here; what others came to is in the store.
const OVER_MAX: usize = 1_000;

#[derive(Default)]
pub(crate) struct Runs(Mutex<HashMap<String, Named>>);

/// A run, as clients know it.
struct Named {
    run: Arc<Run>,
    /// The name under which the client knows the conversation.
    session: String,
    /// From its beginning, for the one who reads them.
    events: Option<Events>,
}

impl Runs {
    pub(super) fn get(&self, id: &str) -> Option<(Arc<Run>, String)> {
        let runs = self.lock();
        let named = runs.get(id)?;
        Some((Arc::clone(&named.run), named.session.clone()))
    }

    /// Takes the events of a run: there is one reader.
    pub(super) fn take_events(&self, id: &str) -> ApiResult<Option<(Arc<Run>, Events)>> {
        let mut runs = self.lock();
        let Some(named) = runs.get_mut(id) else {
            return Ok(None);
        };
        let events = named.events.take().ok_or_else(|| {
            ApiError::conflict("the events of this run were read already").code("events_taken")
        })?;
        Ok(Some((Arc::clone(&named.run), events)))
    }

    /// Makes a run known by a name. Whoever reads its events already goes on.
    pub(super) fn add(&self, id: &str, run: &Arc<Run>, session: &str) {
        let mut runs = self.lock();
        let is_known = |named: &Named| Arc::ptr_eq(&named.run, run);
        if runs.get(id).is_some_and(is_known) {
            return;
        }
        let named = Named {
            events: Some(run.events()),
            run: Arc::clone(run),
            session: session.to_owned(),
        };
        runs.insert(id.to_owned(), named);
    }

    /// Forgets what is over for long enough, and the oldest of it when there is too much.
    pub(crate) fn tidy(&self, now: Timestamp) {
        let mut runs = self.lock();
        let is_over_for_long = |named: &Named| {
            named
                .run
                .ended()
                .is_some_and(|at| at.plus(EVENTS_KEPT) <= now)
        };
        runs.retain(|_, named| !is_over_for_long(named));
        let mut over: Vec<(Timestamp, String)> = runs
            .iter()
            .filter_map(|(id, named)| Some((named.run.ended()?, id.clone())))
            .collect();
        over.sort_unstable();
        let excess = over.len().saturating_sub(OVER_MAX);
        for (_, id) in over.into_iter().take(excess) {
            runs.remove(&id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Named>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
