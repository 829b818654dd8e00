//! The MCP servers of the settings, running.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Random, Tool};
use hermes_mcp::{Mcp, McpPorts, ServerSettings, ServerStatus};
use serde_json::Value;

use crate::base::Base;
use crate::failure::Outcome;
use crate::toolsets::Toolsets;

/// The servers that were started, and what is wrong with those that were not.
pub struct Servers {
    mcp: Option<Mcp>,
    pub warnings: Vec<String>,
}

impl Servers {
    /// Starts the chosen servers of `mcp_servers`; returns at once. One that is wrongly configured does not hinder the
    /// others.
    pub fn start(base: &Base, chosen: &Toolsets, random: Arc<Random>) -> Self {
        let (mut settings, warnings) = settings(base);
        settings.retain(|server| chosen.has_server(&server.name));
        let mcp = (!settings.is_empty()).then(|| Mcp::start(settings, ports(base, random)));
        Self { mcp, warnings }
    }

    /// The tools of all servers that answered in time.
    pub async fn tools(&self, base: &Base) -> Outcome<Vec<Arc<dyn Tool>>> {
        match &self.mcp {
            Some(mcp) => Ok(mcp.tools(discovery_time(base)?).await),
            None => Ok(Vec::new()),
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
        random,
        environment: base.environment.iter().filter_map(text).collect(),
    }
}
