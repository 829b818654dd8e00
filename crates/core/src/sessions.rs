//! How conversations are opened, found and followed: what every surface has of the process it runs in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;

use crate::approval::ApprovalAnswer;
use crate::elicitation::Response;
use crate::follow::{FollowFrom, Followed};
use crate::hidden_keys::HiddenKeys;
use crate::id::{ApprovalId, ElicitationId, SessionId};
use crate::message::Message;
use crate::mode::Mode;
use crate::model::ModelName;
use crate::session::Op;
use crate::store::SessionRecord;
use crate::tool::BoxFuture;

/// The conversations of a process.
///
/// Surfaces reach sessions through it and own none: whoever implements it runs their tasks, and a session goes on when the
/// surface that opened it is gone. A session that panics ends alone.
pub trait Sessions: Send + Sync {
    /// Opens a conversation in which nothing was said yet.
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<RunningSession, OpenError>>;

    /// Goes on with a conversation. One that is open already is refused: [`Sessions::get`] has it.
    fn resume(
        &self,
        session: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>>;

    /// Opens a copy of a conversation that goes its own way.
    fn branch(
        &self,
        of: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>>;

    /// Opens a conversation that has a name already, or that was begun elsewhere. A name that is taken is refused when the
    /// first thing is said.
    fn import(
        &self,
        import: Import,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<RunningSession, OpenError>>;

    /// Finds a conversation, open or not, by its id, a beginning of it, or its title.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<SessionId, OpenError>>;

    /// A conversation that is open.
    fn get(&self, session: &SessionId) -> Option<Arc<dyn SessionHandle>>;

    /// The conversations that are open.
    fn list_open(&self) -> Vec<OpenSession>;

    /// Closes a conversation once what it does has ended. Who still has a handle of it can send nothing more.
    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), OpenError>>;

    /// Closes those in which nothing has run for this long. Returns how many those are.
    fn close_idle(&self, idle_for: Duration) -> BoxFuture<'_, usize>;
}

/// A way to a session that is open. Holding one keeps no session open.
pub trait SessionHandle: Send + Sync {
    fn id(&self) -> &SessionId;

    /// Sends an op. Returns false when the session is closed.
    fn send(&self, op: Op) -> BoxFuture<'_, bool>;

    /// Reads along what happens, from wherever one likes. Nobody who follows holds the session up.
    fn follow(&self, from: FollowFrom) -> Events;

    /// Waits for the next thing that a process beside the conversation has to tell it. Dropping the future loses nothing.
    fn news(&self) -> BoxFuture<'_, String>;

    /// Whether something goes on beside the conversation that will be told in it: closing it now ends that, or keeps it from
    /// being told.
    fn awaits_news(&self) -> bool;
}

/// What happens in a session, as it happens.
pub type Events = BoxStream<'static, Followed>;

impl dyn SessionHandle + '_ {
    /// Ends the turn that runs.
    pub async fn interrupt(&self) -> bool {
        self.send(Op::Interrupt).await
    }

    pub async fn answer(&self, approval: ApprovalId, answer: impl Into<ApprovalAnswer>) -> bool {
        let answer = answer.into();
        self.send(Op::Answer { approval, answer }).await
    }

    pub async fn respond(&self, elicitation: ElicitationId, response: Response) -> bool {
        let op = Op::Respond {
            elicitation,
            response,
        };
        self.send(op).await
    }
}

/// What a conversation has before anything is said in it here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Import {
    /// Letters, digits, `-` and `_`; one is made without it.
    pub id: Option<SessionId>,
    /// What was said elsewhere, turn by turn.
    pub said: Vec<Message>,
}

/// A session that was just opened, and what happens in it.
pub struct RunningSession {
    pub handle: Arc<dyn SessionHandle>,
    /// From its very beginning.
    pub events: Events,
    /// What there was before, when it was resumed or branched off.
    pub resumed: Option<Resumed>,
    pub facts: SessionFacts,
    /// Things the user should know before the first answer.
    pub warnings: Vec<Warning>,
}

/// What a surface may want to know before anything is said.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Who answers.
    pub model: ModelName,
    /// Tokens that fit into one request and its answer, as far as that is known.
    pub context_window: Option<u64>,
    /// What requests cost is known, or they cost nothing: a limit of money can be kept.
    pub is_priced: bool,
    /// Keys that models are not shown, and programs that read along should not be either.
    pub hidden_keys: Option<Arc<HiddenKeys>>,
}

/// Something that is not as the user may think.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub about: WarningAbout,
    pub text: String,
}

/// What a warning is about: who wants nothing but an answer still wants to know what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningAbout {
    Settings,
    /// A server is not there, and its tools with it.
    Servers,
    /// A skill that was asked for is not there.
    Skills,
}

/// What a session that goes on had before.
pub struct Resumed {
    pub record: SessionRecord,
    /// To be let go once it is seen: what is said next would otherwise be said in a copy.
    pub messages: Arc<Vec<Message>>,
    /// A turn was cut short by a crash; it goes on by itself when the task runs.
    pub has_open_turn: bool,
}

/// What there is to know of a session that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    pub id: SessionId,
    pub options: SessionOptions,
    pub model: ModelName,
    /// For how long nothing has run; `None` while something does.
    pub idle: Option<Duration>,
}

/// Why a conversation cannot be opened, found or closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    pub message: String,
    /// Where: a file and a line, perhaps.
    pub place: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Whoever asked could mend it: nothing was begun.
    pub is_asked: bool,
}

/// How one conversation is to be. What is not said is as the settings say.
///
/// Two conversations of a process may differ in everything here, and changing one changes no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SessionOptions {
    /// Where it works; in the folder of the process unless said. The settings of that folder's project count.
    pub cwd: Option<PathBuf>,
    /// `MODEL` or `PROVIDER:MODEL`.
    pub model: Option<String>,
    pub provider: Option<String>,
    /// How much the model thinks before it answers.
    pub reasoning_effort: Option<String>,
    /// Names of toolsets and MCP servers; those of the settings when there are none.
    pub toolsets: Vec<String>,
    /// Skills that the whole conversation goes by.
    pub skills: Vec<String>,
    /// The name of a personality.
    pub personality: Option<String>,
    /// What the system prompt says besides.
    pub notes: Vec<String>,
    /// What it says of where the conversation is held; the settings may say it otherwise (`platform_hints`).
    pub hint: Option<String>,
    pub consent: ConsentOption,
    /// How freely calls may act at the beginning.
    pub mode: Option<Mode>,
    pub audience: Audience,
    /// Where the conversation comes from: `cli`, `oneshot`, a platform. It is kept with it.
    pub source: String,
    /// What `platform_toolsets` calls the surface it is on; the terminal without it.
    pub surface: Option<String>,
    /// Who talks, where a surface serves several.
    pub person: Option<String>,
    pub title: Option<String>,
    /// Model requests per turn, at most.
    pub steps_max: Option<u32>,
    pub checkpoints: bool,
    pub leaves_out: LeavesOut,
}

/// Who may be asked before something dangerous runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Audience {
    /// A person who follows the conversation and can answer.
    Person,
    /// Nobody: a script waits for the answer.
    #[default]
    Nobody,
}

/// What happens to calls that need consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ConsentOption {
    /// What the settings say.
    #[default]
    AsSet,
    /// Somebody is asked, whatever the settings say.
    Ask,
    /// They run. What is forbidden or denied by the settings stays so.
    Allow,
}

impl ConsentOption {
    /// As a chat's choices write it; nothing where nothing was chosen.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::AsSet => None,
            Self::Ask => Some("ask"),
            Self::Allow => Some("allow"),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let chosen = [Self::Ask, Self::Allow];
        chosen.into_iter().find(|one| one.name() == Some(name))
    }
}

/// What a conversation does without, for finding out what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LeavesOut {
    /// The user's `config.yaml`, and that of the project.
    pub user_config: bool,
    /// `SOUL.md`, context files and skills.
    pub rules: bool,
    /// MCP servers that were not named.
    pub servers: bool,
}
