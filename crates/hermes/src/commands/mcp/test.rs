//! `hermes mcp test`: connects for real, and tells what came of it.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Random, text};
use hermes_mcp::{Mcp, OfferedTool, ServerStatus};
use serde_json::{Value, json};

use super::status::warn_of;
use super::{NONE_YET, already_told, known, one};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{count, one_line, print_json};
use crate::failure::Outcome;
use crate::mcp::{ports, unusable};
use crate::output::println;
use crate::style::Style;
use hermes_runtime::shown::servers::{as_json, is_well, state};

/// Fails when a server is not ready.
pub(super) async fn run(
    base: &Base,
    name: Option<&str>,
    wait: Duration,
    json: &JsonFlag,
) -> Outcome<()> {
    let servers = match name {
        Some(name) => vec![one(base, name)?],
        None => known(base),
    };
    let unusable = match name {
        Some(_) => Vec::new(),
        None => unusable(base),
    };
    if servers.is_empty() && unusable.is_empty() && !json.json {
        return println(NONE_YET);
    }
    let mcp = Mcp::start(servers, ports(base, Arc::new(Random::from_system())));
    mcp.tools(wait).await;
    let tested: Vec<(ServerStatus, Vec<OfferedTool>)> = mcp
        .status()
        .into_iter()
        .map(|status| {
            let tools = mcp.offered(&status.name);
            (status, tools)
        })
        .chain(unusable.into_iter().map(|status| (status, Vec::new())))
        .collect();
    mcp.shutdown().await;
    if json.json {
        print_json(&tested.iter().map(with_tools).collect())?;
    } else {
        let style = Style::of(&std::io::stdout(), &base.environment);
        tested
            .iter()
            .try_for_each(|(status, tools)| show(status, tools, style))?;
    }
    for (status, _) in &tested {
        warn_of(status);
    }
    if tested.iter().all(|(status, _)| is_well(status)) {
        Ok(())
    } else {
        Err(already_told())
    }
}

fn show(server: &ServerStatus, tools: &[OfferedTool], style: Style) -> Outcome<()> {
    let trip = server
        .round_trip
        .map(|time| format!(", {:.1} ms", time.as_secs_f64() * 1e3))
        .unwrap_or_default();
    let state = state(server, style);
    println(&format!("{}  {state}{trip}", style.bold(&server.name)))?;
    if let Some(error) = &server.last_error {
        println(&format!("  {}", text::printable(error)))?;
        if !is_well(server) {
            println(&style.dim(format!(
                "  `hermes mcp doctor {}` looks closer",
                server.name
            )))?;
        }
    }
    let (wanted, unwanted): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| tool.is_wanted);
    if !wanted.is_empty() {
        let names: Vec<String> = wanted.iter().map(|tool| one_line(&tool.name)).collect();
        let what = count(names.len() as u64, "tool");
        println(&style.dim(format!("  {what}: {}", names.join(", "))))?;
    }
    if !unwanted.is_empty() {
        let what = format!("  {} switched off in the settings", unwanted.len());
        println(&style.dim(what))?;
    }
    Ok(())
}

fn with_tools((status, tools): &(ServerStatus, Vec<OfferedTool>)) -> Value {
    let mut server = as_json(status);
    let names = |is_wanted: bool| -> Vec<&str> {
        let chosen = tools.iter().filter(|tool| tool.is_wanted == is_wanted);
        chosen.map(|tool| tool.name.as_str()).collect()
    };
    server["tools"] = json!(names(true));
    server["tools_off"] = json!(names(false));
    server
}
