//! The port to tools.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::delegation::Delegates;
use crate::effect::Effect;
use crate::elicitation::Person;
use crate::fence::Pass;
use crate::id::{CallId, SessionId};
use crate::message::Media;
use crate::model::Finished;
use crate::review::{Agreement, Preview, PreviewContext, Review};
use crate::toolbox::Toolbox;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something a model can call.
///
/// `arguments` are always an object that was coerced to and checked against [`ToolSpec::parameters`]. `run` is called
/// once per call and must return soon after `cx.stop` is cancelled; when it does not, the loop drops the future and
/// answers the call itself, so dropping must not leave a child process behind.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// What this call may do; recorded before it runs.
    fn effect(&self, arguments: &Value) -> Effect;

    /// The same where it depends on the session: a shell may have been taught that a harmless name means something else.
    fn effect_in(&self, arguments: &Value, _session: &SessionId, _cwd: &Path) -> Effect {
        self.effect(arguments)
    }

    /// Which neighbours this call may run beside.
    fn parallel(&self, arguments: &Value, cwd: &Path) -> Parallel;

    fn run<'a>(
        &'a self,
        arguments: Value,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// What a person must agree to before this call runs. Most calls need nobody.
    fn consent(&self, _arguments: &Value, _session: &SessionId, _cwd: &Path) -> Consent {
        Consent::NotNeeded
    }

    /// Works out what a person is shown before they agree to a [`Consent::Review`]. Called only when somebody is to decide;
    /// changes nothing. An error means that the call would fail: nobody is asked then.
    fn preview<'a>(
        &'a self,
        _arguments: &'a Value,
        _cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async { Ok(None) })
    }

    /// The call that this one only passes on, if it does: the tool that is really meant, and its arguments. Everything
    /// that is decided, asked and recorded is then about that call.
    fn stands_for(&self, _arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        None
    }

    /// Paths the call touches, so that context files beside them can be shown. None for most tools.
    fn touched(&self, _arguments: &Value, _cwd: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Files and folders on this machine that the call may change, so that a checkpoint is kept first. None for most
    /// tools.
    fn changes(&self, _arguments: &Value, _session: &SessionId, _cwd: &Path) -> Vec<PathBuf> {
        Vec::new()
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
pub struct Progress(Option<mpsc::Sender<String>>);

impl Progress {
    pub fn to(watcher: mpsc::Sender<String>) -> Self {
        Self(Some(watcher))
    }

    pub fn show(&self, text: impl Into<String>) {
        if let Some(watcher) = &self.0 {
            // A full queue drops this line; the result carries everything.
            let _ = watcher.try_send(text.into());
        }
    }
}

/// Takes note of what a call spends on models, for the account of its turn.
#[derive(Debug, Clone, Default)]
pub struct Spending(Option<mpsc::Sender<Finished>>);

impl Spending {
    pub fn to(account: mpsc::Sender<Finished>) -> Self {
        Self(Some(account))
    }

    pub async fn add(&self, finished: Finished) {
        if let Some(account) = &self.0 {
            // A call that has ended in the meantime has no account any more.
            let _ = account.send(finished).await;
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
