//! The MCP servers of the settings, running.

mod files;
pub mod tool_source;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_config::Settings;
use hermes_core::{KnownOffers, Model, Random};
use hermes_mcp::{
    Mcp, McpPorts, Models, Reloaded, Remembered, ServerSettings, ServerStatus, UnknownServer,
};
use serde_json::Value;

use crate::base::Base;
use crate::failure::Outcome;
use crate::offer::ServerTools;
use crate::toolsets::Toolsets;
use crate::wiring::{SystemClock, named_model};

use files::SettingsFiles;

/// Where the settings have them.
const SECTION: &str = "mcp_servers";

/// The servers that were started, and what is wrong with those that were not.
pub struct Servers {
    /// Nothing before there is a server. Sessions hold it too: they take the tools of servers that come later.
    mcp: Arc<OnceLock<Mcp>>,
    remembered: Arc<Remembered>,
    /// As they run.
    settings: Vec<ServerSettings>,
    files: SettingsFiles,
    context: McpContext,
    pub warnings: Vec<String>,
}

/// The conversation that servers are started for: the model they may sample, its folder, and whether a person can answer.
pub struct McpContext {
    pub model: Arc<dyn Model>,
    pub cwd: PathBuf,
    pub is_attended: bool,
}

impl Servers {
    /// Starts the chosen servers of `mcp_servers`; returns at once. One that is wrongly configured does not hinder the
    /// others.
    pub async fn start(
        base: &Base,
        chosen: &Toolsets,
        random: Arc<Random>,
        context: McpContext,
        known: Arc<dyn KnownOffers>,
    ) -> Self {
        let files = SettingsFiles::of(&base.home);
        let (settings, warnings) = chosen_settings(base, chosen, &[]);
        let mut servers = Self {
            mcp: Arc::default(),
            remembered: Arc::new(Remembered::read(known, Arc::new(SystemClock)).await),
            settings: settings.clone(),
            files,
            context,
            warnings,
        };
        if !settings.is_empty() {
            servers.launch(base, settings, random);
        }
        servers
    }

    /// Returns whether the files of the settings have changed since they were last looked at.
    pub fn files_have_changed(&mut self) -> bool {
        self.files.have_changed()
    }

    /// Makes the servers those of the settings as they are now. Connections to unchanged ones stay, and one whose section
    /// cannot be read goes on as it was.
    pub async fn reload(
        &mut self,
        base: &Base,
        chosen: &Toolsets,
        random: Arc<Random>,
    ) -> Reloaded {
        let (settings, warnings) = chosen_settings(base, chosen, &self.settings);
        self.warnings = warnings;
        self.settings.clone_from(&settings);
        match self.mcp.get() {
            Some(mcp) => mcp.reload(settings).await,
            None if settings.is_empty() => Reloaded::default(),
            None => {
                let started = settings.iter().map(|server| server.name.clone()).collect();
                self.launch(base, settings, random);
                Reloaded {
                    started,
                    ..Reloaded::default()
                }
            }
        }
    }

    fn launch(&mut self, base: &Base, settings: Vec<ServerSettings>, random: Arc<Random>) {
        let ports = McpPorts {
            models: Some(Models {
                usual: Arc::clone(&self.context.model),
                named: named_models(base, &settings, &mut self.warnings),
            }),
            folders: vec![self.context.cwd.clone()],
            is_attended: self.context.is_attended,
            remembered: Some(Arc::clone(&self.remembered)),
            ..ports(base, random)
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
    pub async fn wait_a_moment(&self, base: &Base) -> Outcome<()> {
        let moment = discovery_time(base)?;
        if let Some(mcp) = self.mcp.get() {
            mcp.wait_for_unseen(|_| moment).await;
        }
        Ok(())
    }

    /// The tools of all servers, as far as they are known.
    pub fn server_tools(&self) -> ServerTools {
        tool_source::server_tools(&self.mcp)
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
    settings: &[ServerSettings],
    warnings: &mut Vec<String>,
) -> HashMap<String, Arc<dyn Model>> {
    let mut models = HashMap::new();
    for server in settings.iter().filter(|server| server.sampling.is_enabled) {
        for name in server.sampling.named_models() {
            if models.contains_key(name) {
                continue;
            }
            match named_model(base, name) {
                Ok(model) => _ = models.insert(name.clone(), model),
                Err(failure) => warnings.push(format!(
                    "`mcp_servers.{}.sampling` names the model `{name}`, which cannot be used: {}",
                    server.name, failure.message
                )),
            }
        }
    }
    models
}

/// How long a person waits for a server that nobody has seen, and that does not answer.
pub fn discovery_time(base: &Base) -> Outcome<Duration> {
    Ok(base.settings.seconds("mcp_discovery_timeout")?)
}

/// Reads the sections of those servers that are to run. One that cannot be read stays as it is among the `running`.
fn chosen_settings(
    base: &Base,
    chosen: &Toolsets,
    running: &[ServerSettings],
) -> (Vec<ServerSettings>, Vec<String>) {
    let (mut settings, warnings) = sections(base, running);
    settings.retain(|server| chosen.has_server(&server.name));
    (settings, warnings)
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
