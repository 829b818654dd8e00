//! Ollama's own chat: one JSON object a line. Calls arrive whole, never in pieces.

use serde_json::{Value, json};

use super::{Ask, Frame, chunks, parsed_arguments};
use crate::server::answer::{Answer, Finish, Part};

/// [`super::CREATED_S`] as Ollama writes it.
const CREATED_AT: &str = "2023-11-14T22:13:20Z";

pub(super) fn stream(answer: &Answer, ask: &Ask) -> Vec<Frame> {
    let line = |message: &Value| Frame::line(&envelope(ask, message));
    let mut frames = Vec::new();
    let mut call_index = 0;
    for part in &answer.parts {
        match part {
            Part::Text { .. } | Part::TextChunks { .. } => {
                let message = |text: &str| json!({"role": "assistant", "content": text});
                frames.extend(chunks(part, |text| line(&message(text))));
            }
            Part::Reasoning { .. } => {
                let message =
                    |text: &str| json!({"role": "assistant", "content": "", "thinking": text});
                frames.extend(chunks(part, |text| line(&message(text))));
            }
            Part::Call { call, id, .. } => {
                let calls = [whole_call(call_index, id, call, part)];
                let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
                frames.push(line(&message).chunk());
                call_index += 1;
            }
        }
    }
    let nothing = json!({"role": "assistant", "content": ""});
    frames.push(Frame::line(&done(answer, envelope(ask, &nothing))));
    frames
}

pub(super) fn collected(answer: &Answer, ask: &Ask) -> Value {
    let text = answer.whole_text().unwrap_or_default();
    let mut message = json!({"role": "assistant", "content": text});
    if let Some(reasoning) = answer.whole_reasoning() {
        message["thinking"] = reasoning.into();
    }
    let calls = answer.parts.iter().filter_map(|part| match part {
        Part::Call { call, id, .. } => Some((call, id, part)),
        _ => None,
    });
    let calls: Vec<Value> = calls
        .enumerate()
        .map(|(index, (call, id, part))| whole_call(index, id, call, part))
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    done(answer, envelope(ask, &message))
}

pub(super) fn error(message: &str) -> Frame {
    Frame::line(&json!({"error": message}))
}

fn envelope(ask: &Ask, message: &Value) -> Value {
    json!({"model": ask.model, "created_at": CREATED_AT, "message": message, "done": false})
}

fn whole_call(index: usize, id: &str, name: &str, part: &Part) -> Value {
    let arguments = parsed_arguments(part);
    json!({"id": id, "function": {"index": index, "name": name, "arguments": arguments}})
}

fn done(answer: &Answer, mut last: Value) -> Value {
    let reason = match answer.finish_reason() {
        Finish::Length => "length",
        Finish::Stop | Finish::ToolCalls | Finish::ContentFilter => "stop",
    };
    last["done"] = true.into();
    last["done_reason"] = reason.into();
    last["total_duration"] = 3_000_000.into();
    last["load_duration"] = 1_000_000.into();
    last["prompt_eval_count"] = answer.usage.prompt.into();
    if answer.usage.cached > 0 {
        last["prompt_eval_cached_count"] = answer.usage.cached.into();
    }
    last["prompt_eval_duration"] = 1_000_000.into();
    last["eval_count"] = answer.usage.completion.into();
    last["eval_duration"] = 1_000_000.into();
    last
}
