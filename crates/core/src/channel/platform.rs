//! How platforms are set up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Channel;
use crate::clock::Clock;
use crate::random::Random;
use crate::secret::Secret;

/// A platform that Hermes knows: how it is set up, and how a channel of it is made.
#[derive(Clone, Copy)]
pub struct Platform {
    /// As in settings: `telegram`.
    pub name: &'static str,
    /// As people write it: `Telegram`.
    pub label: &'static str,
    /// What it can be told, the necessary things first.
    pub settings: &'static [PlatformSetting],
    /// How one comes to an account there, for setup; a few lines.
    pub how_to: &'static str,
    /// Strangers are never answered there, not even with a pairing code.
    pub ignores_strangers: bool,
    /// In groups it answers only what names it, unless settings say otherwise.
    pub requires_mention: bool,
    /// People see there which tools are called, unless settings say otherwise.
    pub shows_calls: bool,
    pub open: OpenChannel,
}

/// Makes a channel of what settings say. Nothing is asked of the platform yet.
pub type OpenChannel =
    fn(&PlatformSettings, ChannelPorts) -> Result<Arc<dyn Channel>, PlatformSettingError>;

/// One setting of a platform. Its name in files is `platforms.PLATFORM.KEY`.
#[derive(Debug, Clone, Copy)]
pub struct PlatformSetting {
    pub key: &'static str,
    /// The variable that says it, too.
    pub variable: &'static str,
    pub is_secret: bool,
    /// Without it there is no such platform.
    pub is_needed: bool,
    /// What setup asks; empty where it does not.
    pub question: &'static str,
}

/// What the settings and the environment say of one platform: the environment first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlatformSettings {
    values: BTreeMap<String, Value>,
}

impl PlatformSettings {
    pub fn new(values: BTreeMap<String, Value>) -> Self {
        Self { values }
    }

    /// The same with another value.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.values.insert(key.to_owned(), value.into());
        self
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A text, also where the file has a number.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.values.get(key)? {
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(is_set) => Some(is_set.to_string()),
            _ => None,
        }
    }

    pub fn secret(&self, key: &str) -> Option<Secret> {
        self.text(key).map(Secret::new)
    }

    /// A switch; `default` where nothing, or nothing readable, is said.
    pub fn switch(&self, key: &str, default: bool) -> bool {
        match self.text(key).as_deref().map(str::to_ascii_lowercase) {
            Some(text) if matches!(text.as_str(), "true" | "1" | "yes" | "on") => true,
            Some(text) if matches!(text.as_str(), "false" | "0" | "no" | "off") => false,
            _ => default,
        }
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// A list: one of the file's, or words between commas.
    pub fn list(&self, key: &str) -> Vec<String> {
        let words = |text: &str| {
            text.split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(ToOwned::to_owned)
                .collect()
        };
        match self.values.get(key) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|item| match item {
                    Value::String(text) => Some(text.trim().to_owned()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                })
                .collect(),
            Some(_) => self.text(key).map(|text| words(&text)).unwrap_or_default(),
            None => Vec::new(),
        }
    }
}

/// What channels have of the process they run in.
#[derive(Clone)]
pub struct ChannelPorts {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
}

/// A platform cannot be used as it is set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlatformSettingError {
    /// Which setting it is about.
    pub key: &'static str,
    pub message: String,
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_settings_are_read_from_files_and_from_variables_alike() {
        let settings = PlatformSettings::new(BTreeMap::from([
            ("from_file".to_owned(), serde_json::json!([1, " b "])),
            ("from_variable".to_owned(), serde_json::json!("1, b,,")),
            ("on".to_owned(), serde_json::json!("On")),
            ("off".to_owned(), serde_json::json!(false)),
            ("empty".to_owned(), serde_json::json!("  ")),
        ]));
        assert_eq!(settings.list("from_file"), settings.list("from_variable"));
        assert!(settings.switch("on", false));
        assert!(!settings.switch("off", true));
        assert!(settings.switch("empty", true));
        assert_eq!(settings.text("empty"), None);
    }
}
