//! Google Gemini with `alt=sse`: every event is a whole response with some parts of the answer,
//! and its lines end in `\r\n`. Calls arrive whole, never in pieces.

use serde_json::{Value, json};

use super::{Ask, Frame, chunks, parsed_arguments};
use crate::server::answer::{Answer, Finish, Part, Usage};

/// Returns `gemini-x` of `/v1beta/models/gemini-x:streamGenerateContent`.
pub(super) fn model_of_path(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split(':').next().unwrap_or(name)
}

pub(super) fn stream(answer: &Answer, ask: &Ask) -> Vec<Frame> {
    let event = |part: &Value| {
        let content = json!({"parts": [part], "role": "model"});
        let response = response(&json!({"content": content, "index": 0}), answer.usage, ask);
        Frame::data(&response).with_crlf()
    };
    let mut frames = Vec::new();
    let mut signature = None;
    for part in &answer.parts {
        match part {
            Part::Text { .. } | Part::TextChunks { .. } => {
                frames.extend(chunks(part, |text| event(&json!({"text": text}))));
            }
            Part::Reasoning {
                signature: signed, ..
            } => {
                let render = |text: &str| event(&json!({"text": text, "thought": true}));
                frames.extend(chunks(part, render));
                signature = signed.as_deref();
            }
            Part::Call { call, id, .. } => {
                let call = call_part(call, id, part, signature.take());
                frames.push(event(&call).chunk());
            }
        }
    }
    frames.push(last_event(answer, ask, signature));
    frames
}

pub(super) fn collected(answer: &Answer, ask: &Ask) -> Value {
    let mut signature = None;
    let mut parts = Vec::new();
    for part in &answer.parts {
        match part {
            Part::Text { .. } | Part::TextChunks { .. } => {
                parts.push(signed(json!({"text": part.content()}), signature.take()));
            }
            Part::Reasoning {
                signature: signed, ..
            } => {
                parts.push(json!({"text": part.content(), "thought": true}));
                signature = signed.as_deref();
            }
            Part::Call { call, id, .. } => {
                parts.push(call_part(call, id, part, signature.take()));
            }
        }
    }
    let candidate = json!({
        "content": {"parts": parts, "role": "model"},
        "finishReason": finish_name(answer.finish_reason()),
        "index": 0,
    });
    response(&candidate, answer.usage, ask)
}

pub(super) fn error(kind: &str, message: &str) -> Frame {
    let error = json!({"code": 500, "message": message, "status": kind});
    Frame::data(&json!({"error": error})).with_crlf()
}

/// Renders the event with the reason to stop, and the signature if no call has carried it.
fn last_event(answer: &Answer, ask: &Ask, signature: Option<&str>) -> Frame {
    let part = signed(json!({"text": ""}), signature);
    let candidate = json!({
        "content": {"parts": [part], "role": "model"},
        "finishReason": finish_name(answer.finish_reason()),
        "index": 0,
    });
    Frame::data(&response(&candidate, answer.usage, ask)).with_crlf()
}

fn call_part(name: &str, id: &str, part: &Part, signature: Option<&str>) -> Value {
    let function = json!({"id": id, "name": name, "args": parsed_arguments(part)});
    signed(json!({"functionCall": function}), signature)
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

fn response(candidate: &Value, counts: Usage, ask: &Ask) -> Value {
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(counts),
        "modelVersion": ask.model,
        "responseId": format!("response-{}", ask.number),
    })
}

/// Gemini counts thoughts beside the candidates, not within them.
fn usage(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.completion.saturating_sub(usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.prompt + usage.completion,
    })
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
    }
}
