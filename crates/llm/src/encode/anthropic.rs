//! Anthropic messages, with marks for the cache.

use std::borrow::Cow;

use hermes_core::{Media, MediaSource, Message, Part, Reasoning, Role, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::claude::{self, Thinking};
use super::{Asked, Body, CallInput, spoken, unheard};
use crate::decode::anthropic::REDACTED;

/// Anthropic allows four marks: one closes the frozen prefix, the rest follow the conversation's end.
const MESSAGES_MARKED: usize = 3;

pub(super) fn body(asked: &Asked<'_>) -> Vec<u8> {
    let model = asked.model();
    let output_tokens_max = asked
        .output_tokens_max()
        .unwrap_or_else(|| claude::output_tokens_max(model));
    let Thinking { thinking, effort } = match asked.effort() {
        Some(effort) => claude::thinking(model, effort, output_tokens_max),
        None => Thinking::default(),
    };
    let mut body = Body::new(asked);
    body.field("model", &model);
    body.field("stream", &true);
    body.field("max_tokens", &output_tokens_max);
    body.optional("thinking", thinking);
    body.optional(
        "output_config",
        effort.map(|effort| OutputConfig { effort }),
    );
    body.optional("system", asked.system().map(system));
    body.optional("tools", tools(asked.request.tools));
    body.field("messages", &messages(asked));
    body.finish()
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

fn tools(specs: &[ToolSpec]) -> Option<Vec<AnthropicTool<'_>>> {
    let tools = specs.iter().map(|spec| AnthropicTool {
        name: &spec.name,
        description: &spec.description,
        input_schema: &spec.parameters,
    });
    (!specs.is_empty()).then(|| tools.collect())
}

#[derive(Serialize)]
struct AnthropicMessage<'a> {
    role: &'static str,
    content: Vec<Marked<'a>>,
}

/// A block, and whether what is before its end should be cached.
#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: CallInput<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: ResultContent<'a>,
    },
}

/// A text, or a list of blocks when there are pictures beside it.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

impl<'a> From<Block<'a>> for Marked<'a> {
    fn from(block: Block<'a>) -> Self {
        Self {
            block,
            cache_control: None,
        }
    }
}

fn system(text: &str) -> [Marked<'_>; 1] {
    [Marked {
        block: Block::Text { text: text.into() },
        cache_control: Some(CacheControl::Ephemeral),
    }]
}

fn messages<'a>(asked: &Asked<'a>) -> Vec<AnthropicMessage<'a>> {
    let encode = |message: &'a Message| {
        let blocks = message.parts.iter().filter_map(|part| match message.role {
            Role::User => user_block(part),
            Role::Assistant => assistant_block(asked, part),
            Role::Tool => result_block(part),
        });
        let content: Vec<_> = blocks.map(Marked::from).collect();
        (!content.is_empty()).then_some(AnthropicMessage {
            role: match message.role {
                Role::User | Role::Tool => "user",
                Role::Assistant => "assistant",
            },
            content,
        })
    };
    let mut messages: Vec<_> = asked.messages().filter_map(encode).collect();
    for message in messages.iter_mut().rev().take(MESSAGES_MARKED) {
        mark(message);
    }
    messages
}

/// Marks the last block that may be: thinking may not.
fn mark(message: &mut AnthropicMessage<'_>) {
    let is_thinking = |block: &Block<'_>| {
        matches!(
            block,
            Block::Thinking { .. } | Block::RedactedThinking { .. }
        )
    };
    let mut blocks = message.content.iter_mut().rev();
    if let Some(last) = blocks.find(|marked| !is_thinking(&marked.block)) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
}

fn user_block(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Text { text } => spoken(text).map(|text| Block::Text { text: text.into() }),
        Part::Image(media) => Some(Block::Image {
            source: source(media),
        }),
        Part::Audio(media) => Some(Block::Text {
            text: unheard(media).into(),
        }),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

fn source(media: &Media) -> Source<'_> {
    match &media.source {
        MediaSource::Base64(data) => Source::Base64 {
            media_type: &media.mime,
            data,
        },
        MediaSource::Url(url) => Source::Url { url },
    }
}

fn assistant_block<'a>(asked: &Asked<'a>, part: &'a Part) -> Option<Block<'a>> {
    match part {
        Part::Text { text } => spoken(text).map(|text| Block::Text { text: text.into() }),
        Part::Reasoning(reasoning) => thinking_block(asked, reasoning),
        Part::ToolCall(call) => Some(Block::ToolUse {
            id: call.id.as_str(),
            name: &call.name,
            input: CallInput::of(call),
        }),
        Part::Image(_) | Part::Audio(_) | Part::ToolResult(_) => None,
    }
}

fn thinking_block<'a>(asked: &Asked<'a>, reasoning: &'a Reasoning) -> Option<Block<'a>> {
    let signature = asked.open(reasoning.signature.as_deref()?)?;
    Some(match signature.strip_prefix(REDACTED) {
        Some(data) => Block::RedactedThinking { data },
        None => Block::Thinking {
            thinking: &reasoning.text,
            signature,
        },
    })
}

fn result_block(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::ToolResult(result) => Some(Block::ToolResult {
            tool_use_id: result.call.as_str(),
            content: result_content(result),
        }),
        _ => None,
    }
}

fn result_content(result: &ToolResult) -> ResultContent<'_> {
    if result.images.is_empty() {
        return ResultContent::Text(&result.text);
    }
    let text = spoken(&result.text).map(|text| Block::Text { text: text.into() });
    let images = result.images.iter().map(|media| Block::Image {
        source: source(media),
    });
    ResultContent::Blocks(text.into_iter().chain(images).collect())
}
