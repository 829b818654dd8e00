//! What stands behind a conversation in a terminal: it knows which session comes next, and does what slash commands ask.
//!
//! Surfaces show things and read keys; everything a command means beyond that happens here, once for all of them. Start
//! at `Host::done`, which says what every command does; what takes more than a few lines is in a file of its own.

mod arguments;
mod attach;
mod conversations;
mod copy;
mod describe;
mod diff;
mod init;
mod model;
mod own;
mod reasoning;
pub(crate) mod rewind;
mod servers;
mod skills;
mod when_busy;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Opened, Session, SessionStart};
use hermes_core::command::{Command, Surface, Verb};
use hermes_core::{Archive as _, Mode, Op, SessionId, SessionRecord, StoreError};
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::checkpoints::{self, Checkpoints};
use crate::commands;
use crate::failure::{Failure, Outcome};
use crate::personality::{self, Personalities};
use crate::prepare::Prepared;
use crate::quick;
use crate::safety;
use crate::toolsets::{TERMINAL, Toolsets};
use arguments::{days, no_such, said, search_words, undo_count, words};
pub use own::Heard;
pub use when_busy::WhenBusy;

const NOTHING_TO_COMPRESS: &str =
    "there is nothing to compress: this conversation is sent as it is; /new starts an empty one";

const NO_PLATFORMS: &str = "\
no chat platform is connected: this version talks in terminals and to programs (`hermes -z`), and has no gateway yet, which is \
what Telegram, Discord and the like would need";

pub struct Host {
    base: Arc<Base>,
    flags: RunFlags,
    prepared: Prepared,
    /// What the person's own commands printed since their last message.
    heard: Vec<Heard>,
}

/// Where a command was given.
pub struct Here {
    pub session: SessionId,
    /// A turn runs.
    pub is_busy: bool,
}

/// What a command came to: something to say, and something for the surface to do.
#[derive(Default)]
pub struct Done {
    pub told: Option<String>,
    pub then: Then,
}

#[derive(Default)]
pub enum Then {
    #[default]
    Nothing,
    Send(Op),
    /// Leave this session and open another, or the same one anew.
    Open(SessionStart),
    Leave,
    /// Take an image into the next message, behind these words.
    Attach {
        image: PathBuf,
        words: String,
    },
    /// Write this to the terminal as it is: a control sequence that shows nothing.
    Signal(String),
    ShowReasoning(bool),
    /// The conversation has another title.
    Titled(String),
    /// Show a change of files, line by line.
    ShowDiff(String),
    WhenBusy(WhenBusy),
}

impl Host {
    pub fn new(base: Arc<Base>, flags: &RunFlags, prepared: Prepared) -> Self {
        Self {
            base,
            flags: flags.clone(),
            prepared,
            heard: Vec::new(),
        }
    }

    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    pub async fn open(&self, start: SessionStart) -> Outcome<Opened> {
        let wired = &self.prepared.wired;
        Ok(Session::open(wired.session_ports(), wired.settings.clone(), start).await?)
    }

    /// Cleans up, whatever became of the conversation.
    pub async fn leave(self) {
        self.prepared.leave(&self.base).await;
    }

    /// Does what a command asks, or says why not. Nothing here ends the conversation.
    pub async fn run(&mut self, command: &Command, arguments: &str, here: &Here) -> Done {
        if here.is_busy && !command.during_turn {
            let name = command.name;
            return Done::told(format!("/{name} has to wait: a turn runs (/stop ends it)"));
        }
        match self.done(command.verb, arguments, here).await {
            Ok(done) => done,
            Err(failure) => Done::told(failure.to_string()),
        }
    }

    async fn done(&mut self, verb: Verb, arguments: &str, here: &Here) -> Outcome<Done> {
        Ok(match verb {
            Verb::New => {
                self.prepared.wired.refresh_tools();
                Done::open(self.prepared.start_new(words(arguments)))
            }
            Verb::Resume => self.resume(arguments).await?,
            Verb::Sessions => Done::told(self.sessions(arguments).await?),
            Verb::History => Done::told(self.history(here).await?),
            Verb::Copy => self.copy(arguments, here).await?,
            Verb::Title => self.title(arguments, here).await?,
            Verb::Branch => self.branch(arguments, here).await?,
            Verb::Retry => Done::send(Op::Retry),
            Verb::Rewind if arguments.is_empty() => {
                let earlier = rewind::earlier(&**self.archive(), &here.session).await?;
                Done::told(rewind::listed(&earlier))
            }
            Verb::Undo | Verb::Rewind => Done::send(Op::Rewind {
                turns: undo_count(arguments)?,
            }),
            Verb::Rollback => Done::told(self.rollback(arguments, here).await?),
            Verb::Diff => self.diff().await?,
            Verb::Init => Done::send(Op::Say(init::message(arguments))),
            Verb::Compress => Done::told(NOTHING_TO_COMPRESS),
            Verb::Stop => Done::send(Op::Interrupt),
            Verb::Steer => Done::send(Op::Steer(said(arguments, "/steer use tabs")?)),
            Verb::Queue => Done::send(Op::Say(said(arguments, "/queue and then the tests")?)),
            Verb::Decline => Done::told("nothing is asked"),
            Verb::Model => self.model(arguments, here).await?,
            Verb::Personality => self.personality(arguments, here).await?,
            Verb::Reasoning => self.reasoning(arguments, here).await?,
            Verb::Yolo => self.yolo(arguments, here).await?,
            Verb::Busy => when_busy::busy(arguments)?,
            Verb::Tools => Done::told(self.tools(arguments)?),
            Verb::Toolsets => Done::told(commands::tools::overview(
                &self.base.with_flags(&self.flags)?,
            )?),
            Verb::Mcp => Done::told(self.servers(arguments).await?),
            Verb::ReloadMcp => Done::told(self.reload_servers().await?),
            Verb::Skills => Done::told(self.library().await?.list(search_words(arguments))),
            Verb::Image => self.attach(arguments).await?,
            Verb::Paste => self.paste(arguments).await?,
            Verb::Platforms => Done::told(NO_PLATFORMS),
            Verb::Status => Done::told(self.status(here).await?),
            Verb::Usage => Done::told(self.usage(here).await?),
            Verb::Insights => {
                let days = days(arguments)?;
                Done::told(commands::insights::told(self.archive(), days).await?)
            }
            Verb::Config => Done::told(describe::config(&self.base)),
            Verb::Profile => Done::told(describe::profile(&self.base)),
            Verb::Version => Done::told(describe::version()),
            Verb::Help => Done::told(describe::help(Surface::Terminal)),
            Verb::Quit => Done {
                then: Then::Leave,
                ..Done::default()
            },
        })
    }

    /// Shows the tools, or switches toolsets: a conversation keeps the tools it began with.
    fn tools(&mut self, arguments: &str) -> Outcome<String> {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (names, is_on) = match words.as_slice() {
            [] | ["list"] => return Ok(describe::tools(&self.prepared.wired.ports.tools)),
            ["enable", names @ ..] if !names.is_empty() => (names, true),
            ["disable", names @ ..] if !names.is_empty() => (names, false),
            _ => {
                return Err(Failure::usage("/tools does not know these words").hint(
                    "/tools, /tools enable NAME or /tools disable NAME; /toolsets lists the names",
                ));
            }
        };
        let base = self.base.with_flags(&self.flags)?;
        let saved = commands::tools::switch_toolsets(&base, TERMINAL, names, is_on)?;
        let base = self.base.with_flags(&self.flags)?;
        self.prepared
            .wired
            .choose_tools(Toolsets::chosen(&base, &self.flags)?);
        Ok(saved)
    }

    async fn yolo(&mut self, arguments: &str, here: &Here) -> Outcome<Done> {
        let consent = &mut self.prepared.wired.settings.consent;
        let is_on = matches!(consent, ConsentPolicy::Allow);
        let wants = match arguments {
            "" => !is_on,
            "on" => true,
            "off" => false,
            other => return Err(no_such("/yolo", other, "on or off")),
        };
        let timeout = self.base.settings.seconds("approvals.timeout")?;
        *consent = if wants {
            ConsentPolicy::Allow
        } else {
            ConsentPolicy::Ask {
                timeout: timeout.max(Duration::from_secs(1)),
            }
        };
        let told = if wants {
            "dangerous commands run without asking, until /yolo off or the end"
        } else {
            "dangerous commands ask first"
        };
        Ok(Done {
            told: Some(told.into()),
            then: Then::Open(self.same_session(here).await?),
        })
    }

    /// Lists the checkpoints around the session's folder, shows what changed since one, or brings one back.
    async fn rollback(&self, arguments: &str, here: &Here) -> Outcome<String> {
        let around = &self.prepared.wired.settings.cwd;
        let checkpoints = Checkpoints::around(&self.base.with_flags(&self.flags)?, around)?;
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
    async fn personality(&mut self, arguments: &str, here: &Here) -> Outcome<Done> {
        let personalities = Personalities::of(&self.base);
        if arguments.is_empty() {
            return Ok(Done::told(personalities.list()));
        }
        let note = personalities.note(arguments)?;
        let inputs = &mut self.prepared.wired.inputs;
        inputs.notes.retain(|note| !personality::is_note(note));
        inputs.notes.extend(note);
        Ok(match self.record(here).await? {
            None => Done {
                told: Some(format!("personality: {arguments}")),
                then: Then::Open(self.prepared.start_new(None)),
            },
            Some(_) => Done::told(format!(
                "personality: {arguments}, from the next conversation on (/new)"
            )),
        })
    }

    /// Runs a shell command of the user's own and returns what it printed. The future stands alone: it may be left to
    /// itself while the conversation goes on.
    pub fn shell(&self, line: &str) -> impl Future<Output = String> + Send + use<> {
        let wired = &self.prepared.wired;
        quick::run(
            Arc::clone(&wired.terminal),
            line.to_owned(),
            wired.settings.cwd.clone(),
        )
    }

    /// Switches how freely calls may act, also those of the turn that runs.
    pub fn next_mode(&self) -> Mode {
        let switch = &self.prepared.wired.settings.mode;
        let next = switch.now().next();
        switch.set(next);
        next
    }

    /// How freely calls may act, where that is not what the settings say.
    pub fn unusual_mode(&self) -> Option<Mode> {
        let now = self.prepared.wired.settings.mode.now();
        (now != safety::mode(&self.base)).then_some(now)
    }

    /// Whether everything runs without a question.
    pub fn is_unasked(&self) -> bool {
        self.prepared.wired.settings.consent == ConsentPolicy::Allow
    }

    /// What the command line and the files say now.
    pub fn settings_now(&self) -> Outcome<Base> {
        self.base.with_flags(&self.flags)
    }

    async fn status(&self, here: &Here) -> Outcome<String> {
        let record = self.record(here).await?;
        Ok(describe::status(
            &self.prepared.wired,
            here,
            record.as_ref(),
        ))
    }

    async fn usage(&self, here: &Here) -> Outcome<String> {
        Ok(match self.record(here).await? {
            Some(record) => {
                let subagents = self.archive().subagents(&record.id).await?;
                describe::usage(&record, &subagents)
            }
            None => "nothing was used yet".into(),
        })
    }

    /// How to go on with the conversation at hand after something about it changed.
    async fn same_session(&self, here: &Here) -> Outcome<SessionStart> {
        Ok(match self.record(here).await? {
            Some(record) => SessionStart::Resume(record.id),
            None => self.prepared.start_new(None),
        })
    }

    /// What the store knows of this conversation: nothing before the first message.
    async fn record(&self, here: &Here) -> Outcome<Option<SessionRecord>> {
        match self.archive().record(&here.session).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn archive(&self) -> &Arc<SqliteStore> {
        &self.prepared.wired.archive
    }
}

impl Done {
    fn told(text: impl Into<String>) -> Self {
        Self {
            told: Some(text.into()),
            then: Then::Nothing,
        }
    }

    fn send(op: Op) -> Self {
        Self {
            told: None,
            then: Then::Send(op),
        }
    }

    fn open(start: SessionStart) -> Self {
        Self {
            told: None,
            then: Then::Open(start),
        }
    }
}

/// Does what would keep others waiting: reads files.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(error.to_string()))
}
