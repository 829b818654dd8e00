//! Tools of our own that let the model use a server's resources and prompts. All of them only read.

use std::sync::Arc;

use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, Tool, ToolContext, ToolError, ToolOutput,
    ToolSpec,
};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
    ServerResult,
};
use serde_json::{Value, json};

use crate::render::{prompt, prompt_list, resource, resource_list};
use crate::server::{Request, Server};
use crate::settings::ServerSettings;
use crate::tool::answer;
use crate::view::Offer;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Utility {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl Utility {
    /// Returns those that go with what the server has and the user wants.
    pub(crate) fn of(settings: &ServerSettings, offer: &Offer) -> Vec<Self> {
        let mut utilities = Vec::new();
        if offer.has_resources && settings.tools.resources {
            utilities.extend([Self::ListResources, Self::ReadResource]);
        }
        if offer.has_prompts && settings.tools.prompts {
            utilities.extend([Self::ListPrompts, Self::GetPrompt]);
        }
        utilities
    }

    /// Returns the name it has beside the tools of the server itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::ListResources => "List the resources",
            Self::ReadResource => "Read a resource",
            Self::ListPrompts => "List the prompts",
            Self::GetPrompt => "Get a prompt",
        }
    }

    fn parameters(self) -> Value {
        let text = |description: &str| json!({ "type": "string", "description": description });
        match self {
            Self::ListResources | Self::ListPrompts => {
                let cursor = text("Where the last page ended; leave out for the first.");
                json!({ "type": "object", "properties": { "cursor": cursor } })
            }
            Self::ReadResource => json!({
                "type": "object",
                "properties": { "uri": text("As the list of resources has it.") },
                "required": ["uri"],
            }),
            Self::GetPrompt => json!({
                "type": "object",
                "properties": {
                    "name": text("As the list of prompts has it."),
                    "arguments": {
                        "type": "object",
                        "description": "What the prompt asks for, by name.",
                        "properties": {},
                    },
                },
                "required": ["name"],
            }),
        }
    }
}

pub(crate) struct UtilityTool {
    spec: ToolSpec,
    exposure: Exposure,
    server: Arc<Server>,
    utility: Utility,
}

impl UtilityTool {
    pub(crate) fn new(server: &Arc<Server>, name: String, utility: Utility) -> Self {
        let purpose = utility.purpose();
        Self {
            spec: ToolSpec {
                name,
                description: format!("{purpose} of the MCP server `{}`.", server.settings.name),
                parameters: utility.parameters(),
            },
            exposure: Exposure::of_server(&server.settings.name),
            server: Arc::clone(server),
            utility,
        }
    }

    fn request(&self, arguments: &Value) -> Request {
        let text = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let page = || {
            let cursor = Some(text("cursor").to_owned()).filter(|cursor| !cursor.is_empty());
            PaginatedRequestParams::default().with_cursor(cursor)
        };
        let (message, operation) = match self.utility {
            Utility::ListResources => {
                let list = ListResourcesRequest::with_param(page());
                let message = ClientRequest::ListResourcesRequest(list);
                (message, "resources/list".to_owned())
            }
            Utility::ListPrompts => {
                let list = ListPromptsRequest::with_param(page());
                let message = ClientRequest::ListPromptsRequest(list);
                (message, "prompts/list".to_owned())
            }
            Utility::ReadResource => {
                let read = ReadResourceRequest::new(ReadResourceRequestParams::new(text("uri")));
                let message = ClientRequest::ReadResourceRequest(read);
                (message, format!("resources/read `{}`", text("uri")))
            }
            Utility::GetPrompt => {
                let mut get = GetPromptRequestParams::new(text("name"));
                get.arguments = arguments
                    .get("arguments")
                    .and_then(Value::as_object)
                    .cloned();
                let message = ClientRequest::GetPromptRequest(GetPromptRequest::new(get));
                (message, format!("prompts/get `{}`", text("name")))
            }
        };
        Request {
            message,
            operation: operation.into(),
            effect: Effect::Read,
            retry: self.server.settings.retry,
        }
    }
}

impl Tool for UtilityTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let request = self.request(arguments);
        Plan::doing(Effect::Read, Parallel::Always, move |cx| {
            Box::pin(async move { self.ask(&request, cx).await })
        })
    }
}

impl UtilityTool {
    async fn ask(&self, request: &Request, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match answer(&self.server, request, cx).await? {
            ServerResult::ListResourcesResult(list) => Ok(ToolOutput::text(resource_list(&list))),
            ServerResult::ReadResourceResult(result) => {
                Ok(resource(&result, &self.server.media).await)
            }
            ServerResult::ListPromptsResult(list) => Ok(ToolOutput::text(prompt_list(&list))),
            ServerResult::GetPromptResult(result) => Ok(prompt(result, &self.server.media).await),
            _ => Err(ToolError::Answer(format!(
                "MCP server `{}`, {}: its answer has the wrong shape",
                self.server.settings.name, request.operation
            ))),
        }
    }
}
