//! How a turn reads as chat completions.

use std::collections::HashMap;

use hermes_core::text::shorten;
use hermes_core::{CallId, Event, TurnEnd, Usage, wording};
use serde_json::{Value, json};

use super::request::ChatRequest;
use crate::api::outcome::{GAP, Outcome};
use crate::api::sse::{Wording, write};

const TOOL_PROGRESS: &str = "hermes.tool.progress";
const LABEL_CHARS_MAX: usize = 120;

/// A turn as a stream of chunks.
pub(super) struct Chunks {
    id: String,
    created: i64,
    model: String,
    wants_usage: bool,
    session: String,
    has_said: bool,
    /// A call came after what was said.
    has_gap: bool,
    running: HashMap<CallId, String>,
}

impl Chunks {
    pub(super) fn new(id: String, created: i64, request: &ChatRequest, session: String) -> Self {
        Self {
            id,
            created,
            model: request.model.clone(),
            wants_usage: request.wants_usage,
            session,
            has_said: false,
            has_gap: false,
            running: HashMap::new(),
        }
    }

    fn chunk(&self, delta: Value, finish_reason: Value) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
        })
    }

    /// Tool progress is a chunk that says nothing, with fields of its own: clients that do not know its name read it as one.
    fn progress(&self, call: &CallId, tool: &str, label: &str, status: &str, out: &mut String) {
        let mut chunk = self.chunk(json!({}), Value::Null);
        chunk["tool"] = tool.into();
        chunk["emoji"] = "🔧".into();
        chunk["label"] = label.into();
        chunk["toolCallId"] = call.as_str().into();
        chunk["status"] = status.into();
        write(out, Some(TOOL_PROGRESS), &chunk);
    }
}

impl Wording for Chunks {
    fn begin(&mut self, out: &mut String) {
        let role = json!({"role": "assistant", "content": ""});
        write(out, None, &self.chunk(role, Value::Null));
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::Text { text } => {
                if std::mem::take(&mut self.has_gap) && self.has_said {
                    write(out, None, &self.chunk(json!({"content": GAP}), Value::Null));
                }
                self.has_said = true;
                write(
                    out,
                    None,
                    &self.chunk(json!({"content": text}), Value::Null),
                );
            }
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => {
                self.has_gap = true;
                let label = shorten(
                    &format!("{tool} {}", wording::brief(arguments)),
                    LABEL_CHARS_MAX,
                );
                self.progress(call, tool, label.trim(), "running", out);
                self.running.insert(call.clone(), label);
            }
            Event::CallFinished { call, tool, .. } => {
                let label = self.running.remove(call).unwrap_or_default();
                self.progress(call, tool, label.trim(), "completed", out);
            }
            _ => {}
        }
    }

    fn missed(&mut self, _events: u64, out: &mut String) {
        let text = "\n\n[A part of the answer is missing: it was read too slowly.]\n\n";
        write(
            out,
            None,
            &self.chunk(json!({"content": text}), Value::Null),
        );
    }

    fn end(&mut self, outcome: &Outcome, out: &mut String) {
        if outcome.is_failure() {
            let message = outcome.problem().unwrap_or_default();
            let error = json!({"message": message, "type": "server_error", "param": null, "code": "agent_incomplete"});
            let mut last = self.chunk(json!({}), "error".into());
            last["error"] = error;
            last["hermes"] = about(outcome, &self.session);
            write(out, None, &last);
            out.push_str("data: [DONE]\n\n");
            return;
        }
        let mut last = self.chunk(json!({}), finish_reason(&outcome.end).into());
        last["hermes"] = about(outcome, &self.session);
        if !self.wants_usage {
            last["usage"] = usage(&outcome.usage);
        }
        write(out, None, &last);
        if self.wants_usage {
            let mut counted = self.chunk(json!({}), Value::Null);
            counted["choices"] = json!([]);
            counted["usage"] = usage(&outcome.usage);
            write(out, None, &counted);
        }
        out.push_str("data: [DONE]\n\n");
    }
}

/// What there is to know of an answer besides.
pub(super) fn about(outcome: &Outcome, session: &str) -> Value {
    let problem = outcome.problem();
    json!({
        "session_id": session,
        "completed": problem.is_none(),
        "partial": problem.is_some() && !outcome.is_failure(),
        "error": problem,
        "model": outcome.model.to_string(),
        "tool_calls": outcome.calls(),
    })
}

pub(super) fn finish_reason(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Finished | TurnEnd::Interrupted => "stop",
        TurnEnd::OutOfSteps { .. } => "length",
        _ => "error",
    }
}

/// As OpenAI counts: the prompt with what was cached of it, what was written with what was thought.
pub(crate) fn usage(usage: &Usage) -> Value {
    let prompt = usage.total() - usage.output;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
