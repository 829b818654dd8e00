//! How a turn reads as the events of a run.

use std::sync::Arc;

use hermes_core::exact::exact;
use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{ApprovalRequest, Clock, Event, ResultStatus, wording};
use serde_json::{Value, json};

use super::ended;
use crate::api::chat;
use crate::api::outcome::Outcome;
use crate::api::sse::{Wording, write};

const LABEL_CHARS_MAX: usize = 120;

pub(super) struct RunEvents {
    run: String,
    clock: Arc<dyn Clock>,
    /// What is thought is told once it is complete.
    thought: String,
}

impl RunEvents {
    pub(super) fn new(run: String, clock: Arc<dyn Clock>) -> Self {
        Self {
            run,
            clock,
            thought: String::new(),
        }
    }

    fn write(&self, name: &str, mut data: Value, out: &mut String) {
        data["event"] = name.into();
        data["run_id"] = self.run.clone().into();
        data["timestamp"] = (self.clock.now().as_millis() as f64 / 1000.0).into();
        write(out, Some(name), &data);
    }

    fn tell_thought(&mut self, out: &mut String) {
        if !self.thought.is_empty() {
            let text = std::mem::take(&mut self.thought);
            self.write("reasoning.available", json!({"text": text}), out);
        }
    }
}

impl Wording for RunEvents {
    fn begin(&mut self, _out: &mut String) {}

    fn event(&mut self, event: &Event, out: &mut String) {
        if let Event::Reasoning { text } = event {
            self.thought.push_str(text);
            return;
        }
        self.tell_thought(out);
        match event {
            Event::Text { text } => self.write("message.delta", json!({"delta": text}), out),
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => {
                let preview = shorten(&wording::brief(arguments), LABEL_CHARS_MAX);
                let data = json!({"tool": tool, "tool_call_id": call, "preview": preview});
                self.write("tool.started", data, out);
            }
            Event::CallFinished {
                call,
                tool,
                status,
                elapsed_ms,
                ..
            } => {
                let duration = *elapsed_ms as f64 / 1000.0;
                let error = *status != ResultStatus::Ok;
                let data = json!({"tool": tool, "tool_call_id": call, "duration": duration, "error": error});
                self.write("tool.completed", data, out);
            }
            Event::ApprovalRequested(request) => {
                self.write("approval.request", approval(request), out);
            }
            Event::ApprovalClosed { approval, how } => {
                let told = wording::approval_closed(*how);
                let data = json!({"approval_id": approval, "outcome": told});
                self.write("approval.responded", data, out);
            }
            _ => {}
        }
    }

    fn missed(&mut self, events: u64, out: &mut String) {
        self.write("run.missed", json!({"events": events}), out);
    }

    fn end(&mut self, outcome: &Outcome, out: &mut String) {
        self.tell_thought(out);
        let data = json!({
            "output": outcome.text,
            "usage": chat::usage(&outcome.usage),
            "error": outcome.problem(),
        });
        self.write(&format!("run.{}", ended(outcome)), data, out);
    }
}

/// What waits for consent, for people: no secrets, nothing that steers a terminal.
pub(super) fn approval(request: &ApprovalRequest) -> Value {
    json!({
        "approval_id": request.approval,
        "tool": request.tool,
        "command": exact(&redact(&request.what)),
        "folder": request.folder,
        "description": request.reason,
        "diff": request.diff.as_ref().map(|diff| exact(&redact(diff))),
        "choices": request.choices,
        "expires_in_ms": request.expires_in_ms,
    })
}
