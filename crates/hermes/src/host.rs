//! What stands behind a conversation in a terminal: it knows which session comes next, and does what slash commands ask.
//!
//! Surfaces show things and read keys; everything a command means beyond that happens here, once for all of them.

mod attach;
mod describe;
pub(crate) mod rewind;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Opened, Session, SessionStart};
use hermes_core::command::{Command, Surface, Verb};
use hermes_core::skill::SkillNames;
use hermes_core::{Archive as _, Op, SessionId, SessionRecord, StoreError, UserMessage};
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::checkpoints::{self, Checkpoints};
use crate::commands;
use crate::failure::{Failure, Outcome};
use crate::known_models::{Askable, OfferedModel};
use crate::personality::{self, Personalities};
use crate::prepare::Prepared;
use crate::quick;
use crate::skills::{Library, Sources};
use crate::toolsets::{TERMINAL, Toolsets};
use crate::wiring;

/// Turns that one `/undo` takes back at most: more is a slip of the finger.
const UNDO_MAX: u32 = 1_000;

const NOTHING_TO_COMPRESS: &str =
    "there is nothing to compress: this conversation is sent as it is; /new starts an empty one";

const NO_PLATFORMS: &str = "\
no chat platform is connected: this version talks in terminals and to programs (`hermes -z`), and has no gateway yet, which is \
what Telegram, Discord and the like would need";

pub struct Host<'a> {
    base: &'a Base,
    flags: RunFlags,
    prepared: Prepared,
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
    ShowReasoning(bool),
    WhenBusy(WhenBusy),
}

/// What a line does that is sent while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    Queue,
    Steer,
    Interrupt,
}

impl WhenBusy {
    /// What the settings say.
    pub fn of(base: &Base) -> Outcome<Self> {
        let key = "display.busy_input_mode";
        let text = base.settings.string(key)?;
        Self::parse(&text).ok_or_else(|| {
            Failure::new(format!("`{key}` is `{text}`, which is no mode"))
                .hint("modes are queue, steer and interrupt")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "queue" => Some(Self::Queue),
            "steer" => Some(Self::Steer),
            "interrupt" => Some(Self::Interrupt),
            _ => None,
        }
    }
}

impl<'a> Host<'a> {
    pub fn new(base: &'a Base, flags: &RunFlags, prepared: Prepared) -> Self {
        Self {
            base,
            flags: flags.clone(),
            prepared,
        }
    }

    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    pub async fn open(&self, start: SessionStart) -> Outcome<Opened> {
        let wired = &self.prepared.wired;
        Ok(Session::open(wired.ports.clone(), wired.settings.clone(), start).await?)
    }

    /// Cleans up, whatever became of the conversation.
    pub async fn leave(self) {
        self.prepared.leave(self.base).await;
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
                self.prepared.wired.refresh_tools().await;
                Done::open(self.prepared.start_new(words(arguments)))
            }
            Verb::Resume => self.resume(arguments).await?,
            Verb::Sessions => Done::told(self.sessions(arguments).await?),
            Verb::History => Done::told(self.history(here).await?),
            Verb::Title => Done::told(self.title(arguments, here).await?),
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
            Verb::Compress => Done::told(NOTHING_TO_COMPRESS),
            Verb::Stop => Done::send(Op::Interrupt),
            Verb::Steer => Done::send(Op::Steer(said(arguments, "/steer use tabs")?)),
            Verb::Queue => Done::send(Op::Say(said(arguments, "/queue and then the tests")?)),
            Verb::Decline => Done::told("nothing is asked"),
            Verb::Model => self.model(arguments, here).await?,
            Verb::Personality => self.personality(arguments, here).await?,
            Verb::Reasoning => reasoning(arguments)?,
            Verb::Yolo => self.yolo(arguments, here).await?,
            Verb::Busy => busy(arguments)?,
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
            Verb::Config => Done::told(describe::config(self.base)),
            Verb::Profile => Done::told(describe::profile(self.base)),
            Verb::Version => Done::told(describe::version()),
            Verb::Help => Done::told(describe::help(Surface::Terminal)),
            Verb::Quit => Done {
                then: Then::Leave,
                ..Done::default()
            },
        })
    }

    async fn resume(&mut self, name: &str) -> Outcome<Done> {
        if name.is_empty() {
            let list = self.sessions("").await?;
            return Ok(Done::told(format!(
                "{list}\n\n/resume ID or /resume TITLE goes on with one"
            )));
        }
        let session = self.archive().find(name).await?;
        let record = self.archive().record(&session).await?;
        if let Some(folder) = record.cwd.filter(|folder| folder.is_dir()) {
            self.prepared.wired.settings.cwd = folder;
        }
        Ok(Done::open(SessionStart::Resume(session)))
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

    /// Shows the MCP servers, after connecting some of them anew.
    async fn servers(&self, arguments: &str) -> Outcome<String> {
        let servers = &self.prepared.wired.servers;
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let names: Vec<String> = match words.as_slice() {
            [] => Vec::new(),
            ["reconnect", "all"] => servers
                .status()
                .into_iter()
                .map(|server| server.name)
                .collect(),
            ["reconnect", name] => vec![(*name).to_owned()],
            _ => {
                return Err(Failure::usage("/mcp does not know these words")
                    .hint("/mcp, /mcp reconnect NAME or /mcp reconnect all"));
            }
        };
        for name in &names {
            let reconnected = servers.reconnect(name).await;
            reconnected.map_err(|error| Failure::new(error.to_string()))?;
        }
        Ok(match names.is_empty() {
            true => describe::servers(&servers.status()),
            false => format!(
                "connecting to {} anew; /mcp shows what came of it",
                names.join(", ")
            ),
        })
    }

    /// Lets the MCP servers follow their settings, if those have changed. Returns what the person should know.
    ///
    /// To be called when a turn begins.
    pub async fn follow_settings(&mut self) -> Option<String> {
        let wired = &mut self.prepared.wired;
        let known = wired.servers.warnings.clone();
        match wired.follow_settings(self.base, &self.flags).await {
            Ok(reloaded) => {
                let is_new = |warning: &&String| !known.contains(warning);
                let news = wired.servers.warnings.iter().filter(is_new);
                describe::followed(&reloaded?, news)
            }
            Err(failure) => Some(format!(
                "the settings have changed and cannot be used; the MCP servers stay as they are: {failure}"
            )),
        }
    }

    async fn reload_servers(&mut self) -> Outcome<String> {
        let wired = &mut self.prepared.wired;
        let reloaded = wired.reload_servers(self.base, &self.flags).await?;
        let servers = &wired.servers;
        let warnings = servers
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}\n"));
        Ok(format!(
            "{}{}\n\n{}",
            warnings.collect::<String>(),
            describe::servers(&servers.status()),
            describe::reloaded(&reloaded)
        ))
    }

    async fn branch(&self, title: &str, here: &Here) -> Outcome<Done> {
        let Some(record) = self.record(here).await? else {
            return Ok(Done::told("there is nothing to branch off yet"));
        };
        let title = match (words(title), &record.title) {
            (Some(title), _) => Some(title),
            (None, Some(title)) => Some(self.next_title(title).await?),
            (None, None) => None,
        };
        Ok(Done {
            told: Some(format!("a branch of {}", here.session)),
            then: Then::Open(self.prepared.start_branch(here.session.clone(), title)),
        })
    }

    /// The first `TITLE #N` that no session has, from 2 on.
    async fn next_title(&self, title: &str) -> Outcome<String> {
        let base = match title.rsplit_once(" #") {
            Some((base, number)) if number.parse::<u32>().is_ok() => base,
            _ => title,
        };
        let sessions = self.archive().list(Default::default()).await?;
        let is_free = |title: &String| {
            let taken = |session: &SessionRecord| session.title.as_ref() == Some(title);
            !sessions.iter().any(taken)
        };
        let mut titles = (2..).map(|number: u32| format!("{base} #{number}"));
        Ok(titles.find(is_free).unwrap_or_else(|| base.to_owned()))
    }

    async fn title(&self, title: &str, here: &Here) -> Outcome<String> {
        let Some(record) = self.record(here).await? else {
            return Ok("a conversation can have a title once something was said in it".into());
        };
        if title.is_empty() {
            return Ok(match record.title {
                Some(title) => title,
                None => "this conversation has no title; /title TITLE gives it one".into(),
            });
        }
        self.archive().rename(&here.session, title).await?;
        Ok(format!("this conversation is now called `{title}`"))
    }

    /// Changes the model from the next message on; with `--global`, of all future sessions too.
    async fn model(&mut self, arguments: &str, here: &Here) -> Outcome<Done> {
        let choice = ModelWish::parse(arguments)?;
        let Some(name) = choice.model else {
            let model = self.prepared.wired.ports.model.name();
            return Ok(Done::told(format!(
                "{model} answers; /model PROVIDER:MODEL changes it, `hermes model list` shows what there is"
            )));
        };
        let flags = RunFlags {
            model: Some(name.to_owned()),
            provider: choice.provider.map(str::to_owned),
            ..self.flags.clone()
        };
        let (model, warnings) = wiring::model(&self.base.with_flags(&flags)?).await?;
        let mut told = format!("{} answers from now on", model.name());
        if choice.is_global {
            let saved = commands::model::choose(self.base, name, choice.provider)?;
            told = format!("{told}\n{saved}");
        }
        for warning in warnings {
            told = format!("{told}\nwarning: {warning}");
        }
        self.prepared.wired.ports.model = model;
        self.flags = flags;
        Ok(Done {
            told: Some(told),
            then: Then::Open(self.same_session(here).await?),
        })
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
        *consent = match wants {
            true => ConsentPolicy::Allow,
            false => ConsentPolicy::Ask {
                timeout: timeout.max(Duration::from_secs(1)),
            },
        };
        let told = match wants {
            true => "dangerous commands run without asking, until /yolo off or the end",
            false => "dangerous commands ask first",
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
        let personalities = Personalities::of(self.base);
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

    /// The slash names of the skills there are now; none if they cannot be looked for, and `/skills` tells why. The future
    /// stands alone.
    pub fn skill_names(&self) -> impl Future<Output = SkillNames> + Send + use<> {
        let sources = self.skill_sources();
        async move {
            let Ok(sources) = sources else {
                return SkillNames::NONE;
            };
            let library = blocking(move || sources.library()).await;
            library.map(|library| library.names()).unwrap_or_default()
        }
    }

    /// The models that providers say they have; none of those who cannot be asked. The future stands alone.
    pub fn offered_models(&self) -> impl Future<Output = Vec<OfferedModel>> + Send + use<> {
        let askable = self.askable();
        async move {
            match askable {
                Ok(askable) => askable.offered().await,
                Err(_) => Vec::new(),
            }
        }
    }

    /// Everybody who can be asked, also after `/model` chose one of them.
    pub fn askable(&self) -> Outcome<Askable> {
        let flags = RunFlags {
            model: None,
            provider: None,
            ..self.flags.clone()
        };
        Askable::of(self.base.with_flags(&flags)?)
    }

    /// The skills of these slash names as words for the model, each or why not.
    pub async fn skills(
        &self,
        names: Vec<String>,
        session: SessionId,
    ) -> Outcome<Vec<Outcome<String>>> {
        let sources = self.skill_sources()?;
        blocking(move || {
            let told = names.iter().map(|name| sources.told(name, &session));
            told.collect()
        })
        .await
    }

    async fn library(&self) -> Outcome<Library> {
        let sources = self.skill_sources()?;
        blocking(move || sources.library()).await
    }

    /// As the settings say now, not as they did at the start.
    fn skill_sources(&self) -> Outcome<Sources> {
        Sources::of(&self.settings_now()?)
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

    async fn sessions(&self, words: &str) -> Outcome<String> {
        commands::sessions::told(self.archive(), words).await
    }

    async fn history(&self, here: &Here) -> Outcome<String> {
        let Some(record) = self.record(here).await? else {
            return Ok("nothing was said yet".into());
        };
        let lines = self.archive().transcript(&here.session).await?;
        Ok(commands::sessions::readable(&record, &lines))
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

/// What `/model` was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModelWish<'a> {
    model: Option<&'a str>,
    provider: Option<&'a str>,
    is_global: bool,
}

impl<'a> ModelWish<'a> {
    fn parse(arguments: &'a str) -> Outcome<Self> {
        let mut wish = Self::default();
        let mut words = arguments.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--global" => wish.is_global = true,
                "--session" => wish.is_global = false,
                "--provider" => wish.provider = words.next(),
                word if word.starts_with("--") => {
                    return Err(no_such("/model", word, "--provider NAME and --global"));
                }
                word if wish.model.is_none() => wish.model = Some(word),
                word => return Err(no_such("/model", word, "one model")),
            }
        }
        Ok(wish)
    }
}

fn reasoning(arguments: &str) -> Outcome<Done> {
    let (told, shows) = match arguments {
        "show" | "on" | "" => ("what the model thinks is shown", true),
        "hide" | "off" => ("what the model thinks is hidden", false),
        other => return Err(no_such("/reasoning", other, "show or hide")),
    };
    Ok(Done {
        told: Some(told.into()),
        then: Then::ShowReasoning(shows),
    })
}

fn busy(arguments: &str) -> Outcome<Done> {
    let Some(when_busy) = WhenBusy::parse(arguments) else {
        return Err(no_such("/busy", arguments, "queue, steer or interrupt"));
    };
    let told = match when_busy {
        WhenBusy::Queue => "what you send while it works waits for the end of the turn",
        WhenBusy::Steer => "what you send while it works reaches it at once",
        WhenBusy::Interrupt => "what you send while it works stops it and comes next",
    };
    Ok(Done {
        told: Some(told.into()),
        then: Then::WhenBusy(when_busy),
    })
}

fn undo_count(arguments: &str) -> Outcome<u32> {
    match arguments {
        "" => Ok(1),
        number => match number.parse() {
            Ok(turns @ 1..=UNDO_MAX) => Ok(turns),
            _ => Err(no_such("/undo", number, "a number of messages")),
        },
    }
}

/// `/insights 7` and `/insights --days 7` mean the same.
fn days(arguments: &str) -> Outcome<u32> {
    const USUAL: u32 = 30;
    match arguments.trim_start_matches("--days").trim() {
        "" => Ok(USUAL),
        number => match number.parse() {
            Ok(days @ 1..=36_500) => Ok(days),
            _ => Err(no_such("/insights", number, "a number of days")),
        },
    }
}

/// `/skills review`, `/skills search review`; `/skills list` lists all.
fn search_words(arguments: &str) -> &str {
    match arguments.split_once(char::is_whitespace) {
        Some(("search", words)) => words.trim(),
        _ if arguments == "list" => "",
        _ => arguments,
    }
}

/// Does what would keep others waiting: reads files.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(error.to_string()))
}

fn said(arguments: &str, example: &str) -> Outcome<UserMessage> {
    match words(arguments) {
        Some(text) => Ok(UserMessage::text(text)),
        None => Err(Failure::usage("there are no words").hint(format!("for example: {example}"))),
    }
}

fn words(arguments: &str) -> Option<String> {
    (!arguments.is_empty()).then(|| arguments.to_owned())
}

fn no_such(command: &str, given: &str, expected: &str) -> Failure {
    let given = match given {
        "" => "nothing".to_owned(),
        given => format!("`{given}`"),
    };
    Failure::usage(format!("{command} takes {expected}, not {given}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_come_with_its_provider_and_be_kept() {
        let wish = |arguments| ModelWish::parse(arguments).map_err(|failure| failure.message);
        assert_eq!(wish(""), Ok(ModelWish::default()));
        let kept = ModelWish {
            model: Some("opus"),
            provider: Some("anthropic"),
            is_global: true,
        };
        assert_eq!(wish("opus --provider anthropic --global"), Ok(kept));
        assert!(wish("one two").is_err());
        assert!(wish("--nonsense").is_err());
    }

    #[test]
    fn an_undo_takes_a_sensible_number() {
        assert_eq!(undo_count("").ok(), Some(1));
        assert_eq!(undo_count("3").ok(), Some(3));
        for wrong in ["0", "-1", "x", "1001"] {
            assert!(undo_count(wrong).is_err(), "{wrong}");
        }
    }
}
