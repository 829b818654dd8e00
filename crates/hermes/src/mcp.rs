//! The MCP servers of the settings, running.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Random, Tool};
use hermes_mcp::{Mcp, McpPorts, Reloaded, ServerSettings, ServerStatus, UnknownServer};
use serde_json::Value;

use crate::base::Base;
use crate::failure::Outcome;
use crate::toolsets::Toolsets;
use crate::wiring::SystemClock;

/// The servers that were started, and what is wrong with those that were not.
pub struct Servers {
    mcp: Option<Mcp>,
    pub warnings: Vec<String>,
}

impl Servers {
    /// Starts the chosen servers of `mcp_servers`; returns at once. One that is wrongly configured does not hinder the
    /// others.
    pub fn start(base: &Base, chosen: &Toolsets, random: Arc<Random>) -> Self {
        let (settings, warnings) = chosen_settings(base, chosen);
        let mcp = (!settings.is_empty()).then(|| Mcp::start(settings, ports(base, random)));
        Self { mcp, warnings }
    }

    /// Makes the servers those of the settings as they are now. Connections to unchanged ones stay.
    pub async fn reload(
        &mut self,
        base: &Base,
        chosen: &Toolsets,
        random: Arc<Random>,
    ) -> Reloaded {
        let (settings, warnings) = chosen_settings(base, chosen);
        self.warnings = warnings;
        let start = || Mcp::start(Vec::new(), ports(base, random));
        let mcp = self.mcp.get_or_insert_with(start);
        mcp.reload(settings).await
    }

    /// Gives up a server's connection and makes a new one.
    pub async fn reconnect(&self, name: &str) -> Result<(), UnknownServer> {
        match &self.mcp {
            Some(mcp) => mcp.reconnect(name).await,
            None => Err(UnknownServer {
                name: name.to_owned(),
                known: "none".to_owned(),
            }),
        }
    }

    /// The tools of all servers that answered in time.
    pub async fn tools(&self, base: &Base) -> Outcome<Vec<Arc<dyn Tool>>> {
        Ok(self.tools_within(discovery_time(base)?).await)
    }

    /// The tools of all servers that have answered until now.
    pub async fn tools_now(&self) -> Vec<Arc<dyn Tool>> {
        self.tools_within(Duration::ZERO).await
    }

    async fn tools_within(&self, wait: Duration) -> Vec<Arc<dyn Tool>> {
        match &self.mcp {
            Some(mcp) => mcp.tools(wait).await,
            None => Vec::new(),
        }
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        self.mcp.as_ref().map(Mcp::status).unwrap_or_default()
    }

    pub async fn stop(&self) {
        if let Some(mcp) = &self.mcp {
            mcp.shutdown().await;
        }
    }
}

/// How long a session waits for the first lists of tools.
fn discovery_time(base: &Base) -> Outcome<Duration> {
    Ok(base.settings.seconds("mcp_discovery_timeout")?)
}

/// Reads the sections of those servers that are to run.
fn chosen_settings(base: &Base, chosen: &Toolsets) -> (Vec<ServerSettings>, Vec<String>) {
    let (mut settings, warnings) = settings(base);
    settings.retain(|server| chosen.has_server(&server.name));
    (settings, warnings)
}

/// Reads the sections of all servers.
pub fn settings(base: &Base) -> (Vec<ServerSettings>, Vec<String>) {
    let Some(Value::Object(sections)) = base.settings.get("mcp_servers") else {
        return (Vec::new(), Vec::new());
    };
    let mut warnings = Vec::new();
    let servers =
        sections.iter().filter_map(
            |(name, section)| match ServerSettings::parse(name, section) {
                Ok(settings) => {
                    warnings.extend(settings.warnings.iter().cloned());
                    Some(settings)
                }
                Err(error) => {
                    warnings.push(error.to_string());
                    None
                }
            },
        );
    let servers = servers.collect();
    (servers, warnings)
}

pub fn ports(base: &Base, random: Arc<Random>) -> McpPorts {
    let text = |(name, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
        Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
    };
    McpPorts {
        log_folder: base.home.logs(),
        cache_folder: base.home.cache(),
        random,
        clock: Arc::new(SystemClock),
        environment: base.environment.iter().filter_map(text).collect(),
    }
}
