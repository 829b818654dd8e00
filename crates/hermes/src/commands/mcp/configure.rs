//! `hermes mcp configure`: which tools of a server models see. Comments and order of the settings stay.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hermes_config::ConfigFile;
use hermes_core::Random;
use hermes_mcp::{Mcp, OfferedTool, ServerSettings};
use serde_json::json;

use super::{key, one};
use crate::base::Base;
use crate::commands::checklist::{self, Entry};
use crate::commands::confirm::is_anybody_there;
use crate::failure::{Failure, Outcome};
use crate::mcp::ports;
use crate::output::println;
use crate::style::Style;

/// Which tools models see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl Choice {
    /// What the flags say; `None` when there are none.
    pub(super) fn of_flags(include: Vec<String>, exclude: Vec<String>, all: bool) -> Option<Self> {
        match (include.is_empty(), exclude.is_empty(), all) {
            (false, ..) => Some(Self::Only(include)),
            (_, false, _) | (.., true) => Some(Self::AllBut(exclude)),
            _ => None,
        }
    }

    /// Who wrote a list of what they want goes on with it; everybody else gets what a server offers later, too.
    fn of_list(tools: &[OfferedTool], settings: &ServerSettings) -> Self {
        let names = |is_wanted: bool| -> Vec<String> {
            let chosen = tools.iter().filter(|tool| tool.is_wanted == is_wanted);
            chosen.map(|tool| tool.name.clone()).collect()
        };
        let wanted = names(true);
        if settings.tools.include.is_empty() || wanted.is_empty() {
            Self::AllBut(names(false))
        } else {
            Self::Only(wanted)
        }
    }
}

pub(super) async fn run(
    base: &Base,
    server: &str,
    choice: Option<Choice>,
    wait: Duration,
) -> Outcome<()> {
    let settings = one(base, server)?;
    let choice = match choice {
        Some(choice) => choice,
        None if !is_anybody_there() => {
            return Err(Failure::usage("nobody is there to choose tools")
                .hint("use --include A,B or --exclude A,B or --all"));
        }
        None => {
            let mut tools = offered(base, settings.clone(), wait).await;
            if tools.is_empty() {
                return Err(Failure::new(format!("`{server}` did not list any tools"))
                    .hint(format!("`hermes mcp doctor {server}` says why")));
            }
            let mut list: Vec<Entry> = tools.iter().map(entry).collect();
            let style = Style::of(&io::stderr(), &base.environment);
            if !checklist::ask(&mut list, style)? {
                return println("nothing was changed");
            }
            for (tool, entry) in tools.iter_mut().zip(list) {
                tool.is_wanted = entry.is_on;
            }
            Choice::of_list(&tools, &settings)
        }
    };
    save(base, server, &choice)
}

async fn offered(base: &Base, settings: ServerSettings, wait: Duration) -> Vec<OfferedTool> {
    let name = settings.name.clone();
    let settings = ServerSettings {
        enabled: true,
        ..settings
    };
    let mcp = Mcp::start(vec![settings], ports(base, Arc::new(Random::from_system())));
    mcp.tools(wait).await;
    let tools = mcp.offered(&name);
    mcp.shutdown().await;
    tools
}

fn entry(tool: &OfferedTool) -> Entry {
    Entry {
        name: tool.name.clone(),
        purpose: tool.description.clone(),
        is_on: tool.is_wanted,
    }
}

/// Shows a single tool of a server to models, or hides it.
pub(crate) fn switch(base: &Base, server: &str, tool: &str, is_on: bool) -> Outcome<()> {
    let tools = one(base, server)?.tools;
    let is_inclusive = !tools.include.is_empty();
    let mut names = if is_inclusive {
        tools.include
    } else {
        tools.exclude
    };
    names.retain(|name| name != tool);
    if is_on == is_inclusive {
        names.push(tool.to_owned());
    }
    if is_inclusive && names.is_empty() {
        return Err(Failure::usage(format!(
            "`{tool}` is the only tool of `{server}` that models see"
        ))
        .hint(format!(
            "`hermes config set mcp_servers.{server}.enabled false` switches the whole server off"
        )));
    }
    let choice = if is_inclusive {
        Choice::Only(names)
    } else {
        Choice::AllBut(names)
    };
    save(base, server, &choice)
}

fn save(base: &Base, server: &str, choice: &Choice) -> Outcome<()> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    let (include, exclude) = (
        key(server, &["tools", "include"])?,
        key(server, &["tools", "exclude"])?,
    );
    let (kept, dropped, names) = match choice {
        Choice::Only(names) => (include, exclude, names),
        Choice::AllBut(names) => (exclude, include, names),
    };
    file.unset(&dropped)?;
    if names.is_empty() {
        file.unset(&kept)?;
    } else {
        file.set(&kept, &json!(names))?;
    }
    file.save()?;
    let what = match choice {
        Choice::Only(names) => format!("only {}", names.join(", ")),
        Choice::AllBut(names) if names.is_empty() => "all tools".to_owned(),
        Choice::AllBut(names) => format!("all tools but {}", names.join(", ")),
    };
    println(&format!(
        "from the next conversation on, models see {what} of `{server}` ({})",
        file.path().display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_wanted_tools_stays_one() {
        let tool = |name: &str, is_wanted| OfferedTool {
            name: name.into(),
            description: String::new(),
            is_wanted,
        };
        let tools = [tool("a", true), tool("b", false)];
        let settings = |tools| {
            let section = json!({"url": "http://x", "tools": tools});
            ServerSettings::parse("s", &section).unwrap()
        };
        assert_eq!(
            Choice::of_list(&tools, &settings(json!({"include": ["b"]}))),
            Choice::Only(vec!["a".into()])
        );
        assert_eq!(
            Choice::of_list(&tools, &settings(json!({}))),
            Choice::AllBut(vec!["b".into()])
        );
    }
}
