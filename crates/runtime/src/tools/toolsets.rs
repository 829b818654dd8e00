//! Which tools a session offers: built-in toolsets and MCP servers, by name.

use std::sync::Arc;

use hermes_core::schedule::CRON_SOURCE;
use hermes_core::{SessionOptions, Tool};
use hermes_tools::{Selection, Toolset, is_elsewhere};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::mcp;

/// Names that stand for every built-in tool, and on the command line for every MCP server as well.
const EVERYTHING: &[&str] = &["all", "*"];

/// A name in the settings that keeps all MCP servers away.
const NO_SERVERS: &str = "no_mcp";
/// What `platform_toolsets` calls the terminal.
pub const TERMINAL: &str = "cli";
/// Surfaces where nobody talks: what is chosen for the terminal says nothing of them.
const OF_PROGRAMS: [&str; 3] = ["api_server", CRON_SOURCE, "webhook"];

#[derive(Clone)]
pub struct Toolsets {
    built_in: Selection,
    surface: String,
    servers: ChosenServers,
    /// Of these only those that guests may use; none of it counts for the owner.
    for_guests: Option<Vec<String>>,
}

#[derive(Clone)]
enum ChosenServers {
    All,
    Named(Vec<String>),
}

impl Toolsets {
    /// What the options name, or the settings where they name none.
    pub fn chosen(base: &Base, options: &SessionOptions) -> Result<Self> {
        let surface = options.surface.as_deref().unwrap_or(TERMINAL);
        if options.toolsets.is_empty() {
            let mut chosen = Self::of_settings(base, surface)?;
            if options.leaves_out.servers {
                chosen.servers = ChosenServers::Named(Vec::new());
            }
            return Ok(chosen);
        }
        let names = options.toolsets.iter().filter(|name| *name != "none");
        let (servers, built_in) = apart(base, names.cloned());
        let is_everything = |name: &String| EVERYTHING.contains(&name.as_str());
        let servers = if built_in.iter().any(is_everything) {
            ChosenServers::All
        } else {
            ChosenServers::Named(servers)
        };
        Ok(Self {
            built_in: select(&built_in)?,
            surface: surface.to_owned(),
            servers,
            for_guests: for_guests(base),
        })
    }

    /// What the settings say for a surface. All servers count unless some are named, or `no_mcp` is.
    pub fn of_settings(base: &Base, surface: &str) -> Result<Self> {
        let mut names = names(base, surface)?;
        let has_none = names.iter().any(|name| name == NO_SERVERS);
        names.retain(|name| name != NO_SERVERS && !is_elsewhere(name));
        let (servers, built_in) = apart(base, names.into_iter());
        let mut disabled = base.settings.strings("agent.disabled_toolsets")?;
        disabled.retain(|name| !is_elsewhere(name));
        let disabled = select(&disabled)?;
        let mut built_in = select(&built_in)?;
        built_in.remove(&disabled);
        let servers = if servers.is_empty() && !has_none {
            ChosenServers::All
        } else {
            ChosenServers::Named(servers)
        };
        Ok(Self {
            built_in,
            surface: surface.to_owned(),
            servers,
            for_guests: for_guests(base),
        })
    }

    /// Whether every tool of a toolset is chosen.
    pub fn has(&self, toolset: &Toolset) -> bool {
        self.built_in.has(toolset)
    }

    /// The chosen ones of the built-in tools, in the order the model sees them.
    pub fn of(&self, built_in: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        self.built_in.of(built_in, &self.surface)
    }

    pub fn has_server(&self, name: &str) -> bool {
        let is_named = |names: &Vec<String>| names.iter().any(|one| one == name);
        self.for_guests.as_ref().is_none_or(is_named) && self.is_chosen(name)
    }

    fn is_chosen(&self, name: &str) -> bool {
        match &self.servers {
            ChosenServers::All => true,
            ChosenServers::Named(names) => names
                .iter()
                .any(|chosen| chosen.strip_prefix("mcp-").unwrap_or(chosen) == name),
        }
    }
}

/// The names that settings have for a surface: its own; where people talk, those of the terminal; else those for all.
pub fn names(base: &Base, surface: &str) -> Result<Vec<String>> {
    let of = |surface: &str| format!("platform_toolsets.{surface}");
    let mut keys = vec![of(surface)];
    if !OF_PROGRAMS.contains(&surface) {
        keys.push(of(TERMINAL));
    }
    let is_set = |key: &&String| base.settings.get(key).is_some();
    let key = keys.iter().find(is_set).map_or("toolsets", String::as_str);
    Ok(base.settings.strings(key)?)
}

/// The servers that whoever talks may use, where that is not the owner of the home: servers act with the owner's accounts, so
/// that the settings have to say `guests: true` of each.
fn for_guests(base: &Base) -> Option<Vec<String>> {
    base.person.as_ref()?;
    let servers = mcp::settings(base).0.into_iter();
    let open = servers.filter(|server| server.guests);
    Some(open.map(|server| server.name).collect())
}

/// Tells the names of MCP servers from those of toolsets.
fn apart(base: &Base, names: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>) {
    names.partition(|name| {
        let key = format!("mcp_servers.{}", name.strip_prefix("mcp-").unwrap_or(name));
        base.settings.get(&key).is_some()
    })
}

fn select(names: &[String]) -> Result<Selection> {
    hermes_tools::select(names).map_err(|error| {
        let known = hermes_tools::TOOLSETS.iter();
        let known: Vec<_> = known.map(|toolset| toolset.name).collect();
        let hint = if error.near.is_empty() {
            format!(
                "toolsets are: {}, all, none, and the names of MCP servers",
                known.join(", ")
            )
        } else {
            format!("did you mean {}?", error.near.join(" or "))
        };
        Error::asked(format!("there is no toolset `{}`", error.name)).with_hint(hint)
    })
}
