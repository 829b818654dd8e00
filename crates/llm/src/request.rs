//! From our request to the client library's: messages, tools, options, address and headers.
//!
//! The same conversation always gives the same bytes, apart from the cache marks that move along with its end.

use genai::adapter::AdapterKind;
use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent,
    ReasoningEffort, Tool, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use hermes_core::{
    Arguments, Media, MediaSource, Message, ModelRequest, Part, Reasoning, Role, Secret, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::decode::anthropic::REDACTED;
use crate::providers::Protocol;
use crate::settings::{Effort, Route};
use crate::signature;

const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Subscription tokens, unlike API keys, are bearer tokens and need to be announced.
const ANTHROPIC_SUBSCRIPTION_PREFIX: &str = "sk-ant-oat";
const ANTHROPIC_SUBSCRIPTION_BETA: &str = "oauth-2025-04-20";

/// Anthropic allows four marks: one closes the frozen prefix, the rest follow the conversation's end.
const MESSAGES_MARKED: usize = 3;

/// A request as the client library wants it.
pub(crate) struct Outgoing {
    pub(crate) target: ServiceTarget,
    pub(crate) chat: ChatRequest,
    pub(crate) options: ChatOptions,
}

/// Whether signatures of earlier replies are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signatures {
    Replayed,
    /// The provider does not accept its own any more.
    Dropped,
}

/// Turns a request into one for `route`, with `key`.
pub(crate) fn outgoing(
    route: &Route,
    key: Option<&Secret>,
    request: &ModelRequest<'_>,
    signatures: Signatures,
) -> Outgoing {
    let kind = match route.protocol {
        // The library changes requests for models it believes to be OpenAI's own; this adapter does not.
        Protocol::OpenAiChat => AdapterKind::OpenRouter,
        Protocol::OpenAiResponses => AdapterKind::OpenAIResp,
        Protocol::Anthropic => AdapterKind::Anthropic,
        Protocol::Gemini => AdapterKind::Gemini,
    };
    let target = ServiceTarget {
        // Replaced by the override, which also keeps the library from looking for keys.
        endpoint: Endpoint::from_static("http://unused.invalid/"),
        auth: AuthData::RequestOverride {
            url: url(route),
            headers: headers(route, key),
        },
        model: ModelIden::new(kind, route.name.model.as_str()),
    };
    Outgoing {
        target,
        chat: chat(route, request, signatures),
        options: options(route, request),
    }
}

/// The address requests are posted to.
fn url(route: &Route) -> String {
    let base = &route.base_url;
    match route.protocol {
        Protocol::OpenAiChat => format!("{base}/chat/completions"),
        Protocol::OpenAiResponses => format!("{base}/responses"),
        Protocol::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Protocol::Anthropic => format!("{base}/v1/messages"),
        Protocol::Gemini => {
            let model = &route.name.model;
            format!("{base}/models/{model}:streamGenerateContent?alt=sse")
        }
    }
}

fn headers(route: &Route, key: Option<&Secret>) -> Headers {
    let own = auth_headers(route.protocol, key);
    let all: Vec<_> = own
        .into_iter()
        .chain(route.headers.iter().cloned())
        .collect();
    Headers::from(all)
}

/// The headers that say who asks.
pub(crate) fn auth_headers(protocol: Protocol, key: Option<&Secret>) -> Vec<(String, String)> {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let bearer = |key: &str| header("authorization", &format!("Bearer {key}"));
    let mut headers = Vec::new();
    if protocol == Protocol::Anthropic {
        headers.push(header("anthropic-version", ANTHROPIC_VERSION));
    }
    let Some(key) = key.map(Secret::expose) else {
        return headers;
    };
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses => headers.push(bearer(key)),
        Protocol::Gemini => headers.push(header("x-goog-api-key", key)),
        Protocol::Anthropic if key.starts_with(ANTHROPIC_SUBSCRIPTION_PREFIX) => {
            headers.push(bearer(key));
            headers.push(header("anthropic-beta", ANTHROPIC_SUBSCRIPTION_BETA));
        }
        Protocol::Anthropic => headers.push(header("x-api-key", key)),
    }
    headers
}

fn chat(route: &Route, request: &ModelRequest<'_>, signatures: Signatures) -> ChatRequest {
    let converter = Converter { route, signatures };
    let mut messages: Vec<ChatMessage> = request
        .messages
        .iter()
        .filter_map(|message| converter.message(message))
        .collect();
    if route.protocol == Protocol::Anthropic {
        mark(&mut messages);
    }
    let system = Some(request.system).filter(|system| !system.is_empty());
    let chat = match (system, route.protocol) {
        (Some(system), Protocol::Anthropic) => {
            let system = ChatMessage::system(system).with_options(CacheControl::Ephemeral);
            messages.insert(0, system);
            ChatRequest::new(messages)
        }
        (Some(system), _) => ChatRequest::new(messages).with_system(system),
        (None, _) => ChatRequest::new(messages),
    };
    match route.protocol {
        Protocol::OpenAiChat | Protocol::Gemini if !request.tools.is_empty() => {
            chat.with_tools(request.tools.iter().map(tool))
        }
        _ => chat,
    }
}

/// Marks the end of the conversation for Anthropic's cache.
fn mark(messages: &mut [ChatMessage]) {
    let unmarked = messages.len().saturating_sub(MESSAGES_MARKED);
    for message in &mut messages[unmarked..] {
        message.options = Some(CacheControl::Ephemeral.into());
    }
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.as_str())
        .with_description(spec.description.as_str())
        .with_schema(spec.parameters.clone())
}

/// Tools in the words of wires where the library takes a tool named `web_search` for the provider's own.
fn spelt_tools(protocol: Protocol, specs: &[ToolSpec]) -> Option<Value> {
    let tools: Vec<Value> = match protocol {
        Protocol::Anthropic => specs
            .iter()
            .map(|spec| {
                json!({
                    "name": spec.name,
                    "description": spec.description,
                    "input_schema": spec.parameters,
                })
            })
            .collect(),
        Protocol::OpenAiResponses => specs
            .iter()
            .map(|spec| {
                json!({
                    "type": "function",
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.parameters,
                    "strict": false,
                })
            })
            .collect(),
        Protocol::OpenAiChat | Protocol::Gemini => return None,
    };
    (!tools.is_empty()).then(|| Value::Array(tools))
}

fn options(route: &Route, request: &ModelRequest<'_>) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_extra_body(Value::Object(body(route, request)));
    options.max_tokens = request.output_tokens_max.or(route.max_tokens);
    options.reasoning_effort = effort(route);
    options.capture_reasoning_content = Some(shows_thoughts(route));
    if route.quirks.cache_key {
        options.prompt_cache_key = Some(request.session.to_string());
    }
    options
}

/// What we say in the body ourselves. It is merged last, so it also sets right what the library would change.
fn body(route: &Route, request: &ModelRequest<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    let model = route.name.model.as_str();
    if route.protocol != Protocol::Gemini {
        // The library takes the end of `qwen3-max` for an effort and cuts it off.
        body.insert("model".into(), model.into());
    }
    if let Some(tools) = spelt_tools(route.protocol, request.tools) {
        body.insert("tools".into(), tools);
    }
    if route.protocol == Protocol::OpenAiResponses && thinks(model) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
        if let Some(effort) = route.effort.filter(|_| route.quirks.effort) {
            let mut reasoning = json!({"effort": effort_name(effort)});
            if effort != Effort::None {
                reasoning["summary"] = "auto".into();
            }
            body.insert("reasoning".into(), reasoning);
        }
    }
    if route.quirks.marks_claude && model.contains("claude") {
        body.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    body.extend(route.extra_body.clone());
    body
}

/// Returns the effort as the library should hear it. A budget says nothing on OpenAI's wires but keeps the library from
/// reading an effort out of the model's name.
fn effort(route: &Route) -> Option<ReasoningEffort> {
    const UNSAID: ReasoningEffort = ReasoningEffort::Budget(0);
    let effort = route.effort.filter(|_| route.quirks.effort);
    let effort = effort.map(|effort| match effort {
        Effort::None => ReasoningEffort::Zero,
        Effort::Minimal => ReasoningEffort::Minimal,
        Effort::Low => ReasoningEffort::Low,
        Effort::Medium => ReasoningEffort::Medium,
        Effort::High => ReasoningEffort::High,
        Effort::XHigh => ReasoningEffort::XHigh,
        Effort::Max => ReasoningEffort::Max,
    });
    match route.protocol {
        Protocol::OpenAiChat => Some(effort.unwrap_or(UNSAID)),
        Protocol::OpenAiResponses => Some(UNSAID),
        Protocol::Anthropic | Protocol::Gemini => effort,
    }
}

fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh | Effort::Max => "xhigh",
    }
}

/// Returns whether a model on OpenAI's responses wire is one that reasons; others refuse to be asked about it.
fn thinks(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let reasons = ["gpt-5", "gpt-6", "o1", "o3", "o4", "codex", "grok-4"];
    let is_chat = model.contains("-chat") || model.contains("non-reasoning");
    !is_chat && reasons.iter().any(|prefix| model.starts_with(prefix))
}

/// Returns whether the wire is asked to show what the model thinks.
fn shows_thoughts(route: &Route) -> bool {
    let model = &route.name.model;
    match route.protocol {
        Protocol::Gemini => ["gemini-2.5", "gemini-3"]
            .iter()
            .any(|new| model.contains(new)),
        Protocol::Anthropic => route.effort.is_some_and(|effort| effort != Effort::None),
        Protocol::OpenAiChat | Protocol::OpenAiResponses => false,
    }
}

struct Converter<'a> {
    route: &'a Route,
    signatures: Signatures,
}

impl Converter<'_> {
    /// Converts a message, or drops one that has nothing this wire can carry.
    fn message(&self, message: &Message) -> Option<ChatMessage> {
        let parts = match message.role {
            Role::User => self.user(message),
            Role::Assistant => self.assistant(message),
            Role::Tool => message.tool_result().map(tool_result).into_iter().collect(),
        };
        if parts.is_empty() {
            return None;
        }
        let content = MessageContent::from_parts(parts);
        Some(match message.role {
            Role::User => ChatMessage::user(content),
            Role::Assistant => ChatMessage::assistant(content),
            Role::Tool => ChatMessage::tool(content),
        })
    }

    fn user(&self, message: &Message) -> Vec<ContentPart> {
        let parts = message.parts.iter().filter_map(|part| match part {
            Part::Text { text } => spoken(text),
            Part::Image(media) => Some(self.image(media)),
            Part::Audio(media) => Some(self.audio(media)),
            Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        });
        parts.collect()
    }

    fn image(&self, media: &Media) -> ContentPart {
        match (&media.source, self.route.protocol) {
            // The library drops these.
            (MediaSource::Url(url), Protocol::Anthropic) => {
                let source = json!({"type": "url", "url": url});
                ContentPart::from_custom(json!({"type": "image", "source": source}), None)
            }
            _ => ContentPart::Binary(binary(media)),
        }
    }

    fn audio(&self, media: &Media) -> ContentPart {
        let is_heard = match self.route.protocol {
            Protocol::OpenAiChat => matches!(media.source, MediaSource::Base64(_)),
            Protocol::Gemini => true,
            Protocol::OpenAiResponses | Protocol::Anthropic => false,
        };
        if is_heard {
            ContentPart::Binary(binary(media))
        } else {
            ContentPart::from_text(format!(
                "[a recording ({}) that this model cannot hear]",
                media.mime
            ))
        }
    }

    fn assistant(&self, message: &Message) -> Vec<ContentPart> {
        let mut parts = Vec::new();
        let calls_tools = message.calls().next().is_some();
        if self.route.quirks.replays_reasoning && calls_tools {
            parts.push(ContentPart::ReasoningContent(all_reasoning(message)));
        }
        for part in &message.parts {
            match part {
                Part::Text { text } => parts.extend(spoken(text)),
                Part::Reasoning(reasoning) => self.reasoning(reasoning, &mut parts),
                Part::ToolCall(call) => parts.push(ContentPart::ToolCall(self.call(call))),
                Part::Image(_) | Part::Audio(_) | Part::ToolResult(_) => {}
            }
        }
        parts
    }

    /// Reasoning goes back only with the signature of the provider that is asked.
    fn reasoning(&self, reasoning: &Reasoning, parts: &mut Vec<ContentPart>) {
        let Some(signature) = reasoning
            .signature
            .as_deref()
            .and_then(|sealed| self.open(sealed))
        else {
            return;
        };
        match self.route.protocol {
            Protocol::Anthropic => match signature.strip_prefix(REDACTED) {
                Some(data) => {
                    let block = json!({"type": "redacted_thinking", "data": data});
                    parts.push(ContentPart::from_custom(block, None));
                }
                None => {
                    parts.push(ContentPart::ThoughtSignature(signature.to_owned()));
                    parts.push(ContentPart::ReasoningContent(reasoning.text.clone()));
                }
            },
            Protocol::OpenAiResponses | Protocol::Gemini => {
                parts.push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
            Protocol::OpenAiChat => {
                if let Ok(Value::Object(mut detail)) = serde_json::from_str(signature) {
                    detail.insert("text".into(), reasoning.text.as_str().into());
                    parts.push(ContentPart::from_custom(Value::Object(detail), None));
                }
            }
        }
    }

    fn call(&self, call: &hermes_core::ToolCall) -> ToolCall {
        let opened: Vec<String> = call
            .signatures
            .iter()
            .filter_map(|sealed| self.open(sealed))
            .map(str::to_owned)
            .collect();
        ToolCall {
            call_id: call.id.to_string(),
            fn_name: call.name.clone(),
            fn_arguments: match &call.arguments {
                Arguments::Json(value) => value.clone(),
                // Every wire wants an object; the model still sees what it wrote.
                Arguments::Malformed(text) => json!({"malformed_arguments": text}),
            },
            thought_signatures: (!opened.is_empty()).then_some(opened),
        }
    }

    fn open<'s>(&self, sealed: &'s str) -> Option<&'s str> {
        match self.signatures {
            Signatures::Replayed => signature::open(&self.route.name.provider, sealed),
            Signatures::Dropped => None,
        }
    }
}

/// Drops text that providers refuse as empty.
fn spoken(text: &str) -> Option<ContentPart> {
    (!text.trim().is_empty()).then(|| ContentPart::from_text(text))
}

/// Some providers refuse a call without what was thought before it; a space stands for thoughts that are lost.
fn all_reasoning(message: &Message) -> String {
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::Reasoning(reasoning) => Some(reasoning.text.as_str()),
        _ => None,
    });
    let text: String = thoughts.collect();
    if text.is_empty() {
        " ".to_owned()
    } else {
        text
    }
}

fn binary(media: &Media) -> Binary {
    match &media.source {
        MediaSource::Base64(data) => Binary::from_base64(&media.mime, data.as_str(), None),
        MediaSource::Url(url) => Binary::from_url(&media.mime, url, None),
    }
}

fn tool_result(result: &hermes_core::ToolResult) -> ContentPart {
    let response = ToolResponse::new(result.call.to_string(), result.text.as_str());
    ContentPart::ToolResponse(response.with_fn_name(result.tool.as_str()))
}
