//! What the chat side of the gateway works with, and how it is set up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hermes_core::{
    Address, Archive, BoxFuture, Chats, Clock, Inbox, Leases, Outbox, Pairings, People, Random,
    Records, SessionId, SessionOptions, Sessions, Store,
};

use super::access::GatewayAccess;
use super::files::FilePolicy;
use super::key::KeyRules;
use super::owner::NamedPeople;
use super::pairing::Pairing;
use super::reset::ResetPolicy;

pub struct ChatPorts {
    pub sessions: Arc<dyn Sessions>,
    pub archive: Arc<dyn Archive>,
    /// Knows which conversations a crash cut short.
    pub store: Arc<dyn Store>,
    pub inbox: Arc<dyn Inbox>,
    pub outbox: Arc<dyn Outbox>,
    pub leases: Arc<dyn Leases>,
    pub chats: Arc<dyn Chats>,
    pub pairings: Arc<dyn Pairings>,
    pub people: Arc<dyn People>,
    /// Has what was sent to chats and is not part of their conversations yet, and who the owner is where the settings name
    /// nobody.
    pub records: Arc<dyn Records>,
    pub pairing: Pairing,
    pub commands: Arc<dyn ChatCommands>,
    pub files: Arc<dyn FilePolicy>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub settings: LiveSettings,
}

/// What slash commands do that are not the gateway's own.
pub trait ChatCommands: Send + Sync {
    fn run<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, CommandAnswer>;

    /// Writes down which chat is home. An error is for people.
    fn keep_home<'a>(&'a self, home: &'a Address) -> BoxFuture<'a, Result<(), String>>;
}

/// A line that begins with a slash, and where it was said.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine<'a> {
    pub line: &'a str,
    /// The conversation it was said in; none where nothing was said yet.
    pub session: Option<&'a SessionId>,
    pub options: &'a SessionOptions,
    /// The chat it was said in.
    pub place: Option<&'a Address>,
    pub is_busy: bool,
}

/// What a command came to.
#[derive(Debug, Default)]
pub struct CommandAnswer {
    pub text: Option<String>,
    pub then: Then,
    /// How the conversation is to be from now on, where the command changed that.
    pub options: Option<SessionOptions>,
}

/// What the chat does next.
#[derive(Debug, Default)]
pub enum Then {
    #[default]
    Nothing,
    Send(hermes_core::Op),
    /// These words are for the model, and what skills say that they name.
    Say {
        words: String,
        skills: Vec<String>,
    },
    /// Leave the conversation; the next words begin another, under this title.
    New {
        title: Option<String>,
    },
    /// What becomes of words in this chat that come while a turn runs.
    WhenBusy(WhenBusy),
    Resume(SessionId),
    Branch(SessionId),
}

/// Settings that may be read anew while the gateway runs.
#[derive(Debug, Clone)]
pub struct LiveSettings(Arc<RwLock<Arc<ChatSettings>>>);

impl LiveSettings {
    pub fn now(&self) -> Arc<ChatSettings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, settings: ChatSettings) {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(settings);
    }
}

impl From<ChatSettings> for LiveSettings {
    fn from(settings: ChatSettings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }
}

/// Names of chats by platform and id.
pub type Aliases = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Debug, Clone)]
pub struct ChatSettings {
    pub keys: KeyRules,
    pub access: GatewayAccess,
    /// Whom the settings of all platforms name.
    pub named: NamedPeople,
    pub when_busy: WhenBusy,
    /// Replies are shown while they are written.
    pub shows_previews: bool,
    pub preview_interval: Duration,
    /// Where a platform has a place for what is being written, it is shown there and not as a message.
    pub shows_drafts: bool,
    /// What waited longer is not answered but told of.
    pub stale_after: Duration,
    /// People who saw nothing new of a turn for so long are told that it goes on.
    pub sign_of_life: Option<Duration>,
    /// A turn of which nothing is heard for longer is given up.
    pub silence_max: Option<Duration>,
    /// Turns that run at a time.
    pub turns_max: usize,
    /// Where files go that people send.
    pub media: PathBuf,
    pub media_bytes_max: u64,
    pub reset: ResetPolicy,
    /// Models see digests of people's ids.
    pub redacts_ids: bool,
    /// What the owner calls chats: platform, id, name.
    pub aliases: Aliases,
    /// What jobs bring to a chat becomes part of its conversation.
    pub mirrors_jobs: bool,
    pub limits: Limits,
    pub options: SessionOptions,
    /// Who takes leases: the same after a restart, and nobody else's.
    pub holder: String,
}

/// What becomes of words that come while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// The turn is stopped, and the words begin the next.
    #[default]
    Interrupt,
    Queue,
    /// The turn is told them with its next tool result.
    Steer,
}

impl WhenBusy {
    /// As settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Queue => "queue",
            Self::Steer => "steer",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Interrupt, Self::Queue, Self::Steer];
        all.into_iter().find(|one| one.name() == name)
    }
}

/// What one person may have of us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub turns_per_hour: Option<u64>,
    pub micro_usd_per_day: Option<u64>,
}
