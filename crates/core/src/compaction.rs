//! What a compaction is told by: why a conversation is made shorter for its model, and what came of it.

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::model::{Cost, Usage};

/// A message that a model sees in place of the one that was said. People and search see what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shortened {
    /// Its place among the messages that are kept, from 0.
    pub at: u32,
    /// Of the same role, and a result of the same call.
    pub message: Message,
}

/// Why a conversation is made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// It fills the model's context window up to the threshold.
    Full,
    /// The provider refused it as too long.
    TooLong,
    /// Somebody asked for it.
    Asked,
}

/// How a compaction ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum CompactionEnd {
    Done {
        #[serde(flatten)]
        report: CompactionReport,
    },
    /// Nothing was changed; says why, and what to do.
    Unchanged { reason: String },
    /// Somebody stopped it: the conversation is as it was.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactionReport {
    pub summary: SummarySource,
    /// Tokens of a request, prompt and tools included: counted by the provider where it said so, estimated otherwise.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Messages that the summary stands for from now on.
    pub summarised: usize,
    /// Old results, pictures and arguments that were shortened.
    pub shortened: usize,
    /// Messages that stay as they are.
    pub kept: usize,
    pub elapsed_ms: u64,
    /// What asking for the summary took.
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// What the person should know: why it freed little, and what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What asking for a summary took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SummaryUse {
    pub usage: Usage,
    pub cost: Cost,
}

/// Who wrote a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummarySource {
    /// There is no new one: shortening was enough.
    None,
    Model,
    /// Made without a model, because none gave one that can be used.
    Digest,
}
