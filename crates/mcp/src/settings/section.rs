//! Takes typed values out of a section, remembers which keys were known, and says clearly what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_core::Secret;
use hermes_core::text::{nearest, shorten};
use serde_json::{Map, Value};

use super::SettingsError;

/// A wait beyond a year is a slip of the finger, and would overflow the arithmetic of timers.
const SECONDS_MAX: f64 = 365.0 * 24.0 * 3600.0;

pub(super) struct Section<'a> {
    server: &'a str,
    /// With a dot at its end, or empty at the top.
    prefix: String,
    values: &'a Map<String, Value>,
    known: Vec<&'static str>,
    warnings: Vec<String>,
}

pub(super) enum SwitchOrText {
    Switch(bool),
    Text(String),
}

static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

impl<'a> Section<'a> {
    pub(super) fn new(server: &'a str, section: &'a Value) -> Result<Self, SettingsError> {
        match section {
            Value::Object(values) => Ok(Self {
                server,
                prefix: String::new(),
                values,
                known: Vec::new(),
                warnings: Vec::new(),
            }),
            other => Err(SettingsError::NotASection {
                server: server.to_owned(),
                found: describe(other),
            }),
        }
    }

    pub(super) fn server(&self) -> &'a str {
        self.server
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Reads a section inside this one. An absent one reads like an empty one.
    pub(super) fn inside<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'a>) -> Result<T, SettingsError>,
    ) -> Result<T, SettingsError> {
        let values = match self.take(key) {
            None => &*NOTHING,
            Some(Value::Object(values)) => values,
            Some(other) => return Err(self.wrong(key, "a section", other)),
        };
        let mut inner = Section {
            server: self.server,
            prefix: format!("{}{key}.", self.prefix),
            values,
            known: Vec::new(),
            warnings: Vec::new(),
        };
        let result = read(&mut inner)?;
        self.warnings.extend(inner.finish(&[]));
        Ok(result)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>, SettingsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(key, "a text that is not empty", other)),
        }
    }

    /// Reads a list of texts; a single text is a list of one.
    pub(super) fn texts(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Vec<String>>, SettingsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Array(list)) => list
                .iter()
                .map(|item| {
                    plain_text(item).ok_or_else(|| self.wrong(key, "a list of texts", item))
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(single) => match plain_text(single) {
                Some(text) => Ok(Some(vec![text])),
                None => Err(self.wrong(key, "a list of texts", single)),
            },
        }
    }

    pub(super) fn secrets(
        &mut self,
        key: &'static str,
    ) -> Result<BTreeMap<String, Secret>, SettingsError> {
        let values = match self.take(key) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(values)) => values,
            // The value is not shown: it may hold a key.
            Some(_) => return Err(self.wrong(key, "a section of names and texts", &Value::Null)),
        };
        let secret = |(name, value): (&String, &Value)| match plain_text(value) {
            Some(text) => Ok((name.clone(), Secret::new(text))),
            None => Err(self.wrong(key, "a section of names and texts", &Value::Null)),
        };
        values.iter().map(secret).collect()
    }

    pub(super) fn switch(&mut self, key: &'static str) -> Result<Option<bool>, SettingsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(Value::String(word)) => match word.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Some(true)),
                "false" | "no" | "off" | "0" => Ok(Some(false)),
                _ => Err(self.wrong(key, "true or false", &Value::String(word.clone()))),
            },
            Some(other) => Err(self.wrong(key, "true or false", other)),
        }
    }

    /// Reads a switch, or a text that stands for something else.
    pub(super) fn switch_or_text(
        &mut self,
        key: &'static str,
    ) -> Result<Option<SwitchOrText>, SettingsError> {
        let is_word = |value: &Value| match value {
            Value::String(word) => ["true", "yes", "on", "1", "false", "no", "off", "0"]
                .contains(&word.to_ascii_lowercase().as_str()),
            _ => true,
        };
        match self.values.get(key) {
            Some(value) if is_word(value) => {
                let switch = self.switch(key)?;
                Ok(switch.map(SwitchOrText::Switch))
            }
            _ => Ok(self.text(key)?.map(SwitchOrText::Text)),
        }
    }

    /// Says that a list is not the one that belongs there, without showing it: it may hold a secret.
    pub(super) fn wrong_list(&self, key: &str, expected: &'static str) -> SettingsError {
        self.wrong(key, expected, &Value::Array(Vec::new()))
    }

    /// Reads a time above zero.
    pub(super) fn seconds(&mut self, key: &'static str) -> Result<Option<Duration>, SettingsError> {
        const EXPECTED: &str = "a number of seconds above 0";
        match self.seconds_or_zero(key)? {
            Some(Duration::ZERO) => Err(self.wrong(key, EXPECTED, &Value::from(0))),
            seconds => Ok(seconds),
        }
    }

    pub(super) fn seconds_or_zero(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Duration>, SettingsError> {
        const EXPECTED: &str = "a number of seconds";
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match number(value) {
            Some(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            _ => Err(self.wrong(key, EXPECTED, value)),
        }
    }

    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<usize>, SettingsError> {
        match self.count_or_zero(key)? {
            Some(0) => Err(self.wrong(key, "a whole number above 0", &Value::from(0))),
            count => Ok(count),
        }
    }

    pub(super) fn count_or_zero(
        &mut self,
        key: &'static str,
    ) -> Result<Option<usize>, SettingsError> {
        const COUNT_MAX: f64 = 100_000.0;
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match number(value) {
            Some(count) if count.fract() == 0.0 && (0.0..=COUNT_MAX).contains(&count) => {
                Ok(Some(count as usize))
            }
            _ => Err(self.wrong(key, "a whole number", value)),
        }
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &'static [(&'static str, T)],
    ) -> Result<Option<T>, SettingsError> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => self.choose(key, words, value).map(Some),
        }
    }

    /// Reads a section of names, each with one of a few words.
    pub(super) fn words<T: Copy>(
        &mut self,
        key: &'static str,
        words: &'static [(&'static str, T)],
    ) -> Result<BTreeMap<String, T>, SettingsError> {
        match self.take(key) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(values)) => values
                .iter()
                .map(|(name, value)| Ok((name.clone(), self.choose(key, words, value)?)))
                .collect(),
            Some(other) => Err(self.wrong(key, "a section of names and words", other)),
        }
    }

    fn choose<T: Copy>(
        &self,
        key: &str,
        words: &[(&'static str, T)],
        value: &Value,
    ) -> Result<T, SettingsError> {
        let found = words.iter().find(|(word, _)| value == *word);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            SettingsError::WrongWord {
                server: self.server.to_owned(),
                key: format!("{}{key}", self.prefix),
                expected: names.join("`, `"),
                found: describe(value),
            }
        })
    }

    /// Returns the warnings, among them one for each key that nobody asked for.
    pub(super) fn finish(mut self, not_read_yet: &[&str]) -> Vec<String> {
        for key in self.values.keys() {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            let path = format!("mcp_servers.{}.{}{key}", self.server, self.prefix);
            self.warnings.push(if not_read_yet.contains(&key.as_str()) {
                format!("`{path}` has no effect in this version")
            } else {
                match nearest(key, self.known.iter().copied()).first() {
                    Some(near) => format!("`{path}` is not a known key; did you mean `{near}`?"),
                    None => format!("`{path}` is not a known key"),
                }
            });
        }
        self.warnings
    }

    /// Returns the value of a key, and counts the key as known. `null` is the same as absent.
    fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.values.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &'static str, found: &Value) -> SettingsError {
        SettingsError::WrongValue {
            server: self.server.to_owned(),
            key: format!("{}{key}", self.prefix),
            expected,
            found: describe(found),
        }
    }
}

/// Reads a number, also one that came out of a `${VAR}` as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Reads a text, also a number or a switch, which YAML takes for something else.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(on) => Some(on.to_string()),
        _ => None,
    }
}

fn describe(value: &Value) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    match value {
        Value::Null => "something else".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section".to_owned(),
        scalar => format!("`{}`", shorten(&scalar.to_string(), SHOWN_CHARS_MAX)),
    }
}
