//! From the frames of a provider's stream to our deltas. Pure: one frame in, whatever it says out.
//!
//! Each protocol has its own module; what they share is here: the numbering of calls, the limits, and what is known
//! when the stream is over.

pub(crate) mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::borrow::Cow;
use std::collections::VecDeque;

use hermes_core::reply::CALLS_PER_REPLY_MAX;
use hermes_core::{Delta, FinishReason, Usage};
use serde::Deserialize;

use crate::providers::Protocol;
use crate::signature;

/// Bytes of text, thinking and arguments in one reply. 128k tokens, a large output limit today, are about half a MiB;
/// what frames wrap around them is not counted, because it is not kept.
pub(crate) const REPLY_BYTES_MAX: usize = 16 << 20;

/// Decodes one reply.
#[derive(Debug)]
pub(crate) struct Decoder {
    wire: Wire,
    pub(crate) decoded: Decoded,
}

#[derive(Debug)]
enum Wire {
    Chat(chat::ChatDecoder),
    Responses(responses::ResponsesDecoder),
    Anthropic(anthropic::AnthropicDecoder),
    Gemini(gemini::GeminiDecoder),
}

/// What the frames so far amount to.
#[derive(Debug)]
pub(crate) struct Decoded {
    provider: String,
    pub(crate) deltas: VecDeque<Delta>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) usage: Usage,
    pub(crate) trouble: Option<Trouble>,
    /// The provider said that nothing follows.
    pub(crate) ended: bool,
    calls: usize,
    bytes: usize,
}

/// What is wrong with a stream that arrived well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The provider's own error, as JSON text.
    Reported(String),
    /// The stream makes no sense, or too much of it.
    Unreadable(String),
}

impl Decoder {
    /// `provider` is the name that seals signatures.
    pub(crate) fn new(protocol: Protocol, provider: &str) -> Self {
        let wire = match protocol {
            Protocol::OpenAiChat => Wire::Chat(Default::default()),
            Protocol::OpenAiResponses => Wire::Responses(Default::default()),
            Protocol::Anthropic => Wire::Anthropic(Default::default()),
            Protocol::Gemini => Wire::Gemini(Default::default()),
        };
        let decoded = Decoded {
            provider: provider.to_owned(),
            deltas: VecDeque::new(),
            finish: None,
            usage: Usage::default(),
            trouble: None,
            ended: false,
            calls: 0,
            bytes: 0,
        };
        Self { wire, decoded }
    }

    /// Reads one frame: the data of one server-sent event. Nothing counts after the end or the first trouble.
    pub(crate) fn frame(&mut self, data: &str) {
        let Self { wire, decoded } = self;
        if data.is_empty() || decoded.ended || decoded.trouble.is_some() {
            return;
        }
        let read = match wire {
            Wire::Chat(chat) => chat.frame(data, decoded),
            Wire::Responses(responses) => responses.frame(data, decoded),
            Wire::Anthropic(anthropic) => anthropic.frame(data, decoded),
            Wire::Gemini(gemini) => gemini.frame(data, decoded),
        };
        if let Err(error) = read {
            decoded.unreadable(format!(
                "a frame of the stream is not what it should be: {error}"
            ));
        }
    }

    /// Lets go of what was held back: nothing follows.
    pub(crate) fn finish(&mut self) {
        if let Wire::Chat(chat) = &mut self.wire {
            chat.finish(&mut self.decoded);
        }
    }
}

impl Decoded {
    /// Returns why the model stopped, in agreement with what it did: some servers say `stop` after calls.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish.map(|reason| match (reason, self.calls) {
            (FinishReason::Stop, 1..) => FinishReason::ToolCalls,
            (FinishReason::ToolCalls, 0) => FinishReason::Stop,
            (reason, _) => reason,
        })
    }

    /// Counts content that is passed on or held back.
    fn count(&mut self, content: &str) {
        self.bytes = self.bytes.saturating_add(content.len());
        if self.bytes > REPLY_BYTES_MAX {
            self.unreadable(format!("the reply went on past {REPLY_BYTES_MAX} bytes"));
        }
    }

    fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.count(&text);
            self.deltas.push_back(Delta::Text(text));
        }
    }

    fn reasoning(&mut self, text: String) {
        if !text.is_empty() {
            self.count(&text);
            self.deltas.push_back(Delta::Reasoning(text));
        }
    }

    fn reasoning_signed(&mut self, signature: &str) {
        if !signature.is_empty() {
            let sealed = signature::seal(&self.provider, signature);
            self.deltas.push_back(Delta::ReasoningSigned(sealed));
        }
    }

    /// Starts the next call and returns its index, or `None` when there are too many already.
    fn call_started(&mut self, id: String, name: String) -> Option<usize> {
        if self.calls >= CALLS_PER_REPLY_MAX {
            return None;
        }
        let index = self.calls;
        self.calls += 1;
        self.deltas
            .push_back(Delta::CallStarted { index, id, name });
        Some(index)
    }

    fn call_arguments(&mut self, index: usize, json: String) {
        if !json.is_empty() {
            self.count(&json);
            self.deltas.push_back(Delta::CallArguments { index, json });
        }
    }

    fn call_signed(&mut self, index: usize, signature: &str) {
        if !signature.is_empty() {
            let signature = signature::seal(&self.provider, signature);
            self.deltas
                .push_back(Delta::CallSigned { index, signature });
        }
    }

    /// Takes note of an error, as JSON text.
    fn reported(&mut self, error: impl Into<String>) {
        self.trouble = Some(Trouble::Reported(error.into()));
    }

    fn unreadable(&mut self, what: String) {
        self.trouble = Some(Trouble::Unreadable(what));
    }
}

/// A string, borrowed from the frame unless something in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Splits a prompt's token count that includes what was cached.
fn usage_of(prompt: u64, output: u64, cache_read: u64, cache_write: u64, reasoning: u64) -> Usage {
    Usage {
        input: prompt
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        output,
        cache_read,
        cache_write,
        reasoning,
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use serde_json::Value;

    /// Decodes frames as one reply.
    pub(crate) fn decode(protocol: Protocol, frames: &[Value]) -> Decoder {
        let mut decoder = Decoder::new(protocol, "p");
        for frame in frames {
            decoder.frame(&frame.to_string());
        }
        decoder.finish();
        decoder
    }

    pub(crate) fn deltas(decoder: &Decoder) -> Vec<Delta> {
        decoder.decoded.deltas.iter().cloned().collect()
    }

    pub(crate) fn started(index: usize, id: &str, name: &str) -> Delta {
        Delta::CallStarted {
            index,
            id: id.into(),
            name: name.into(),
        }
    }

    pub(crate) fn arguments(index: usize, json: &str) -> Delta {
        Delta::CallArguments {
            index,
            json: json.into(),
        }
    }
}
