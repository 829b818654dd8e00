//! OpenAI responses: a list of items, in the order in which the model made them.

use std::borrow::Cow;

use hermes_core::{Media, Message, Part, Reasoning, Role, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Asked, Body, CallText, MediaUrl, effort_name, spoken, unheard};
use crate::settings::Effort;

/// Models that reason; others refuse to be asked about it.
const THINKERS: [&str; 7] = ["gpt-5", "gpt-6", "o1", "o3", "o4", "codex", "grok-4"];

pub(super) fn body(asked: &Asked<'_>) -> Vec<u8> {
    let model = asked.model();
    let mut body = Body::new(asked);
    body.field("model", &model);
    body.field("stream", &true);
    // The conversation is ours to keep.
    body.field("store", &false);
    if thinks(model) {
        body.field("include", &["reasoning.encrypted_content"]);
        body.optional("reasoning", asked.effort().map(thinking));
    }
    body.optional("max_output_tokens", asked.output_tokens_max());
    body.optional("prompt_cache_key", asked.cache_key());
    body.optional("instructions", asked.system());
    body.optional("tools", tools(asked.request.tools));
    body.field("input", &input(asked));
    body.finish()
}

fn thinks(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let is_chat = model.contains("-chat") || model.contains("non-reasoning");
    !is_chat && THINKERS.iter().any(|prefix| model.starts_with(prefix))
}

fn thinking(effort: Effort) -> Value {
    match effort {
        Effort::None => json!({"effort": effort_name(effort)}),
        _ => json!({"effort": effort_name(effort), "summary": "auto"}),
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict unless said otherwise, and few schemas are.
    strict: bool,
}

fn tools(specs: &[ToolSpec]) -> Option<Vec<Function<'_>>> {
    let tools = specs.iter().map(|spec| Function {
        name: &spec.name,
        description: &spec.description,
        parameters: &spec.parameters,
        strict: false,
    });
    (!specs.is_empty()).then(|| tools.collect())
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    Reasoning {
        encrypted_content: &'a str,
        /// Required, and ignored beside the encrypted content.
        summary: [(); 0],
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: CallText<'a>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

/// A text, or a list when there are pictures beside it.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Contents(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        detail: &'static str,
        image_url: MediaUrl<'a>,
    },
    OutputText {
        text: &'a str,
    },
}

fn input<'a>(asked: &Asked<'a>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for message in asked.messages() {
        match message.role {
            Role::User => items.extend(user(message)),
            Role::Assistant => assistant(asked, message, &mut items),
            Role::Tool => items.extend(message.tool_result().map(output)),
        }
    }
    items
}

fn user(message: &Message) -> Option<Item<'_>> {
    let content: Vec<Content<'_>> = message.parts.iter().filter_map(user_part).collect();
    (!content.is_empty()).then_some(Item::Message {
        role: "user",
        content,
    })
}

fn user_part(part: &Part) -> Option<Content<'_>> {
    match part {
        Part::Text { text } => spoken(text).map(|text| Content::InputText { text: text.into() }),
        Part::Image(media) => Some(picture(media)),
        Part::Audio(media) => Some(Content::InputText {
            text: unheard(media).into(),
        }),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

fn picture(media: &Media) -> Content<'_> {
    Content::InputImage {
        detail: "auto",
        image_url: MediaUrl(media),
    }
}

fn assistant<'a>(asked: &Asked<'a>, message: &'a Message, items: &mut Vec<Item<'a>>) {
    for part in &message.parts {
        match part {
            Part::Text { text } => items.extend(spoken(text).map(said)),
            Part::Reasoning(reasoning) => items.extend(thought(asked, reasoning)),
            Part::ToolCall(made) => items.push(call(made)),
            Part::Image(_) | Part::Audio(_) | Part::ToolResult(_) => {}
        }
    }
}

fn said(text: &str) -> Item<'_> {
    Item::Message {
        role: "assistant",
        content: vec![Content::OutputText { text }],
    }
}

/// What was thought goes back only as the provider encrypted it.
fn thought<'a>(asked: &Asked<'a>, reasoning: &'a Reasoning) -> Option<Item<'a>> {
    let encrypted_content = asked.open(reasoning.signature.as_deref()?)?;
    Some(Item::Reasoning {
        encrypted_content,
        summary: [],
    })
}

fn call(call: &ToolCall) -> Item<'_> {
    Item::FunctionCall {
        call_id: call.id.as_str(),
        name: &call.name,
        arguments: CallText(call),
    }
}

fn output(result: &ToolResult) -> Item<'_> {
    let output = if result.images.is_empty() {
        Output::Text(&result.text)
    } else {
        let text = spoken(&result.text).map(|text| Content::InputText { text: text.into() });
        let images = result.images.iter().map(picture);
        Output::Contents(text.into_iter().chain(images).collect())
    };
    Item::FunctionCallOutput {
        call_id: result.call.as_str(),
        output,
    }
}
