//! The conversations that the API has open: one request at a time in each, and not too many that rest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hermes_core::{
    Archive, Events, FollowFrom, Import, Message, SessionFacts, SessionHandle, SessionId,
    SessionOptions, Sessions, StoreError,
};
use tokio::sync::OwnedMutexGuard;

use super::error::{ApiError, ApiResult};

/// Conversations that stay open for the next request. One that was closed is opened again from the store; that costs a
/// few milliseconds, and an open one some thirty kilobytes.
const RESTING_MAX: usize = 64;

/// Which conversation is meant.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    /// The one of this name, or a new one under it.
    Named(SessionId),
    /// The one of this name; it must be there.
    Existing(SessionId),
    /// The same, for a turn in it that was cut short.
    UnderWay(SessionId),
    /// A new one, in which this was said elsewhere before.
    New { id: SessionId, said: Vec<Message> },
}

impl Which {
    pub(crate) fn id(&self) -> &SessionId {
        match self {
            Self::Named(id) | Self::Existing(id) | Self::UnderWay(id) | Self::New { id, .. } => id,
        }
    }
}

pub(crate) struct Pool {
    sessions: Arc<dyn Sessions>,
    archive: Arc<dyn Archive>,
    /// Requests take turns in a conversation.
    lanes: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    /// What we opened and nobody uses, the longest first.
    resting: Mutex<VecDeque<SessionId>>,
    facts: Mutex<HashMap<SessionId, Arc<SessionFacts>>>,
}

/// A conversation in which it is our turn to say something.
pub(crate) struct OpenedSession {
    pub(crate) handle: Arc<dyn SessionHandle>,
    /// From before anything is said.
    pub(crate) events: Events,
    pub(crate) facts: Option<Arc<SessionFacts>>,
    /// Nothing was said in it here.
    pub(crate) is_new: bool,
    pub(crate) lane: Lane,
}

/// The right to say something in a conversation, for as long as it is held.
pub(crate) struct Lane(#[expect(dead_code, reason = "held for its drop")] OwnedMutexGuard<()>);

impl Pool {
    pub(crate) fn new(sessions: Arc<dyn Sessions>, archive: Arc<dyn Archive>) -> Self {
        Self {
            sessions,
            archive,
            lanes: Mutex::default(),
            resting: Mutex::default(),
            facts: Mutex::default(),
        }
    }

    /// Waits until it is our turn in a conversation, and opens it.
    pub(crate) async fn open(
        &self,
        which: Which,
        options: SessionOptions,
    ) -> ApiResult<OpenedSession> {
        let id = which.id().clone();
        let lane = self.lane(&id).await;
        lock(&self.resting).retain(|resting| *resting != id);
        let follow_from = match which {
            Which::UnderWay(_) => FollowFrom::Turn,
            _ => FollowFrom::Now,
        };
        if let Some(handle) = self.sessions.get(&id) {
            if matches!(which, Which::UnderWay(_)) && self.is_idle(&id) {
                return Err(ApiError::turn_over());
            }
            return Ok(OpenedSession {
                events: handle.follow(follow_from),
                handle,
                is_new: false,
                facts: lock(&self.facts).get(&id).cloned(),
                lane,
            });
        }
        let running = match which {
            Which::New { id, said } => {
                let id = Some(id);
                self.sessions.import(Import { id, said }, options).await
            }
            Which::Existing(id) | Which::UnderWay(id) => {
                self.archive.record(&id).await?;
                self.sessions.resume(id, options).await
            }
            Which::Named(id) => match self.archive.record(&id).await {
                Ok(_) => self.sessions.resume(id, options).await,
                Err(StoreError::NotFound { .. }) => {
                    let import = Import {
                        id: Some(id),
                        said: Vec::new(),
                    };
                    self.sessions.import(import, options).await
                }
                Err(error) => return Err(error.into()),
            },
        }
        .map_err(ApiError::from)?;
        let facts = Arc::new(running.facts);
        lock(&self.facts).insert(id, Arc::clone(&facts));
        Ok(OpenedSession {
            handle: running.handle,
            events: running.events,
            is_new: running.resumed.is_none(),
            facts: Some(facts),
            lane,
        })
    }

    fn is_idle(&self, id: &SessionId) -> bool {
        let open = self.sessions.list_open();
        open.iter()
            .any(|open| open.id == *id && open.idle.is_some())
    }

    /// Lets a conversation rest, and closes the one that rested longest when there are too many.
    pub(crate) async fn rest(&self, id: SessionId) {
        let oldest = {
            let mut resting = lock(&self.resting);
            resting.retain(|resting| *resting != id);
            resting.push_back(id);
            (resting.len() > RESTING_MAX)
                .then(|| resting.pop_front())
                .flatten()
        };
        if let Some(oldest) = oldest {
            self.close(&oldest).await;
        }
    }

    /// Closes a conversation, unless somebody is about to say something in it.
    async fn close(&self, id: &SessionId) {
        let lane = Arc::clone(&self.lane_of(id));
        let Ok(_lane) = lane.try_lock_owned() else {
            return;
        };
        lock(&self.facts).remove(id);
        if let Err(error) = self.sessions.close(id).await {
            tracing::warn!("a conversation was not closed: {error}");
        }
    }

    /// Closes a conversation that is about to be deleted, once it is our turn in it.
    pub(crate) async fn close_for_good(&self, id: &SessionId) -> Lane {
        let lane = self.lane(id).await;
        lock(&self.resting).retain(|resting| resting != id);
        lock(&self.facts).remove(id);
        if let Err(error) = self.sessions.close(id).await {
            tracing::warn!("a conversation was not closed: {error}");
        }
        lane
    }

    /// Waits until nobody else is at it.
    pub(crate) async fn lane(&self, id: &SessionId) -> Lane {
        let lane = self.lane_of(id);
        Lane(lane.lock_owned().await)
    }

    fn lane_of(&self, id: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.get(id).and_then(Weak::upgrade) {
            return lane;
        }
        // Those that nobody holds go when there are twice as many as can be in use.
        if lanes.len() >= 4 * RESTING_MAX {
            lanes.retain(|_, lane| lane.strong_count() > 0);
        }
        let lane = Arc::default();
        lanes.insert(id.clone(), Arc::downgrade(&lane));
        lane
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
