//! The sessions that are open in this process, and their tasks: the port [`hermes_core::Sessions`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use hermes_agent::{Opened, Safety, Session, WeakSession};
use hermes_core::{
    Archive as _, BoxFuture, Events, FollowFrom, Followed, Import, ModelName, Op, OpenError,
    OpenSession, Processes, Resumed, RunningSession, SessionFacts, SessionHandle, SessionId,
    SessionOptions, Sessions, TurnCounts, Warning, WarningAbout,
};
use hermes_learning::titles::Titles;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::curating::CuratingPlan;
use crate::error::{Error, Result};
use crate::hearings::HearingPlan;
use crate::models::is_priced;
use crate::own_sessions;
use crate::recall::keep_titled;
use crate::reviews::ReviewPlan;
use crate::runtime::Runtime;
use crate::setup::{Setup, Start};

/// How long sessions may take to end what they do when the process ends. A turn that is interrupted takes a tenth of it.
const CLOSING_PATIENCE: Duration = Duration::from_secs(1);

/// Owns the tasks of all sessions. A panic ends its own session only.
#[derive(Default)]
pub(crate) struct OpenSessions {
    tasks: TaskTracker,
    /// Those who look through sessions; each ends with its session.
    reviews: TaskTracker,
    open: Mutex<HashMap<SessionId, Open>>,
    /// Turns by surface, where somebody wants to know.
    counts: OnceLock<Arc<TurnCounts>>,
}

struct Open {
    session: Session,
    options: Arc<SessionOptions>,
    model: ModelName,
    news: News,
    task: JoinHandle<()>,
}

/// Where a session hears of its processes.
#[derive(Clone)]
struct News {
    processes: Arc<dyn Processes>,
    /// Has the keys that its model is not shown.
    safety: Safety,
}

/// What is done beside a session.
struct Besides {
    review: Option<ReviewPlan>,
    titles: Option<Titles>,
    hearing: Option<HearingPlan>,
    curating: Option<CuratingPlan>,
    news: News,
}

/// A session whose task runs.
struct Started {
    handle: Arc<dyn SessionHandle>,
    events: Events,
    resumed: Option<Resumed>,
}

/// Counts the turns of a session.
async fn count(counts: Arc<TurnCounts>, surface: String, mut events: Events) {
    while let Some(followed) = events.next().await {
        if let Followed::Event(numbered) = followed {
            counts.hear(&surface, &numbered.event);
        }
    }
}

impl Runtime {
    /// From now on turns are counted, in sessions that are opened from now on.
    pub fn count_turns(&self) -> Arc<TurnCounts> {
        Arc::clone(self.sessions.counts.get_or_init(Arc::default))
    }

    /// Opens a session and runs it until it is closed.
    pub(crate) async fn begin(
        &self,
        setup: &Setup,
        options: &SessionOptions,
        start: Start,
    ) -> Result<RunningSession> {
        setup.count_preloaded(&start).await;
        let (ports, model) = (setup.session_ports(&start), setup.ports.model.name());
        let opened = Session::open(ports, setup.settings.clone(), setup.start(start)).await?;
        let facts = SessionFacts {
            model: model.clone(),
            context_window: setup.ports.model.context_window(),
            is_priced: is_priced(setup.ports.model.as_ref()),
            hidden_keys: setup.ports.safety.hidden_keys.clone(),
        };
        let review = setup.review.clone();
        let besides = Besides {
            review,
            titles: setup.titles.clone(),
            curating: setup.curating.clone(),
            hearing: setup
                .user_model
                .as_ref()
                .and_then(|known| known.hearing.clone()),
            news: News {
                processes: Arc::clone(setup.processes()),
                safety: setup.ports.safety.clone(),
            },
        };
        let opened = self.sessions.run(opened, options.clone(), model, besides);
        if let Some(person) = &options.person {
            let (store, clock) = (self.store(), self.clock().as_ref());
            own_sessions::note(store, clock, person, opened.handle.id()).await?;
        }
        Ok(RunningSession {
            handle: opened.handle,
            events: opened.events,
            resumed: opened.resumed,
            facts,
            warnings: warnings(setup),
        })
    }

    /// Opens a session for a surface that has nothing but the port.
    async fn serve(
        &self,
        options: SessionOptions,
        start: Start,
    ) -> Result<RunningSession, OpenError> {
        let options = match &start {
            Start::Resume(session) => self.in_its_folder(session, options).await,
            _ => options,
        };
        let setup = self.shared_setup(&options).await?;
        Ok(self.begin(&setup, &options, start).await?)
    }

    /// Options for going on with a conversation: it stays in its folder, as long as that is there and the options name no
    /// other.
    pub async fn in_its_folder(
        &self,
        session: &SessionId,
        mut options: SessionOptions,
    ) -> SessionOptions {
        if options.cwd.is_some() || options.person.is_some() {
            return options;
        }
        let record = self.store().record(session).await;
        let folder = record.ok().and_then(|record| record.cwd);
        options.cwd = folder.filter(|folder| *folder != self.base().cwd && folder.is_dir());
        options
    }
}

fn warnings(setup: &Setup) -> Vec<Warning> {
    let of_settings = setup.warnings.iter().map(|text| {
        let about = if setup.server_warnings.contains(text) {
            WarningAbout::Servers
        } else {
            WarningAbout::Settings
        };
        (about, text)
    });
    let skills = setup.missing_skills.iter();
    let all = of_settings.chain(skills.map(|text| (WarningAbout::Skills, text)));
    let warning = |(about, text): (WarningAbout, &String)| Warning {
        about,
        text: text.clone(),
    };
    all.map(warning).collect()
}

impl OpenSessions {
    fn run(
        &self,
        opened: Opened,
        options: SessionOptions,
        model: ModelName,
        besides: Besides,
    ) -> Started {
        let Opened {
            session,
            task,
            resumed,
        } = opened;
        // Before its task runs: whoever opened it misses nothing.
        let events = session.follow(FollowFrom::Now);
        if let Some(review) = besides.review {
            let earlier = resumed
                .as_ref()
                .map(|resumed| Arc::clone(&resumed.messages));
            let followed = session.follow(FollowFrom::Now);
            let follow = review.follow(session.downgrade(), followed, earlier.unwrap_or_default());
            self.reviews.spawn(follow);
        }
        if let Some(hearing) = besides.hearing {
            let followed = session.follow(FollowFrom::Now);
            self.reviews
                .spawn(hearing.follow(session.downgrade(), followed));
        }
        if let Some(curating) = besides.curating {
            let followed = session.follow(FollowFrom::Now);
            self.reviews
                .spawn(curating.follow(session.downgrade(), followed));
        }
        if let Some(counts) = self.counts.get() {
            let followed = session.follow(FollowFrom::Now).into_stream();
            let (counts, surface) = (Arc::clone(counts), options.source.clone());
            self.tasks.spawn(count(counts, surface, followed));
        }
        if let Some(titles) = besides.titles {
            let followed = session.follow(FollowFrom::Now);
            self.tasks
                .spawn(keep_titled(titles, session.id().clone(), followed));
        }
        let open = Open {
            session: session.clone(),
            options: Arc::new(options),
            model,
            news: besides.news.clone(),
            task: self.tasks.spawn(task),
        };
        self.lock().insert(session.id().clone(), open);
        Started {
            handle: Arc::new(Handle {
                session: session.downgrade(),
                news: besides.news,
            }),
            events: events.into_stream(),
            resumed,
        }
    }

    /// Closes one: what it does ends first. An error says that it stopped by itself before.
    pub(crate) async fn close(&self, id: &SessionId) -> Result<()> {
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
        // What a review is writing is written, and what is left of it stays due.
        self.reviews.close();
        _ = timeout(CLOSING_PATIENCE, self.reviews.wait()).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Handle {
    session: WeakSession,
    news: News,
}

impl SessionHandle for Handle {
    fn id(&self) -> &SessionId {
        self.session.id()
    }

    fn send(&self, op: Op) -> BoxFuture<'_, bool> {
        Box::pin(self.session.send(op))
    }

    fn follow(&self, from: FollowFrom) -> Events {
        self.session.follow(from).into_stream()
    }

    fn news(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let notice = self.news.processes.notice(self.session.id()).await;
            self.news.safety.hide_keys(notice)
        })
    }

    fn awaits_news(&self) -> bool {
        self.session.awaits_report() || self.news.processes.owes_notice(self.session.id())
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

    fn import(
        &self,
        import: Import,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        Box::pin(async move {
            let title = options.title.clone();
            self.serve(options, Start::Imported { import, title }).await
        })
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<SessionId, OpenError>> {
        Box::pin(async move { Ok(self.store().find(name).await.map_err(Error::from)?) })
    }

    fn get(&self, session: &SessionId) -> Option<Arc<dyn SessionHandle>> {
        let open = self.sessions.lock();
        let open = open.get(session)?;
        Some(Arc::new(Handle {
            session: open.session.downgrade(),
            news: open.news.clone(),
        }))
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
