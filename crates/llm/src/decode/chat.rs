//! OpenAI chat completions, as OpenAI, its many imitators and local servers send them.

use hermes_core::FinishReason;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Decoded, Text, usage_of};
use crate::think::{Split, ThinkSplitter};

#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    think: ThinkSplitter,
    calls: Vec<Call>,
}

/// A call that is being streamed.
#[derive(Debug, Default)]
struct Call {
    /// The number the server gave it, when it gave one.
    number: Option<u64>,
    id: String,
    /// Our own index, once its name is known and it was started.
    index: Option<usize>,
    /// Arguments that came before the name.
    early: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    usage: Option<TokenCounts>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<ChoiceDelta<'a>>,
    finish_reason: Option<Text<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChoiceDelta<'a> {
    /// Text, or a list of parts.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    name: Option<String>,
    /// The text of a JSON object from most servers, the object from a few.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenCounts {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's own name for what others call `cached_tokens`.
    prompt_cache_hit_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl ChatDecoder {
    pub(super) fn frame(&mut self, data: &str, out: &mut Decoded) -> serde_json::Result<()> {
        if data == "[DONE]" {
            self.finish(out);
            out.ended = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        if let Some(error) = chunk.error {
            out.reported(error.get());
            return Ok(());
        }
        if let Some(counts) = chunk.usage {
            out.usage = counts.usage();
        }
        // We never ask for more than one choice.
        match chunk.choices.into_iter().next() {
            Some(choice) => self.choice(choice, out),
            None => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, out: &mut Decoded) {
        self.think.finish(&mut |split| emit(split, out));
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Decoded) -> serde_json::Result<()> {
        if let Some(error) = choice.error {
            out.reported(error.get());
            return Ok(());
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, out)?;
        }
        if let Some(Text(reason)) = choice.finish_reason
            && !reason.is_empty()
        {
            out.finish = Some(finish_reason(&reason));
        }
        Ok(())
    }

    fn delta(&mut self, delta: ChoiceDelta<'_>, out: &mut Decoded) -> serde_json::Result<()> {
        if let Some(thought) = delta.reasoning_content.or(delta.reasoning) {
            out.reasoning(thought);
        }
        for detail in delta.reasoning_details.unwrap_or_default() {
            sign(detail, out);
        }
        if let Some(content) = delta.content {
            self.content(content.get(), out)?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn content(&mut self, json: &str, out: &mut Decoded) -> serde_json::Result<()> {
        match json.as_bytes().first() {
            Some(b'"') => {
                let Text(text) = serde_json::from_str(json)?;
                self.think.push(&text, &mut |split| emit(split, out));
            }
            Some(b'[') => self.content_parts(&serde_json::from_str::<Vec<Value>>(json)?, out),
            _ => {}
        }
        Ok(())
    }

    /// Mistral's reasoning models send content as a list of `text` and `thinking` parts.
    fn content_parts(&mut self, parts: &[Value], out: &mut Decoded) {
        for part in parts {
            if let Some(text) = part["text"].as_str() {
                self.think.push(text, &mut |split| emit(split, out));
            }
            for thought in part["thinking"].as_array().into_iter().flatten() {
                out.reasoning(thought["text"].as_str().unwrap_or_default().to_owned());
            }
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, out: &mut Decoded) -> serde_json::Result<()> {
        let (name, arguments) = match delta.function {
            Some(function) => (
                function.name.unwrap_or_default(),
                argument_text(function.arguments)?,
            ),
            None => Default::default(),
        };
        let id = delta.id.unwrap_or_default();
        let Some(call) = self.find_or_open(delta.index, id, !name.is_empty()) else {
            return Ok(());
        };
        if call.index.is_none() && !name.is_empty() {
            call.index = out.call_started(call.id.clone(), name);
            if let Some(index) = call.index {
                out.call_arguments(index, std::mem::take(&mut call.early));
            }
        }
        match call.index {
            Some(index) => out.call_arguments(index, arguments),
            None => {
                out.count(&arguments);
                call.early.push_str(&arguments);
            }
        }
        Ok(())
    }

    /// Finds the call a delta belongs to. Servers number calls, or only give each an id, or number all of them 0.
    fn find_or_open(&mut self, number: Option<u64>, id: String, named: bool) -> Option<&mut Call> {
        let is_new_id =
            |call: &Call| named && !id.is_empty() && !call.id.is_empty() && call.id != id;
        let known = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == number),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        let position = match known.filter(|position| !is_new_id(&self.calls[*position])) {
            Some(position) => position,
            // The first delta of a call is small; past the limit nothing is kept at all.
            None if self.calls.len() >= hermes_core::reply::CALLS_PER_REPLY_MAX => return None,
            None => {
                self.calls.push(Call {
                    number,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id = id;
        }
        Some(call)
    }
}

impl TokenCounts {
    fn usage(self) -> hermes_core::Usage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        usage_of(
            self.prompt_tokens,
            self.completion_tokens,
            prompt.cached_tokens.unwrap_or(self.prompt_cache_hit_tokens),
            prompt.cache_write_tokens.unwrap_or(0),
            completion.reasoning_tokens.unwrap_or(0),
        )
    }
}

fn emit(split: Split, out: &mut Decoded) {
    match split {
        Split::Said(text) => out.text(text),
        Split::Thought(text) => out.reasoning(text),
    }
}

/// Keeps what OpenRouter wants back of a reasoning block: everything but the text, which we have.
fn sign(mut detail: Value, out: &mut Decoded) {
    let is_signed = ["signature", "data"]
        .iter()
        .any(|field| detail[*field].as_str().is_some_and(|text| !text.is_empty()));
    if let Some(fields) = detail.as_object_mut().filter(|_| is_signed) {
        fields.shift_remove("text");
        out.reasoning_signed(&detail.to_string());
    }
}

fn argument_text(arguments: Option<&RawValue>) -> serde_json::Result<String> {
    match arguments.map(RawValue::get) {
        None => Ok(String::new()),
        Some(text) if text.starts_with('"') => serde_json::from_str(text),
        Some(object) => Ok(object.to_owned()),
    }
}

fn finish_reason(name: &str) -> FinishReason {
    match name {
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "safety" | "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trouble;
    use super::super::testing::*;
    use super::*;
    use crate::providers::Protocol::OpenAiChat;
    use hermes_core::{Delta, Usage};
    use serde_json::json;

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn call(call: Value) -> Value {
        delta(json!({"tool_calls": [call]}))
    }

    #[test]
    fn text_reasoning_and_usage_are_read() {
        let decoder = decode(
            OpenAiChat,
            &[
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"reasoning_content": "hm"})),
                delta(json!({"content": "hi"})),
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
                    "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 2}}}),
            ],
        );
        let expected = [Delta::Reasoning("hm".into()), Delta::Text("hi".into())];
        assert_eq!(deltas(&decoder), expected);
        assert_eq!(decoder.decoded.finish_reason(), Some(FinishReason::Stop));
        let usage = Usage {
            input: 6,
            output: 5,
            cache_read: 4,
            cache_write: 0,
            reasoning: 2,
        };
        assert_eq!(decoder.decoded.usage, usage);
    }

    #[test]
    fn parallel_calls_are_told_apart_however_they_are_numbered() {
        let named = |index: Option<u64>, id: &str| {
            call(json!({"index": index, "id": id, "function": {"name": "f", "arguments": "{}"}}))
        };
        let expected = [
            started(0, "a", "f"),
            arguments(0, "{}"),
            started(1, "b", "f"),
            arguments(1, "{}"),
        ];
        for (first, second) in [
            (Some(0), Some(1)),
            (Some(7), Some(u64::MAX)),
            (Some(0), Some(0)),
            (None, None),
        ] {
            let decoder = decode(OpenAiChat, &[named(first, "a"), named(second, "b")]);
            assert_eq!(deltas(&decoder), expected, "numbered {first:?}, {second:?}");
        }
    }

    #[test]
    fn arguments_that_come_before_the_name_are_not_lost() {
        let decoder = decode(
            OpenAiChat,
            &[
                call(json!({"index": 0, "id": "a", "function": {"arguments": "{\"x\""}})),
                call(json!({"index": 0, "function": {"name": "f", "arguments": ":1}"}})),
            ],
        );
        assert_eq!(
            deltas(&decoder),
            [
                started(0, "a", "f"),
                arguments(0, "{\"x\""),
                arguments(0, ":1}")
            ]
        );
    }

    #[test]
    fn arguments_may_be_an_object() {
        let decoder = decode(
            OpenAiChat,
            &[call(
                json!({"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
            )],
        );
        assert_eq!(
            deltas(&decoder),
            [started(0, "a", "f"), arguments(0, r#"{"x":1}"#)]
        );
    }

    #[test]
    fn a_flood_of_calls_is_bounded() {
        let flood: Vec<_> = (0..1000)
            .map(|index| {
                call(json!({"index": index, "id": format!("c{index}"), "function": {"name": "f"}}))
            })
            .collect();
        let decoder = decode(OpenAiChat, &flood);
        assert_eq!(
            decoder.decoded.deltas.len(),
            hermes_core::reply::CALLS_PER_REPLY_MAX
        );
    }

    #[test]
    fn stop_after_calls_means_calls() {
        let decoder = decode(
            OpenAiChat,
            &[
                call(json!({"index": 0, "id": "a", "function": {"name": "f"}})),
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            ],
        );
        assert_eq!(
            decoder.decoded.finish_reason(),
            Some(FinishReason::ToolCalls)
        );
    }

    #[test]
    fn errors_in_the_stream_and_nonsense_are_trouble() {
        let reported = decode(OpenAiChat, &[json!({"error": {"message": "busy"}})]);
        assert_eq!(
            reported.decoded.trouble,
            Some(Trouble::Reported(r#"{"message":"busy"}"#.into()))
        );
        let mut unreadable = super::super::Decoder::new(OpenAiChat, "p");
        unreadable.frame("{\"choices\": [");
        assert!(matches!(
            unreadable.decoded.trouble,
            Some(Trouble::Unreadable(_))
        ));
    }

    #[test]
    fn a_long_reply_is_measured_by_what_it_says() {
        use super::super::REPLY_BYTES_MAX;
        let padding = "x".repeat(4096);
        let frame =
            json!({"id": padding, "choices": [{"delta": {"content": "word "}}]}).to_string();
        let mut decoder = super::super::Decoder::new(OpenAiChat, "p");
        for _ in 0..=REPLY_BYTES_MAX / frame.len() {
            decoder.frame(&frame);
        }
        assert_eq!(decoder.decoded.trouble, None);
    }

    #[test]
    fn thinking_in_the_text_is_reasoning() {
        let decoder = decode(
            OpenAiChat,
            &[
                delta(json!({"content": "<thi"})),
                delta(json!({"content": "nk>hm</think>"})),
                delta(json!({"content": "hi <"})),
            ],
        );
        let expected = [Delta::Reasoning("hm".into()), Delta::Text("hi <".into())];
        assert_eq!(deltas(&decoder), expected);
    }

    #[test]
    fn openrouter_signatures_are_kept_without_their_text() {
        let details =
            json!([{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]);
        let decoder = decode(OpenAiChat, &[delta(json!({"reasoning_details": details}))]);
        let expected = r#"p|{"type":"reasoning.text","signature":"s","index":0}"#;
        assert_eq!(deltas(&decoder), [Delta::ReasoningSigned(expected.into())]);
    }
}
