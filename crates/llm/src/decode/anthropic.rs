//! Anthropic messages: content blocks that are opened, filled and closed.

use hermes_core::FinishReason;
use serde::Deserialize;
use serde_json::Value;

use super::{Decoded, usage_of};

/// Marks the signature of a thinking block whose text the provider keeps to itself.
pub(crate) const REDACTED: &str = "redacted:";

#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    /// The block being filled, when it is one that needs remembering.
    call: Option<usize>,
    signature: String,
    counts: TokenCounts,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        content_block: Block,
    },
    ContentBlockDelta {
        delta: BlockDelta,
    },
    ContentBlockStop,
    MessageDelta {
        delta: MessageEnd,
        usage: Option<TokenCounts>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<TokenCounts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct MessageEnd {
    stop_reason: Option<String>,
}

/// Counts come at the start and again, complete, at the end; a later one replaces an earlier one.
#[derive(Debug, Deserialize, Default)]
struct TokenCounts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl AnthropicDecoder {
    pub(super) fn frame(&mut self, data: &str, out: &mut Decoded) -> serde_json::Result<()> {
        match serde_json::from_str(data)? {
            Event::MessageStart { message } => self.count(message.usage, out),
            Event::ContentBlockStart { content_block } => self.open(content_block, out),
            Event::ContentBlockDelta { delta } => self.fill(delta, out),
            Event::ContentBlockStop => self.close(out),
            Event::MessageDelta { delta, usage } => {
                self.count(usage, out);
                if let Some(reason) = delta.stop_reason {
                    out.finish = Some(finish_reason(&reason));
                }
            }
            Event::MessageStop => out.ended = true,
            Event::Error { error } => out.reported(error.to_string()),
            Event::Unknown => {}
        }
        Ok(())
    }

    fn open(&mut self, block: Block, out: &mut Decoded) {
        self.close(out);
        match block {
            Block::Text { text } => out.text(text),
            Block::Thinking {
                thinking,
                signature,
            } => {
                out.reasoning(thinking);
                self.signature = signature;
            }
            Block::RedactedThinking { data } => {
                out.reasoning_signed(&format!("{REDACTED}{data}"));
            }
            Block::ToolUse { id, name, input } => {
                self.call = out.call_started(id, name);
                // Usually empty here and streamed after; some imitators send it whole.
                let is_whole = input.as_object().is_some_and(|input| !input.is_empty());
                if let Some(index) = self.call.filter(|_| is_whole) {
                    out.call_arguments(index, input.to_string());
                }
            }
            Block::Unknown => {}
        }
    }

    fn fill(&mut self, delta: BlockDelta, out: &mut Decoded) {
        match delta {
            BlockDelta::TextDelta { text } => out.text(text),
            BlockDelta::ThinkingDelta { thinking } => out.reasoning(thinking),
            BlockDelta::SignatureDelta { signature } => {
                out.count(&signature);
                self.signature.push_str(&signature);
            }
            BlockDelta::InputJsonDelta { partial_json } => {
                if let Some(index) = self.call {
                    out.call_arguments(index, partial_json);
                }
            }
            BlockDelta::Unknown => {}
        }
    }

    fn close(&mut self, out: &mut Decoded) {
        self.call = None;
        out.reasoning_signed(&std::mem::take(&mut self.signature));
    }

    fn count(&mut self, latest: Option<TokenCounts>, out: &mut Decoded) {
        let Some(latest) = latest else { return };
        let counts = &mut self.counts;
        let thinking = latest
            .output_tokens_details
            .and_then(|details| details.thinking_tokens);
        counts.input_tokens = latest.input_tokens.or(counts.input_tokens);
        counts.output_tokens = latest.output_tokens.or(counts.output_tokens);
        counts.cache_creation_input_tokens = latest
            .cache_creation_input_tokens
            .or(counts.cache_creation_input_tokens);
        counts.cache_read_input_tokens = latest
            .cache_read_input_tokens
            .or(counts.cache_read_input_tokens);
        let cache_read = counts.cache_read_input_tokens.unwrap_or(0);
        let cache_write = counts.cache_creation_input_tokens.unwrap_or(0);
        // Here, unlike everywhere else, the input does not include what was cached.
        let prompt = counts
            .input_tokens
            .unwrap_or(0)
            .saturating_add(cache_read)
            .saturating_add(cache_write);
        let output = counts.output_tokens.unwrap_or(0);
        out.usage = usage_of(
            prompt,
            output,
            cache_read,
            cache_write,
            thinking.unwrap_or(0),
        );
    }
}

fn finish_reason(name: &str) -> FinishReason {
    match name {
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trouble;
    use super::super::testing::*;
    use super::*;
    use crate::providers::Protocol::Anthropic;
    use hermes_core::{Delta, Usage};
    use serde_json::json;

    fn start(block: Value) -> Value {
        json!({"type": "content_block_start", "index": 0, "content_block": block})
    }

    fn delta(delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    }

    fn stop() -> Value {
        json!({"type": "content_block_stop", "index": 0})
    }

    #[test]
    fn a_signature_in_pieces_closes_its_thinking() {
        let decoder = decode(
            Anthropic,
            &[
                start(json!({"type": "thinking", "thinking": "", "signature": ""})),
                delta(json!({"type": "thinking_delta", "thinking": "hm"})),
                delta(json!({"type": "signature_delta", "signature": "ab"})),
                delta(json!({"type": "signature_delta", "signature": "cd"})),
                stop(),
                start(json!({"type": "redacted_thinking", "data": "xyz"})),
                stop(),
            ],
        );
        let expected = [
            Delta::Reasoning("hm".into()),
            Delta::ReasoningSigned("p|abcd".into()),
            Delta::ReasoningSigned("p|redacted:xyz".into()),
        ];
        assert_eq!(deltas(&decoder), expected);
    }

    #[test]
    fn calls_are_streamed_and_unknown_blocks_and_deltas_are_skipped() {
        let decoder = decode(
            Anthropic,
            &[
                start(json!({"type": "server_tool_use", "id": "s", "name": "x"})),
                stop(),
                start(json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}})),
                delta(json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
                delta(json!({"type": "input_json_delta", "partial_json": ":1}"})),
                stop(),
                start(json!({"type": "text", "text": ""})),
                delta(json!({"type": "citations_delta", "citation": {}})),
                delta(json!({"type": "text_delta", "text": "hi"})),
                stop(),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
                json!({"type": "message_stop"}),
            ],
        );
        let expected = [
            started(0, "c1", "f"),
            arguments(0, "{\"x\""),
            arguments(0, ":1}"),
            Delta::Text("hi".into()),
        ];
        assert_eq!(deltas(&decoder), expected);
        assert!(decoder.decoded.ended);
        assert_eq!(
            decoder.decoded.finish_reason(),
            Some(FinishReason::ToolCalls)
        );
    }

    #[test]
    fn usage_of_start_and_end_is_joined() {
        let decoder = decode(
            Anthropic,
            &[
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 3,
                    "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}}}),
                json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}}),
            ],
        );
        let expected = Usage {
            input: 3,
            output: 9,
            cache_read: 100,
            cache_write: 20,
            reasoning: 0,
        };
        assert_eq!(decoder.decoded.usage, expected);
    }

    #[test]
    fn an_error_event_is_reported() {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let decoder = decode(Anthropic, &[error]);
        assert!(
            matches!(decoder.decoded.trouble, Some(Trouble::Reported(text)) if text.contains("overloaded_error"))
        );
    }
}
