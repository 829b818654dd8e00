//! How a turn reads as a response: whole, and as a sequence of events.

use std::sync::Arc;

use hermes_core::{CallId, Event, ResultStatus, TurnEnd, Usage};
use serde_json::{Value, json};

use super::request::ResponseRequest;
use crate::api::outcome::{Item, Outcome};
use crate::api::sse::{Wording, write};

/// A response as it stands at the end.
pub(super) fn whole(request: &ResponseRequest, id: &str, created: i64, outcome: &Outcome) -> Value {
    let mut output = Vec::new();
    for item in &outcome.items {
        let at = output.len();
        output.push(match item {
            Item::Said(text) => message(id, at, text, "completed"),
            Item::Called {
                call,
                tool,
                arguments,
            } => function_call(id, at, call, tool, arguments, "completed"),
            Item::Finished {
                call,
                status,
                result: text,
            } => result(id, at, call, *status, text),
        });
    }
    let mut response = frame(request, id, created, status(&outcome.end));
    response["output"] = output.into();
    response["usage"] = usage(&outcome.usage);
    if let Some(problem) = outcome.problem() {
        match status(&outcome.end) {
            "incomplete" => {
                response["incomplete_details"] = json!({"reason": reason(&outcome.end)});
            }
            _ => response["error"] = json!({"code": "server_error", "message": problem}),
        }
    }
    response
}

fn status(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Finished => "completed",
        TurnEnd::Interrupted | TurnEnd::OutOfSteps { .. } => "incomplete",
        _ => "failed",
    }
}

fn reason(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::OutOfSteps { .. } => "max_output_tokens",
        _ => "interrupted",
    }
}

fn frame(request: &ResponseRequest, id: &str, created: i64, status: &str) -> Value {
    json!({
        "id": id,
        "object": "response",
        "created_at": created,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": request.instructions,
        "max_output_tokens": null,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": true,
        "previous_response_id": request.previous,
        "reasoning": {"effort": null, "summary": null},
        "store": request.store,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "user": null,
        "metadata": request.metadata,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.total() - usage.output,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

fn item_id(kind: &str, response: &str, at: usize) -> String {
    format!("{kind}_{}_{at}", response.trim_start_matches("resp_"))
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn message(response: &str, at: usize, text: &str, status: &str) -> Value {
    let content = match status {
        "in_progress" => json!([]),
        _ => json!([text_part(text)]),
    };
    json!({
        "id": item_id("msg", response, at),
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    })
}

fn function_call(
    response: &str,
    at: usize,
    call: &CallId,
    tool: &str,
    arguments: &Value,
    status: &str,
) -> Value {
    json!({
        "id": item_id("fc", response, at),
        "type": "function_call",
        "call_id": call,
        "name": tool,
        "arguments": arguments.to_string(),
        "status": status,
    })
}

fn result(response: &str, at: usize, call: &CallId, status: ResultStatus, text: &str) -> Value {
    let status = match status {
        ResultStatus::Ok => "completed",
        _ => "incomplete",
    };
    json!({
        "id": item_id("fco", response, at),
        "type": "function_call_output",
        "call_id": call,
        "output": text,
        "status": status,
    })
}

/// A turn as the events of a response.
pub(super) struct ResponseEvents {
    request: Arc<ResponseRequest>,
    id: String,
    created: i64,
    sequence: u64,
    /// How many items there are.
    items: usize,
    /// The text that is being said, if one is.
    saying: Option<String>,
}

impl ResponseEvents {
    pub(super) fn new(request: Arc<ResponseRequest>, id: String, created: i64) -> Self {
        Self {
            request,
            id,
            created,
            sequence: 0,
            items: 0,
            saying: None,
        }
    }

    fn write(&mut self, name: &str, mut data: Value, out: &mut String) {
        data["type"] = name.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        write(out, Some(name), &data);
    }

    fn item(&mut self, name: &str, at: usize, item: Value, out: &mut String) {
        self.write(name, json!({"output_index": at, "item": item}), out);
    }

    fn say(&mut self, text: &str, out: &mut String) {
        let at = self.items;
        let id = item_id("msg", &self.id, at);
        if self.saying.is_none() {
            let item = message(&self.id, at, "", "in_progress");
            self.item("response.output_item.added", at, item, out);
            let part = json!({"item_id": id, "output_index": at, "content_index": 0, "part": text_part("")});
            self.write("response.content_part.added", part, out);
            self.saying = Some(String::new());
        }
        let delta = json!({"item_id": id, "output_index": at, "content_index": 0, "delta": text, "logprobs": []});
        self.write("response.output_text.delta", delta, out);
        if let Some(saying) = &mut self.saying {
            saying.push_str(text);
        }
    }

    /// What was said is complete.
    fn fall_silent(&mut self, out: &mut String) {
        let Some(text) = self.saying.take() else {
            return;
        };
        let at = self.items;
        let id = item_id("msg", &self.id, at);
        let done = json!({"item_id": id, "output_index": at, "content_index": 0, "text": text, "logprobs": []});
        self.write("response.output_text.done", done, out);
        let part = json!({"item_id": id, "output_index": at, "content_index": 0, "part": text_part(&text)});
        self.write("response.content_part.done", part, out);
        let item = message(&self.id, at, &text, "completed");
        self.item("response.output_item.done", at, item, out);
        self.items += 1;
    }

    fn call(&mut self, call: &CallId, tool: &str, arguments: &Value, out: &mut String) {
        self.fall_silent(out);
        let at = self.items;
        for (name, status) in [
            ("response.output_item.added", "in_progress"),
            ("response.output_item.done", "completed"),
        ] {
            let item = function_call(&self.id, at, call, tool, arguments, status);
            self.item(name, at, item, out);
        }
        self.items += 1;
    }

    fn result(&mut self, call: &CallId, status: ResultStatus, text: &str, out: &mut String) {
        let at = self.items;
        for name in ["response.output_item.added", "response.output_item.done"] {
            let item = result(&self.id, at, call, status, text);
            self.item(name, at, item, out);
        }
        self.items += 1;
    }
}

impl Wording for ResponseEvents {
    fn begin(&mut self, out: &mut String) {
        for name in ["response.created", "response.in_progress"] {
            let response = frame(&self.request, &self.id, self.created, "in_progress");
            self.write(name, json!({"response": response}), out);
        }
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::Text { text } => self.say(text, out),
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => self.call(call, tool, arguments, out),
            Event::CallFinished {
                call, status, text, ..
            } => {
                self.fall_silent(out);
                self.result(call, *status, text, out);
            }
            _ => {}
        }
    }

    fn missed(&mut self, _events: u64, out: &mut String) {
        self.say(
            "\n\n[A part of the answer is missing: it was read too slowly.]\n\n",
            out,
        );
    }

    fn end(&mut self, outcome: &Outcome, out: &mut String) {
        self.fall_silent(out);
        let response = whole(&self.request, &self.id, self.created, outcome);
        let name = format!("response.{}", status(&outcome.end));
        self.write(&name, json!({"response": response}), out);
    }
}
