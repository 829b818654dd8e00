//! OpenAI chat completions, in the form that its many imitators understand too.

use std::borrow::Cow;

use hermes_core::{
    Media, MediaSource, Message, Part, Reasoning, Role, ToolCall, ToolResult, ToolSpec,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Asked, Body, CallText, MediaUrl, belongs, effort_name, spoken, texts, unheard};

/// Separates texts of one message where the wire has room for one only.
const BETWEEN_TEXTS: &str = "\n\n";

/// Models that know the output limit under its newer name only.
const COUNTS_COMPLETION: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

pub(super) fn body(asked: &Asked<'_>) -> Vec<u8> {
    let model = asked.model();
    let mut body = Body::new(asked);
    body.field("model", &model);
    body.field("stream", &true);
    body.field("stream_options", &json!({"include_usage": true}));
    body.optional("reasoning_effort", asked.effort().map(effort_name));
    body.optional(limit_name(model), asked.output_tokens_max());
    body.optional("prompt_cache_key", asked.cache_key());
    if asked.route.quirks.marks_claude && model.contains("claude") {
        body.field("cache_control", &json!({"type": "ephemeral"}));
    }
    body.optional("tools", tools(asked.request.tools));
    body.field("messages", &messages(asked));
    body.finish()
}

fn limit_name(model: &str) -> &'static str {
    let is_newer = COUNTS_COMPLETION
        .iter()
        .any(|prefix| model.starts_with(prefix));
    if is_newer {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct ChatTool<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

fn tools(specs: &[ToolSpec]) -> Option<Vec<ChatTool<'_>>> {
    let tools = specs.iter().map(|spec| ChatTool {
        function: Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
        },
    });
    (!specs.is_empty()).then(|| tools.collect())
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatCall<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<Map<String, Value>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

/// Text alone is sent as a string: not every server reads a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: MediaUrl<'a>,
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct ChatCall<'a> {
    id: &'a str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: CallText<'a>,
}

fn messages<'a>(asked: &Asked<'a>) -> Vec<ChatMessage<'a>> {
    let system = asked
        .system()
        .map(|content| ChatMessage::System { content });
    let mut messages: Vec<ChatMessage<'a>> = system.into_iter().collect();
    let mut shown: Vec<&'a ToolResult> = Vec::new();
    for message in asked.messages() {
        if message.role != Role::Tool {
            messages.extend(pictures(std::mem::take(&mut shown)));
        }
        match message.role {
            Role::User => messages.extend(user(message)),
            Role::Assistant => messages.extend(assistant(asked, message)),
            Role::Tool => {
                let result = message.tool_result();
                messages.extend(result.map(|result| ChatMessage::Tool {
                    content: &result.text,
                    tool_call_id: result.call.as_str(),
                }));
                shown.extend(result.filter(|result| !result.images.is_empty()));
            }
        }
    }
    messages.extend(pictures(shown));
    messages
}

/// Stands before pictures of results, so that nobody takes this for the user's turn.
const NOT_THE_USER: &str =
    "These pictures belong to the tool results above; the user did not write this message.";

/// The pictures of the results of one reply, which this wire takes from users only. They follow all the results, because
/// nothing may stand between those.
fn pictures<'a>(results: Vec<&'a ToolResult>) -> Option<ChatMessage<'a>> {
    if results.is_empty() {
        return None;
    }
    let text = |text: Cow<'a, str>| ContentPart::Text { text };
    let mut parts = vec![text(NOT_THE_USER.into())];
    for result in results {
        parts.push(text(belongs(result).into()));
        parts.extend(result.images.iter().map(picture));
    }
    Some(ChatMessage::User {
        content: Content::Parts(parts),
    })
}

fn picture(media: &Media) -> ContentPart<'_> {
    ContentPart::ImageUrl {
        image_url: ImageUrl {
            url: MediaUrl(media),
        },
    }
}

fn user(message: &Message) -> Option<ChatMessage<'_>> {
    let parts: Vec<ContentPart<'_>> = message.parts.iter().filter_map(user_part).collect();
    if parts.is_empty() {
        return None;
    }
    let is_text = |part: &ContentPart<'_>| matches!(part, ContentPart::Text { .. });
    let content = if parts.iter().all(is_text) {
        Content::Text(joined(texts_of(&parts)))
    } else {
        Content::Parts(parts)
    };
    Some(ChatMessage::User { content })
}

fn texts_of<'a>(parts: &'a [ContentPart<'_>]) -> impl Iterator<Item = &'a str> {
    parts.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(&**text),
        ContentPart::ImageUrl { .. } | ContentPart::InputAudio { .. } => None,
    })
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(BETWEEN_TEXTS)
}

fn user_part(part: &Part) -> Option<ContentPart<'_>> {
    match part {
        Part::Text { text } => spoken(text).map(|text| ContentPart::Text { text: text.into() }),
        Part::Image(media) => Some(picture(media)),
        Part::Audio(media) => Some(audio(media)),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

fn audio(media: &Media) -> ContentPart<'_> {
    match &media.source {
        MediaSource::Base64(data) => ContentPart::InputAudio {
            input_audio: InputAudio {
                data,
                format: audio_format(&media.mime),
            },
        },
        MediaSource::Url(_) => ContentPart::Text {
            text: unheard(media).into(),
        },
    }
}

fn audio_format(mime: &str) -> &str {
    match mime.rsplit('/').next() {
        Some("mpeg") => "mp3",
        Some(format) => format,
        None => mime,
    }
}

fn assistant<'a>(asked: &Asked<'a>, message: &'a Message) -> Option<ChatMessage<'a>> {
    let content = joined(texts(message));
    let tool_calls: Vec<_> = message.calls().map(call).collect();
    let details: Vec<_> = reasoning(message)
        .filter_map(|reasoning| detail(asked, reasoning))
        .collect();
    if content.is_empty() && tool_calls.is_empty() && details.is_empty() {
        return None;
    }
    let replays = asked.route.quirks.replays_reasoning && !tool_calls.is_empty();
    Some(ChatMessage::Assistant {
        content,
        tool_calls,
        reasoning_content: replays.then(|| all_reasoning(message)),
        reasoning_details: details,
    })
}

fn call(call: &ToolCall) -> ChatCall<'_> {
    ChatCall {
        id: call.id.as_str(),
        function: CalledFunction {
            name: &call.name,
            arguments: CallText(call),
        },
    }
}

fn reasoning(message: &Message) -> impl Iterator<Item = &Reasoning> {
    message.parts.iter().filter_map(|part| match part {
        Part::Reasoning(reasoning) => Some(reasoning),
        _ => None,
    })
}

/// Puts a reasoning block of OpenRouter's together again: its signature is the block without the text.
fn detail(asked: &Asked<'_>, reasoning: &Reasoning) -> Option<Map<String, Value>> {
    let signature = asked.open(reasoning.signature.as_deref()?)?;
    let mut detail: Map<String, Value> = serde_json::from_str(signature).ok()?;
    detail.insert("text".into(), reasoning.text.as_str().into());
    Some(detail)
}

/// Some providers refuse a call without what was thought before it; a space stands for thoughts that are lost.
fn all_reasoning(message: &Message) -> String {
    let text: String = reasoning(message)
        .map(|reasoning| reasoning.text.as_str())
        .collect();
    if text.is_empty() {
        " ".to_owned()
    } else {
        text
    }
}
