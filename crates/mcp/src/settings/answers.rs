//! What a server may ask of us: questions to the person, requests to a model, log lines.

use std::time::Duration;

use super::SettingsError;
use super::section::Section;

/// As long as a call may go without an answer: whoever asked will not wait longer.
const ELICITATION_TIMEOUT: Duration = Duration::from_secs(300);
const SAMPLING_TIMEOUT: Duration = Duration::from_secs(30);
const SAMPLING_TOKENS_MAX: usize = 4096;
const SAMPLING_PER_MINUTE_MAX: usize = 10;
const SAMPLING_TOOL_ROUNDS_MAX: usize = 5;

/// Questions to the person behind a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationSettings {
    pub is_enabled: bool,
    /// How long the person has.
    pub timeout: Duration,
}

/// Requests to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingSettings {
    pub is_enabled: bool,
    /// The model that answers, whatever the server would like.
    pub model: Option<String>,
    /// The longest answer.
    pub tokens_max: u32,
    pub timeout: Duration,
    pub per_minute_max: usize,
    /// Models that the server may choose among by its hints.
    pub allowed_models: Vec<String>,
    /// How often a conversation may go through tools of the server; 0 is never.
    pub tool_rounds_max: usize,
    /// How loudly each request is logged.
    pub log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
}

const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
];

pub(super) fn elicitation(section: &mut Section<'_>) -> Result<ElicitationSettings, SettingsError> {
    section.inside("elicitation", |elicitation| {
        Ok(ElicitationSettings {
            is_enabled: elicitation.switch("enabled")?.unwrap_or(true),
            timeout: elicitation
                .seconds("timeout")?
                .unwrap_or(ELICITATION_TIMEOUT),
        })
    })
}

pub(super) fn sampling(section: &mut Section<'_>) -> Result<SamplingSettings, SettingsError> {
    section.inside("sampling", |sampling| {
        let tokens_max = sampling.count("max_tokens_cap")?;
        Ok(SamplingSettings {
            is_enabled: sampling.switch("enabled")?.unwrap_or(true),
            model: sampling.text("model")?,
            tokens_max: tokens_max.unwrap_or(SAMPLING_TOKENS_MAX) as u32,
            timeout: sampling.seconds("timeout")?.unwrap_or(SAMPLING_TIMEOUT),
            per_minute_max: sampling
                .count("max_rpm")?
                .unwrap_or(SAMPLING_PER_MINUTE_MAX),
            allowed_models: sampling.texts("allowed_models")?.unwrap_or_default(),
            tool_rounds_max: sampling
                .count_or_zero("max_tool_rounds")?
                .unwrap_or(SAMPLING_TOOL_ROUNDS_MAX),
            log_level: log_level(sampling)?.unwrap_or(LogLevel::Info),
        })
    })
}

pub(super) fn log_level(section: &mut Section<'_>) -> Result<Option<LogLevel>, SettingsError> {
    section.word("log_level", LOG_LEVELS)
}

impl SamplingSettings {
    /// Returns the models that are named, in no order.
    pub fn named_models(&self) -> impl Iterator<Item = &String> {
        self.model.iter().chain(&self.allowed_models)
    }
}
