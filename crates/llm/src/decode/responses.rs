//! OpenAI responses: a list of items, each added, filled and done.

use std::collections::HashMap;

use hermes_core::FinishReason;
use serde::Deserialize;
use serde_json::Value;

use super::{Decoded, usage_of};

#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    calls: HashMap<ItemKey, Call>,
    /// Text or calls came before the closing event, which repeats them.
    streamed: bool,
    /// So did the signature of some reasoning.
    signed: bool,
    summary_open: bool,
}

/// Which item of the output an event is about. OpenAI gives the number and an id, of which some proxies change the id
/// on the way; llama.cpp gives the id only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ItemKey {
    Number(u64),
    Id(String),
}

impl ItemKey {
    fn new(number: Option<u64>, id: Option<String>) -> Self {
        match number {
            Some(number) => Self::Number(number),
            None => Self::Id(id.unwrap_or_default()),
        }
    }
}

#[derive(Debug)]
struct Call {
    index: usize,
    arguments_bytes: usize,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(
        rename = "response.output_text.delta",
        alias = "response.refusal.delta"
    )]
    Text { delta: String },
    #[serde(
        rename = "response.reasoning_summary_text.delta",
        alias = "response.reasoning_text.delta"
    )]
    Reasoning { delta: String },
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryPart,
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        output_index: Option<u64>,
        item: Item,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments {
        output_index: Option<u64>,
        item_id: Option<String>,
        delta: String,
    },
    #[serde(rename = "response.output_item.done")]
    ItemDone {
        output_index: Option<u64>,
        item: Item,
    },
    #[serde(
        rename = "response.completed",
        alias = "response.incomplete",
        alias = "response.done"
    )]
    Closed { response: Response },
    #[serde(rename = "response.failed")]
    Failed { response: Response },
    #[serde(rename = "error")]
    Error {
        #[serde(flatten)]
        error: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    FunctionCall {
        id: Option<String>,
        #[serde(default)]
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
    },
    Reasoning {
        encrypted_content: Option<String>,
    },
    Message {
        #[serde(default)]
        content: Vec<Value>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Response {
    incomplete_details: Option<Incomplete>,
    error: Option<Value>,
    usage: Option<TokenCounts>,
    #[serde(default)]
    output: Vec<Item>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenCounts {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl ResponsesDecoder {
    pub(super) fn frame(&mut self, data: &str, out: &mut Decoded) -> serde_json::Result<()> {
        if data == "[DONE]" {
            return Ok(());
        }
        match serde_json::from_str(data)? {
            Event::Text { delta } => {
                self.streamed = true;
                out.text(delta);
            }
            Event::Reasoning { delta } => {
                self.streamed = true;
                self.summary_open = true;
                out.reasoning(delta);
            }
            Event::SummaryPart => {
                if std::mem::take(&mut self.summary_open) {
                    out.reasoning("\n\n".to_owned());
                }
            }
            Event::ItemAdded { output_index, item } => self.added(output_index, item, out),
            Event::Arguments {
                output_index,
                item_id,
                delta,
            } => self.arguments(&ItemKey::new(output_index, item_id), delta, out),
            Event::ItemDone { output_index, item } => self.done(output_index, item, out),
            Event::Closed { response } => self.closed(response, out),
            Event::Failed { response } => {
                out.reported(response.error.unwrap_or_default().to_string());
            }
            Event::Error { error } => out.reported(error.to_string()),
            Event::Unknown => {}
        }
        Ok(())
    }

    fn added(&mut self, number: Option<u64>, item: Item, out: &mut Decoded) {
        if let Item::FunctionCall {
            id, call_id, name, ..
        } = item
        {
            self.start(ItemKey::new(number, id), call_id, name, out);
        }
    }

    fn start(&mut self, place: ItemKey, id: String, name: String, out: &mut Decoded) {
        self.streamed = true;
        if let Some(index) = out.call_started(id, name) {
            let call = Call {
                index,
                arguments_bytes: 0,
            };
            self.calls.insert(place, call);
        }
    }

    fn arguments(&mut self, place: &ItemKey, json: String, out: &mut Decoded) {
        if let Some(call) = self.calls.get_mut(place) {
            call.arguments_bytes += json.len();
            out.call_arguments(call.index, json);
        }
    }

    /// An item that is done repeats what was streamed of it; some proxies stream nothing before.
    fn done(&mut self, number: Option<u64>, item: Item, out: &mut Decoded) {
        match item {
            Item::FunctionCall {
                id,
                call_id,
                name,
                arguments,
            } => {
                let place = ItemKey::new(number, id);
                if !self.calls.contains_key(&place) {
                    self.start(place.clone(), call_id, name, out);
                }
                let call = self.calls.get(&place);
                if call.is_some_and(|call| call.arguments_bytes == 0) {
                    self.arguments(&place, arguments, out);
                }
            }
            Item::Reasoning { encrypted_content } => {
                self.summary_open = false;
                self.signed = true;
                out.reasoning_signed(&encrypted_content.unwrap_or_default());
            }
            Item::Message { .. } | Item::Unknown => {}
        }
    }

    fn closed(&mut self, response: Response, out: &mut Decoded) {
        if !self.streamed {
            self.whole(response.output, out);
        }
        if let Some(counts) = response.usage {
            out.usage = counts.usage();
        }
        let reason = response
            .incomplete_details
            .and_then(|details| details.reason);
        out.finish = Some(match reason.as_deref() {
            None => FinishReason::Stop,
            Some("content_filter") => FinishReason::ContentFilter,
            Some(_) => FinishReason::Length,
        });
        out.ended = true;
    }

    /// Reads the output of a proxy that streams nothing but the closing event.
    fn whole(&mut self, output: Vec<Item>, out: &mut Decoded) {
        let signed = self.signed;
        for (number, item) in output.into_iter().enumerate() {
            match item {
                Item::Message { content } => {
                    for part in content {
                        out.text(part["text"].as_str().unwrap_or_default().to_owned());
                    }
                }
                Item::Reasoning { .. } if signed => {}
                item => self.done(Some(number as u64), item, out),
            }
        }
    }
}

impl TokenCounts {
    fn usage(self) -> hermes_core::Usage {
        usage_of(
            self.input_tokens,
            self.output_tokens,
            self.input_tokens_details.unwrap_or_default().cached_tokens,
            0,
            self.output_tokens_details
                .unwrap_or_default()
                .reasoning_tokens,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trouble;
    use super::super::testing::*;
    use super::*;
    use crate::providers::Protocol::OpenAiResponses;
    use hermes_core::Delta;
    use serde_json::json;

    fn function_call(arguments: &str) -> Value {
        json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments})
    }

    fn completed(output: Value) -> Value {
        json!({"type": "response.completed", "response": {"output": output, "usage": {"input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2}}}})
    }

    #[test]
    fn a_call_is_whole_whether_it_was_streamed_or_only_done() {
        let expected = [started(0, "c1", "f"), arguments(0, "{}")];
        let added = json!({"type": "response.output_item.added", "output_index": 1, "item": function_call("")});
        let delta = json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"});
        let done = json!({"type": "response.output_item.done", "output_index": 1, "item": function_call("{}")});
        let closed = completed(json!([function_call("{}")]));
        for frames in [
            vec![added.clone(), delta, done.clone(), closed.clone()],
            vec![added, done.clone(), closed.clone()],
            vec![done, closed.clone()],
            vec![closed],
        ] {
            let decoder = decode(OpenAiResponses, &frames);
            assert_eq!(deltas(&decoder), expected, "{frames:?}");
            assert_eq!(
                decoder.decoded.finish_reason(),
                Some(FinishReason::ToolCalls)
            );
            assert_eq!(decoder.decoded.usage.input, 6);
        }
    }

    #[test]
    fn calls_are_told_apart_by_id_where_there_is_no_number() {
        let item = |id: &str, call: &str| {
            json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": id,
                "call_id": call, "name": "f", "arguments": ""}})
        };
        let delta = |id: &str, text: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": text});
        let frames = [
            item("i1", "c1"),
            item("i2", "c2"),
            delta("i1", "1"),
            delta("i2", "2"),
        ];
        let decoder = decode(OpenAiResponses, &frames);
        let expected = [
            started(0, "c1", "f"),
            started(1, "c2", "f"),
            arguments(0, "1"),
            arguments(1, "2"),
        ];
        assert_eq!(deltas(&decoder), expected);
    }

    #[test]
    fn summaries_are_paragraphs_and_closed_by_the_encrypted_item() {
        let part = json!({"type": "response.reasoning_summary_part.added", "summary_index": 0});
        let text = |delta| json!({"type": "response.reasoning_summary_text.delta", "delta": delta});
        let item = json!({"type": "reasoning", "summary": [], "encrypted_content": "enc"});
        let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        let decoder = decode(
            OpenAiResponses,
            &[part.clone(), text("one"), part, text("two"), done],
        );
        let thought = |text: &str| Delta::Reasoning(text.into());
        let signed = Delta::ReasoningSigned("p|enc".into());
        let expected = [thought("one"), thought("\n\n"), thought("two"), signed];
        assert_eq!(deltas(&decoder), expected);
    }

    #[test]
    fn an_incomplete_response_says_why() {
        let check = |reason: &str, expected| {
            let frame = json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
            let decoder = decode(OpenAiResponses, &[frame]);
            assert_eq!(decoder.decoded.finish_reason(), Some(expected));
        };
        check("max_output_tokens", FinishReason::Length);
        check("content_filter", FinishReason::ContentFilter);
    }

    #[test]
    fn failures_are_reported() {
        let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}});
        let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "x"});
        for frame in [failed, error] {
            let decoder = decode(OpenAiResponses, &[frame]);
            assert!(
                matches!(decoder.decoded.trouble, Some(Trouble::Reported(text)) if text.contains("message"))
            );
        }
    }
}
