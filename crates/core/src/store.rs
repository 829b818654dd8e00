//! The ports to what survives: [`Store`] for the turn loop, [`Archive`] for looking at sessions afterwards.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Approvals, Verdict};
use crate::clock::Timestamp;
use crate::compaction::{Shortened, SummaryUse};
use crate::effect::Effect;
use crate::id::{ApprovalId, CallId, QueuedId, SessionId, TurnId};
use crate::message::{Message, Role, ToolResult};
use crate::model::{Cost, FinishReason, ModelName, Usage};
use crate::session::{QueuedMessage, TurnEnd};
use crate::tool::{BoxFuture, ToolSpec};

/// Sessions, their step logs and the questions that wait in them.
///
/// When a future resolves to `Ok`, the change is on disk and survives `kill -9` and a power cut. An `append` is all or
/// nothing. Dropping a future may or may not cancel the write; it never tears one.
pub trait Store: Approvals {
    /// Writes a session together with its first entries, in one transaction: no crash leaves an empty one.
    fn create(
        &self,
        session: NewSession,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Takes the sole right to append to a session, across processes. Given back when the claim is dropped, and by the
    /// operating system when the process dies.
    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>>;

    /// Appends entries in order, in one transaction.
    fn append(
        &self,
        session: &SessionId,
        at: Timestamp,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    fn load(&self, session: &SessionId) -> BoxFuture<'_, Result<LoadedSession, StoreError>>;

    /// Reads the entries that a copy of a session begins with: each turn that was not taken back, what tools kept in it, and
    /// what a model sees in place of older ones. Refused while a turn is open: its calls may have no results yet.
    fn entries_of_copy(&self, session: &SessionId)
    -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// Finds the turn that is so many from the end, the last one being 1: the first there is when there are fewer. Says how
    /// many turns it is from the end, and what it began with, also when a summary covers that.
    fn turn_from_end(
        &self,
        session: &SessionId,
        turns: u32,
    ) -> BoxFuture<'_, Result<Option<(u32, Message)>, StoreError>>;

    /// Sessions with a turn that was started and never ended, or with words that wait for one, oldest first.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;
}

/// The right to append to one session.
pub struct Claim(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl Claim {
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    pub id: SessionId,
    pub created: Timestamp,
    /// Which surface it came through: `cli`, `oneshot`, a platform.
    pub source: String,
    pub title: Option<String>,
    pub cwd: Option<PathBuf>,
    pub model: ModelName,
    /// The session this one branched off.
    pub parent: Option<SessionId>,
    pub prefix: Prefix,
}

/// What every request of a session begins with. Frozen: the same bytes on every request, across restarts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefix {
    pub system: String,
    /// Most conversations of a process are told of the same tools.
    pub tools: Arc<[ToolSpec]>,
}

/// One line of the step log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    TurnStarted {
        turn: TurnId,
        message: Message,
    },
    /// A restart takes an unfinished turn up again.
    TurnResumed {
        turn: TurnId,
    },
    ModelAsked {
        turn: TurnId,
        model: ModelName,
    },
    Replied {
        turn: TurnId,
        message: Message,
        reason: FinishReason,
        usage: Usage,
        cost: Cost,
        model: ModelName,
    },
    /// About to run. What follows a crash depends on `effect`.
    CallIntended {
        turn: TurnId,
        call: CallId,
        tool: String,
        effect: Effect,
        arguments: Value,
    },
    CallFinished {
        turn: TurnId,
        result: ToolResult,
    },
    /// `closing` is the assistant's last word when the model left none, so that the history stays well-formed.
    TurnEnded {
        turn: TurnId,
        end: TurnEnd,
        closing: Option<Message>,
    },
    /// A tool keeps this for its next call in the session. It goes with the turn, when that is taken back.
    ToolKept {
        turn: TurnId,
        tool: String,
        state: Value,
    },
    /// From here on a model sees `summary` and the last `kept` messages, some of them shortened. Nothing is deleted: people
    /// and search see everything, and taking back a turn that the summary covers takes back the compaction.
    Compacted {
        /// Its origin is [`crate::Origin::Summary`]. Without one, all that is seen now is kept, and some of it shortened or
        /// the prefix replaced.
        summary: Option<Message>,
        kept: u32,
        /// What is seen in place of some of the kept messages. Those that were shortened before stay so.
        shortened: Vec<Shortened>,
        /// What requests begin with from now on, where that has changed.
        prefix: Option<Prefix>,
        /// What asking for the summary took, where a model was asked.
        used: Option<SummaryUse>,
    },
    /// Words wait for the turn that runs, until [`Entry::Dequeued`] takes them.
    Queued {
        queued: QueuedMessage,
    },
    /// Words wait no longer: an entry of the same commit says them, or they are forgotten.
    Dequeued {
        queued: Vec<QueuedId>,
    },
    /// The user took the last turns back: they are no longer part of the conversation.
    Rewound {
        turns: u32,
    },
    /// A turn of the session this one branched off, as it was said there. What it used is counted there.
    Inherited {
        turn: TurnId,
        messages: Vec<Message>,
    },
}

/// What tools keep for their next call in a session, by the tool's name.
pub type ToolStates = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSession {
    pub record: SessionRecord,
    pub prefix: Prefix,
    /// What a model sees, in conversation order: after a compaction the summary and what came after it. The results of
    /// a reply stand in the order of its calls.
    pub messages: Vec<Message>,
    /// What each tool kept last.
    pub tool_states: ToolStates,
    /// Words that wait, in the order they were said.
    pub queued: Vec<QueuedMessage>,
    pub open_turn: Option<OpenTurn>,
    /// How the last turn ended that did.
    pub last_end: Option<TurnEnd>,
}

/// A turn that never ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    pub turn: TurnId,
    /// How often it was already resumed.
    pub resumed: u32,
    /// Model requests it has used.
    pub steps: u32,
    /// Replies it has got.
    pub replies: u32,
    /// Calls that were about to run and have no result.
    pub intents: Vec<Intent>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    pub call: CallId,
    pub tool: String,
    pub effect: Effect,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: SessionId,
    pub title: Option<String>,
    /// The first words of the first message, for sessions without a title.
    pub preview: String,
    pub source: String,
    pub cwd: Option<PathBuf>,
    pub model: ModelName,
    pub parent: Option<SessionId>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub messages: u64,
    pub calls: u64,
    pub requests: u64,
    pub usage: Usage,
    /// `None` as soon as the price of one request is unknown.
    pub cost_micro_usd: Option<u64>,
    pub has_open_turn: bool,
}

/// Looking at sessions: listing, finding, searching, tidying up.
pub trait Archive: Send + Sync {
    fn list(&self, filter: SessionFilter) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>>;

    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>>;

    /// The subagents that worked for a session, and those that worked for them, oldest first.
    fn subagents(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>>;

    /// Finds a session by id, by a unique beginning of one, or by title (the newest `title #N` before the plain one).
    fn find(&self, name: &str) -> BoxFuture<'_, Result<SessionId, StoreError>>;

    fn transcript(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<TranscriptLine>, StoreError>>;

    /// Reads what users and assistants said, and what tools returned where that is asked for, oldest first.
    fn spoken(&self, query: SpokenQuery) -> BoxFuture<'_, Result<Vec<Spoken>, StoreError>>;

    /// Reads one message by its place, also the result of a tool; `None` when there is none, or it was taken back.
    fn message_at(&self, place: u64) -> BoxFuture<'_, Result<Option<Spoken>, StoreError>>;

    /// Reads the end of a session: so many exchanges, each beginning with what the user said. The rest is not read, so
    /// that a long session is shown as soon as a short one.
    fn ending(
        &self,
        session: &SessionId,
        exchanges: usize,
    ) -> BoxFuture<'_, Result<Ending, StoreError>>;

    /// Full-text search, the best first. Any text is a valid query. A question in plain words that no message answers with
    /// all of them finds what comes closest.
    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, StoreError>>;

    fn rename(&self, session: &SessionId, title: &str) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Gives a session a title if it has none; returns whether it did. One that is taken gets the next number behind it.
    fn suggest_title(
        &self,
        session: &SessionId,
        title: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>>;

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>>;

    /// What was used since a moment, counted in several ways.
    fn insights(&self, since: Timestamp) -> BoxFuture<'_, Result<Insights, StoreError>>;
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionFilter {
    /// Without one, all but those of subagents.
    pub source: Option<String>,
    pub cwd: Option<PathBuf>,
    /// 0 means all.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptLine {
    pub at: Timestamp,
    pub turn: Option<TurnId>,
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SpokenQuery {
    /// All sessions without one.
    pub session: Option<SessionId>,
    pub from: SpokenFrom,
    /// Whether what tools returned is among them.
    pub with_results: bool,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpokenFrom {
    /// The first ones behind this place: for a follower, who asks again with the last place it got.
    After(u64),
    /// The last ones before this place.
    Before(u64),
    /// The last ones there are.
    End,
}

/// One message of a conversation, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    /// Its place among all messages of the store, above 0. Later ones have a higher one, and none is used twice.
    pub place: u64,
    pub session: SessionId,
    pub at: Timestamp,
    pub message: Message,
}

/// How a conversation ends, as far as it goes now.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub record: SessionRecord,
    pub messages: Vec<Message>,
    /// How many messages there are before those.
    pub earlier: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchQuery {
    pub text: String,
    /// Only what was said there.
    pub session: Option<SessionId>,
    /// Conversations that are left out, as far as their models see them: what a summary stands for is found. Unknown ones
    /// do no harm.
    pub without: Vec<SessionId>,
    /// Only what these said; everybody without any.
    pub roles: Vec<Role>,
    /// Leaves out what subagents said and did.
    pub hides_subagents: bool,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchHit {
    pub session: SessionId,
    pub title: Option<String>,
    pub at: Timestamp,
    pub role: Role,
    /// As in [`Spoken::place`].
    pub place: u64,
    /// The surrounding words, matches between `>>>` and `<<<`.
    pub snippet: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreStats {
    pub sessions: u64,
    pub messages: u64,
    pub calls: u64,
    pub usage: Usage,
    pub database_bytes: u64,
    pub unfinished_turns: u64,
}

/// Requests, tokens and money, counted by what people ask about. Days and hours are those of the machine's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Insights {
    /// One for every hour in which something was asked, in order.
    pub hours: Vec<HourUse>,
    /// The most used first.
    pub models: Vec<ModelUse>,
    pub tools: Vec<Counted>,
    pub sources: Vec<Counted>,
    /// How turns ended that did not finish.
    pub failures: Vec<Counted>,
    /// The sessions with the most messages.
    pub longest: Vec<SessionRecord>,
    #[serde(default)]
    pub learning: LearningInsights,
}

/// What was learned, what that took, and how often it served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningInsights {
    /// What for, such as `review`; the dearest in tokens first.
    pub costs: Vec<LearningCost>,
    /// Changes that were made, by kind: `notes`, `skill`, `user_model`.
    pub changes: Vec<Counted>,
    /// How many of them were taken back.
    pub undone: u64,
    /// Conversations that began with notes in their prompt.
    pub conversations_with_notes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningCost {
    pub purpose: String,
    pub requests: u64,
    pub tokens: u64,
    /// Of the requests whose price is known.
    pub micro_usd: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HourUse {
    /// `2026-11-16`
    pub day: String,
    /// From 0 for Sunday.
    pub weekday: u8,
    pub hour: u8,
    pub used: Used,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub model: ModelName,
    pub used: Used,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    pub requests: u64,
    pub input: u64,
    pub output: u64,
    /// Of the requests whose price is known.
    pub cost_micro_usd: u64,
    pub requests_without_price: u64,
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.input += other.input;
        self.output += other.output;
        self.cost_micro_usd += other.cost_micro_usd;
        self.requests_without_price += other.requests_without_price;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub name: String,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("session `{session}` is in use by another hermes process{}", owner.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Busy {
        session: SessionId,
        owner: Option<u32>,
    },
    #[error("no session `{name}`")]
    NotFound { name: String },
    #[error("no approval `{id}`")]
    NoApproval { id: ApprovalId },
    #[error("no question that waits has this code")]
    WrongCode,
    #[error(
        "no question can be answered by its code any more: {} wrong ones were tried",
        crate::approval_code::TRIES_MAX
    )]
    CodesLocked,
    #[error("approval `{id}` cannot be answered with `{}`", crate::wording::verdict(*verdict))]
    NotOffered { id: ApprovalId, verdict: Verdict },
    #[error("`{name}` fits {} sessions: {}", candidates.len(), list(candidates))]
    Ambiguous {
        name: String,
        candidates: Vec<SessionId>,
    },
    #[error("the title `{title}` is already used by session `{session}`")]
    TitleTaken { title: String, session: SessionId },
    /// The change would break a rule of the step log: a second result for a call, an entry of another turn.
    #[error("the session's log does not allow it: {detail}")]
    Refused { detail: String },
    /// What was to be written under a lease was not: somebody else has it now.
    #[error("`{lease}` belongs to another process now")]
    Overtaken { lease: String },
    #[error("no space left on the disk that holds `{}`", path.display())]
    DiskFull { path: PathBuf },
    #[error("`{}` was written by a newer version (schema {found}; this build knows {known})", path.display())]
    TooNew {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("`{}` is damaged: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    #[error("cannot {action} the session database `{}`: {detail}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        detail: String,
    },
}

impl StoreError {
    /// What the user can do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Busy { .. } => "close the other one, or start a new session".into(),
            Self::NotFound { .. } => "`hermes sessions list` shows what there is".into(),
            Self::NoApproval { .. } => {
                "`hermes approvals list` shows what waits for an answer".into()
            }
            Self::WrongCode => {
                "the code stands below the question, and in `hermes approvals` at a terminal".into()
            }
            Self::CodesLocked => "answer in the conversation that asks".into(),
            Self::NotOffered { .. } => "choose one of the answers it offers".into(),
            Self::Ambiguous { .. } => "write more of the id".into(),
            Self::TitleTaken { .. } => "choose another title".into(),
            Self::Refused { .. } => {
                "this is a bug in hermes; nothing was written, the session can be resumed".into()
            }
            Self::Overtaken { .. } => "nothing was written; the other process goes on".into(),
            Self::DiskFull { .. } => {
                "free some space and try again; everything saved so far is safe".into()
            }
            Self::TooNew { .. } => "upgrade hermes, or move the file aside to start afresh".into(),
            Self::Damaged { .. } => {
                "`hermes sessions recover` saves what can be read, and keeps the damaged file; `hermes doctor` examines it"
                    .into()
            }
            Self::Io { path, .. } => {
                format!(
                    "check that `{}` exists, is yours and is writable; `hermes doctor` examines it",
                    path.display()
                )
            }
        }
    }
}

fn list(sessions: &[SessionId]) -> String {
    let names: Vec<_> = sessions.iter().map(SessionId::as_str).collect();
    names.join(", ")
}
