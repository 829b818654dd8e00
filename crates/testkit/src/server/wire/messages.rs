//! Anthropic messages: a message is a list of content blocks, each opened, filled and closed.

use serde_json::{Value, json};

use super::{Ask, Frame, chunks, parsed_arguments};
use crate::server::answer::{Answer, Finish, Part, Usage};

pub(super) fn stream(answer: &Answer, ask: &Ask) -> Vec<Frame> {
    let mut message = message(ask, answer.usage);
    message["usage"]["output_tokens"] = 1.into();
    let mut frames = vec![Frame::event(
        &json!({"type": "message_start", "message": message}),
    )];
    for (index, part) in answer.parts.iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index,
            "content_block": empty_block(part)});
        frames.push(Frame::event(&start));
        if index == 0 {
            frames.push(Frame::event(&json!({"type": "ping"})));
        }
        frames.extend(block_deltas(index, part));
        frames.push(Frame::event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    let stop = stop_name(answer.finish_reason());
    frames.push(Frame::event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": usage(answer.usage),
    })));
    frames.push(Frame::event(&json!({"type": "message_stop"})));
    frames
}

pub(super) fn collected(answer: &Answer, ask: &Ask) -> Value {
    let mut message = message(ask, answer.usage);
    message["content"] = answer.parts.iter().map(whole_block).collect();
    message["stop_reason"] = stop_name(answer.finish_reason()).into();
    message
}

pub(super) fn error(kind: &str, message: &str) -> Frame {
    Frame::event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
}

fn message(ask: &Ask, counts: Usage) -> Value {
    json!({
        "id": format!("msg_{}", ask.number),
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(counts),
    })
}

fn empty_block(part: &Part) -> Value {
    match part {
        Part::Text { .. } | Part::TextChunks { .. } => json!({"type": "text", "text": ""}),
        Part::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Part::Call { call, id, .. } => {
            json!({"type": "tool_use", "id": id, "name": call, "input": {}})
        }
    }
}

fn whole_block(part: &Part) -> Value {
    let mut block = empty_block(part);
    match part {
        Part::Text { .. } | Part::TextChunks { .. } => block["text"] = part.content().into(),
        Part::Reasoning { signature, .. } => {
            block["thinking"] = part.content().into();
            block["signature"] = signature.as_deref().unwrap_or_default().into();
        }
        Part::Call { .. } => block["input"] = parsed_arguments(part),
    }
    block
}

fn block_deltas(index: usize, part: &Part) -> Vec<Frame> {
    let (kind, field) = match part {
        Part::Text { .. } | Part::TextChunks { .. } => ("text_delta", "text"),
        Part::Reasoning { .. } => ("thinking_delta", "thinking"),
        Part::Call { .. } => ("input_json_delta", "partial_json"),
    };
    let mut frames = chunks(part, |text| block_delta(index, kind, field, text));
    if let Part::Reasoning {
        signature: Some(signature),
        ..
    } = part
    {
        frames.push(block_delta(
            index,
            "signature_delta",
            "signature",
            signature,
        ));
    }
    frames
}

fn block_delta(index: usize, kind: &str, field: &str, text: &str) -> Frame {
    let delta = json!({"type": kind, field: text});
    Frame::event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

/// Anthropic counts cached tokens beside the input, not within it.
fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    })
}

fn stop_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
    }
}
