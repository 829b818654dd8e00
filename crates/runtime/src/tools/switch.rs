//! Which toolsets a surface offers, as a table, and switching them for all future conversations.

use hermes_config::{ConfigFile, Key};
use hermes_core::text::nearest;
use hermes_tools::{TOOLSETS, Toolset, is_elsewhere};
use serde_json::json;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::layout::Table;
use crate::mcp;
use crate::skills::members;
use crate::tools::toolsets::{self, TERMINAL, Toolsets};

/// Toolsets that are switched on and off; the others are made of them.
pub fn leaves() -> impl Iterator<Item = &'static Toolset> {
    TOOLSETS
        .iter()
        .filter(|toolset| toolset.includes.is_empty())
}

/// The toolsets and servers of a surface, as a conversation shows them.
pub fn overview(base: &Base, surface: &str) -> Result<String> {
    Ok(table(base, &Toolsets::of_settings(base, surface)?).text())
}

/// The toolsets that can be switched in the terminal, and whether each is on.
pub fn switchable(base: &Base) -> Result<Vec<(&'static Toolset, bool)>> {
    let chosen = Toolsets::of_settings(base, TERMINAL)?;
    Ok(leaves().map(|one| (one, chosen.has(one))).collect())
}

/// The toolsets and servers, and whether each is on.
pub fn table(base: &Base, chosen: &Toolsets) -> Table<4> {
    let state = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let mut table = Table::new(["TOOLSET", "STATE", "FOR", "TOOLS"]);
    for toolset in leaves() {
        table.row([
            toolset.name.to_owned(),
            state(chosen.has(toolset)),
            toolset.purpose.to_owned(),
            members(toolset.name).join(", "),
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

/// Switches toolsets. Returns what was saved.
pub fn switch_toolsets(
    base: &Base,
    surface: &str,
    names: &[impl AsRef<str>],
    is_on: bool,
) -> Result<String> {
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

fn check(base: &Base, name: &str) -> Result<()> {
    if leaves().any(|toolset| toolset.name == name) {
        return Ok(());
    }
    let failure = Error::asked(format!("there is no toolset `{name}`"));
    if mcp::settings(base)
        .0
        .iter()
        .any(|server| server.name == name)
    {
        return Err(failure.with_hint(format!(
            "it is an MCP server: `hermes config set mcp_servers.{name}.enabled false` switches it off, \
             `hermes tools disable {name}:TOOL` hides one of its tools"
        )));
    }
    let known: Vec<&str> = leaves().map(|toolset| toolset.name).collect();
    Err(
        failure.with_hint(match nearest(name, known.iter().copied()).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        }),
    )
}

/// Writes down what is on. Names of servers, and of toolsets that are elsewhere, stay as they were.
pub fn save(base: &Base, surface: &str, on: Vec<String>) -> Result<String> {
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
        Error::asked("the platform has no name").with_hint("for example: --platform cli")
    })?;
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    file.set(&key, &json!(names))?;
    file.save()?;
    Ok(format!(
        "from the next conversation on, {surface} offers {what} ({})",
        file.path().display()
    ))
}
