//! What the user said about models, and the route that makes of it. Plain data: `resolve` turns one into the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hermes_core::{ModelDeadlines, ModelName, Secret};
use serde_json::{Map, Value};

use crate::login::LoginServer;
use crate::pool::Strategy;
use crate::providers::{Protocol, Quirks};

/// Attempts at one provider before the next one is asked, unless set: `agent.api_max_retries`.
pub const ATTEMPTS_MAX: u32 = 3;

/// How long one request waits because the provider says so, unless set.
pub const RETRY_MAX: Duration = Duration::from_secs(300);

/// The settings of one model, before anything is looked up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Which provider and model to ask.
    pub choice: ModelChoice,
    pub context_length: Option<u64>,
    pub max_tokens: Option<u32>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or `ultra`. Unset leaves it to the provider.
    pub reasoning_effort: Option<String>,
    /// Endpoints the user defined, by name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// What the user set for single providers, by the name of an endpoint or the id of a provider.
    pub provider_options: BTreeMap<String, ProviderOptions>,
    /// What servers said of their models when they were asked for a list.
    pub stated_windows: StatedWindows,
    /// The addresses of servers that turned out to have chat completions only.
    pub chat_only: BTreeSet<String>,
    /// Whom to ask when the first choice fails, in order.
    pub fallbacks: Vec<ModelChoice>,
    /// Keys that were stored rather than set in the environment, by provider id.
    pub stored_keys: BTreeMap<String, Vec<Secret>>,
    /// The ids of providers that somebody is logged in at, the preferred one first.
    pub logins: Vec<String>,
    pub strategy: Strategy,
    pub deadlines: DeadlineSettings,
    pub attempts_max: Option<u32>,
    /// How long one request may wait, all in all, because the provider says so: `agent.retry_minutes`.
    pub retry_max: Option<Duration>,
}

/// One way to name a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// A provider id, an alias, the name of an endpoint of the user's, or `auto`.
    pub provider: Option<String>,
    /// The provider's name for the model, or `provider:model`.
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    /// `chat_completions`, `responses`, `anthropic_messages` or `gemini`.
    pub api_mode: Option<String>,
}

/// An entry under `providers:` or `custom_providers:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    pub base_url: String,
    pub api_key: Option<Secret>,
    /// The variable that holds the key.
    pub key_env: Option<String>,
    pub api_mode: Option<String>,
    pub default_model: Option<String>,
}

/// How requests to one provider differ from the usual ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderOptions {
    /// Added to every request, in place of ours of the same name. Many hold a key.
    pub headers: Vec<(String, Secret)>,
    /// Merged into every request body, last.
    pub extra_body: Map<String, Value>,
    pub context_length: Option<u64>,
    pub deadlines: DeadlineSettings,
    /// What the user set for single models, by their names.
    pub models: BTreeMap<String, ModelOptions>,
}

/// Tokens that fit into models, by the address of their server and their names.
pub type StatedWindows = BTreeMap<String, BTreeMap<String, u64>>;

/// What differs for one model of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelOptions {
    pub context_length: Option<u64>,
    pub deadlines: DeadlineSettings,
}

/// Deadlines the user changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadlineSettings {
    pub connect: Option<Duration>,
    pub first_byte: Option<Duration>,
    /// As long as `first_byte` unless set.
    pub first_token: Option<Duration>,
    pub idle: Option<Duration>,
    pub total: Option<Duration>,
}

/// Everything a request to one model needs.
#[derive(Debug, Clone)]
pub struct Route {
    pub name: ModelName,
    pub base_url: String,
    pub protocol: Protocol,
    /// Nobody said which wire it is: the server may turn out to speak another one.
    pub is_wire_guessed: bool,
    pub quirks: Quirks,
    /// At least one for hosted providers without a login; local servers mostly have none.
    pub keys: Vec<Secret>,
    /// Where the token comes from when there is no key.
    pub login: Option<LoginServer>,
    pub local: bool,
    /// Tokens that fit into one request and its answer; none when nobody said.
    pub context_window: Option<u64>,
    pub max_tokens: Option<u32>,
    pub effort: Option<Effort>,
    /// Of the user's own; many hold a key.
    pub headers: Vec<(String, Secret)>,
    pub extra_body: Map<String, Value>,
    pub deadlines: ModelDeadlines,
    /// What a person does when the key is missing or refused.
    pub key_hint: String,
}

/// How much a model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "none" | "off" => Self::None,
            "minimal" => Self::Minimal,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "xhigh" => Self::XHigh,
            "max" | "ultra" => Self::Max,
            _ => return None,
        })
    }
}

impl DeadlineSettings {
    /// These, and where they say nothing, `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            connect: self.connect.or(others.connect),
            first_byte: self.first_byte.or(others.first_byte),
            first_token: self.first_token.or(others.first_token),
            idle: self.idle.or(others.idle),
            total: self.total.or(others.total),
        }
    }

    pub(crate) fn resolve(self, local: bool) -> ModelDeadlines {
        let default = if local { LOCAL_DEADLINES } else { DEADLINES };
        ModelDeadlines {
            connect: self.connect.unwrap_or(default.connect),
            first_byte: self.first_byte.unwrap_or(default.first_byte),
            first_token: self
                .first_token
                .or(self.first_byte)
                .unwrap_or(default.first_token),
            idle: self.idle.unwrap_or(default.idle),
            total: self.total.unwrap_or(default.total),
        }
    }
}

const DEADLINES: ModelDeadlines = ModelDeadlines {
    // A handshake is a few round trips; the rest is room for lost packets.
    connect: Duration::from_secs(10),
    // A model reads the whole prompt before it says anything.
    first_byte: Duration::from_secs(120),
    // A server that says it is busy may have a queue.
    first_token: Duration::from_secs(300),
    // Some models fall silent while they reason.
    idle: Duration::from_secs(180),
    // Half an hour at 40 tokens a second is more than most output limits allow.
    total: Duration::from_secs(1800),
};

/// A local server loads its model and reads the whole prompt on a CPU before the first token comes.
const LOCAL_DEADLINES: ModelDeadlines = ModelDeadlines {
    first_byte: Duration::from_secs(900),
    first_token: Duration::from_secs(900),
    idle: Duration::from_secs(900),
    ..DEADLINES
};
