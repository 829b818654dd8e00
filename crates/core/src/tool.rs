//! The port to tools.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::call_channel::{CallMessage, CallSender};
use crate::delegation::Delegates;
use crate::effect::Effect;
use crate::elicitation::Person;
use crate::exposure::Exposure;
use crate::fence::Pass;
use crate::id::{CallId, SessionId, TurnId};
use crate::learning::Author;
use crate::message::Media;
use crate::model::Finished;
use crate::review::{Agreement, Preview, PreviewContext, Review};
use crate::toolbox::Toolbox;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something a model can call.
///
/// Every call is prepared once and then, unless it is refused, run once with what the plan holds. Outside of a session
/// [`run`](#method.run) does both.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Where it is offered, and to whom. The same for as long as the tool lives.
    fn exposure(&self) -> &Exposure;

    /// Whether it asks about changes of files, as freely as the mode of a conversation says. Such a tool is made once for
    /// each answer.
    fn reviews_changes(&self) -> bool {
        false
    }

    /// Works out what a call would do, before anything is decided about it. Changes nothing.
    ///
    /// `arguments` were coerced to and checked against [`ToolSpec::parameters`]; what still does not fit is told when the
    /// plan runs. Called on a thread that may wait for the disk. Calls that run before this one may change what it finds:
    /// a plan that had to wait for them is made anew.
    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan;

    /// The call that this one only passes on, if it does: the tool that is really meant, and its arguments. Everything
    /// that is decided, asked and recorded is then about that call.
    fn stands_for(&self, _arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        None
    }

    /// What a model is reminded of when it no longer sees the older part of its conversation, from what the tool keeps.
    fn reminder(&self, _state: &Value) -> Option<String> {
        None
    }

    /// The model no longer sees older results of a session: what counts as shown to it must be shown again.
    fn forget_shown(&self, _session: &SessionId) {}

    /// Forgets what is kept in memory for a session that is no longer open. Nothing for most tools.
    fn close_session(&self, _session: &SessionId) {}
}

impl dyn Tool {
    /// Prepares a call and runs it, whatever it would need consent for: for calls that no model makes.
    pub async fn run(
        self: &Arc<Self>,
        arguments: Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let place = PlanContext {
            session: &cx.session,
            cwd: &cx.cwd,
        };
        let plan = Arc::clone(self).prepare(&arguments, place);
        plan.action.run(cx).await
    }
}

/// What a plan may know of the call it is made for.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    pub session: &'a SessionId,
    /// Where the session works.
    pub cwd: &'a Path,
}

/// What one call would do, and the call itself, ready to run.
pub struct Plan {
    /// What it may do; recorded before it runs.
    pub effect: Effect,
    /// Which neighbours it may run beside.
    pub parallel: Parallel,
    /// What a person must agree to before it runs. Most calls need nobody.
    pub consent: Consent,
    /// Paths it touches, so that context files beside them can be shown.
    pub touched: Vec<PathBuf>,
    /// Files and folders on this machine that it may change, so that a checkpoint is kept first.
    pub changes: Vec<PathBuf>,
    pub action: Box<dyn Action>,
}

/// A call that was prepared. It holds what its tool read out of the arguments.
pub trait Action: Send + Sync {
    /// Finds out whether somebody must look at the change first, for what a plan cannot know: what the store says. Called
    /// before a call with [`Consent::NotNeeded`] is decided about; changes nothing. An error means that the call would fail.
    fn review<'a>(
        &'a self,
        _cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Review>, ToolError>> {
        Box::pin(async { Ok(None) })
    }

    /// Works out what a person is shown before they agree to a [`Consent::Review`]. Called only when somebody is to decide;
    /// changes nothing. An error means that the call would fail: nobody is asked then.
    fn preview<'a>(
        &'a self,
        _cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async { Ok(None) })
    }

    /// Does it. Must return soon after `cx.stop` is cancelled; when it does not, the loop drops the future and answers the
    /// call itself, so dropping must not leave a child process behind.
    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

impl Plan {
    /// A call that needs nobody's consent, touches nothing and does this.
    pub fn new(effect: Effect, parallel: Parallel, action: impl Action + 'static) -> Self {
        Self {
            effect,
            parallel,
            consent: Consent::NotNeeded,
            touched: Vec::new(),
            changes: Vec::new(),
            action: Box::new(action),
        }
    }

    /// The same with a function for the action.
    pub fn doing<F>(effect: Effect, parallel: Parallel, run: F) -> Self
    where
        F: FnOnce(&ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        Self::new(effect, parallel, Doing(run))
    }
}

struct Doing<F>(F);

impl<F> Action for Doing<F>
where
    F: FnOnce(&ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> + Send + Sync,
{
    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        (self.0)(cx)
    }
}

/// What the model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parallel {
    /// Runs alone.
    Never,
    /// Runs beside anything that says the same.
    Always,
    /// Runs beside others unless a path is the same, or lies inside one of theirs. Readers share a path.
    Reads(Vec<PathBuf>),
    Writes(Vec<PathBuf>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    NotNeeded,
    /// A person must say yes first.
    Needed(Need),
    /// Somebody must look at the change first.
    Review(Review),
    /// Nobody can allow it.
    Forbidden {
        reason: String,
    },
}

/// Why a person must say yes to a call, and what their yes could cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Need {
    /// Completes "this …".
    pub reason: String,
    /// Patterns of such calls, the narrowest first, of which a person may allow one for longer than this call. None: only
    /// the very same call can be allowed.
    pub patterns: Vec<String>,
    /// Where it would run, when that is on this machine.
    pub folder: Option<PathBuf>,
    /// What a yes lets it do beyond the fence.
    pub pass: Pass,
    /// All of what would run, where the call's arguments are only a part of it.
    pub what: Option<String>,
    /// Whether the user has said yes to such calls for good: nobody is asked again.
    pub is_allowed: bool,
}

impl Need {
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }
}

impl Consent {
    /// A person must say yes first, for this reason.
    pub fn needed(reason: impl Into<String>) -> Self {
        Self::Needed(Need::because(reason))
    }
}

/// What a running call knows.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub session: SessionId,
    /// The turn that the call belongs to; calls that no turn makes have none.
    pub turn: Option<TurnId>,
    /// On whose account the call changes what is learned.
    pub author: Author,
    pub call: CallId,
    pub cwd: PathBuf,
    pub stop: CancellationToken,
    /// Live output for whoever watches. Lossy: a slow watcher never slows the tool.
    pub progress: Progress,
    /// Whoever this is done for, to be asked what only they know.
    pub person: Person,
    /// Others who can be given work.
    pub delegates: Delegates,
    /// Where to tell what the call itself spent on models.
    pub spending: Spending,
    /// What this tool last kept in this session.
    pub state: Option<Value>,
    /// The other tools of the session.
    pub toolbox: Toolbox,
    pub reader: Reader,
    /// What was agreed to before it began.
    pub agreement: Agreement,
}

impl ToolContext {
    /// The context of a call that nobody watches and that asks nobody.
    pub fn alone(session: impl Into<SessionId>, call: impl Into<CallId>, cwd: &Path) -> Self {
        Self {
            session: session.into(),
            turn: None,
            author: Author::Agent,
            call: call.into(),
            cwd: cwd.to_owned(),
            stop: CancellationToken::new(),
            progress: Progress::default(),
            person: Person::default(),
            delegates: Delegates::default(),
            spending: Spending::default(),
            state: None,
            toolbox: Toolbox::default(),
            reader: Reader::default(),
            agreement: Agreement::default(),
        }
    }

    /// The same with everything that it tells going here.
    pub fn telling(self, sender: &CallSender) -> Self {
        Self {
            progress: Progress::to(sender),
            person: Person::to(sender),
            delegates: Delegates::to(sender),
            spending: Spending::to(sender),
            toolbox: Toolbox::to(sender),
            ..self
        }
    }
}

/// Who reads the result of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// The model: numbers, notes and hints help it.
    #[default]
    Model,
    /// A program of the model's, which wants the thing itself. Nothing of it is in the conversation.
    Program,
}

#[derive(Debug, Clone, Default)]
pub struct Progress(Option<CallSender>);

impl Progress {
    pub fn to(sender: &CallSender) -> Self {
        Self(Some(sender.clone()))
    }

    pub fn show(&self, text: impl Into<String>) {
        if let Some(sender) = &self.0 {
            // A full queue drops this line; the result carries everything.
            sender.send_lossy(CallMessage::Progress(text.into()));
        }
    }
}

/// Takes note of what a call spends on models, for the account of its turn.
#[derive(Debug, Clone, Default)]
pub struct Spending(Option<CallSender>);

impl Spending {
    pub fn to(sender: &CallSender) -> Self {
        Self(Some(sender.clone()))
    }

    pub async fn add(&self, finished: Finished) {
        if let Some(sender) = &self.0 {
            // A call that has ended in the meantime has no account any more.
            let _ = sender.send(CallMessage::Spent(finished)).await;
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    pub text: String,
    /// Shown to a model that can see, beside the text, which says what they are. Within the limits of
    /// [`crate::picture`].
    pub images: Vec<Media>,
    /// What the tool keeps for its next call in this session: it survives restarts, compactions and results that were cut,
    /// and is as it was before a turn that is taken back.
    pub state: Option<Value>,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            state: None,
        }
    }

    pub fn keeping(self, state: Value) -> Self {
        Self {
            state: Some(state),
            ..self
        }
    }

    pub fn with_images(self, images: Vec<Media>) -> Self {
        Self { images, ..self }
    }
}

/// Whose error is it?
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model reads this and tries again. Written as one would a prompt.
    #[error("{0}")]
    Answer(String),
    /// It may have happened or not: a lost connection after the request was sent.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// The call was stopped before it finished; says what is known of its effects.
    #[error("{0}")]
    Stopped(String),
}
