//! `hermes mcp configure`: which tools of a server models see. Comments and order of the settings stay.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::Random;
use hermes_mcp::{Mcp, OfferedTool, ServerSettings};

use super::one;
use crate::base::Base;
use crate::commands::checklist::{self, Entry};
use crate::commands::confirm::is_anybody_there;
use crate::failure::{Failure, Outcome};
use crate::mcp::edit::{self, ToolChoice};
use crate::mcp::ports;
use crate::output::println;
use crate::style::Style;

pub(super) async fn run(
    base: &Base,
    server: &str,
    choice: Option<ToolChoice>,
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
            ToolChoice::of_list(&tools, &settings)
        }
    };
    println(&edit::save(base, server, &choice)?)
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
    println(&edit::switch(base, server, tool, is_on)?)
}
