//! A session: one task that owns a conversation and takes [`Op`]s one after the other.

mod beginning;
mod compress;
mod equip;
mod rewind;
mod task;
mod turns;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    ApprovalAnswer, ApprovalId, BoxFuture, Checkpoints, Clock, ElicitationId, Event, FollowFrom,
    Import, ModeSwitch, Model, Notice, Op, Prefix, Random, References, Response, Resumed,
    SessionId, Store, StoreError, Tool, UserMessage,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::compaction::CompactionSettings;
use crate::consent::ConsentPolicy;
use crate::delegation::DelegationSettings;
use crate::events::{EventLog, Follower};
use crate::safety::Safety;
use crate::spill::RESULT_CHARS_FLOOR;
use crate::tool_source::ToolSource;
use task::SessionTask;

/// Ops that wait while a session is busy with one. More means nobody reads the answers.
const OPS_WAITING_MAX: usize = 64;

/// What the agent works with.
#[derive(Clone)]
pub struct Ports {
    pub model: Arc<dyn Model>,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    /// What a new session tells its model of.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What it can call besides.
    pub unlisted: Vec<Arc<dyn Tool>>,
    /// Where more tools come from while the session runs, if they do.
    pub tool_source: Option<Arc<dyn ToolSource>>,
    /// Where projects are kept before a turn changes them, when they are.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Who answers subagents, if not the session's own model.
    pub subagent_model: Option<Arc<dyn Model>>,
    /// Who summarises what a conversation outgrows, if not the session's own model.
    pub compression_model: Option<Arc<dyn Model>>,
    /// Who looks at a call before a person does.
    pub safety: Safety,
    /// Who brings what a person refers to with an `@` besides files, if anybody does.
    pub references: Option<Arc<dyn References>>,
}

#[derive(Debug, Clone)]
pub struct AgentSettings {
    pub cwd: PathBuf,
    /// Results too long for the conversation go here.
    pub results_folder: PathBuf,
    pub consent: ConsentPolicy,
    /// How freely calls may act; switched while the session goes on.
    pub mode: ModeSwitch,
    /// Whether a person follows the session and can answer what its calls ask.
    pub is_attended: bool,
    pub limits: Limits,
    /// Whether context files of subdirectories come with the results that touch them.
    pub nested_context: bool,
    pub delegation: DelegationSettings,
    pub compaction: CompactionSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model requests per turn. A turn that needs more has lost its way.
    pub steps_max: u32,
    pub result_chars_max: usize,
    pub turn_result_chars_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps_max: 90,
            result_chars_max: 100_000,
            turn_result_chars_max: 200_000,
        }
    }
}

impl Limits {
    /// The same where not more than so many tokens fit into the model: no result takes more than a good part of them.
    pub(crate) fn within(self, window: Option<u64>) -> Self {
        /// Characters of English in a token.
        const CHARS: u64 = 4;
        const FLOOR: u64 = RESULT_CHARS_FLOOR as u64;
        let Some(window) = window else {
            return self;
        };
        let chars = |percent: u64, floor: u64| {
            let part = window.saturating_mul(CHARS * percent) / 100;
            // In the smallest, a quarter of all: more would push everything else out.
            usize::try_from(part.max(floor.min(window))).unwrap_or(usize::MAX)
        };
        Self {
            result_chars_max: self.result_chars_max.min(chars(15, FLOOR)),
            turn_result_chars_max: self.turn_result_chars_max.min(chars(30, 2 * FLOOR)),
            ..self
        }
    }
}

/// How a session begins. A new one is written to the store with its first message, so that none is empty.
pub enum SessionStart {
    New {
        source: String,
        title: Option<String>,
        prefix: Prefix,
    },
    /// One that has a name already, or that was begun elsewhere.
    Imported {
        import: Import,
        source: String,
        title: Option<String>,
    },
    Resume(SessionId),
    /// A copy that goes its own way. The conversation it was copied from stays as it is.
    Branch {
        of: SessionId,
        source: String,
        title: Option<String>,
    },
    /// A session that works for another one. Its name says for which call of it.
    Subagent {
        id: SessionId,
        parent: SessionId,
        prefix: Prefix,
    },
}

/// A session that is ready, and the task that runs it. The caller owns the task; when it is dropped, the session stops.
pub struct Opened {
    pub session: Session,
    pub task: BoxFuture<'static, ()>,
    /// What there was before, when it was resumed or branched off.
    pub resumed: Option<Resumed>,
}

/// A handle to a session. The session ends when the last handle is dropped and its work is done.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    ops: mpsc::Sender<Op>,
    activity: Activity,
    events: EventLog,
}

/// A session as somebody has it who does not keep it open.
#[derive(Clone)]
pub struct WeakSession {
    id: SessionId,
    ops: mpsc::WeakSender<Op>,
    activity: Activity,
    events: EventLog,
}

impl WeakSession {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Reads along what happens, from wherever one likes.
    pub fn follow(&self, from: FollowFrom) -> Follower {
        self.events.follow(from)
    }

    /// Tells whoever follows of something that happened beside the conversation.
    pub fn tell(&self, notice: Notice) {
        self.events.tell(Event::Notice { notice });
    }

    /// Whether subagents work in its background, whose report begins a turn of it.
    pub fn awaits_report(&self) -> bool {
        self.activity.awaits_report()
    }

    /// Sends an op. Returns false when the session is gone.
    pub async fn send(&self, op: Op) -> bool {
        match self.ops.upgrade() {
            Some(ops) => ops.send(op).await.is_ok(),
            None => false,
        }
    }
}

/// Whether a session works or rests, told by its task.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Mutex<Rest>>);

#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// Nothing has run since then.
    since: Option<Instant>,
    /// Subagents work on meanwhile.
    awaits_report: bool,
}

impl Activity {
    pub(crate) fn rest(&self) {
        self.lock().since = Some(Instant::now());
    }

    pub(crate) fn wake(&self) {
        self.lock().since = None;
    }

    /// To be told before the session is said to rest: who closes one that does looks here.
    pub(crate) fn note_background(&self, is_working: bool) {
        self.lock().awaits_report = is_working;
    }

    fn awaits_report(&self) -> bool {
        self.lock().awaits_report
    }

    fn lock(&self) -> MutexGuard<'_, Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Opens a session. Nothing is asked and nothing runs until the task does.
    pub async fn open(
        ports: Ports,
        settings: AgentSettings,
        start: SessionStart,
    ) -> Result<Opened, StoreError> {
        let (ops, ops_waiting) = mpsc::channel(OPS_WAITING_MAX);
        let events = EventLog::default();
        let mut task = SessionTask::new(ports, settings, events.clone());
        let resumed = match start {
            SessionStart::New {
                source,
                title,
                prefix,
            } => {
                task.begin_new(source, title, prefix);
                None
            }
            SessionStart::Imported {
                import,
                source,
                title,
            } => {
                task.begin_imported(import, source, title);
                None
            }
            SessionStart::Subagent { id, parent, prefix } => {
                task.begin_subagent(id, parent, prefix);
                None
            }
            SessionStart::Resume(id) => Some(task.resume(id).await?),
            SessionStart::Branch { of, source, title } => {
                Some(task.branch(of, source, title).await?)
            }
        };
        let session = Self {
            id: task.recorder.session().clone(),
            ops,
            events,
            activity: task.activity.clone(),
        };
        Ok(Opened {
            session,
            task: Box::pin(task.run(ops_waiting)),
            resumed,
        })
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Reads along what happens, from wherever one likes. Nobody who follows holds the session up, or keeps it open.
    pub fn follow(&self, from: FollowFrom) -> Follower {
        self.events.follow(from)
    }

    pub fn downgrade(&self) -> WeakSession {
        WeakSession {
            id: self.id.clone(),
            ops: self.ops.downgrade(),
            activity: self.activity.clone(),
            events: self.events.clone(),
        }
    }

    /// For how long nothing has run; `None` while something does, and before the task runs.
    pub fn idle(&self) -> Option<Duration> {
        let since = self.activity.lock().since;
        since.map(|since| since.elapsed())
    }

    /// Sends an op. Returns false when the session is gone.
    pub async fn send(&self, op: Op) -> bool {
        self.ops.send(op).await.is_ok()
    }

    pub async fn say(&self, text: impl Into<String>) -> bool {
        self.send(Op::Say(UserMessage::text(text))).await
    }

    pub async fn interrupt(&self) -> bool {
        self.send(Op::Interrupt).await
    }

    pub async fn answer(&self, approval: ApprovalId, answer: impl Into<ApprovalAnswer>) -> bool {
        let answer = answer.into();
        self.send(Op::Answer { approval, answer }).await
    }

    pub async fn respond(&self, elicitation: ElicitationId, response: Response) -> bool {
        self.send(Op::Respond {
            elicitation,
            response,
        })
        .await
    }
}
