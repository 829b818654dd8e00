//! A client that the official conformance suite runs against its own servers.
//!
//! Knows no scenario. It connects as a session would, through the same supervisor, and uses everything that is offered
//! once: the suite watches what goes over the wire. Told to log in, it does; asked something, it takes what is proposed.
//! `hermes mcp conformance-client` is it, and `scripts/conformance` runs that.

mod visitor;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{CallMessages, Field, Person, Response, Tool, ToolContext, ToolError, Wanted};
use serde_json::{Value, json};

use crate::client::{Mcp, McpPorts};
use crate::settings::ServerSettings;
use crate::status::ServerState;

/// The suite gives up after thirty seconds, and a scenario may want several logins.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

const SERVER: &str = "peer";

/// Where the suite's authorisation servers find out who we are, if they want to.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// A server that is not content after so many logins never will be.
const LOGINS_MAX: usize = 3;

/// Connects to the address and uses what is there; `context` is what the scenario tells, `tell` takes what came of each
/// call.
pub async fn try_everything(
    url: &str,
    context: &Value,
    ports: McpPorts,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(), String> {
    let mcp = Mcp::start(vec![settings(&json!({ "url": url }))?], ports.clone());
    let mut visit = Visit {
        mcp: &mcp,
        context,
        folder: &ports.log_folder,
        tell,
    };
    let mut result = visit.use_everything().await;
    for _ in 0..LOGINS_MAX {
        let Err(Stopped::NeedsLogin { scopes }) = &result else {
            break;
        };
        let server = settings(&with_login(url, context))?;
        visitor::log_in(&server, &ports, scopes).await?;
        mcp.reload(vec![server]).await;
        mcp.reconnect(SERVER).await.ok();
        result = visit.use_everything().await;
    }
    mcp.shutdown().await;
    result.map_err(|stopped| match stopped {
        Stopped::NeedsLogin { .. } => "another login would be one too many".to_owned(),
        Stopped::Failed(reason) => reason,
    })
}

/// A connection, and what is done with it.
struct Visit<'a> {
    mcp: &'a Mcp,
    context: &'a Value,
    folder: &'a Path,
    tell: &'a mut (dyn FnMut(&str) + Send),
}

/// Why not everything could be used.
enum Stopped {
    /// A person would be told to log in, and for what.
    NeedsLogin {
        scopes: Vec<String>,
    },
    Failed(String),
}

/// Finds the advice to log in for more.
fn missing_scopes(text: &str) -> Option<Vec<String>> {
    let (_, advice) = text.split_once("run `hermes mcp login ")?;
    let command = advice.split('`').next()?;
    let scopes = command.split(" --scope ").skip(1).map(str::to_owned);
    Some(scopes.collect())
}

fn settings(section: &Value) -> Result<ServerSettings, String> {
    ServerSettings::parse(SERVER, section).map_err(|error| error.to_string())
}

fn with_login(url: &str, context: &Value) -> Value {
    let mut section = json!({ "url": url, "auth": "oauth", "oauth": { "client_metadata_url": CLIENT_METADATA_URL } });
    for key in ["client_id", "client_secret"] {
        if let Some(value) = context.get(key) {
            section["oauth"][key] = value.clone();
        }
    }
    section
}

impl Visit<'_> {
    async fn use_everything(&mut self) -> Result<(), Stopped> {
        let tools = self.mcp.tools(CONNECT_WAIT).await;
        let status = self.mcp.status().remove(0);
        if let ServerState::NeedsAuth { .. } = status.state {
            return Err(Stopped::NeedsLogin { scopes: Vec::new() });
        }
        if status.state != ServerState::Ready {
            let error = status
                .last_error
                .unwrap_or_else(|| status.state.to_string());
            return Err(Stopped::Failed(format!("not connected: {error}")));
        }
        for (tool, arguments) in calls(&tools, self.context) {
            let name = &tool.spec().name;
            let (person, elicitations) = Person::reachable();
            let cx = ToolContext {
                person,
                ..context_of(self.folder, name)
            };
            let run = with_answers(tool.run(arguments, &cx), elicitations);
            match run.await {
                Ok(output) => {
                    (self.tell)(&format!("{name}: {}", output.text));
                    self.follow(&tools, name, &output.text).await;
                }
                Err(ToolError::Answer(text)) if missing_scopes(&text).is_some() => {
                    let scopes = missing_scopes(&text).unwrap_or_default();
                    return Err(Stopped::NeedsLogin { scopes });
                }
                // What a tool says no to is the scenario's own affair.
                Err(ToolError::Answer(text)) => (self.tell)(&format!("{name}: {text}")),
                Err(error) => return Err(Stopped::Failed(format!("{name}: {error}"))),
            }
        }
        Ok(())
    }

    /// Reads the first resource of a list, and gets its first prompt.
    async fn follow(&mut self, tools: &[Arc<dyn Tool>], name: &str, list: &str) {
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
            _ => return,
        };
        if let Some(tool) = tools.iter().find(|tool| tool.spec().name == next) {
            let answer = tool.run(arguments, &context_of(self.folder, next)).await;
            (self.tell)(&format!("{next}: {answer:?}"));
        }
    }
}

/// Runs a call for a person who presses Enter at whatever they are asked, and opens every address they are shown.
async fn with_answers<T>(call: impl Future<Output = T>, mut elicitations: CallMessages) -> T {
    let answer = async {
        while let Some(asked) = elicitations.elicitation().await {
            let fields = match asked.request.wanted {
                Wanted::Form { fields } => fields,
                Wanted::Visit { url } => {
                    // A page that cannot be opened is one that the person closes again; the call has a deadline.
                    let _ = visitor::open(&url).await;
                    Vec::new()
                }
            };
            let value = |field: Field| Some((field.name.clone(), field.default()?));
            let values = fields.into_iter().filter_map(value).collect();
            // A call that has ended needs no answer.
            let _ = asked.response.send(Response::Accepted { values });
        }
        std::future::pending::<T>().await
    };
    tokio::select! {
        result = call => result,
        never = answer => never,
    }
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

fn context_of(folder: &Path, call: &str) -> ToolContext {
    ToolContext::alone("conformance", call, folder)
}
