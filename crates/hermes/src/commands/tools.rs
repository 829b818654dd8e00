//! `hermes tools`: which tools models are offered on which surface, and changing that.

use std::io;

use hermes_config::{ConfigFile, Key};
use hermes_core::text::nearest;
use hermes_tools::{TOOLSETS, Toolset, is_elsewhere};
use serde_json::{Value, json};

use super::checklist::{self, Entry};
use super::confirm::is_anybody_there;
use super::layout::{Table, count, print_json};
use super::mcp::configure;
use crate::args::{ToolsArgs, ToolsCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp;
use crate::output::println;
use crate::style::Style;
use crate::toolsets::{self, TERMINAL, Toolsets};

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

/// Toolsets that are switched on and off; the others are made of them.
fn leaves() -> impl Iterator<Item = &'static Toolset> {
    TOOLSETS
        .iter()
        .filter(|toolset| toolset.includes.is_empty())
}

fn list(base: &Base, surface: &str, as_json: bool) -> Outcome<()> {
    let chosen = Toolsets::of_settings(base, surface)?;
    if as_json {
        return print_json(&to_json(base, &chosen));
    }
    println(&table(base, &chosen).styled(Style::of(&io::stdout(), &base.environment)))
}

/// The toolsets and servers of a surface, as a conversation shows them.
pub(crate) fn overview(base: &Base) -> Outcome<String> {
    Ok(table(base, &Toolsets::of_settings(base, TERMINAL)?).text())
}

/// The toolsets that can be switched in the terminal, and whether each is on.
pub(crate) fn switchable(base: &Base) -> Outcome<Vec<(&'static Toolset, bool)>> {
    let chosen = Toolsets::of_settings(base, TERMINAL)?;
    Ok(leaves().map(|one| (one, chosen.has(one))).collect())
}

fn table(base: &Base, chosen: &Toolsets) -> Table<4> {
    let state = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let mut table = Table::new(["TOOLSET", "STATE", "FOR", "TOOLS"]);
    for toolset in leaves() {
        table.row([
            toolset.name.to_owned(),
            state(chosen.has(toolset)),
            toolset.purpose.to_owned(),
            toolset.tools.join(", "),
        ]);
    }
    for server in mcp::settings(base).0 {
        table.row([
            server.name.clone(),
            state(server.enabled && chosen.has_server(&server.name)),
            "MCP server".to_owned(),
            format!("`hermes mcp test {}` shows them", server.name),
        ]);
    }
    table
}

fn to_json(base: &Base, chosen: &Toolsets) -> Value {
    let toolsets = leaves().map(|toolset| {
        json!({
            "name": toolset.name,
            "enabled": chosen.has(toolset),
            "purpose": toolset.purpose,
            "tools": toolset.tools,
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

/// Switches toolsets. Returns what was saved.
pub(crate) fn switch_toolsets(
    base: &Base,
    surface: &str,
    names: &[impl AsRef<str>],
    is_on: bool,
) -> Outcome<String> {
    for name in names {
        check(base, name.as_ref())?;
    }
    let chosen = Toolsets::of_settings(base, surface)?;
    let is_named = |toolset: &Toolset| names.iter().any(|name| name.as_ref() == toolset.name);
    let on = leaves().filter(|toolset| {
        if is_named(toolset) {
            is_on
        } else {
            chosen.has(toolset)
        }
    });
    save(
        base,
        surface,
        on.map(|toolset| toolset.name.to_owned()).collect(),
    )
}

fn check(base: &Base, name: &str) -> Outcome<()> {
    if leaves().any(|toolset| toolset.name == name) {
        return Ok(());
    }
    let failure = Failure::usage(format!("there is no toolset `{name}`"));
    if mcp::settings(base)
        .0
        .iter()
        .any(|server| server.name == name)
    {
        return Err(failure.hint(format!(
            "it is an MCP server: `hermes config set mcp_servers.{name}.enabled false` switches it off, \
             `hermes tools disable {name}:TOOL` hides one of its tools"
        )));
    }
    let known: Vec<&str> = leaves().map(|toolset| toolset.name).collect();
    Err(
        failure.hint(match nearest(name, known.iter().copied()).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        }),
    )
}

/// Writes down what is on. Names of servers, and of toolsets that are elsewhere, stay as they were.
fn save(base: &Base, surface: &str, on: Vec<String>) -> Outcome<String> {
    let what = if on.is_empty() {
        "no built-in tools".to_owned()
    } else {
        on.join(", ")
    };
    let is_ours = |name: &String| {
        hermes_tools::select(std::slice::from_ref(name)).is_ok() && !is_elsewhere(name)
    };
    let mut names = on;
    names.extend(
        toolsets::names(base, surface)?
            .into_iter()
            .filter(|name| !is_ours(name)),
    );
    let segments = ["platform_toolsets", surface].map(str::to_owned);
    let key = Key::from_segments(segments.to_vec()).ok_or_else(|| {
        Failure::usage("the platform has no name").hint("for example: --platform cli")
    })?;
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    file.set(&key, &json!(names))?;
    file.save()?;
    Ok(format!(
        "from the next conversation on, {surface} offers {what} ({})",
        file.path().display()
    ))
}
