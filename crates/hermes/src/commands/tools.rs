//! `hermes tools`: which tools models are offered on which surface, and changing that.

use std::io;

use hermes_runtime::skills::members;
use hermes_runtime::tools::switch::{leaves, save, switch_toolsets, table};
use hermes_tools::Toolset;
use serde_json::{Value, json};

use super::checklist::{self, Entry};
use super::confirm::is_anybody_there;
use super::layout::{count, print_json};
use super::mcp::configure;
use crate::args::{ToolsArgs, ToolsCommand};
use crate::base::Base;
use crate::failure::Outcome;
use crate::mcp;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::tools::toolsets::Toolsets;

pub(crate) fn run(base: &Base, args: ToolsArgs) -> Outcome<()> {
    let surface = &args.platform.platform;
    match args.command {
        None if args.summary => println(&summary(base, surface)?),
        None if is_anybody_there() => choose(base, surface),
        None => list(base, surface, false),
        Some(ToolsCommand::List { platform, json }) => list(base, &platform.platform, json.json),
        Some(ToolsCommand::Enable { names, platform }) => {
            switch(base, &platform.platform, &names, true)
        }
        Some(ToolsCommand::Disable { names, platform }) => {
            switch(base, &platform.platform, &names, false)
        }
    }
}

fn list(base: &Base, surface: &str, as_json: bool) -> Outcome<()> {
    let chosen = Toolsets::of_settings(base, surface)?;
    if as_json {
        return print_json(&to_json(base, &chosen));
    }
    println(&table(base, &chosen).styled(Style::of(&io::stdout(), &base.environment)))
}

fn to_json(base: &Base, chosen: &Toolsets) -> Value {
    let toolsets = leaves().map(|toolset| {
        json!({
            "name": toolset.name,
            "enabled": chosen.has(toolset),
            "purpose": toolset.purpose,
            "tools": members(toolset.name),
        })
    });
    let servers = mcp::settings(base).0.into_iter().map(|server| {
        let is_on = server.enabled && chosen.has_server(&server.name);
        json!({"name": server.name, "enabled": is_on})
    });
    json!({
        "toolsets": toolsets.collect::<Vec<_>>(),
        "mcp_servers": servers.collect::<Vec<_>>(),
    })
}

fn summary(base: &Base, surface: &str) -> Outcome<String> {
    let chosen = Toolsets::of_settings(base, surface)?;
    let on: Vec<&str> = leaves()
        .filter(|toolset| chosen.has(toolset))
        .map(|toolset| toolset.name)
        .collect();
    Ok(format!(
        "{surface}: {} of {}: {}",
        on.len(),
        count(leaves().count() as u64, "toolset"),
        on.join(", ")
    ))
}

/// Lets a person choose from the list.
pub(crate) fn choose(base: &Base, surface: &str) -> Outcome<()> {
    let chosen = Toolsets::of_settings(base, surface)?;
    let entry = |toolset: &Toolset| Entry {
        name: toolset.name.to_owned(),
        purpose: toolset.purpose.to_owned(),
        is_on: chosen.has(toolset),
    };
    let mut entries: Vec<Entry> = leaves().map(entry).collect();
    if !checklist::ask(&mut entries, Style::of(&io::stderr(), &base.environment))? {
        return println("nothing was changed");
    }
    let on = entries.into_iter().filter(|entry| entry.is_on);
    println(&save(base, surface, on.map(|entry| entry.name).collect())?)
}

/// Switches toolsets, and single tools of servers, which are written `server:tool`.
fn switch(base: &Base, surface: &str, names: &[String], is_on: bool) -> Outcome<()> {
    let (of_servers, names): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.contains(':'));
    if !names.is_empty() {
        println(&switch_toolsets(base, surface, &names, is_on)?)?;
    }
    for (server, tool) in of_servers.iter().filter_map(|name| name.split_once(':')) {
        configure::switch(base, server, tool, is_on)?;
    }
    Ok(())
}
