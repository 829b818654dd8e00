//! OpenAI responses: a response is a list of items, each added, filled and done; every event is
//! numbered.

use serde_json::{Value, json};

use super::{Ask, CREATED_S, Frame};
use crate::server::answer::{Answer, Finish, Part, Usage};

pub(super) fn stream(answer: &Answer, ask: &Ask) -> Vec<Frame> {
    let mut events = Events::default();
    let opened = response(ask, "in_progress");
    events.push("response.created", json!({"response": opened}));
    events.push("response.in_progress", json!({"response": opened}));
    for (index, part) in answer.parts.iter().enumerate() {
        let id = item_id(ask, index, part);
        let added = json!({"output_index": index, "item": opened_item(&id, part)});
        events.push("response.output_item.added", added);
        for (kind, mut fields) in part_events(part) {
            fields["item_id"] = id.as_str().into();
            fields["output_index"] = index.into();
            events.push(kind, fields);
        }
        let done = json!({"output_index": index, "item": whole_item(&id, part)});
        events.push("response.output_item.done", done);
    }
    let closing = match answer.finish_reason() {
        Finish::Stop | Finish::ToolCalls => "response.completed",
        Finish::Length | Finish::ContentFilter => "response.incomplete",
    };
    events.push(closing, json!({"response": collected(answer, ask)}));
    events.frames
}

pub(super) fn collected(answer: &Answer, ask: &Ask) -> Value {
    let reason = match answer.finish_reason() {
        Finish::Stop | Finish::ToolCalls => None,
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter => Some("content_filter"),
    };
    let status = if reason.is_some() {
        "incomplete"
    } else {
        "completed"
    };
    let items = answer.parts.iter().enumerate();
    let mut response = response(ask, status);
    response["incomplete_details"] = reason.map(|reason| json!({"reason": reason})).into();
    response["output"] = items
        .map(|(index, part)| whole_item(&item_id(ask, index, part), part))
        .collect();
    response["usage"] = usage(answer.usage);
    response
}

pub(super) fn error(kind: &str, message: &str) -> Frame {
    Frame::event(&json!({"type": "error", "code": kind, "message": message, "param": null}))
}

/// The events so far; numbers them.
#[derive(Default)]
struct Events {
    frames: Vec<Frame>,
}

impl Events {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.frames.len()});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        let mut frame = Frame::event(&event);
        frame.is_chunk = kind.ends_with(".delta");
        self.frames.push(frame);
    }
}

/// Returns the events between the opening and the end of an item, without their place.
fn part_events(part: &Part) -> Vec<(&'static str, Value)> {
    match part {
        Part::Text { .. } | Part::TextChunks { .. } => text_events(part),
        Part::Reasoning { .. } => reasoning_events(part),
        Part::Call { call, .. } => call_events(call, part),
    }
}

fn text_events(part: &Part) -> Vec<(&'static str, Value)> {
    let text = part.content();
    let about = |field: &str, value: Value| json!({"content_index": 0, field: value});
    let mut events = vec![(
        "response.content_part.added",
        about("part", output_text("")),
    )];
    for piece in part.chunking().cut(&text) {
        events.push(("response.output_text.delta", about("delta", piece.into())));
    }
    events.push((
        "response.output_text.done",
        about("text", text.as_ref().into()),
    ));
    events.push((
        "response.content_part.done",
        about("part", output_text(&text)),
    ));
    events
}

fn reasoning_events(part: &Part) -> Vec<(&'static str, Value)> {
    let text = part.content();
    let about = |field: &str, value: Value| json!({"summary_index": 0, field: value});
    let mut events = vec![(
        "response.reasoning_summary_part.added",
        about("part", summary("")),
    )];
    for piece in part.chunking().cut(&text) {
        events.push((
            "response.reasoning_summary_text.delta",
            about("delta", piece.into()),
        ));
    }
    events.push((
        "response.reasoning_summary_text.done",
        about("text", text.as_ref().into()),
    ));
    events.push((
        "response.reasoning_summary_part.done",
        about("part", summary(&text)),
    ));
    events
}

fn call_events(name: &str, part: &Part) -> Vec<(&'static str, Value)> {
    let arguments = part.content();
    let mut events = Vec::new();
    for piece in part.chunking().cut(&arguments) {
        events.push((
            "response.function_call_arguments.delta",
            json!({"delta": piece}),
        ));
    }
    let done = json!({"name": name, "arguments": arguments});
    events.push(("response.function_call_arguments.done", done));
    events
}

fn response(ask: &Ask, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", ask.number),
        "object": "response",
        "created_at": CREATED_S,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": ask.model,
        "output": [],
        "parallel_tool_calls": true,
        "usage": null,
    })
}

fn item_id(ask: &Ask, index: usize, part: &Part) -> String {
    let prefix = match part {
        Part::Text { .. } | Part::TextChunks { .. } => "msg",
        Part::Reasoning { .. } => "rs",
        Part::Call { .. } => "fc",
    };
    format!("{prefix}_{}_{index}", ask.number)
}

fn opened_item(item_id: &str, part: &Part) -> Value {
    match part {
        Part::Text { .. } | Part::TextChunks { .. } => json!({"type": "message", "id": item_id,
            "status": "in_progress", "role": "assistant", "content": []}),
        Part::Reasoning { .. } => json!({"type": "reasoning", "id": item_id, "summary": []}),
        Part::Call { call, id, .. } => json!({"type": "function_call", "id": item_id,
            "status": "in_progress", "call_id": id, "name": call, "arguments": ""}),
    }
}

fn whole_item(item_id: &str, part: &Part) -> Value {
    let mut item = opened_item(item_id, part);
    let content = part.content();
    match part {
        Part::Text { .. } | Part::TextChunks { .. } => {
            item["status"] = "completed".into();
            item["content"] = json!([output_text(&content)]);
        }
        Part::Reasoning { signature, .. } => {
            item["summary"] = json!([summary(&content)]);
            item["encrypted_content"] = signature.as_deref().into();
        }
        Part::Call { .. } => {
            item["status"] = "completed".into();
            item["arguments"] = content.as_ref().into();
        }
    }
    item
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn summary(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    })
}
