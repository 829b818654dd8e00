//! Gemini: every frame is a whole little response; calls arrive in one piece.

use hermes_core::FinishReason;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Decoded, Text, usage_of};

#[derive(Debug, Default)]
pub(super) struct GeminiDecoder;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    usage_metadata: Option<TokenCounts>,
    prompt_feedback: Option<Feedback>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TokenCounts {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl GeminiDecoder {
    pub(super) fn frame(&mut self, data: &str, out: &mut Decoded) -> serde_json::Result<()> {
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        if let Some(error) = chunk.error {
            out.reported(error.get());
            return Ok(());
        }
        if let Some(counts) = chunk.usage_metadata {
            out.usage = counts.usage();
        }
        if chunk
            .prompt_feedback
            .is_some_and(|feedback| feedback.block_reason.is_some())
        {
            out.finish = Some(FinishReason::ContentFilter);
        }
        if let Some(candidate) = chunk.candidates.into_iter().next() {
            for part in candidate
                .content
                .into_iter()
                .flat_map(|content| content.parts)
            {
                read_part(part, out);
            }
            if let Some(Text(reason)) = candidate.finish_reason {
                finish(&reason, out);
            }
        }
        Ok(())
    }
}

fn read_part(part: Part<'_>, out: &mut Decoded) {
    let signature = part.thought_signature.unwrap_or_default();
    if let Some(call) = part.function_call {
        if let Some(index) = out.call_started(call.id, call.name) {
            let arguments = call.args.map_or("{}", RawValue::get);
            out.call_arguments(index, arguments.to_owned());
            out.call_signed(index, &signature);
        }
        return;
    }
    let text = part.text.unwrap_or_default();
    if part.thought {
        out.reasoning(text);
        out.reasoning_signed(&signature);
    } else {
        // Before the text, because that is the part it goes back with.
        out.reasoning_signed(&signature);
        out.text(text);
    }
}

fn finish(name: &str, out: &mut Decoded) {
    out.finish = Some(match name {
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "IMAGE_SAFETY" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            out.unreadable(format!(
                "the model wrote a call that Gemini could not read ({name})"
            ));
            return;
        }
        _ => FinishReason::Stop,
    });
}

impl TokenCounts {
    fn usage(self) -> hermes_core::Usage {
        usage_of(
            self.prompt_token_count
                .saturating_add(self.tool_use_prompt_token_count),
            self.candidates_token_count
                .saturating_add(self.thoughts_token_count),
            self.cached_content_token_count,
            0,
            self.thoughts_token_count,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trouble;
    use super::super::testing::*;
    use super::*;
    use crate::providers::Protocol::Gemini;
    use hermes_core::Delta;
    use serde_json::{Value, json};

    fn parts(parts: Value) -> Value {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
    }

    #[test]
    fn thoughts_calls_and_their_signatures_are_read() {
        let decoder = decode(
            Gemini,
            &[
                parts(json!([{"text": "hm", "thought": true}, {"text": "hm", "thought": true}])),
                parts(
                    json!([{"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "s1"},
                    {"functionCall": {"name": "g"}}]),
                ),
                parts(json!([{"text": "hi"}])),
                json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 10,
                    "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}),
            ],
        );
        let expected = [
            Delta::Reasoning("hm".into()),
            Delta::Reasoning("hm".into()),
            started(0, "", "f"),
            arguments(0, r#"{"x":1}"#),
            Delta::CallSigned {
                index: 0,
                signature: "p|s1".into(),
            },
            started(1, "", "g"),
            arguments(1, "{}"),
            Delta::Text("hi".into()),
        ];
        assert_eq!(deltas(&decoder), expected);
        assert_eq!(
            decoder.decoded.finish_reason(),
            Some(FinishReason::ToolCalls)
        );
        assert_eq!(
            (decoder.decoded.usage.input, decoder.decoded.usage.output),
            (6, 5)
        );
    }

    #[test]
    fn a_blocked_prompt_is_a_content_filter() {
        let decoder = decode(
            Gemini,
            &[json!({"promptFeedback": {"blockReason": "SAFETY"}})],
        );
        assert_eq!(
            decoder.decoded.finish_reason(),
            Some(FinishReason::ContentFilter)
        );
    }

    #[test]
    fn a_malformed_call_is_trouble() {
        let frame = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]});
        let decoder = decode(Gemini, &[frame]);
        assert!(matches!(
            decoder.decoded.trouble,
            Some(Trouble::Unreadable(_))
        ));
    }
}
