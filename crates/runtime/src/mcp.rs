//! The MCP servers of the settings, running.

pub mod edit;
mod files;
pub mod tool_source;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_config::Settings;
use hermes_core::text::nearest;
use hermes_core::{KnownOffers, Model, Random};
use hermes_mcp::{
    BreakerStatus, Mcp, McpPorts, Reloaded, Remembered, ServerSettings, ServerState, ServerStatus,
    UnknownServer,
};
use serde_json::Value;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::models::Models;
use crate::tools::toolsets::Toolsets;

use files::SettingsFiles;

/// Where the settings have them.
const SECTION: &str = "mcp_servers";

/// The servers of a process: those that its conversations want, and what is wrong with those that were not started.
pub struct Servers {
    /// Nothing before there is a server. Sessions hold it too: they take the tools of servers that come later.
    mcp: Arc<OnceLock<Mcp>>,
    known: Arc<dyn KnownOffers>,
    random: Arc<Random>,
    models: Arc<Models>,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    remembered: Option<Arc<Remembered>>,
    /// As they run.
    settings: Vec<ServerSettings>,
    /// The names that conversations want, and how many do.
    wanted: BTreeMap<String, usize>,
    files: Option<SettingsFiles>,
    warnings: Vec<String>,
}

/// The first conversation that wants servers: the model they may sample, its folder, and whether a person can answer.
pub struct McpContext {
    pub model: Arc<dyn Model>,
    pub cwd: PathBuf,
    pub is_attended: bool,
}

/// What a conversation wants of the servers.
pub struct Wanted {
    /// For [`Servers::release`].
    pub names: Vec<String>,
    /// What is wrong with the settings.
    pub warnings: Vec<String>,
}

/// What came of reading the settings again.
pub struct Reread {
    pub reloaded: Reloaded,
    pub warnings: Vec<String>,
}

impl Servers {
    pub fn new(known: Arc<dyn KnownOffers>, random: Arc<Random>, models: Arc<Models>) -> Self {
        Self {
            mcp: Arc::default(),
            known,
            random,
            models,
            state: tokio::sync::Mutex::default(),
        }
    }

    /// Starts the chosen servers of `mcp_servers` that do not run yet; waits for none. One that is wrongly configured does
    /// not hinder the others.
    pub async fn want(&self, base: &Base, chosen: &Toolsets, context: McpContext) -> Wanted {
        let mut state = self.state.lock().await;
        state
            .files
            .get_or_insert_with(|| SettingsFiles::of(&base.home));
        if state.remembered.is_none() {
            let known = Arc::clone(&self.known);
            let remembered = Remembered::read(known, Arc::new(SystemClock)).await;
            state.remembered = Some(Arc::new(remembered));
        }
        let (mut sections, mut warnings) = sections(base, &[]);
        sections.retain(|server| chosen.has_server(&server.name));
        let names: Vec<String> = sections.iter().map(|server| server.name.clone()).collect();
        for name in &names {
            *state.wanted.entry(name.clone()).or_default() += 1;
        }
        let is_new = |server: &ServerSettings| {
            let mut running = state.settings.iter();
            !running.any(|one| one.name == server.name)
        };
        let new: Vec<ServerSettings> = sections.into_iter().filter(is_new).collect();
        if !new.is_empty() {
            state.settings.extend(new);
            let settings = state.settings.clone();
            match self.mcp.get() {
                Some(mcp) => _ = mcp.reload(settings).await,
                None => self.launch(base, &state, context, &mut warnings),
            }
        }
        state.warnings.clone_from(&warnings);
        Wanted { names, warnings }
    }

    /// A conversation does without these from now on. Those that nobody else wants are stopped.
    pub async fn release(&self, names: &[String]) {
        let mut state = self.state.lock().await;
        for name in names {
            if let Some(count) = state.wanted.get_mut(name) {
                *count = count.saturating_sub(1);
            }
        }
        state.wanted.retain(|_, count| *count > 0);
        let before = state.settings.len();
        let State {
            settings, wanted, ..
        } = &mut *state;
        settings.retain(|server| wanted.contains_key(&server.name));
        if settings.len() < before
            && let Some(mcp) = self.mcp.get()
        {
            mcp.reload(settings.clone()).await;
        }
    }

    /// Returns whether the files of the settings have changed since they were last looked at.
    pub async fn files_have_changed(&self) -> bool {
        let mut state = self.state.lock().await;
        state
            .files
            .as_mut()
            .is_some_and(SettingsFiles::have_changed)
    }

    /// What is wrong with the settings of servers.
    pub async fn warnings(&self) -> Vec<String> {
        self.state.lock().await.warnings.clone()
    }

    /// Makes the servers those of the settings as they are now. Connections to unchanged ones stay, and one whose section
    /// cannot be read goes on as it was. What another conversation wanted stays, if the settings still have it.
    pub async fn reload(&self, base: &Base, chosen: &Toolsets, context: McpContext) -> Reread {
        let mut state = self.state.lock().await;
        let (mut settings, mut warnings) = sections(base, &state.settings);
        settings.retain(|server| {
            chosen.has_server(&server.name) || state.wanted.contains_key(&server.name)
        });
        state.settings.clone_from(&settings);
        let names = settings.iter().map(|server| server.name.clone());
        let names: Vec<String> = names.collect();
        for name in &names {
            state.wanted.entry(name.clone()).or_insert(1);
        }
        let reloaded = match self.mcp.get() {
            Some(mcp) => mcp.reload(settings).await,
            None if settings.is_empty() => Reloaded::default(),
            None => {
                self.launch(base, &state, context, &mut warnings);
                Reloaded {
                    started: names,
                    ..Reloaded::default()
                }
            }
        };
        state.warnings.clone_from(&warnings);
        Reread { reloaded, warnings }
    }

    fn launch(&self, base: &Base, state: &State, context: McpContext, warnings: &mut Vec<String>) {
        let settings = state.settings.clone();
        let ports = McpPorts {
            models: Some(hermes_mcp::Models {
                usual: context.model,
                named: named_models(base, &self.models, &settings, warnings),
            }),
            folders: vec![context.cwd],
            is_attended: context.is_attended,
            remembered: state.remembered.clone(),
            ..ports(base, Arc::clone(&self.random))
        };
        self.mcp.get_or_init(|| Mcp::start(settings, ports));
    }

    /// The servers, for whoever follows which tools they have.
    pub fn shared(&self) -> Arc<OnceLock<Mcp>> {
        Arc::clone(&self.mcp)
    }

    /// Gives up a server's connection and makes a new one.
    pub async fn reconnect(&self, name: &str) -> Result<(), UnknownServer> {
        match self.mcp.get() {
            Some(mcp) => mcp.reconnect(name).await,
            None => Err(UnknownServer {
                name: name.to_owned(),
                known: "none".to_owned(),
            }),
        }
    }

    /// Gives servers that nobody has seen a moment to show what they have.
    pub async fn wait_a_moment(&self, base: &Base) -> Result<()> {
        let moment = discovery_time(base)?;
        if let Some(mcp) = self.mcp.get() {
            mcp.wait_for_unseen(|_| moment).await;
        }
        Ok(())
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        self.mcp.get().map(Mcp::status).unwrap_or_default()
    }

    pub async fn stop(&self) {
        if let Some(mcp) = self.mcp.get() {
            mcp.shutdown().await;
        }
    }
}

/// Connects to the models that the settings of servers name. One that cannot be had is replaced by the usual one.
fn named_models(
    base: &Base,
    known: &Models,
    settings: &[ServerSettings],
    warnings: &mut Vec<String>,
) -> HashMap<String, Arc<dyn Model>> {
    let mut models = HashMap::new();
    for server in settings.iter().filter(|server| server.sampling.is_enabled) {
        for name in server.sampling.named_models() {
            if models.contains_key(name) {
                continue;
            }
            match known.named(base, name) {
                Ok(model) => _ = models.insert(name.clone(), model),
                Err(error) => warnings.push(format!(
                    "`mcp_servers.{}.sampling` names the model `{name}`, which cannot be used: {}",
                    server.name, error
                )),
            }
        }
    }
    models
}

/// How long a person waits for a server that nobody has seen, and that does not answer.
pub fn discovery_time(base: &Base) -> Result<Duration> {
    Ok(base.settings.seconds("mcp_discovery_timeout")?)
}

/// One server of the settings.
pub fn one(base: &Base, name: &str) -> Result<ServerSettings> {
    let (mut servers, _) = settings(base);
    match servers.iter().position(|server| server.name == name) {
        Some(at) => Ok(servers.swap_remove(at)),
        None => {
            let names: Vec<String> = servers.into_iter().map(|server| server.name).collect();
            Err(unknown(name, &names))
        }
    }
}

/// There is no server of that name among these.
pub fn unknown(name: &str, names: &[String]) -> Error {
    let near = nearest(name, names.iter().map(String::as_str));
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`hermes mcp list` shows what there is".into(),
    };
    Error::failed(format!("there is no MCP server `{name}`")).with_hint(hint)
}

/// The servers whose sections cannot be used, and why.
pub fn invalid_sections(base: &Base) -> Vec<(String, String)> {
    if let Some(problem) = no_section(&base.settings) {
        return vec![(SECTION.to_owned(), problem)];
    }
    let Some(Value::Object(sections)) = base.settings.get(SECTION) else {
        return Vec::new();
    };
    let reason = |(name, section): (&String, &Value)| {
        let error = ServerSettings::parse(name, section).err()?;
        Some((name.clone(), error.to_string()))
    };
    sections.iter().filter_map(reason).collect()
}

/// The servers whose sections cannot be used, as what they are.
pub fn unusable(base: &Base) -> Vec<ServerStatus> {
    let server = |(name, reason): (String, String)| ServerStatus {
        name,
        state: ServerState::Misconfigured { reason },
        last_success: None,
        round_trip: None,
        reconnects: 0,
        breaker: BreakerStatus::Closed,
        next_attempt: None,
        tools: 0,
        last_error: None,
        notes: Vec::new(),
    };
    invalid_sections(base).into_iter().map(server).collect()
}

/// What is odd about the servers of some settings, one line each.
pub fn oddities(settings: &Settings) -> Vec<String> {
    let Some(Value::Object(sections)) = settings.get(SECTION) else {
        return Vec::new();
    };
    let odd = |(name, section): (&String, &Value)| {
        let told = match ServerSettings::parse(name, section) {
            Ok(server) => server.warnings,
            Err(error) => vec![error.to_string()],
        };
        let place = settings.origin(&format!("{SECTION}.{name}"));
        let place = place.map_or_else(String::new, |place| format!("{place}: "));
        told.into_iter().map(move |text| format!("{place}{text}"))
    };
    sections.iter().flat_map(odd).collect()
}

/// Says what the section of all servers is, if it is none.
fn no_section(settings: &Settings) -> Option<String> {
    let about_it = format!("`{SECTION}` ");
    let mut problems = settings.problems().iter();
    let problem = problems.find(|problem| problem.message.starts_with(&about_it))?;
    Some(problem.message.clone())
}

/// Reads the sections of all servers.
pub fn settings(base: &Base) -> (Vec<ServerSettings>, Vec<String>) {
    sections(base, &[])
}

fn sections(base: &Base, running: &[ServerSettings]) -> (Vec<ServerSettings>, Vec<String>) {
    let mut warnings: Vec<String> = no_section(&base.settings).into_iter().collect();
    let Some(Value::Object(sections)) = base.settings.get(SECTION) else {
        return (Vec::new(), warnings);
    };
    let mut servers = Vec::new();
    for (name, section) in sections {
        match ServerSettings::parse(name, section) {
            Ok(settings) => {
                warnings.extend(settings.warnings.iter().cloned());
                servers.push(settings);
            }
            Err(error) => match running.iter().find(|server| server.name == *name) {
                Some(before) => {
                    warnings.push(format!("{error}; it goes on with its earlier settings"));
                    servers.push(before.clone());
                }
                None => warnings.push(error.to_string()),
            },
        }
    }
    (servers, warnings)
}

/// What there is for servers to connect to: nobody to ask, neither a person nor a model.
pub fn ports(base: &Base, random: Arc<Random>) -> McpPorts {
    let text = |(name, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
        Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
    };
    McpPorts {
        log_folder: base.home.logs(),
        token_folder: base.home.mcp_tokens(),
        cache_folder: base.home.cache(),
        media_folder: base.home.media(),
        environment: base.environment.iter().filter_map(text).collect(),
        ..McpPorts::alone_in(base.home.directory(), random, Arc::new(SystemClock))
    }
}
