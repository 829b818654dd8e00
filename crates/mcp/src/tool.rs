//! Remote tools behind the [`Tool`] port.

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, Tool, ToolContext, ToolError, ToolOutput,
    ToolSpec,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult, Tool as ListedTool,
};
use serde_json::{Map, Value, json};

use crate::in_flight::{Call, CalledOff};
use crate::name::{distinct_tool_name, tool_name};
use crate::render::tool_result;
use crate::schema::normalised;
use crate::server::{CallError, Fate, Request, Server};
use crate::settings::Retry;
use crate::utility::{Utility, UtilityTool};
use crate::view::Offer;

/// Of an answer that cannot be read, this much is shown.
const ANSWER_CHARS_MAX: usize = 500;

/// A tool that a server offers.
struct RemoteTool {
    spec: ToolSpec,
    exposure: Exposure,
    server: Arc<Server>,
    /// What the server calls it.
    remote_name: String,
    /// For people.
    operation: Arc<str>,
    effect: Effect,
    parallel: Parallel,
}

/// Builds the tools of one server. Names in `taken` belong to others; those given here are added.
pub(crate) fn tools_of(
    server: &Arc<Server>,
    offer: &Offer,
    taken: &mut HashSet<String>,
) -> Vec<Arc<dyn Tool>> {
    let settings = &server.settings;
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for listed in offer
        .tools
        .iter()
        .filter(|tool| settings.offers(&tool.name))
    {
        if let Some(name) = free_name(&settings.name, &listed.name, taken) {
            tools.push(Arc::new(RemoteTool::new(server, listed, name)));
        }
    }
    for utility in Utility::of(settings, offer) {
        if let Some(name) = free_name(&settings.name, utility.name(), taken) {
            tools.push(Arc::new(UtilityTool::new(server, name, utility)));
        }
    }
    tools
}

/// Finds a name that no other tool has. `None` for a tool that its server lists twice.
fn free_name(server: &str, tool: &str, taken: &mut HashSet<String>) -> Option<String> {
    let name = [tool_name(server, tool), distinct_tool_name(server, tool)]
        .into_iter()
        .find(|name| !taken.contains(name));
    match name {
        Some(name) => {
            taken.insert(name.clone());
            Some(name)
        }
        None => {
            tracing::warn!(server, tool, "the tool is left out: its name is taken");
            None
        }
    }
}

impl RemoteTool {
    fn new(server: &Arc<Server>, listed: &ListedTool, name: String) -> Self {
        let settings = &server.settings;
        let schema = Value::Object(listed.input_schema.as_ref().clone());
        let effect = effect(
            listed,
            settings.trust_annotations,
            settings.retry_of(&listed.name),
        );
        let description = listed.description.as_deref().or(listed.title.as_deref());
        Self {
            spec: ToolSpec {
                name,
                description: description.unwrap_or(&listed.name).to_owned(),
                parameters: normalised(&schema),
            },
            exposure: Exposure::of_server(&settings.name),
            server: Arc::clone(server),
            remote_name: listed.name.to_string(),
            operation: format!("tools/call `{}`", listed.name).into(),
            effect,
            parallel: if settings.supports_parallel_tool_calls || effect == Effect::Read {
                Parallel::Always
            } else {
                Parallel::Never
            },
        }
    }

    fn request(&self, arguments: &Value) -> Request {
        let arguments = match arguments {
            Value::Object(arguments) => arguments.clone(),
            _ => Map::new(),
        };
        let parameters =
            CallToolRequestParams::new(self.remote_name.clone()).with_arguments(arguments);
        Request {
            message: ClientRequest::CallToolRequest(CallToolRequest::new(parameters)),
            operation: Arc::clone(&self.operation),
            effect: self.effect,
            retry: self.server.settings.retry_of(&self.remote_name),
        }
    }
}

/// Decides what a call may do. A server's own word counts only when the user trusts it.
fn effect(listed: &ListedTool, trust_annotations: bool, retry: Retry) -> Effect {
    let hints = listed.annotations.as_ref().filter(|_| trust_annotations);
    let is_read = hints.is_some_and(|hints| hints.read_only_hint == Some(true));
    let is_idempotent = hints.is_some_and(|hints| hints.idempotent_hint == Some(true));
    match (is_read, is_idempotent, retry) {
        (true, ..) => Effect::Read,
        (_, true, _) | (_, _, Retry::Always) => Effect::Idempotent,
        _ => Effect::Effect,
    }
}

impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let request = self.request(arguments);
        Plan::doing(self.effect, self.parallel.clone(), move |cx| {
            Box::pin(async move { self.call(&request, cx).await })
        })
    }
}

impl RemoteTool {
    async fn call(&self, request: &Request, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match answer(&self.server, request, cx).await? {
            ServerResult::CallToolResult(result) => {
                let is_error = result.is_error == Some(true);
                let output = tool_result(result, &self.server.media).await;
                if is_error {
                    Err(ToolError::Answer(redact(&output.text)))
                } else {
                    Ok(output)
                }
            }
            other => Err(ToolError::OutcomeUnknown(format!(
                "MCP server `{}`, {}: {}",
                self.server.settings.name,
                request.operation,
                without_result(&other)
            ))),
        }
    }
}

/// What is known of a call whose answer is no result.
fn without_result(answer: &ServerResult) -> String {
    let unreadable = "it answered, so the tool has most likely run, but what it answered is not a result as the protocol has it";
    match answer {
        ServerResult::CreateTaskResult(_) | ServerResult::GetTaskResult(_) => {
            "it made a task of it, which it works on in the background; tasks are not followed here"
                .to_owned()
        }
        ServerResult::CustomResult(custom) => {
            let shown = shorten(&redact(&json!(custom).to_string()), ANSWER_CHARS_MAX);
            format!("{unreadable}: {shown}")
        }
        _ => unreadable.to_owned(),
    }
}

/// Sends a request for a running call, and calls it off when the call is stopped.
pub(crate) async fn answer(
    server: &Arc<Server>,
    request: &Request,
    cx: &ToolContext,
) -> Result<ServerResult, ToolError> {
    let Some(server) = server.current() else {
        return Err(ToolError::Answer(format!(
            "MCP server `{}`, {}: it did not run: the server was removed from the settings. Next: do without it; \
             a new session will not have its tools",
            server.settings.name, request.operation
        )));
    };
    let server = server.for_conversation(&cx.session);
    let call = Call::of(cx);
    tokio::select! {
        biased;
        () = cx.stop.cancelled() => {}
        result = server.request(request, &call) => return result.map_err(ToolError::from),
    }
    let state = match call.called_off().await {
        CalledOff::BeforeItWasSent => "stopped before it was sent; it did not run",
        CalledOff::Told => "stopped; the server was told, but it may have done part of it",
        CalledOff::AfterAnAnswer => {
            "stopped while the server waited for us; it may have done part of it"
        }
        CalledOff::Untold => "stopped, but the server could not be told; it may go on with it",
    };
    Err(ToolError::Stopped(format!(
        "MCP server `{}`, {}: {state}",
        server.settings.name, request.operation
    )))
}

impl From<CallError> for ToolError {
    fn from(error: CallError) -> Self {
        match error.fate {
            Fate::Unknown => Self::OutcomeUnknown(error.to_string()),
            Fate::NotRun | Fate::Unread | Fate::Answered => Self::Answer(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ToolAnnotations;

    fn listed(annotations: ToolAnnotations) -> ListedTool {
        ListedTool::new("tool", "does things", Map::new()).with_annotations(annotations)
    }

    #[test]
    fn hints_count_only_when_the_user_trusts_the_server() {
        let read = listed(ToolAnnotations::new().read_only(true));
        let idempotent = listed(ToolAnnotations::new().idempotent(true));
        assert_eq!(effect(&read, false, Retry::Safe), Effect::Effect);
        assert_eq!(effect(&read, true, Retry::Safe), Effect::Read);
        assert_eq!(effect(&idempotent, true, Retry::Safe), Effect::Idempotent);
        assert_eq!(
            effect(&listed(ToolAnnotations::new()), true, Retry::Safe),
            Effect::Effect
        );
    }

    #[test]
    fn who_lets_a_tool_be_repeated_vouches_for_it() {
        let plain = listed(ToolAnnotations::new());
        assert_eq!(effect(&plain, false, Retry::Always), Effect::Idempotent);
    }

    #[test]
    fn colliding_names_are_told_apart() {
        let mut taken = HashSet::new();
        let first = free_name("s", "a.b", &mut taken).unwrap();
        let second = free_name("s", "a-b", &mut taken).unwrap();
        assert_ne!(first, second);
        free_name("s", "a.b", &mut taken);
        assert_eq!(free_name("s", "a.b", &mut taken), None);
    }
}
