//! The sessions that are open in this process, and their tasks: the port [`hermes_core::Sessions`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::BoxStream;
use hermes_agent::{Follower, Opened, Resumed, Session, WeakSession};
use hermes_core::{
    Archive as _, BoxFuture, FollowFrom, Followed, ModelName, Op, OpenError, OpenSession,
    RunningSession, SessionHandle, SessionId, SessionOptions, Sessions,
};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::error::{Error, Result};
use crate::recall::keep_titled;
use crate::runtime::Runtime;
use crate::setup::{Setup, Start};

/// How long sessions may take to end what they do when the process ends. A turn that is interrupted takes a tenth of it.
const CLOSING_PATIENCE: Duration = Duration::from_secs(1);

/// Owns the tasks of all sessions. A panic ends its own session only.
#[derive(Default)]
pub(crate) struct OpenSessions {
    tasks: TaskTracker,
    open: Mutex<HashMap<SessionId, Open>>,
}

struct Open {
    session: Session,
    options: Arc<SessionOptions>,
    model: ModelName,
    task: JoinHandle<()>,
}

/// A session that was just opened, for whoever stands behind a conversation.
pub struct OpenedSession {
    pub session: Session,
    /// From its very beginning.
    pub events: Follower,
    /// What there was before, when it was resumed or branched off.
    pub resumed: Option<Resumed>,
}

impl Runtime {
    /// Opens a session and runs it until it is closed.
    pub async fn begin(
        &self,
        setup: &Setup,
        options: &SessionOptions,
        start: Start,
    ) -> Result<OpenedSession> {
        let (ports, model) = (setup.session_ports(), setup.ports.model.name());
        let opened = Session::open(ports, setup.settings.clone(), setup.start(start)).await?;
        let opened = self.sessions.run(opened, options.clone(), model);
        if let Some(titles) = &setup.titles {
            let session = opened.session.clone();
            self.sessions
                .tasks
                .spawn(keep_titled(titles.clone(), session));
        }
        Ok(opened)
    }

    /// Closes a session: what it does ends first. An error says that it stopped by itself before.
    pub async fn close_session(&self, session: Session) -> Result<()> {
        let id = session.id().clone();
        drop(session);
        self.sessions.close(&id).await
    }

    /// Opens a session for a surface that has nothing but the port.
    async fn serve(
        &self,
        options: SessionOptions,
        start: Start,
    ) -> Result<RunningSession, OpenError> {
        let setup = self.set_up(&options).await?;
        let opened = self.begin(&setup, &options, start).await?;
        Ok(RunningSession {
            handle: Arc::new(Handle(opened.session.downgrade())),
            events: opened.events.into_stream(),
            warnings: setup
                .warnings
                .into_iter()
                .chain(setup.missing_skills)
                .collect(),
        })
    }
}

impl OpenSessions {
    fn run(&self, opened: Opened, options: SessionOptions, model: ModelName) -> OpenedSession {
        let Opened {
            session,
            task,
            resumed,
        } = opened;
        // Before its task runs: whoever opened it misses nothing.
        let events = session.follow(FollowFrom::Now);
        let open = Open {
            session: session.clone(),
            options: Arc::new(options),
            model,
            task: self.tasks.spawn(task),
        };
        self.lock().insert(session.id().clone(), open);
        OpenedSession {
            session,
            events,
            resumed,
        }
    }

    async fn close(&self, id: &SessionId) -> Result<()> {
        let Some(Open { session, task, .. }) = self.lock().remove(id) else {
            return Ok(());
        };
        // The last one that keeps it open.
        drop(session);
        task.await.map_err(|error| {
            Error::failed(format!("the session stopped unexpectedly: {error}")).with_hint(format!(
                "this is a bug; everything said so far is saved: hermes -r {id}"
            ))
        })
    }

    /// Closes all: each ends what it does, or is stopped when that takes too long.
    pub(crate) async fn close_all(&self) {
        let open: Vec<Open> = self.lock().drain().map(|(_, open)| open).collect();
        let tasks: Vec<_> = open.into_iter().map(|open| open.task).collect();
        let stops: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        if timeout(CLOSING_PATIENCE, join_all(tasks)).await.is_err() {
            stops.iter().for_each(AbortHandle::abort);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Handle(WeakSession);

impl SessionHandle for Handle {
    fn id(&self) -> &SessionId {
        self.0.id()
    }

    fn send(&self, op: Op) -> BoxFuture<'_, bool> {
        Box::pin(self.0.send(op))
    }

    fn follow(&self, from: FollowFrom) -> BoxStream<'static, Followed> {
        self.0.follow(from).into_stream()
    }
}

impl Sessions for Runtime {
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        Box::pin(async move {
            let title = options.title.clone();
            self.serve(options, Start::New { title }).await
        })
    }

    fn resume(
        &self,
        session: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        Box::pin(self.serve(options, Start::Resume(session)))
    }

    fn branch(
        &self,
        of: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        Box::pin(async move {
            let title = options.title.clone();
            self.serve(options, Start::Branch { of, title }).await
        })
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<SessionId, OpenError>> {
        Box::pin(async move { Ok(self.store().find(name).await.map_err(Error::from)?) })
    }

    fn get(&self, session: &SessionId) -> Option<Arc<dyn SessionHandle>> {
        let open = self.sessions.lock();
        let handle = Handle(open.get(session)?.session.downgrade());
        Some(Arc::new(handle))
    }

    fn list_open(&self) -> Vec<OpenSession> {
        let open = self.sessions.lock();
        let running = open.iter().filter(|(_, open)| !open.task.is_finished());
        let told = running.map(|(id, open)| OpenSession {
            id: id.clone(),
            options: open.options.as_ref().clone(),
            model: open.model.clone(),
            idle: open.session.idle(),
        });
        told.collect()
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move { Ok(self.sessions.close(session).await?) })
    }

    fn close_idle(&self, idle_for: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            let is_due = |open: &Open| match open.session.idle() {
                Some(idle) => idle >= idle_for,
                // Nobody needs one that stopped by itself.
                None => open.task.is_finished(),
            };
            let due: Vec<Open> = {
                let mut open = self.sessions.lock();
                let due = open.extract_if(|_, open| is_due(open));
                due.map(|(_, open)| open).collect()
            };
            let tasks = due.into_iter().map(|open| open.task);
            join_all(tasks).await.len()
        })
    }
}
