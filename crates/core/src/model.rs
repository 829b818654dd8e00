//! The port to language models.

use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
use crate::message::Message;
use crate::tool::ToolSpec;

/// A model that answers with a stream.
///
/// The turn loop asks one thing at a time per session; beside it, a running call may ask on behalf of an MCP server, with
/// a prefix of its own. Everything that can be mended without the
/// caller (waiting out a rate limit, another credential, a fallback model) happens inside and is told as
/// [`Delta::Notice`]. A stream ends with exactly one [`Delta::Finished`] or one error; nothing follows either.
/// Dropping the stream cancels the request and leaves nothing running.
pub trait Model: Send + Sync {
    fn name(&self) -> ModelName;

    /// Tokens that fit into one request and its answer, as far as that is known.
    fn context_window(&self) -> Option<u64>;

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>>;

    /// The most that so many tokens can cost, whoever of its stand-ins answers.
    fn cost_at_most(&self, _input: u64, _output: u64) -> Cost {
        Cost::Unknown
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelName {
    pub provider: String,
    pub model: String,
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)
    }
}

/// One request. `system` and `tools` are the session's frozen prefix: the same bytes every time.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    pub session: &'a SessionId,
    pub turn: &'a TurnId,
    pub system: &'a str,
    pub tools: &'a [ToolSpec],
    pub messages: &'a [Message],
    /// Raises the model's usual output limit, when an answer was cut by it.
    pub output_tokens_max: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// Closes the reasoning so far with the provider's signature.
    ReasoningSigned(String),
    /// Call number `index` of this reply begins.
    CallStarted {
        index: usize,
        id: String,
        name: String,
    },
    /// More argument text of call `index`.
    CallArguments {
        index: usize,
        json: String,
    },
    /// Opaque provider data that belongs to call `index`.
    CallSigned {
        index: usize,
        signature: String,
    },
    /// What is happening instead of an answer, for the person who waits.
    Notice(ModelNotice),
    Finished(Finished),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub reason: FinishReason,
    pub usage: Usage,
    pub cost: Cost,
    /// Who answered: a fallback, perhaps.
    pub model: ModelName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    /// The output limit cut it.
    Length,
    /// The provider refused to go on.
    ContentFilter,
    /// The connection broke after visible text; what came is kept.
    Cut,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelNotice {
    Retrying {
        reason: String,
        attempt: u32,
        wait_ms: u64,
    },
    CredentialRotated {
        provider: String,
        reason: String,
    },
    FellBack {
        from: ModelName,
        to: ModelName,
        reason: String,
    },
    /// One of several models that advise the answering one could not be asked; the others could.
    NoAdvice {
        model: ModelName,
        reason: String,
    },
    /// The server has no Responses API; it is asked over chat completions from now on.
    OtherWire {
        model: ModelName,
    },
    /// The model does not take pictures, or not these: it is asked again with words in their place.
    PicturesLeftOut {
        model: ModelName,
        reason: String,
    },
}

/// Tokens of one or more requests. The whole prompt is `input + cache_read + cache_write`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Part of `output` that was spent on thinking.
    pub reasoning: u64,
}

// Providers send these numbers: sums stop at the largest one instead of overflowing.
impl Usage {
    pub fn total(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Money, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Computed from the price table.
    Estimated(u64),
    /// Nobody pays per token: local models, subscriptions.
    Included,
    Unknown,
}

impl Cost {
    pub fn micro_usd(self) -> Option<u64> {
        match self {
            Self::Estimated(micro_usd) => Some(micro_usd),
            Self::Included => Some(0),
            Self::Unknown => None,
        }
    }
}

/// Why a model did not answer, after everything that could be done about it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{model}: {message}")]
pub struct ModelError {
    pub model: ModelName,
    pub kind: ModelErrorKind,
    /// What the provider or the network said, without secrets.
    pub message: String,
    /// What the user can do next.
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    Auth,
    Billing,
    RateLimit,
    Overloaded,
    ContextTooLong,
    BadRequest,
    UnknownModel,
    ContentFilter,
    /// No byte of an answer came: connect, TLS, DNS, reset, first-byte deadline.
    Network,
    /// The answer broke off before it was complete, with nothing worth keeping.
    Broken,
    /// The stream went silent.
    Silent,
}

/// A named limit of time on one request, with a reason for each default at the place that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelDeadlines {
    pub connect: Duration,
    pub first_byte: Duration,
    /// Until the answer begins, when the server has shown that it is alive.
    pub first_token: Duration,
    pub idle: Duration,
    pub total: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_token_counts_add_up_to_the_largest_number() {
        let absurd = Usage {
            input: i64::MAX as u64,
            output: u64::MAX,
            cache_read: u64::MAX,
            cache_write: u64::MAX,
            reasoning: u64::MAX,
        };
        let mut sum = Usage::default();
        for _ in 0..3 {
            sum += absurd;
        }
        assert_eq!((sum.input, sum.reasoning), (u64::MAX, u64::MAX));
        assert_eq!((absurd.total(), sum.total()), (u64::MAX, u64::MAX));
    }
}
