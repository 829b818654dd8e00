//! The conversations that the API has open: one request at a time in each, and not too many that rest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hermes_core::{
    Archive, Events, FollowFrom, Import, Message, SessionFacts, SessionHandle, SessionId,
    SessionOptions, Sessions, StoreError,
};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::error::{ApiError, ApiResult};

/// Conversations that stay open for the next request. One that was closed is opened again from the store; that costs a
/// few milliseconds, and an open one some thirty kilobytes.
const RESTING_MAX: usize = 64;

/// Requests that wait for their turn in one conversation. People send one at a time, and programs a few.
const WAITING_MAX: usize = 16;

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
    lanes: Mutex<HashMap<SessionId, Weak<Queue>>>,
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
}

/// Those who have something to say in a conversation, one after the other.
struct Queue {
    turn: Arc<tokio::sync::Mutex<()>>,
    room: Arc<Semaphore>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            turn: Arc::default(),
            room: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }
}

/// The right to say something in a conversation, for as long as it is held.
pub(crate) struct Lane {
    _turn: OwnedMutexGuard<()>,
    /// As long as somebody holds it, others find it.
    _queue: Arc<Queue>,
}

/// A request's place before the lane of a conversation.
pub(crate) enum Place {
    /// Nobody else is there.
    First(Lane),
    Behind(Waiting),
}

/// A place behind others.
pub(crate) struct Waiting {
    queue: Arc<Queue>,
    _room: OwnedSemaphorePermit,
}

impl Waiting {
    pub(crate) async fn lane(self) -> Lane {
        Lane {
            _turn: Arc::clone(&self.queue.turn).lock_owned().await,
            _queue: self.queue,
        }
    }
}

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

    /// Opens a conversation in which it is our turn.
    pub(crate) async fn open(
        &self,
        which: Which,
        options: SessionOptions,
        _lane: &Lane,
    ) -> ApiResult<OpenedSession> {
        let id = which.id().clone();
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
        let queue = self.queue_of(id);
        let Ok(_turn) = queue.turn.try_lock() else {
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
        let queue = self.queue_of(id);
        Lane {
            _turn: Arc::clone(&queue.turn).lock_owned().await,
            _queue: queue,
        }
    }

    /// Takes a place before the lane of a conversation, where not too many wait already.
    pub(crate) fn place(&self, id: &SessionId) -> ApiResult<Place> {
        let queue = self.queue_of(id);
        if let Ok(turn) = Arc::clone(&queue.turn).try_lock_owned() {
            return Ok(Place::First(Lane {
                _turn: turn,
                _queue: queue,
            }));
        }
        let Ok(room) = Arc::clone(&queue.room).try_acquire_owned() else {
            let message = format!("{WAITING_MAX} requests wait in this conversation already");
            return Err(ApiError::busy(message));
        };
        Ok(Place::Behind(Waiting { queue, _room: room }))
    }

    fn queue_of(&self, id: &SessionId) -> Arc<Queue> {
        let mut lanes = lock(&self.lanes);
        if let Some(queue) = lanes.get(id).and_then(Weak::upgrade) {
            return queue;
        }
        // Those that nobody holds go when there are twice as many as can be in use.
        if lanes.len() >= 4 * RESTING_MAX {
            lanes.retain(|_, queue| queue.strong_count() > 0);
        }
        let queue = Arc::default();
        lanes.insert(id.clone(), Arc::downgrade(&queue));
        queue
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
