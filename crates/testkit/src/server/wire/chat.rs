//! OpenAI chat completions. Reasoning travels as `reasoning_content` (DeepSeek and others), its
//! signature in `reasoning_details` (OpenRouter).

use serde_json::{Value, json};

use super::{Ask, CREATED_S, Frame, chunks};
use crate::server::answer::{Answer, Finish, Part, Usage};

pub(super) fn stream(answer: &Answer, ask: &Ask) -> Vec<Frame> {
    let mut frames = vec![delta(ask, &json!({"role": "assistant", "content": ""}))];
    let mut call_index = 0;
    for part in &answer.parts {
        match part {
            Part::Text { .. } | Part::TextChunks { .. } => {
                frames.extend(chunks(part, |text| delta(ask, &json!({"content": text}))));
            }
            Part::Reasoning { signature, .. } => {
                let render = |text: &str| delta(ask, &json!({"reasoning_content": text}));
                frames.extend(chunks(part, render));
                if let Some(signature) = signature {
                    let details = reasoning_details("", signature);
                    frames.push(delta(ask, &json!({"reasoning_details": details})));
                }
            }
            Part::Call { call, id, .. } => {
                frames.extend(call_frames(ask, call_index, id, call, part));
                call_index += 1;
            }
        }
    }
    frames.push(chunk(ask, &json!({}), Some(answer.finish_reason())));
    if ask.includes_usage {
        frames.push(usage_chunk(ask, answer.usage));
    }
    frames.push(Frame::new("data: [DONE]\n\n".to_owned()));
    frames
}

pub(super) fn collected(answer: &Answer, ask: &Ask) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.whole_text(), "refusal": null});
    if let Some(reasoning) = answer.whole_reasoning() {
        message["reasoning_content"] = reasoning.into();
    }
    let calls: Vec<Value> = answer.parts.iter().filter_map(whole_call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    for part in &answer.parts {
        if let Part::Reasoning {
            reasoning,
            signature: Some(signature),
            ..
        } = part
        {
            message["reasoning_details"] = reasoning_details(reasoning, signature);
        }
    }
    json!({
        "id": completion_id(ask),
        "object": "chat.completion",
        "created": CREATED_S,
        "model": ask.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_name(answer.finish_reason()),
        }],
        "usage": usage(answer.usage),
    })
}

pub(super) fn error(kind: &str, message: &str) -> Frame {
    Frame::data(&json!({"error": {"message": message, "type": kind, "param": null, "code": null}}))
}

fn call_frames(ask: &Ask, index: usize, id: &str, name: &str, part: &Part) -> Vec<Frame> {
    let opening = json!({"tool_calls": [{
        "index": index,
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }]});
    let arguments = |text: &str| {
        let call = json!({"index": index, "function": {"arguments": text}});
        delta(ask, &json!({"tool_calls": [call]}))
    };
    let mut frames = vec![delta(ask, &opening)];
    frames.extend(chunks(part, arguments));
    frames
}

fn whole_call(part: &Part) -> Option<Value> {
    let Part::Call { call, id, .. } = part else {
        return None;
    };
    let function = json!({"name": call, "arguments": part.content()});
    Some(json!({"id": id, "type": "function", "function": function}))
}

fn delta(ask: &Ask, delta: &Value) -> Frame {
    chunk(ask, delta, None)
}

fn chunk(ask: &Ask, delta: &Value, finish: Option<Finish>) -> Frame {
    let choice = json!({
        "index": 0,
        "delta": delta,
        "logprobs": null,
        "finish_reason": finish.map(finish_name),
    });
    let mut envelope = envelope(ask, &json!([choice]));
    if ask.includes_usage {
        envelope["usage"] = Value::Null;
    }
    Frame::data(&envelope)
}

fn usage_chunk(ask: &Ask, counts: Usage) -> Frame {
    let mut envelope = envelope(ask, &json!([]));
    envelope["usage"] = usage(counts);
    Frame::data(&envelope)
}

fn envelope(ask: &Ask, choices: &Value) -> Value {
    json!({
        "id": completion_id(ask),
        "object": "chat.completion.chunk",
        "created": CREATED_S,
        "model": ask.model,
        "choices": choices,
    })
}

fn completion_id(ask: &Ask) -> String {
    format!("chatcmpl-{}", ask.number)
}

fn reasoning_details(text: &str, signature: &str) -> Value {
    json!([{
        "type": "reasoning.text",
        "text": text,
        "signature": signature,
        "format": "anthropic-claude-v1",
        "index": 0,
    }])
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}
