//! `hermes mcp conformance-client`: what the official conformance suite runs against its own servers.
//!
//! Knows no scenario. It connects as a session would, through the same supervisor, and uses everything that is offered
//! once: the suite watches what goes over the wire. `scripts/conformance` runs it.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    CallId, CancellationToken, Person, Progress, Random, SessionId, Spending, Tool, ToolContext,
    ToolError,
};
use hermes_mcp::{Mcp, ServerSettings, ServerState};
use serde_json::{Map, Value, json};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp::ports;
use crate::output::println;

/// The suite gives up after thirty seconds.
const CONNECT_WAIT: Duration = Duration::from_secs(20);

/// What a scenario tells the client, as JSON.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

const SERVER: &str = "peer";

pub(super) async fn run(base: &Base, url: &str) -> Outcome<()> {
    let context = variable(base, CONTEXT).and_then(|text| serde_json::from_str(&text).ok());
    let context: Value = context.unwrap_or_default();
    let settings = ServerSettings::parse(SERVER, &section(url, &context))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mcp = Mcp::start(vec![settings], ports(base, Arc::new(Random::from_system())));
    let result = use_everything(base, &mcp, &context).await;
    mcp.shutdown().await;
    result
}

fn variable(base: &Base, name: &str) -> Option<String> {
    let mut all = base.environment.iter();
    let (_, value) = all.find(|(known, _)| *known == OsStr::new(name))?;
    Some(value.to_str()?.to_owned())
}

fn section(url: &str, context: &Value) -> Value {
    let mut section = json!({ "url": url });
    let known = |key: &str| Some((key.to_owned(), context.get(key)?.clone()));
    let client: Map<_, _> = ["client_id", "client_secret"]
        .into_iter()
        .filter_map(known)
        .collect();
    if !client.is_empty() {
        section["oauth"] = Value::Object(client);
    }
    section
}

async fn use_everything(base: &Base, mcp: &Mcp, context: &Value) -> Outcome<()> {
    let tools = mcp.tools(CONNECT_WAIT).await;
    let status = mcp.status().remove(0);
    if status.state != ServerState::Ready {
        let error = status
            .last_error
            .unwrap_or_else(|| status.state.to_string());
        return Err(Failure::new(format!("not connected: {error}")));
    }
    for (tool, arguments) in calls(&tools, context) {
        let name = &tool.spec().name;
        let cx = context_of(base, name);
        match tool.run(arguments, &cx).await {
            Ok(output) => {
                println(&format!("{name}: {}", output.text))?;
                follow(base, &tools, name, &output.text).await?;
            }
            // What a tool says no to is the scenario's own affair.
            Err(ToolError::Answer(text)) => println(&format!("{name}: {text}"))?,
            Err(error) => return Err(Failure::new(format!("{name}: {error}"))),
        }
    }
    Ok(())
}

/// Reads the first resource of a list, and gets its first prompt.
async fn follow(base: &Base, tools: &[Arc<dyn Tool>], name: &str, list: &str) -> Outcome<()> {
    let first = list.lines().next().unwrap_or_default();
    let (next, arguments) = match name.strip_prefix("mcp__peer__") {
        Some("list_resources") => {
            let uri = first.split("  ").next().unwrap_or_default();
            ("mcp__peer__read_resource", json!({ "uri": uri }))
        }
        Some("list_prompts") => {
            let prompt = first.split('(').next().unwrap_or_default();
            ("mcp__peer__get_prompt", json!({ "name": prompt }))
        }
        _ => return Ok(()),
    };
    if let Some(tool) = tools.iter().find(|tool| tool.spec().name == next) {
        let answer = tool.run(arguments, &context_of(base, next)).await;
        println(&format!("{next}: {answer:?}"))?;
    }
    Ok(())
}

/// Returns the calls that the scenario asks for; every tool once, if it does not say.
fn calls(tools: &[Arc<dyn Tool>], context: &Value) -> Vec<(Arc<dyn Tool>, Value)> {
    let asked = context.get("toolCalls").and_then(Value::as_array);
    if let Some(asked) = asked {
        let call = |asked: &Value| {
            let name = sanitised(asked.get("name")?.as_str()?);
            let tool = tools.iter().find(|tool| tool.spec().name == name)?;
            let arguments = asked.get("arguments").cloned().unwrap_or_default();
            Some((Arc::clone(tool), arguments))
        };
        return asked.iter().filter_map(call).collect();
    }
    let is_of_a_list =
        |name: &str| name.ends_with("__read_resource") || name.ends_with("__get_prompt");
    let mut calls = Vec::new();
    for tool in tools.iter().filter(|tool| !is_of_a_list(&tool.spec().name)) {
        calls.push((Arc::clone(tool), arguments(&tool.spec().parameters)));
    }
    calls
}

fn sanitised(name: &str) -> String {
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("mcp__{SERVER}__{name}")
}

/// Invents a value for everything that a tool requires.
fn arguments(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
}

fn context_of(base: &Base, call: &str) -> ToolContext {
    ToolContext {
        session: SessionId::from("conformance"),
        call: CallId::from(call),
        cwd: base.home.logs(),
        stop: CancellationToken::new(),
        progress: Progress::default(),
        person: Person::default(),
        spending: Spending::default(),
        previous: None,
    }
}
