//! Which tools a session offers: built-in toolsets and MCP servers, by name.

use std::sync::Arc;

use hermes_core::Tool;
use hermes_tools::ToolPorts;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};

/// Names that stand for every built-in tool, and on the command line for every MCP server as well.
const EVERYTHING: &[&str] = &["all", "*"];

pub struct Toolsets {
    built_in: Vec<&'static str>,
    servers: ChosenServers,
}

enum ChosenServers {
    All,
    Named(Vec<String>),
}

impl Toolsets {
    /// Reads `-t`, or the settings without it. Servers of the settings count unless `-t` leaves them out.
    pub fn chosen(base: &Base, flags: &RunFlags) -> Outcome<Self> {
        if flags.toolsets.is_empty() {
            let servers = if flags.safe_mode {
                ChosenServers::Named(Vec::new())
            } else {
                ChosenServers::All
            };
            return Ok(Self {
                built_in: select(&base.settings.strings("toolsets")?)?,
                servers,
            });
        }
        let is_server = |name: &String| {
            let key = format!("mcp_servers.{}", name.strip_prefix("mcp-").unwrap_or(name));
            base.settings.get(&key).is_some()
        };
        let names = flags
            .toolsets
            .iter()
            .filter(|name| *name != "none")
            .cloned();
        let (servers, built_in): (Vec<_>, Vec<_>) = names.partition(is_server);
        let servers = match built_in
            .iter()
            .any(|name| EVERYTHING.contains(&name.as_str()))
        {
            true => ChosenServers::All,
            false => ChosenServers::Named(servers),
        };
        Ok(Self {
            built_in: select(&built_in)?,
            servers,
        })
    }

    /// The built-in ones, in the order the model sees them.
    pub fn built_in(&self, ports: &ToolPorts) -> Vec<Arc<dyn Tool>> {
        let all = hermes_tools::built_in(ports);
        let is_chosen = |tool: &Arc<dyn Tool>| self.built_in.contains(&tool.spec().name.as_str());
        all.into_iter().filter(is_chosen).collect()
    }

    pub fn has_server(&self, name: &str) -> bool {
        match &self.servers {
            ChosenServers::All => true,
            ChosenServers::Named(names) => names
                .iter()
                .any(|chosen| chosen.strip_prefix("mcp-").unwrap_or(chosen) == name),
        }
    }
}

fn select(names: &[String]) -> Outcome<Vec<&'static str>> {
    hermes_tools::select(names).map_err(|error| {
        let known: Vec<_> = hermes_tools::TOOLSETS
            .iter()
            .map(|toolset| toolset.name)
            .collect();
        let known = known.join(", ");
        Failure::usage(error.to_string()).hint(format!(
            "toolsets are: {known}, all, none, and the names of MCP servers"
        ))
    })
}
