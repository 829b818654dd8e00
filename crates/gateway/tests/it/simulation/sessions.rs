//! The conversations of one simulated process: real sessions with a simulated model.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_agent::{
    AgentSettings, CompactionSettings, ConsentPolicy, DelegationSettings, Limits, Opened, Ports,
    Safety, Session, SessionStart, WeakSession,
};
use hermes_core::{
    Archive as _, Audience, BoxFuture, Clock, Consent, Effect, Event, Events, FollowFrom, Import,
    ModeSwitch, Model, Need, Notice, Op, OpenError, OpenSession, Prefix, Random, RunningSession,
    SessionFacts, SessionHandle, SessionId, SessionOptions, Sessions, StoreError, Tool,
};
use hermes_testkit::simulation::{SimModel, SimStore};
use hermes_testkit::{Behaviour, TestTool};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

/// How long a question for consent waits.
const CONSENT: Duration = Duration::from_secs(120);
/// What comes of a conversation once it rests comes within this.
const LEARNING_MS_MAX: u64 = 20_000;
/// Processes beside conversations run for so long.
const PROCESS_SECS_MAX: u64 = 1_200;

pub(super) struct SimSessions {
    pub(super) store: Arc<SimStore>,
    pub(super) model: Arc<SimModel>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<Random>,
    pub(super) folder: PathBuf,
    /// When processes beside conversations end; some have one that does some time, if nothing is said.
    pub(super) process_ends_in: Option<Duration>,
    /// Of those, how many were told.
    pub(super) told: Arc<AtomicU64>,
    tasks: TaskTracker,
    open: Mutex<HashMap<SessionId, Open>>,
}

struct Open {
    session: Session,
    options: SessionOptions,
    process: Arc<Process>,
    task: JoinHandle<()>,
}

/// A process beside a conversation, which is told of when it ends.
struct Process {
    ends: Mutex<Option<Instant>>,
    told: Arc<AtomicU64>,
}

impl Process {
    async fn end(&self) -> String {
        let ends = *self.ends.lock().unwrap();
        match ends {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
        *self.ends.lock().unwrap() = None;
        self.told.fetch_add(1, Ordering::Relaxed);
        "[Background process proc_1 ended with exit code 0]".to_owned()
    }
}

impl SimSessions {
    pub(super) fn new(
        store: Arc<SimStore>,
        model: Arc<SimModel>,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        folder: PathBuf,
    ) -> Self {
        Self {
            store,
            model,
            clock,
            random,
            folder,
            process_ends_in: None,
            told: Arc::default(),
            tasks: TaskTracker::new(),
            open: Mutex::default(),
        }
    }

    fn ports(&self) -> Ports {
        Ports {
            model: self.model.clone(),
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            random: Arc::clone(&self.random),
            tools: tools(&self.random),
            unlisted: Vec::new(),
            tool_source: None,
            checkpoints: None,
            subagent_model: None,
            compression_model: None,
            safety: Safety::default(),
            references: None,
        }
    }

    fn settings(&self, options: &SessionOptions) -> AgentSettings {
        AgentSettings {
            cwd: self.folder.clone(),
            results_folder: self.folder.join("results"),
            consent: match options.audience {
                Audience::Person => ConsentPolicy::Ask { timeout: CONSENT },
                Audience::Nobody => ConsentPolicy::Refuse,
            },
            mode: ModeSwitch::default(),
            is_attended: true,
            limits: Limits::default(),
            nested_context: false,
            delegation: DelegationSettings::default(),
            compaction: CompactionSettings::default(),
        }
    }

    fn process(&self) -> Process {
        let is_there = self.random.below(8) == 0;
        let some_time = Duration::from_secs(1 + self.random.below(PROCESS_SECS_MAX));
        let ends_in = self.process_ends_in.or(is_there.then_some(some_time));
        Process {
            ends: Mutex::new(ends_in.map(|ends_in| Instant::now() + ends_in)),
            told: Arc::clone(&self.told),
        }
    }

    async fn begin(
        &self,
        options: SessionOptions,
        start: SessionStart,
    ) -> Result<RunningSession, OpenError> {
        let opened = Session::open(self.ports(), self.settings(&options), start).await;
        let Opened {
            session,
            task,
            resumed,
        } = opened.map_err(not_opened)?;
        let events = session.follow(FollowFrom::Now).into_stream();
        let process = Arc::new(self.process());
        let handle = Arc::new(Handle(session.downgrade(), process.clone()));
        self.tasks.spawn(learn(
            session.downgrade(),
            session.follow(FollowFrom::Now).into_stream(),
            Arc::clone(&self.random),
        ));
        let open = Open {
            session: session.clone(),
            options,
            process,
            task: self.tasks.spawn(task),
        };
        self.open.lock().unwrap().insert(session.id().clone(), open);
        Ok(RunningSession {
            handle,
            events,
            resumed,
            facts: SessionFacts {
                model: self.model.name(),
                context_window: None,
                is_priced: true,
                hidden_keys: None,
            },
            warnings: Vec::new(),
        })
    }
}

/// Tells of what was learned from a conversation, now and then: once it rests, and perhaps when it works again.
async fn learn(session: WeakSession, mut events: Events, random: Arc<Random>) {
    while let Some(followed) = events.next().await {
        if followed.event() == Some(&Event::Idle) && random.below(3) == 0 {
            sleep(Duration::from_millis(random.below(LEARNING_MS_MAX))).await;
            let text = "Something was learned.".to_owned();
            session.tell(Notice::Learned { text });
        }
    }
}

/// How long the server takes when it is slow: longer than people wait, shorter than calls may take.
const SERVER_MS_MAX: u64 = 90_000;

/// One that runs by itself, one that somebody has to agree to, and one of a server that comes and goes.
fn tools(random: &Random) -> Vec<Arc<dyn Tool>> {
    let need = Need {
        reason: "does something".into(),
        ..Need::default()
    };
    let act = TestTool::new("act").does(Behaviour::After(Duration::from_millis(300)));
    let ask = TestTool::new("ask")
        .effect(Effect::Effect)
        .consent(Consent::Needed(need));
    let serve = TestTool::new("serve").effect(Effect::Effect);
    let serve = serve.does(match random.below(4) {
        0 => Behaviour::Fail("the server is away; it is connected again by itself".into()),
        1 => Behaviour::After(Duration::from_millis(random.below(SERVER_MS_MAX))),
        _ => Behaviour::Echo,
    });
    vec![Arc::new(act), Arc::new(ask), Arc::new(serve)]
}

fn not_opened(error: StoreError) -> OpenError {
    OpenError {
        message: error.to_string(),
        place: None,
        hint: Some(error.hint()),
        is_asked: false,
    }
}

struct Handle(WeakSession, Arc<Process>);

impl SessionHandle for Handle {
    fn id(&self) -> &SessionId {
        self.0.id()
    }

    fn send(&self, op: Op) -> BoxFuture<'_, bool> {
        Box::pin(self.0.send(op))
    }

    fn follow(&self, from: FollowFrom) -> Events {
        self.0.follow(from).into_stream()
    }

    fn news(&self) -> BoxFuture<'_, String> {
        Box::pin(self.1.end())
    }

    fn awaits_news(&self) -> bool {
        self.1.ends.lock().unwrap().is_some()
    }
}

impl Sessions for SimSessions {
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        let start = SessionStart::New {
            source: options.source.clone(),
            title: None,
            prefix: Prefix {
                system: "You are simulated.".into(),
                tools: tools(&self.random)
                    .iter()
                    .map(|tool| tool.spec().clone())
                    .collect(),
            },
        };
        Box::pin(self.begin(options, start))
    }

    fn resume(
        &self,
        session: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        Box::pin(self.begin(options, SessionStart::Resume(session)))
    }

    fn branch(
        &self,
        of: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        let source = options.source.clone();
        let title = None;
        Box::pin(self.begin(options, SessionStart::Branch { of, source, title }))
    }

    fn import(
        &self,
        import: Import,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>> {
        let source = options.source.clone();
        let start = SessionStart::Imported {
            import,
            source,
            title: None,
        };
        Box::pin(self.begin(options, start))
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<SessionId, OpenError>> {
        Box::pin(async move { self.store.find(name).await.map_err(not_opened) })
    }

    fn get(&self, session: &SessionId) -> Option<Arc<dyn SessionHandle>> {
        let open = self.open.lock().unwrap();
        let open = open.get(session)?;
        let handle = Handle(open.session.downgrade(), Arc::clone(&open.process));
        Some(Arc::new(handle))
    }

    fn list_open(&self) -> Vec<OpenSession> {
        let open = self.open.lock().unwrap();
        let told = open.iter().map(|(id, open)| OpenSession {
            id: id.clone(),
            options: open.options.clone(),
            model: self.model.name(),
            idle: open.session.idle(),
        });
        told.collect()
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let removed = self.open.lock().unwrap().remove(session);
            if let Some(Open { session, task, .. }) = removed {
                drop(session);
                task.await.map_err(|error| OpenError {
                    message: error.to_string(),
                    place: None,
                    hint: None,
                    is_asked: false,
                })?;
            }
            Ok(())
        })
    }

    fn close_idle(&self, _: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async { 0 })
    }
}
