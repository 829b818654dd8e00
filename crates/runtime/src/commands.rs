//! A conversation, and what slash commands do in it.
//!
//! Surfaces show things and read what people type; everything a command means beyond that happens here, once for all of
//! them, and comes back as data: [`Done`] says what to show and what to do next. Start at `Conversation::done`, which says
//! what every command does; what takes more than a few lines is in a file of its own.

mod arguments;
pub mod around;
mod attach;
mod conversations;
mod copy;
mod cron;
mod describe;
mod diff;
mod earlier;
pub mod handoff;
mod init;
mod lists;
mod memory;
mod model;
mod own;
mod reasoning;
pub mod rewind;
mod servers;
mod skills;
mod when_busy;
mod whoami;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::choice::Choice;
use hermes_core::command::{Command, Surface, Verb};
use hermes_core::{
    Archive as _, ConsentOption, Mode, Op, RunningSession, SearchHit, SessionId, SessionOptions,
    SessionRecord, StoreError, Timestamp, TranscriptLine,
};
use hermes_mcp::ServerStatus;
use hermes_store::SqliteStore;

use crate::base::Base;
use crate::checkpoints::{self, Checkpoints};
use crate::error::{Error, Result};
use crate::personality::{self, Personalities};
use crate::quick;
use crate::runtime::Runtime;
use crate::safety;
use crate::setup::{Setup, Start};
use crate::shown::insights::Summary;
use crate::tools::switch as switch_toolsets;
use crate::tools::toolsets::{TERMINAL, Toolsets};
use arguments::{days, no_such, said, undo_count, words};
pub use conversations::{HIDDEN_SOURCE, ONE_SHOT_SOURCE, gone, moved};
pub use own::Heard;
pub use when_busy::WhenBusy;

const PLATFORMS_ELSEWHERE: &str = "\
chat platforms are the gateway's: `hermes gateway run` connects those that are set up, and says which (docs/gateway.md)";

const IN_CHATS: &str = "that is for a chat: say it there";

/// One conversation as its surface has it: its options, what it works with, and the session it is in.
pub struct Conversation {
    runtime: Arc<Runtime>,
    base: Base,
    options: SessionOptions,
    setup: Setup,
    /// What the person's own commands printed since their last message.
    heard: Vec<Heard>,
}

/// Where a command was given.
pub struct Here {
    pub session: SessionId,
    /// A turn runs.
    pub is_busy: bool,
    /// The surface can show a list to choose from.
    pub can_choose: bool,
    pub surface: Surface,
}

/// What a command came to: something to show, and something for the surface to do.
#[derive(Debug, Default)]
pub struct Done {
    pub shown: Vec<Shown>,
    pub then: Then,
}

/// Something to show.
#[derive(Debug)]
pub enum Shown {
    /// As it is.
    Text(String),
    /// A change of files, line by line.
    Diff(String),
    /// Conversations, the newest first.
    Sessions(Vec<SessionRecord>),
    /// Where something was said.
    Found { words: String, hits: Vec<SearchHit> },
    /// A conversation from its beginning.
    Transcript {
        record: Box<SessionRecord>,
        lines: Vec<TranscriptLine>,
    },
    /// MCP servers, and what is wrong with their settings.
    Servers {
        warnings: Vec<String>,
        servers: Vec<ServerStatus>,
    },
    /// What was used in the last days.
    Insights(Box<Summary>),
}

/// What the surface does next.
#[derive(Debug, Default)]
pub enum Then {
    #[default]
    Nothing,
    Send(Op),
    /// Let somebody choose.
    Choose(Choice),
    /// Leave this session and open another, or the same one anew.
    Open(Start),
    Leave,
    /// Take an image into the next message, behind these words.
    Attach {
        image: PathBuf,
        words: String,
    },
    /// Take the image in the clipboard into the next message, behind these words.
    Paste {
        words: String,
    },
    /// Put this into the person's clipboard.
    Copy {
        text: String,
    },
    ShowReasoning(bool),
    /// The conversation has another title.
    Titled(String),
    WhenBusy(WhenBusy),
}

impl Conversation {
    /// Prepares a conversation with these options; [`Conversation::open`] begins one.
    pub async fn new(runtime: Arc<Runtime>, options: SessionOptions) -> Result<Self> {
        let base = runtime.base().with_options(&options)?;
        let setup = Setup::new(&runtime, &base, &options).await?;
        Ok(Self {
            runtime,
            base,
            options,
            setup,
            heard: Vec::new(),
        })
    }

    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Opens a session; the runtime owns its task.
    pub async fn open(&self, start: Start) -> Result<RunningSession> {
        self.runtime.begin(&self.setup, &self.options, start).await
    }

    /// Closes a session that was opened here: what it does ends first.
    pub async fn close(&self, session: &SessionId) -> Result<()> {
        self.runtime.sessions.close(session).await
    }

    /// Does what a command asks, or says why not. Nothing here ends the conversation.
    pub async fn run(
        &mut self,
        command: &'static Command,
        arguments: &str,
        here: &Here,
    ) -> Result<Done> {
        if here.can_choose
            && let Some(done) = self.choices(command, arguments, here).await
        {
            return done;
        }
        if here.is_busy && !command.during_turn {
            let name = command.name;
            return Ok(Done::text(format!(
                "/{name} has to wait: a turn runs (/stop ends it)"
            )));
        }
        self.done(command.verb, arguments, here).await
    }

    async fn done(&mut self, verb: Verb, arguments: &str, here: &Here) -> Result<Done> {
        Ok(match verb {
            Verb::New => {
                self.setup.refresh_tools();
                Done::open(Start::New {
                    title: words(arguments),
                })
            }
            Verb::Resume => self.resume(arguments, here).await?,
            Verb::Sessions => Done::shown(self.sessions(arguments).await?),
            Verb::History => Done::shown(self.transcript(&here.session).await?),
            Verb::Copy => self.copy(arguments, here).await?,
            Verb::Title => self.title(arguments, here).await?,
            Verb::Branch => self.branch(arguments, here).await?,
            Verb::Retry => Done::send(Op::Retry),
            Verb::Rewind if arguments.is_empty() => {
                let earlier = rewind::earlier(&**self.archive(), &here.session).await?;
                Done::text(rewind::listed(&earlier))
            }
            Verb::Undo | Verb::Rewind => Done::send(Op::Rewind {
                turns: undo_count(arguments)?,
            }),
            Verb::Rollback => Done::text(self.rollback(arguments, here).await?),
            Verb::Diff => self.diff().await?,
            Verb::Init => Done::send(Op::Say(init::message(arguments))),
            Verb::Compress => Done::send(Op::Compact {
                topic: words(arguments),
            }),
            Verb::Stop => Done::send(Op::Interrupt),
            Verb::Steer => Done::send(Op::Steer(said(arguments, "/steer use tabs")?)),
            Verb::Queue => Done::send(Op::Say(said(arguments, "/queue and then the tests")?)),
            Verb::Decline => Done::text("nothing is asked"),
            Verb::Model => self.model(arguments, here).await?,
            Verb::Personality => self.personality(arguments, here).await?,
            Verb::Reasoning => self.reasoning(arguments, here).await?,
            Verb::Yolo => self.yolo(arguments, here).await?,
            Verb::Busy => when_busy::busy(arguments)?,
            Verb::Tools => Done::text(self.tools(arguments)?),
            Verb::Toolsets => Done::text(switch_toolsets::overview(
                &self.base.with_options(&self.options)?,
                self.toolsets_of(),
            )?),
            Verb::Mcp => Done::shown(self.servers(arguments).await?),
            Verb::ReloadMcp => self.reload_servers().await?,
            Verb::Skills => self.skills_command(arguments).await?,
            Verb::Memory => Done::text(self.memory(arguments).await?),
            Verb::Learned => Done::text(self.learned(arguments).await?),
            Verb::Whoami => Done::text(self.whoami(arguments).await?),
            Verb::Cron => Done::text(self.cron(arguments, here).await?),
            Verb::Image => self.attach(arguments).await?,
            Verb::Paste => Done::then(Then::Paste {
                words: arguments.to_owned(),
            }),
            Verb::Platforms => Done::text(match self.runtime.gateway_standing().await {
                Some(standing) => standing,
                None => PLATFORMS_ELSEWHERE.to_owned(),
            }),
            Verb::Handoff => self.handoff(arguments, here).await?,
            Verb::SetHome
            | Verb::Link
            | Verb::Pairing
            | Verb::Background
            | Verb::Restart
            | Verb::Approve
            | Verb::Deny => Done::text(IN_CHATS),
            Verb::Status => Done::text(self.status(here).await?),
            Verb::Usage => Done::text(self.usage(here).await?),
            Verb::Insights => {
                let days = days(arguments)?;
                Done::shown(self.insights(days).await?)
            }
            Verb::Config => Done::text(describe::config(&self.base)),
            Verb::Profile => Done::text(describe::profile(&self.base)),
            Verb::Version => Done::text(describe::version()),
            Verb::Help => Done::text(describe::help(here.surface)),
            Verb::Quit => Done::then(Then::Leave),
        })
    }

    /// Shows the tools, or switches toolsets: a conversation keeps the tools it began with.
    fn tools(&mut self, arguments: &str) -> Result<String> {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (names, is_on) = match words.as_slice() {
            [] | ["list"] => return Ok(describe::tools(&self.setup.ports.tools)),
            ["enable", names @ ..] if !names.is_empty() => (names, true),
            ["disable", names @ ..] if !names.is_empty() => (names, false),
            _ => {
                return Err(Error::asked("/tools does not know these words").with_hint(
                    "/tools, /tools enable NAME or /tools disable NAME; /toolsets lists the names",
                ));
            }
        };
        let base = self.base.with_options(&self.options)?;
        let surface = self.toolsets_of();
        let saved = switch_toolsets::switch_toolsets(&base, surface, names, is_on)?;
        let base = self.base.with_options(&self.options)?;
        self.setup
            .choose_tools(Toolsets::chosen(&base, &self.options)?);
        Ok(saved)
    }

    /// What `platform_toolsets` calls the surface we are on.
    fn toolsets_of(&self) -> &str {
        self.options.surface.as_deref().unwrap_or(TERMINAL)
    }

    async fn yolo(&mut self, arguments: &str, here: &Here) -> Result<Done> {
        let wants = match arguments {
            "" => !self.setup.is_unasked(),
            "on" => true,
            "off" => false,
            other => return Err(no_such("/yolo", other, "on or off")),
        };
        self.options.consent = if wants {
            ConsentOption::Allow
        } else {
            ConsentOption::Ask
        };
        let base = self.settings_now()?;
        self.setup.settings.consent = safety::consent_policy(&base, &self.options)?;
        let told = if wants {
            "dangerous commands run without asking, until /yolo off or the end"
        } else {
            "dangerous commands ask first"
        };
        Ok(Done::open(self.same_session(here).await?).telling(told))
    }

    /// Lists the checkpoints around the session's folder, shows what changed since one, or brings one back.
    async fn rollback(&self, arguments: &str, here: &Here) -> Result<String> {
        let around = &self.setup.settings.cwd;
        let checkpoints = Checkpoints::around(&self.base.with_options(&self.options)?, around)?;
        let (first, rest) = match arguments.split_once(char::is_whitespace) {
            Some((first, rest)) => (first, rest.trim()),
            None => (arguments, ""),
        };
        match (first, rest) {
            ("" | "list", "") => checkpoints.list("/rollback").await,
            ("diff", "") => checkpoints.diff("1").await,
            ("diff", name) => checkpoints.diff(name).await,
            (name, file) => {
                let file = (!file.is_empty()).then(|| Path::new(file));
                let restored = checkpoints.restore(name, file, &here.session).await?;
                Ok(checkpoints::told(&restored.0, &restored.1, "/rollback"))
            }
        }
    }

    /// Chooses how new conversations sound. What was said already was said under the prompt it began with.
    async fn personality(&mut self, arguments: &str, here: &Here) -> Result<Done> {
        let personalities = Personalities::of(&self.base);
        if arguments.is_empty() {
            return Ok(Done::text(personalities.list()));
        }
        let note = personalities.note(arguments)?;
        let mut notes = self.setup.inputs.notes.clone();
        notes.retain(|note| !personality::is_note(note));
        notes.extend(note);
        self.setup.set_notes(notes);
        self.options.personality = Some(arguments.to_owned());
        Ok(match self.record(here).await? {
            None => {
                Done::open(Start::New { title: None }).telling(format!("personality: {arguments}"))
            }
            Some(_) => Done::text(format!(
                "personality: {arguments}, from the next conversation on (/new)"
            )),
        })
    }

    async fn insights(&self, days: u32) -> Result<Shown> {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let now = self.runtime.clock().now().as_millis();
        let since = Timestamp::from_millis(now - i64::from(days) * DAY_MS);
        let insights = self.archive().insights(since).await?;
        let skills = crate::skills::uses(&self.settings_now()?)?;
        Ok(Shown::Insights(Box::new(Summary {
            days,
            insights,
            skills,
        })))
    }

    /// Runs a shell command of the user's own and returns what it printed. The future stands alone: it may be left to
    /// itself while the conversation goes on.
    pub fn shell(&self, line: &str) -> impl Future<Output = String> + Send + use<> {
        quick::run(
            Arc::clone(self.setup.terminal()),
            line.to_owned(),
            self.setup.settings.cwd.clone(),
        )
    }

    /// Switches how freely calls may act, also those of the turn that runs.
    pub fn next_mode(&self) -> Mode {
        let switch = &self.setup.settings.mode;
        let next = switch.now().next();
        switch.set(next);
        next
    }

    /// How freely calls may act, where that is not what the settings say.
    pub fn unusual_mode(&self) -> Option<Mode> {
        let now = self.setup.settings.mode.now();
        (now != safety::mode(&self.base)).then_some(now)
    }

    /// Whether everything runs without a question.
    pub fn is_unasked(&self) -> bool {
        self.setup.is_unasked()
    }

    /// What the command line and the files say now.
    pub fn settings_now(&self) -> Result<Base> {
        self.base.with_options(&self.options)
    }

    async fn status(&self, here: &Here) -> Result<String> {
        let record = self.record(here).await?;
        Ok(describe::status(&self.setup, here, record.as_ref()))
    }

    async fn usage(&self, here: &Here) -> Result<String> {
        Ok(match self.record(here).await? {
            Some(record) => {
                let subagents = self.archive().subagents(&record.id).await?;
                describe::usage(&record, &subagents)
            }
            None => "nothing was used yet".into(),
        })
    }

    /// How to go on with the conversation at hand after something about it changed.
    async fn same_session(&self, here: &Here) -> Result<Start> {
        Ok(match self.record(here).await? {
            Some(record) => Start::Resume(record.id),
            None => Start::New { title: None },
        })
    }

    /// What the store knows of this conversation: nothing before the first message.
    async fn record(&self, here: &Here) -> Result<Option<SessionRecord>> {
        match self.archive().record(&here.session).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses what changes the home for everybody, unless its owner asks.
    fn owner_only(&self, what: &str) -> Result<()> {
        match self.options.person {
            None => Ok(()),
            Some(_) => Err(
                Error::asked(format!("{what} is for the owner of this Hermes"))
                    .with_hint("without it, the choice counts for this conversation"),
            ),
        }
    }

    fn archive(&self) -> &Arc<SqliteStore> {
        self.runtime.store()
    }
}

impl Done {
    fn text(text: impl Into<String>) -> Self {
        Self::shown(Shown::Text(text.into()))
    }

    fn shown(shown: Shown) -> Self {
        Self {
            shown: vec![shown],
            then: Then::Nothing,
        }
    }

    fn then(then: Then) -> Self {
        Self {
            shown: Vec::new(),
            then,
        }
    }

    fn send(op: Op) -> Self {
        Self::then(Then::Send(op))
    }

    fn open(start: Start) -> Self {
        Self::then(Then::Open(start))
    }

    fn telling(mut self, text: impl Into<String>) -> Self {
        self.shown.push(Shown::Text(text.into()));
        self
    }
}

/// Does what would keep others waiting: reads files.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::failed(error.to_string()))
}
