//! How messages and turns read for clients that know sessions.

use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{
    Arguments, Clock, Event, Part, ResultStatus, Role, ToolCall, TranscriptLine, TurnEnd, wording,
};
use serde_json::{Value, json};

use crate::api::chat;
use crate::api::outcome::Outcome;
use crate::api::sse::{Wording, write};

const LABEL_CHARS_MAX: usize = 120;

/// One message of a conversation.
pub(super) fn message(at: usize, line: &TranscriptLine) -> Value {
    let message = &line.message;
    let mut told = json!({
        "id": at + 1,
        "role": match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        },
        "content": message.text(),
        "timestamp": line.at.as_millis() / 1000,
        "turn_id": line.turn,
    });
    let calls: Vec<Value> = message.calls().map(call).collect();
    if !calls.is_empty() {
        told["tool_calls"] = calls.into();
    }
    if let Some(result) = message.tool_result() {
        told["content"] = result.text.clone().into();
        told["tool_call_id"] = result.call.as_str().into();
        told["tool_name"] = result.tool.clone().into();
    }
    let images = message
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Image(_)));
    let images = images.count();
    if images > 0 {
        told["images"] = images.into();
    }
    told
}

fn call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Arguments::Json(value) => value.to_string(),
        Arguments::Malformed(text) => text.clone(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// A turn as the events of a session.
pub(super) struct SessionEvents {
    session: String,
    run: String,
    clock: Arc<dyn Clock>,
    sequence: u64,
}

impl SessionEvents {
    pub(super) fn new(session: String, run: String, clock: Arc<dyn Clock>) -> Self {
        Self {
            session,
            run,
            clock,
            sequence: 0,
        }
    }

    fn write(&mut self, name: &str, mut data: Value, out: &mut String) {
        data["event"] = name.into();
        data["session_id"] = self.session.clone().into();
        data["run_id"] = self.run.clone().into();
        data["seq"] = self.sequence.into();
        data["ts"] = (self.clock.now().as_millis() as f64 / 1000.0).into();
        self.sequence += 1;
        write(out, Some(name), &data);
    }
}

impl Wording for SessionEvents {
    fn begin(&mut self, out: &mut String) {
        self.write("run.started", json!({}), out);
        self.write("message.started", json!({"role": "assistant"}), out);
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::Text { text } => self.write("assistant.delta", json!({"delta": text}), out),
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => {
                let preview = shorten(&wording::brief(arguments), LABEL_CHARS_MAX);
                let data = json!({"tool": tool, "tool_call_id": call, "preview": preview});
                self.write("tool.started", data, out);
            }
            Event::CallProgress { call, text } => {
                self.write(
                    "tool.progress",
                    json!({"tool_call_id": call, "text": text}),
                    out,
                );
            }
            Event::CallFinished {
                call, tool, status, ..
            } => {
                let name = match status {
                    ResultStatus::Ok => "tool.completed",
                    _ => "tool.failed",
                };
                self.write(name, json!({"tool": tool, "tool_call_id": call}), out);
            }
            _ => {}
        }
    }

    fn missed(&mut self, events: u64, out: &mut String) {
        self.write("error", json!({"message": wording::missed(events)}), out);
    }

    fn end(&mut self, outcome: &Outcome, out: &mut String) {
        if let Some(problem) = outcome.problem() {
            self.write("error", json!({"message": problem}), out);
        }
        if !outcome.is_failure() {
            self.write("assistant.completed", json!({"content": outcome.text}), out);
        }
        let is_completed = outcome.end == TurnEnd::Finished;
        let data = json!({"completed": is_completed, "usage": chat::usage(&outcome.usage)});
        self.write("run.completed", data, out);
        self.write("done", json!({}), out);
    }
}
