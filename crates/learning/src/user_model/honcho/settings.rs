//! How Honcho is used, as `honcho.json` says it: the block of this host before the root, the environment after both.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_core::Secret;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The service that keys without an address are for.
const CLOUD: &str = "https://api.honcho.dev";

/// A server of one's own, where `environment` is `local`.
const LOCAL: &str = "http://localhost:8000";

/// The longest that one request may take, whatever the settings say: a turn waits for it.
const TIMEOUT_MAX: Duration = Duration::from_secs(120);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Characters of an answer of the dialectic that a model is shown.
const ANSWER_CHARS_DEFAULT: usize = 600;

/// A name of Honcho is at most this long.
const NAME_CHARS_MAX: usize = 100;

/// Keys of the known program that change nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "contextCadence",
    "dialecticCadence",
    "dialecticDepth",
    "injectionFrequency",
    "queryRewrite",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HonchoSettings {
    pub base_url: String,
    pub api_key: Option<Secret>,
    pub workspace: String,
    /// The peer that whoever sits at the terminal is.
    pub user_peer: String,
    pub ai_peer: String,
    /// Whether everybody is that one peer.
    pub pin_user_peer: bool,
    pub aliases: BTreeMap<String, String>,
    pub peer_prefix: String,
    pub recall: Recall,
    pub write: WriteFrequency,
    /// Tokens of the block in prompts.
    pub context_tokens: Option<usize>,
    pub level: Level,
    pub level_cap: Level,
    pub answer_chars_max: usize,
    pub sessions: SessionStrategy,
    pub observation: Observation,
    pub timeout: Duration,
    /// Keys that are set and change nothing here.
    pub without_effect: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// A block in prompts, and tools.
    Hybrid,
    Context,
    Tools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFrequency {
    /// After each turn, beside the conversation.
    EachTurn,
    /// When the conversation is over.
    Session,
    /// After so many turns.
    Turns(u64),
}

/// How much Honcho thinks about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

impl Level {
    const ALL: [Self; 5] = [
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Max,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    fn raised(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|level| *level == self);
        Self::ALL[(at.unwrap_or_default() + by).min(Self::ALL.len() - 1)]
    }
}

/// Which conversations are one session there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStrategy {
    Directory,
    Repository,
    Session,
    Global,
}

/// Whose view of the user is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The agent's own.
    Directional,
    /// The one that all share.
    Unified,
}

impl HonchoSettings {
    /// Reads them for a host; `None` where Honcho is switched off, an error in words where it cannot be reached with them.
    pub fn read(
        file: &Value,
        host: &str,
        variable: impl Fn(&str) -> Option<Secret>,
    ) -> Result<Option<Self>, String> {
        let keys = Keys {
            host: &file["hosts"][host],
            root: file,
        };
        if keys.get("enabled") == Some(&Value::Bool(false)) {
            return Ok(None);
        }
        let of_environment = |name: &str| variable(name).map(|value| value.expose().to_owned());
        let api_key = keys
            .text("apiKey")
            .map(Secret::new)
            .or_else(|| variable("HONCHO_API_KEY"));
        let environment = keys
            .text("environment")
            .or_else(|| of_environment("HONCHO_ENVIRONMENT"));
        let base_url = keys
            .text("baseUrl")
            .or_else(|| of_environment("HONCHO_BASE_URL"))
            .or_else(|| (environment.as_deref() == Some("local")).then(|| LOCAL.to_owned()))
            .or_else(|| api_key.as_ref().map(|_| CLOUD.to_owned()))
            .ok_or("there is neither `baseUrl` nor `apiKey` in honcho.json, nor HONCHO_API_KEY")?;
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            return Err(format!("`baseUrl` is no address of a server: {base_url}"));
        }
        let aliases = keys.get("userPeerAliases").and_then(Value::as_object);
        let alias = |(from, to): (&String, &Value)| Some((from.clone(), to.as_str()?.to_owned()));
        Ok(Some(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key,
            workspace: name_of(
                &keys
                    .text("workspace")
                    .unwrap_or_else(|| "hermes".to_owned()),
            ),
            user_peer: name_of(&keys.text("peerName").unwrap_or_else(|| "user".to_owned())),
            ai_peer: name_of(&keys.text("aiPeer").unwrap_or_else(|| "hermes".to_owned())),
            pin_user_peer: keys.get("pinUserPeer") == Some(&Value::Bool(true)),
            aliases: aliases.into_iter().flatten().filter_map(alias).collect(),
            peer_prefix: keys.text("runtimePeerPrefix").unwrap_or_default(),
            recall: match keys.text("recallMode").as_deref() {
                Some("context") => Recall::Context,
                Some("tools") => Recall::Tools,
                _ => Recall::Hybrid,
            },
            write: keys.write_frequency(),
            context_tokens: keys.number("contextTokens"),
            level: keys.level("dialecticReasoningLevel").unwrap_or(Level::Low),
            level_cap: keys.level("reasoningLevelCap").unwrap_or(Level::High),
            answer_chars_max: keys
                .number("dialecticMaxChars")
                .unwrap_or(ANSWER_CHARS_DEFAULT),
            sessions: match keys.text("sessionStrategy").as_deref() {
                Some("per-session") => SessionStrategy::Session,
                Some("per-repo") => SessionStrategy::Repository,
                Some("global") => SessionStrategy::Global,
                _ => SessionStrategy::Directory,
            },
            observation: match keys.text("observationMode").as_deref() {
                Some("unified") => Observation::Unified,
                _ => Observation::Directional,
            },
            timeout: keys.timeout(),
            without_effect: WITHOUT_EFFECT
                .iter()
                .copied()
                .filter(|key| keys.get(key).is_some())
                .collect(),
        }))
    }

    /// The peer that somebody is: themselves and nobody else.
    pub fn peer_of(&self, person: Option<&str>) -> String {
        match person {
            None => self.user_peer.clone(),
            Some(_) if self.pin_user_peer => self.user_peer.clone(),
            Some(person) => match self.aliases.get(person) {
                Some(alias) => name_of(alias),
                None => name_of(&format!("{}{person}", self.peer_prefix)),
            },
        }
    }

    /// How much is thought about a question: more about a long one.
    pub fn level_for(&self, question: &str) -> Level {
        const LONG: usize = 120;
        const VERY_LONG: usize = 400;
        let by = match question.chars().count() {
            VERY_LONG.. => 2,
            LONG.. => 1,
            _ => 0,
        };
        self.level.raised(by).min(self.level_cap.max(self.level))
    }
}

/// A name that Honcho takes. Two names never become one.
pub fn name_of(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_plain = !text.is_empty() && text.chars().all(allowed) && text.len() <= NAME_CHARS_MAX;
    if is_plain {
        return text.to_owned();
    }
    let plain: String = text
        .chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .take(NAME_CHARS_MAX / 2)
        .collect();
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{plain}-{hash}")
}

struct Keys<'a> {
    host: &'a Value,
    root: &'a Value,
}

impl<'a> Keys<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        let of = |block: &'a Value| block.get(key).filter(|value| !value.is_null());
        of(self.host).or_else(|| of(self.root))
    }

    fn text(&self, key: &str) -> Option<String> {
        let text = self.get(key)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, key: &str) -> Option<usize> {
        self.get(key)?.as_u64().map(|number| number as usize)
    }

    fn level(&self, key: &str) -> Option<Level> {
        Level::named(&self.text(key)?)
    }

    fn timeout(&self) -> Duration {
        let said = self.get("timeout").or_else(|| self.get("requestTimeout"));
        let said = said.and_then(Value::as_f64);
        let said = said.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        said.filter(|timeout| !timeout.is_zero())
            .unwrap_or(TIMEOUT_DEFAULT)
            .min(TIMEOUT_MAX)
    }

    fn write_frequency(&self) -> WriteFrequency {
        match self.get("writeFrequency") {
            Some(Value::String(word)) if word == "session" => WriteFrequency::Session,
            Some(Value::Number(turns)) => match turns.as_u64() {
                Some(turns) if turns > 1 => WriteFrequency::Turns(turns),
                _ => WriteFrequency::EachTurn,
            },
            _ => WriteFrequency::EachTurn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(file: Value, host: &str, variables: &[(&str, &str)]) -> HonchoSettings {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| Secret::new((*value).to_owned()))
        };
        HonchoSettings::read(&file, host, variable)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn the_block_of_the_host_comes_first_and_the_environment_last() {
        let file = json!({
            "apiKey": "root", "workspace": "ours", "recallMode": "tools", "queryRewrite": true,
            "hosts": {"hermes": {"workspace": "mine", "writeFrequency": 4}, "other": {"apiKey": "no"}},
        });
        let settings = read(
            file,
            "hermes",
            &[("HONCHO_API_KEY", "env"), ("HONCHO_BASE_URL", "http://h/")],
        );
        assert_eq!(settings.workspace, "mine");
        assert_eq!(settings.recall, Recall::Tools);
        assert_eq!(settings.write, WriteFrequency::Turns(4));
        assert_eq!(settings.api_key.unwrap().expose(), "root");
        assert_eq!(settings.base_url, "http://h");
        assert_eq!(settings.without_effect, ["queryRewrite"]);
        assert_eq!(settings.timeout, TIMEOUT_DEFAULT);
    }

    #[test]
    fn what_cannot_be_reached_is_told() {
        let none = |_: &str| None;
        assert!(HonchoSettings::read(&json!({}), "hermes", none).is_err());
        assert!(HonchoSettings::read(&json!({"baseUrl": "ftp://x"}), "hermes", none).is_err());
        let off = json!({"enabled": false});
        assert_eq!(HonchoSettings::read(&off, "hermes", none), Ok(None));
        let cloud = read(json!({"apiKey": "k"}), "hermes", &[]);
        assert_eq!(cloud.base_url, CLOUD);
        let local = read(json!({"environment": "local"}), "hermes", &[]);
        assert_eq!(local.base_url, LOCAL);
    }

    #[test]
    fn no_two_people_are_one_peer() {
        let file = json!({"baseUrl": "http://h", "peerName": "Anna", "runtimePeerPrefix": "tg_",
                          "userPeerAliases": {"77": "Anna"}});
        let mut settings = read(file, "hermes", &[]);
        assert_eq!(settings.peer_of(None), "Anna");
        assert_eq!(settings.peer_of(Some("77")), "Anna");
        assert_eq!(settings.peer_of(Some("78")), "tg_78");
        let names = [
            "a b",
            "a-b",
            "a.b",
            "ä",
            "",
            &"x".repeat(300),
            &"x".repeat(301),
        ];
        let peers: std::collections::HashSet<String> = names
            .iter()
            .map(|name| settings.peer_of(Some(name)))
            .collect();
        assert_eq!(peers.len(), names.len());
        settings.pin_user_peer = true;
        assert_eq!(settings.peer_of(Some("78")), "Anna");
    }

    #[test]
    fn long_questions_are_thought_about_more_up_to_the_cap() {
        let mut settings = read(json!({"baseUrl": "http://h"}), "hermes", &[]);
        assert_eq!(settings.level_for("who?"), Level::Low);
        assert_eq!(settings.level_for(&"x".repeat(120)), Level::Medium);
        assert_eq!(settings.level_for(&"x".repeat(400)), Level::High);
        settings.level_cap = Level::Medium;
        assert_eq!(settings.level_for(&"x".repeat(400)), Level::Medium);
        settings.level = Level::Max;
        assert_eq!(settings.level_for("who?"), Level::Max);
    }
}
