//! One subagent: a session that is told one thing and followed until it rests.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::{
    BoxFuture, CancellationToken, Event, Exposure, FollowFrom, Followed, LoadedSession,
    NumberedEvent, SessionId, StoreError, SubagentReport, SubagentRole, SubagentStatus,
    SubagentTask, Subagents, Tool, ToolGroup, ToolSpec,
};
use tokio::sync::{Semaphore, oneshot};

use super::report;
use super::watch::Watch;
use crate::prompt;
use crate::session::{AgentSettings, Opened, Ports, Session, SessionStart};
use crate::spill;

/// Longer than any process lives: a task without a limit.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(super) struct Subagent {
    pub(super) id: SessionId,
    pub(super) index: usize,
    /// None: it was told already, and goes on.
    pub(super) task: Option<SubagentTask>,
    pub(super) parent: SessionId,
    /// With all the tools of the parent.
    pub(super) ports: Ports,
    pub(super) settings: AgentSettings,
    pub(super) permits: Arc<Semaphore>,
    pub(super) watch: Watch,
    /// Dropped once the session is on disk, or never will be.
    pub(super) starting: Option<oneshot::Sender<()>>,
}

/// What is there when a subagent begins.
enum Begun {
    /// It came to rest before: in this process, or in one that died.
    Ended(Box<LoadedSession>),
    Running(Box<Opened>),
}

/// Why a subagent was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Interrupted,
    OutOfTime,
}

impl Subagent {
    /// Returns what resolves when the session is on disk, or when it cannot be.
    pub(super) fn when_started(&mut self) -> oneshot::Receiver<()> {
        let (starting, started) = oneshot::channel();
        self.starting = Some(starting);
        started
    }

    /// What is reported of a subagent that crashed.
    pub(super) fn lost(&self) -> SubagentReport {
        let error = "the subagent crashed; this is a bug in hermes".to_owned();
        report::without_session(self.index, &self.id, SubagentStatus::Error, error)
    }

    /// Works until the task has come to rest. Being stopped is a way to rest, too.
    pub(super) fn work(mut self, stop: CancellationToken) -> BoxFuture<'static, SubagentReport> {
        Box::pin(async move {
            let permits = Arc::clone(&self.permits);
            let _permit = tokio::select! {
                permit = permits.acquire_owned() => permit,
                () = stop.cancelled() => {
                    let error = "stopped before it began".to_owned();
                    return report::without_session(self.index, &self.id, SubagentStatus::Interrupted, error);
                }
            };
            match self.try_work(&stop).await {
                Ok(report) => report,
                Err(error) => {
                    let error = format!("{error}; {}", error.hint());
                    report::without_session(self.index, &self.id, SubagentStatus::Error, error)
                }
            }
        })
    }

    async fn try_work(&mut self, stop: &CancellationToken) -> Result<SubagentReport, StoreError> {
        let (ended, cut) = match self.begin().await? {
            Begun::Ended(loaded) => (*loaded, None),
            Begun::Running(opened) => {
                let cut = self.follow(*opened, stop).await;
                (self.ports.store.load(&self.id).await?, cut)
            }
        };
        let report = report::of(self.index, &ended, cut);
        let folder = self.settings.results_folder.join(self.id.as_str());
        let chars_max = self.settings.delegation.summary_chars_max;
        let summary = spill::keep_ends(report.summary, chars_max, folder, "summary").await;
        Ok(SubagentReport { summary, ..report })
    }

    /// Opens the session where it stands: not there yet, cut short by a crash, or at its end.
    async fn begin(&self) -> Result<Begun, StoreError> {
        let known = match self.ports.store.load(&self.id).await {
            Ok(loaded) if loaded.open_turn.is_none() => return Ok(Begun::Ended(loaded.into())),
            Ok(loaded) => Ok(loaded),
            Err(error) => Err(error),
        };
        match (known, &self.task) {
            (Ok(loaded), _) => {
                let tools = self.tools(|tool| is_offered(&loaded.prefix.tools, &tool.spec().name));
                let resume = SessionStart::Resume(self.id.clone());
                let opened = self.open(tools, resume).await?;
                Ok(Begun::Running(opened.into()))
            }
            (Err(StoreError::NotFound { .. }), Some(task)) => {
                let tools = self.tools(|tool| self.may_have(tool.exposure(), task.role));
                let start = SessionStart::Subagent {
                    id: self.id.clone(),
                    parent: self.parent.clone(),
                    prefix: prompt::for_subagent(
                        &self.settings.cwd,
                        &tools,
                        self.settings.delegation.wording,
                    ),
                };
                let opened = self.open(tools, start).await?;
                opened.session.say(told(task)).await;
                self.watch.show(&format!("started: {}", task.goal));
                Ok(Begun::Running(opened.into()))
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn open(
        &self,
        tools: Vec<Arc<dyn Tool>>,
        start: SessionStart,
    ) -> Result<Opened, StoreError> {
        let mut ports = Ports {
            tools,
            // It has what it was given; its task is short.
            tool_source: None,
            ..self.ports.clone()
        };
        if !self.settings.delegation.inherits_mcp_tools {
            ports.unlisted.clear();
        }
        Session::open(ports, self.settings.clone(), start).await
    }

    fn tools(&self, may_have: impl Fn(&dyn Tool) -> bool) -> Vec<Arc<dyn Tool>> {
        let all = self.ports.tools.iter();
        all.filter(|tool| may_have(tool.as_ref()))
            .cloned()
            .collect()
    }

    fn may_have(&self, exposure: &Exposure, role: SubagentRole) -> bool {
        let delegation = &self.settings.delegation;
        let is_inherited = match exposure.group {
            ToolGroup::Toolset(_) => true,
            ToolGroup::Server(_) | ToolGroup::Finder => delegation.inherits_mcp_tools,
        };
        let is_for_it = match exposure.subagents {
            Subagents::None => false,
            Subagents::All => true,
            Subagents::Orchestrators => {
                role == SubagentRole::Orchestrator
                    && delegation.may_orchestrate
                    && delegation.depth < delegation.depth_max
            }
        };
        is_inherited && is_for_it
    }

    /// Passes on what the session tells until it rests. Returns why it was stopped, if it was.
    async fn follow(&mut self, opened: Opened, stop: &CancellationToken) -> Option<Cut> {
        let Opened { session, task, .. } = opened;
        let mut events = session.follow(FollowFrom::Turn);
        let mut handle = Some(session);
        let mut cut = None;
        let mut is_running = true;
        let limit = self.settings.delegation.time_max.unwrap_or(NO_LIMIT);
        let out_of_time = tokio::time::sleep(limit);
        tokio::pin!(task, out_of_time);
        let mut asking = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled(), if cut.is_none() => {
                    cut = Some(Cut::Interrupted);
                    interrupt(handle.as_ref()).await;
                }
                () = &mut out_of_time, if cut.is_none() => {
                    cut = Some(Cut::OutOfTime);
                    interrupt(handle.as_ref()).await;
                }
                followed = events.next() => match followed {
                    None => return cut,
                    Some(Followed::Missed { .. }) => {}
                    Some(Followed::Event(NumberedEvent { event, .. })) => match event {
                        // At rest: the session ends with its last handle.
                        Event::Idle => handle = None,
                        event => {
                            if is_on_disk(&event) {
                                self.starting = None;
                            }
                            asking.extend(self.watch.note(event));
                        }
                    },
                },
                Some(answer) = asking.next() => {
                    if let (Some(handle), Some(answer)) = (&handle, answer) {
                        handle.send(answer).await;
                    }
                }
                () = &mut task, if is_running => is_running = false,
            }
        }
    }
}

async fn interrupt(handle: Option<&Session>) {
    if let Some(handle) = handle {
        handle.interrupt().await;
    }
}

/// Whether an event says that the subagent's session survives a crash from now on.
fn is_on_disk(event: &Event) -> bool {
    matches!(
        event,
        Event::TurnStarted { .. } | Event::TurnResumed { .. } | Event::TurnEnded { .. }
    )
}

fn is_offered(specs: &[ToolSpec], tool: &str) -> bool {
    specs.iter().any(|spec| spec.name == tool)
}

/// A task as the subagent is told it.
fn told(task: &SubagentTask) -> String {
    match task.context.trim() {
        "" => task.goal.clone(),
        context => format!("{}\n\n# What you need to know\n{context}", task.goal),
    }
}
