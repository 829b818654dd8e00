//! Gemini: contents made of parts; calls and results are matched by id, or by their order.

use std::borrow::Cow;

use hermes_core::{Media, MediaSource, Message, Part, Role, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::{Asked, Body, CallInput, belongs, spoken};
use crate::settings::Effort;

/// Gemini 3 refuses a first call without a signature, but takes this in the place of one that is lost.
const SIGNATURE_LOST: &str = "skip_thought_signature_validator";

pub(super) fn body(asked: &Asked<'_>) -> Vec<u8> {
    let mut body = Body::new(asked);
    body.optional("generationConfig", generation(asked));
    body.optional("systemInstruction", asked.system().map(instruction));
    body.optional("tools", tools(asked.request.tools));
    body.field("contents", &contents(asked));
    body.finish()
}

#[derive(Serialize, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
struct Generation {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking>,
}

#[derive(Serialize, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
}

fn generation(asked: &Asked<'_>) -> Option<Generation> {
    let model = asked.model();
    let is_one_of = |names: &[&str]| names.iter().any(|name| model.contains(name));
    let effort = asked.effort();
    let mut thinking = Thinking::default();
    if is_one_of(&["gemini-3", "gemma-4"]) {
        thinking.thinking_level = effort.and_then(level);
    } else {
        thinking.thinking_budget = effort.and_then(budget);
    }
    if is_one_of(&["gemini-2.5", "gemini-3"]) {
        thinking.include_thoughts = Some(true);
    }
    let generation = Generation {
        max_output_tokens: asked.output_tokens_max(),
        thinking_config: (thinking != Thinking::default()).then_some(thinking),
    };
    (generation != Generation::default()).then_some(generation)
}

fn level(effort: Effort) -> Option<&'static str> {
    Some(match effort {
        // These models always think.
        Effort::None => return None,
        Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::XHigh | Effort::Max => "HIGH",
    })
}

fn budget(effort: Effort) -> Option<u32> {
    Some(match effort {
        // Some models refuse a budget of nothing.
        Effort::None => return None,
        Effort::Minimal | Effort::Low => 1_000,
        Effort::Medium => 8_000,
        Effort::High | Effort::XHigh | Effort::Max => 24_000,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

fn tools(specs: &[ToolSpec]) -> Option<[Tools<'_>; 1]> {
    let declarations = specs.iter().map(|spec| Declaration {
        name: &spec.name,
        description: &spec.description,
        parameters_json_schema: &spec.parameters,
    });
    (!specs.is_empty()).then(|| {
        [Tools {
            function_declarations: declarations.collect(),
        }]
    })
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Signed<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signed<'a> {
    #[serde(flatten)]
    part: GeminiPart<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum GeminiPart<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        mime_type: &'a str,
        file_uri: &'a str,
    },
    FunctionCall {
        id: &'a str,
        name: &'a str,
        args: CallInput<'a>,
    },
    FunctionResponse {
        id: &'a str,
        name: &'a str,
        response: Response<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<GeminiPart<'a>>,
    },
}

#[derive(Serialize)]
struct Response<'a> {
    content: &'a str,
}

impl<'a> From<GeminiPart<'a>> for Signed<'a> {
    fn from(part: GeminiPart<'a>) -> Self {
        Self {
            part,
            thought_signature: None,
        }
    }
}

fn instruction(text: &str) -> Content<'_> {
    Content {
        role: None,
        parts: vec![GeminiPart::Text(text.into()).into()],
    }
}

fn contents<'a>(asked: &Asked<'a>) -> Vec<Content<'a>> {
    let mut contents: Vec<Content<'a>> = Vec::new();
    let mut given: Vec<&'a ToolResult> = Vec::new();
    for message in asked.messages() {
        let (role, parts) = match message.role {
            Role::User => ("user", user(message)),
            Role::Assistant => ("model", model(asked, message)),
            Role::Tool => {
                given.extend(message.tool_result());
                continue;
            }
        };
        if !parts.is_empty() {
            contents.extend(results(asked, std::mem::take(&mut given)));
            contents.push(Content {
                role: Some(role),
                parts,
            });
        }
    }
    contents.extend(results(asked, given));
    contents
}

fn user(message: &Message) -> Vec<Signed<'_>> {
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => spoken(text).map(|text| GeminiPart::Text(text.into())),
        Part::Image(media) | Part::Audio(media) => Some(binary(media)),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    parts.map(Signed::from).collect()
}

fn binary(media: &Media) -> GeminiPart<'_> {
    let mime_type = &media.mime;
    match &media.source {
        MediaSource::Base64(data) => GeminiPart::InlineData { mime_type, data },
        MediaSource::Url(file_uri) => GeminiPart::FileData {
            mime_type,
            file_uri,
        },
    }
}

/// A signature of reasoning goes back with the part that followed it; a call has its own.
fn model<'a>(asked: &Asked<'a>, message: &'a Message) -> Vec<Signed<'a>> {
    let mut parts: Vec<Signed<'a>> = Vec::new();
    let mut waiting: Option<&str> = None;
    let mut wants_signature = asked.model().contains("gemini-3");
    for part in &message.parts {
        match part {
            Part::Reasoning(reasoning) => {
                let signature = reasoning.signature.as_deref();
                waiting = signature.and_then(|sealed| asked.open(sealed)).or(waiting);
            }
            Part::Text { text } => parts.extend(spoken(text).map(|text| Signed {
                part: GeminiPart::Text(text.into()),
                thought_signature: waiting.take(),
            })),
            Part::ToolCall(made) => {
                let own = made.signatures.iter().find_map(|sealed| asked.open(sealed));
                let lost = std::mem::take(&mut wants_signature).then_some(SIGNATURE_LOST);
                parts.push(Signed {
                    part: call(made),
                    thought_signature: own.or_else(|| waiting.take()).or(lost),
                });
            }
            Part::Image(_) | Part::Audio(_) | Part::ToolResult(_) => {}
        }
    }
    parts
}

fn call(call: &ToolCall) -> GeminiPart<'_> {
    GeminiPart::FunctionCall {
        id: call.id.as_str(),
        name: &call.name,
        args: CallInput::of(call),
    }
}

/// All results of one reply belong into one content.
fn results<'a>(asked: &Asked<'a>, results: Vec<&'a ToolResult>) -> Option<Content<'a>> {
    let takes_pictures = takes_pictures_in_results(asked.model());
    let mut parts: Vec<GeminiPart<'a>> = Vec::with_capacity(results.len());
    for result in &results {
        let pictures = result.images.iter().filter(|_| takes_pictures);
        parts.push(response(result, pictures.map(binary).collect()));
    }
    let has_pictures = |result: &&&ToolResult| !result.images.is_empty();
    let beside = results.iter().filter(|_| !takes_pictures);
    for result in beside.filter(has_pictures) {
        parts.push(GeminiPart::Text(belongs(result).into()));
        parts.extend(result.images.iter().map(binary));
    }
    (!parts.is_empty()).then(|| Content {
        role: Some("user"),
        parts: parts.into_iter().map(Signed::from).collect(),
    })
}

/// Models since Gemini 3 want pictures inside a result and refuse them beside it; the older ones know only the latter.
fn takes_pictures_in_results(model: &str) -> bool {
    let older = ["gemini-1", "gemini-2", "gemma"];
    !older.iter().any(|name| model.contains(name))
}

fn response<'a>(result: &'a ToolResult, parts: Vec<GeminiPart<'a>>) -> GeminiPart<'a> {
    GeminiPart::FunctionResponse {
        id: result.call.as_str(),
        name: &result.tool,
        response: Response {
            content: &result.text,
        },
        parts,
    }
}
