//! Puts the parts together: the only place that knows them all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermes_agent::prompt::{self, EnvironmentFacts, PromptInputs, PromptSources};
use hermes_agent::{AgentSettings, Limits, Ports};
use hermes_core::text::shorten;
use hermes_core::{
    Checkpoints, Clock, ModeSwitch, Prefix, Processes, Random, Terminal, Timestamp, Tool,
};
use hermes_exec::CheckpointStore;
use hermes_llm::{
    DeadlineSettings, LoginError, Logins, ModelChoice, ModelSettings, ResolveError, Resolved, Route,
};
use hermes_mcp::Reloaded;
use hermes_os::calendar::{UnknownZone, Zone};
use hermes_store::SqliteStore;
use hermes_tools::{CodePlace, EditReview, FileLedger, FilePlace, ToolLimits, ToolPorts};
use tokio::task::JoinSet;

use crate::args::RunFlags;
use crate::base::Base;
use crate::checkpoints;
use crate::delegation;
use crate::failure::{Failure, Outcome};
use crate::forwarded;
use crate::key_ledger::AuthLedger;
use crate::known_wires::KnownWires;
use crate::mcp::tool_source::{McpToolSource, Patience, version};
use crate::mcp::{McpContext, Servers, discovery_time};
use crate::mixture;
use crate::model_settings::model_settings;
use crate::offer::{Disclosure, Length, Offer};
use crate::references::SessionReferences;
use crate::safety;
use crate::stated_windows;
use crate::terminals::{self, Terminals};
use crate::token_store::AuthTokens;
use crate::toolsets::Toolsets;
use crate::web;

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one owner of the system's clock"
    )]
    fn now(&self) -> Timestamp {
        let since_1970 = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(since_1970.as_millis() as i64)
    }
}

/// Who may be asked before something dangerous runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A person at a terminal.
    Person,
    /// Nobody: `-z`, `chat -q`.
    Nobody,
}

/// Everything a session needs.
pub struct Wired {
    pub ports: Ports,
    pub archive: Arc<SqliteStore>,
    pub settings: AgentSettings,
    pub inputs: PromptInputs,
    /// Things the user should know before the first answer.
    pub warnings: Vec<String>,
    pub servers: Servers,
    offer: Offer,
    /// Which tools of servers a session took last.
    taken: Arc<AtomicU64>,
    /// How long a person waits for a server that nobody has seen.
    discovery_time: Duration,
    pub terminal: Arc<dyn Terminal>,
    pub processes: Arc<dyn Processes>,
    /// Which fence holds commands, in a short word.
    pub fence: Option<&'static str>,
    /// Whether background processes outlive us.
    processes_run_on: bool,
    /// Work that nobody waits for; it ends with us.
    _housekeeping: JoinSet<()>,
}

impl Wired {
    pub async fn new(
        base: &Base,
        flags: &RunFlags,
        audience: Audience,
        mut notes: Vec<String>,
        cwd: PathBuf,
        store: SqliteStore,
    ) -> Outcome<Self> {
        let random = Arc::new(Random::from_system());
        let (model, mut warnings) = model_within(base, deadlines(audience)).await?;
        let chosen = Toolsets::chosen(base, flags)?;
        let context = McpContext {
            model: Arc::clone(&model),
            cwd: cwd.clone(),
            is_attended: audience == Audience::Person,
        };
        let archive = Arc::new(store);
        let servers = Servers::start(base, &chosen, random.clone(), context, archive.clone()).await;
        let mode = ModeSwitch::new(safety::mode(base));
        let commands = Arc::new(safety::command_lists(base)?);
        let tool_ports = ToolPorts {
            edit_review: EditReview::Switched(mode.clone()),
            commands: commands.clone(),
            ..tool_ports(base)?
        };
        let built_in = hermes_tools::built_in(&tool_ports);
        let length = Length::read(base, flags)?;
        let mut offer = Offer::new(built_in, chosen, Disclosure::read(base)?, length);
        offer.set_of_servers(servers.server_tools());
        notes.extend(terminals::note(base)?);
        let inputs = prompt_inputs(base, flags, notes, &cwd);
        warnings.extend(base.settings.problems().iter().map(ToString::to_string));
        warnings.extend(forwarded::warnings(base)?);
        warnings.extend(servers.warnings.iter().cloned());
        warnings.extend(inputs.warnings.iter().cloned());
        let settings = AgentSettings {
            mode,
            ..agent_settings(base, flags, audience, cwd)?
        };
        let (checkpoints, housekeeping) = checkpoints(base)?;
        let tools = offer.tools(model.as_ref());
        let safety = safety::safety(base, &model, commands)?;
        let ports = Ports {
            safety,
            model,
            store: archive.clone(),
            clock: Arc::new(SystemClock),
            random,
            tools: tools.listed,
            unlisted: tools.unlisted,
            // Each session has its own.
            tool_source: None,
            checkpoints: checkpoints.map(|store| Arc::new(store) as Arc<dyn Checkpoints>),
            subagent_model: delegation::model(base)?,
            references: Some(Arc::new(SessionReferences::new(base, &tool_ports))),
        };
        Ok(Self {
            ports,
            archive,
            settings,
            inputs,
            warnings,
            servers,
            offer,
            fence: terminals::fence_word(base, &tool_ports.fence)?,
            taken: Arc::default(),
            discovery_time: discovery_time(base)?,
            terminal: tool_ports.terminal,
            processes: tool_ports.processes,
            processes_run_on: base.settings.bool("terminal.background_persist")?,
            _housekeeping: housekeeping,
        })
    }

    /// Ends what runs beside the session. Returns what the user should know of it.
    pub async fn stop(&self) -> Vec<String> {
        if !self.processes_run_on {
            self.processes.leave().await;
        }
        self.terminal.leave().await;
        self.servers.stop().await;
        self.terminal.notices()
    }

    /// Reads the settings of the MCP servers again. Sessions that run keep their tools; see [`Wired::refresh_tools`].
    pub async fn reload_servers(&mut self, base: &Base, flags: &RunFlags) -> Outcome<Reloaded> {
        self.servers.files_have_changed();
        let base = base.with_flags(flags)?;
        let reloaded = self.reload(&base, flags).await?;
        // Those who are quick are shown as they are.
        self.servers.wait_a_moment(&base).await?;
        Ok(reloaded)
    }

    /// Does the same when the files of the settings have changed, unless the user does not want that. Waits for nobody.
    pub async fn follow_settings(
        &mut self,
        base: &Base,
        flags: &RunFlags,
    ) -> Outcome<Option<Reloaded>> {
        if !self.servers.files_have_changed() {
            return Ok(None);
        }
        let base = base.with_flags(flags)?;
        if base.settings.bool("mcp.auto_reload_on_config_change")? {
            Ok(Some(self.reload(&base, flags).await?))
        } else {
            Ok(None)
        }
    }

    async fn reload(&mut self, base: &Base, flags: &RunFlags) -> Outcome<Reloaded> {
        let chosen = Toolsets::chosen(base, flags)?;
        let random = Arc::clone(&self.ports.random);
        Ok(self.servers.reload(base, &chosen, random).await)
    }

    /// Returns whether the tools of servers have changed since a session last took them.
    pub fn has_news(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        taken != 0 && taken != version(&self.servers.shared())
    }

    /// Chooses other toolsets for the next session.
    pub fn choose_tools(&mut self, chosen: Toolsets) {
        self.offer.choose(chosen);
    }

    /// Takes the tools that are chosen, and that servers offer by now, for the next session.
    pub fn refresh_tools(&mut self) {
        self.offer.set_of_servers(self.servers.server_tools());
        let tools = self.offer.tools(self.ports.model.as_ref());
        self.ports.tools = tools.listed;
        self.ports.unlisted = tools.unlisted;
    }

    /// The prefix of a new session, unless servers bring something before its first message.
    pub fn prefix(&self) -> Prefix {
        let Ports {
            tools,
            model,
            clock,
            ..
        } = &self.ports;
        prefix(&self.inputs, tools, model.as_ref(), clock.as_ref())
    }

    /// What a session works with that is opened now.
    pub fn session_ports(&self) -> Ports {
        let tool_source = McpToolSource {
            servers: self.servers.shared(),
            offer: self.offer.clone(),
            inputs: self.inputs.clone(),
            model: Arc::clone(&self.ports.model),
            clock: Arc::clone(&self.ports.clock),
            patience: if self.settings.is_attended {
                Patience::OfAPerson {
                    unless_it_starts: self.discovery_time,
                }
            } else {
                Patience::OfAScript
            },
            taken: Arc::clone(&self.taken),
        };
        Ports {
            tool_source: Some(Arc::new(tool_source)),
            ..self.ports.clone()
        }
    }
}

/// What a session says before its first message.
pub fn prefix(
    inputs: &PromptInputs,
    tools: &[Arc<dyn Tool>],
    model: &dyn hermes_core::Model,
    clock: &dyn Clock,
) -> Prefix {
    let tools: Vec<_> = tools.iter().map(|tool| tool.spec().clone()).collect();
    let system = prompt::assemble(inputs, &tools, &model.name(), clock.now());
    Prefix { system, tools }
}

pub fn open_store(base: &Base) -> Outcome<SqliteStore> {
    Ok(SqliteStore::open(base.home.database(), base.home.locks())?)
}

/// The model that the settings name, and what the user should know about it.
pub async fn model(base: &Base) -> Outcome<(Arc<dyn hermes_core::Model>, Vec<String>)> {
    model_within(base, DeadlineSettings::default()).await
}

/// How long answers may take to begin where nobody sits before them: a script would rather fail than wait for a server
/// that says nothing, also for one on this machine.
fn deadlines(audience: Audience) -> DeadlineSettings {
    const UNATTENDED: Duration = Duration::from_secs(120);
    let first = (audience != Audience::Person).then_some(UNATTENDED);
    DeadlineSettings {
        first_byte: first,
        first_token: first,
        ..DeadlineSettings::default()
    }
}

/// The model, with these deadlines where the settings say nothing.
async fn model_within(
    base: &Base,
    deadlines: DeadlineSettings,
) -> Outcome<(Arc<dyn hermes_core::Model>, Vec<String>)> {
    if let Some(recipe) = mixture::chosen(base)? {
        return recipe.model(base);
    }
    let mut settings = model_settings(base)?;
    settings.deadlines = settings.deadlines.or(deadlines);
    let environment = |name: &str| base.variable(name);
    let resolved = match hermes_llm::resolve(&settings, &environment) {
        Err(ResolveError::NoProvider) => {
            let (choice, warning) = local_model(base).await.ok_or(ResolveError::NoProvider)?;
            settings.choice = choice;
            settings.stated_windows = stated_windows::read(&base.home);
            let mut resolved = hermes_llm::resolve(&settings, &environment)?;
            resolved.warnings.push(warning);
            resolved
        }
        Err(ResolveError::NoModel { provider }) => {
            settings.choice.model = Some(only_model(base, &settings, provider).await?);
            hermes_llm::resolve(&settings, &environment)?
        }
        resolved => resolved?,
    };
    let warnings = resolved.warnings.clone();
    Ok((Arc::new(client(base, resolved)), warnings))
}

/// A model by its name, or by `provider:name`; otherwise as the settings say.
pub fn named_model(base: &Base, name: &str) -> Outcome<Arc<dyn hermes_core::Model>> {
    let mut settings = model_settings(base)?;
    match name.split_once(':') {
        Some((provider, model)) if hermes_llm::providers::find(provider).is_some() => {
            settings.choice = ModelChoice {
                provider: Some(provider.to_owned()),
                model: Some(model.to_owned()),
                ..ModelChoice::default()
            };
        }
        _ => settings.choice.model = Some(name.to_owned()),
    }
    let environment = |name: &str| base.variable(name);
    let resolved = hermes_llm::resolve(&settings, &environment)?;
    Ok(Arc::new(client(base, resolved)))
}

/// A client that knows which stored keys rest, writes down which are refused, and renews logins.
pub fn client(base: &Base, resolved: Resolved) -> hermes_llm::Client {
    hermes_llm::Client::new(resolved)
        .with_ledger(Arc::new(AuthLedger::of(&base.home)))
        .with_logins(logins(base))
        .with_wire_memory(Arc::new(KnownWires::of(&base.home)))
}

pub fn logins(base: &Base) -> Logins {
    Logins::new(Arc::new(AuthTokens::of(&base.home)), Arc::new(SystemClock))
}

/// A route with a key to ask with: the token of its login, if that is what it has.
pub async fn with_token(base: &Base, mut route: Route) -> Result<Route, LoginError> {
    if let Some(server) = &route.login {
        route.keys = vec![logins(base).token(server).await?];
    }
    Ok(route)
}

/// With nothing configured, a model server that runs on this machine will do.
async fn local_model(base: &Base) -> Option<(ModelChoice, String)> {
    let servers = hermes_llm::discover::local_servers().await;
    for server in &servers {
        stated_windows::remember(&base.home, server.provider.base_url, &server.models);
    }
    let (server, model) = servers
        .iter()
        .find_map(|server| Some((server, server.models.first()?)))?;
    let warning = format!(
        "no provider is configured; using {model} of {provider}, which runs on this machine (`hermes model set` chooses)",
        model = model.model,
        provider = server.provider.label,
    );
    let choice = ModelChoice {
        provider: Some(server.provider.id.to_owned()),
        model: Some(model.model.clone()),
        ..ModelChoice::default()
    };
    Some((choice, warning))
}

/// The model of a server that has only one; whoever has several is asked for a choice.
async fn only_model(base: &Base, settings: &ModelSettings, provider: String) -> Outcome<String> {
    /// Stands for the model while only its server matters.
    const ANY_MODEL: &str = "any";
    /// Names that fit into a hint.
    const NAMES_CHARS_MAX: usize = 300;
    let mut settings = settings.clone();
    settings.choice.model = Some(ANY_MODEL.to_owned());
    let route = hermes_llm::resolve(&settings, &|name| base.variable(name))?.primary;
    let offered = hermes_llm::discover::list_models(&route)
        .await
        .unwrap_or_default();
    stated_windows::remember(&base.home, &route.base_url, &offered);
    let names: Vec<_> = offered.into_iter().map(|offered| offered.model).collect();
    let failure = Failure::from(ResolveError::NoModel { provider });
    match names.as_slice() {
        [] => Err(failure),
        [only] => Ok(only.clone()),
        several => Err(failure.hint(format!(
            "choose one with -m: {}",
            shorten(&several.join(", "), NAMES_CHARS_MAX)
        ))),
    }
}

/// The built-in tools a new session would offer.
pub fn built_in_tools(base: &Base, flags: &RunFlags) -> Outcome<Vec<Arc<dyn Tool>>> {
    let every = hermes_tools::built_in(&tool_ports(base)?);
    Ok(Toolsets::chosen(base, flags)?.of(&every))
}

pub fn tool_ports(base: &Base) -> Outcome<ToolPorts> {
    let Terminals {
        terminal,
        processes,
        code,
        fence,
    } = Terminals::chosen(base)?;
    let limit = |key: &str| base.settings.u64(key).map(|value| value as usize);
    let home = &base.home;
    let file_place = match code.place {
        CodePlace::Here { .. } => FilePlace::here(),
        CodePlace::Elsewhere => {
            FilePlace::where_commands_run(vec![home.results(), home.web_pages()])
        }
    };
    Ok(ToolPorts {
        terminal,
        processes,
        limits: ToolLimits {
            read_chars_max: limit("file_read_max_chars")?,
            read_lines_max: limit("tool_output.max_lines")?,
            line_chars_max: limit("tool_output.max_line_length")?,
            output_bytes_max: limit("tool_output.max_bytes")?,
            command_timeout: base.settings.seconds("terminal.timeout")?,
            subagents_max: delegation::settings(base)?.subagents_max,
            clarify_timeout: base.settings.seconds("agent.clarify_timeout")?,
            ..ToolLimits::default()
        },
        code,
        home: base.environment.user_home(),
        secret: home.key_files(),
        protected: home.own_files(),
        settings: home.settings_files(),
        edit_review: EditReview::Switched(ModeSwitch::new(safety::mode(base))),
        commands: Arc::new(safety::command_lists(base)?),
        file_place,
        fence,
        files: FileLedger::default(),
        web: web::settings(base)?,
    })
}

/// Where checkpoints are kept, when the settings want any, and a task that keeps the old ones few.
fn checkpoints(base: &Base) -> Outcome<(Option<CheckpointStore>, JoinSet<()>)> {
    let mut housekeeping = JoinSet::new();
    if !base.settings.bool("checkpoints.enabled")? {
        return Ok((None, housekeeping));
    }
    let store = checkpoints::store(base)?;
    if base.settings.bool("checkpoints.auto_prune")? {
        let store = store.clone();
        housekeeping.spawn(async move {
            if let Err(error) = store.prune_when_due().await {
                tracing::warn!("checkpoints were not pruned: {error}");
            }
        });
    }
    Ok((Some(store), housekeeping))
}

pub fn prompt_inputs(
    base: &Base,
    flags: &RunFlags,
    notes: Vec<String>,
    cwd: &Path,
) -> PromptInputs {
    let zone = zone(base);
    let unknown = zone.as_ref().err();
    let unknown = unknown.map(|error| format!("timezone: {error}; the machine's is used"));
    let facts = EnvironmentFacts {
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        shell: base
            .environment
            .get("SHELL")
            .unwrap_or("/bin/sh")
            .to_owned(),
        cwd: cwd.to_owned(),
        git_branch: git_branch(cwd),
        zone: zone.unwrap_or_else(|_| Zone::of_system()),
    };
    let soul_file = base.home.soul_md();
    let mut inputs = PromptInputs::gather(
        &PromptSources {
            soul_file: &soul_file,
            cwd,
            ignore_rules: flags.ignores_rules(),
        },
        facts,
        notes,
    );
    inputs.warnings.extend(unknown);
    inputs
}

/// `timezone`: a name of the IANA database; empty for the machine's.
fn zone(base: &Base) -> Result<Zone, UnknownZone> {
    match base.settings.optional_string("timezone") {
        Ok(Some(name)) if !name.trim().is_empty() => Zone::named(name.trim()),
        _ => Ok(Zone::of_system()),
    }
}

/// Reads the branch from the repository's own files: starting git would cost more than the answer is worth.
fn git_branch(cwd: &Path) -> Option<String> {
    let repository = cwd
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|folder| folder.exists())?;
    let folder = match std::fs::read_to_string(&repository) {
        Ok(link) => PathBuf::from(link.strip_prefix("gitdir:")?.trim()),
        Err(_) => repository,
    };
    let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
    head.trim()
        .strip_prefix("ref: refs/heads/")
        .map(str::to_owned)
}

fn agent_settings(
    base: &Base,
    flags: &RunFlags,
    audience: Audience,
    cwd: PathBuf,
) -> Outcome<AgentSettings> {
    let steps_max = base.settings.u64("agent.max_turns")?.clamp(1, 10_000) as u32;
    Ok(AgentSettings {
        cwd,
        results_folder: base.home.results(),
        consent: safety::consent_policy(base, audience)?,
        mode: ModeSwitch::new(safety::mode(base)),
        is_attended: audience == Audience::Person,
        limits: Limits {
            steps_max,
            ..Limits::default()
        },
        nested_context: !flags.ignores_rules(),
        delegation: delegation::settings(base)?,
    })
}
