//! `hermes mcp conformance-client`: what the official conformance suite runs against its own servers.

use std::ffi::OsStr;
use std::sync::Arc;

use hermes_core::Random;
use hermes_mcp::{McpPorts, try_everything};
use serde_json::Value;

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp::ports;
use crate::output::println;

/// What a scenario tells the client, as JSON.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

pub(super) async fn run(base: &Base, url: &str) -> Outcome<()> {
    let context = variable(base, CONTEXT).and_then(|text| serde_json::from_str(&text).ok());
    let context: Value = context.unwrap_or_default();
    let ports = McpPorts {
        // Scenarios run beside each other, and each is a stranger.
        token_folder: base.home.mcp_tokens().join(std::process::id().to_string()),
        is_attended: true,
        ..ports(base, Arc::new(Random::from_system()))
    };
    // The suite watches the wire, not what is said here.
    let mut tell = |text: &str| _ = println(text);
    let tried = try_everything(url, &context, ports, &mut tell).await;
    tried.map_err(Failure::new)
}

fn variable(base: &Base, name: &str) -> Option<String> {
    let mut all = base.environment.iter();
    let (_, value) = all.find(|(known, _)| *known == OsStr::new(name))?;
    Some(value.to_str()?.to_owned())
}
