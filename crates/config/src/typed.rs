//! Reading settings as the types their users need, with errors that say where a wrong one stands.

use std::time::Duration;

use serde_json::Value;

use crate::{mask::mask, origin::Origin, settings::Settings, yaml::resolve_scalar};

/// A setting whose value is not what its reader needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be {expected}, but is {found}{}", place(origin.as_ref()))]
pub struct ValueError {
    pub key: String,
    pub expected: &'static str,
    pub found: String,
    pub origin: Option<Origin>,
}

impl ValueError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        format!(
            "change it with `hermes config set {} VALUE`; `hermes config explain {}` shows where it is set",
            self.key, self.key
        )
    }
}

fn place(origin: Option<&Origin>) -> String {
    origin.map_or(String::new(), |origin| format!(" ({origin})"))
}

const BOOL: &str = "true or false";
const WHOLE: &str = "a whole number, zero or more";
const NUMBER: &str = "a number";
const TEXT: &str = "text";
const TEXTS: &str = "a list of texts";
const SECONDS: &str = "a number of seconds, zero or more";

impl Settings {
    pub fn bool(&self, key: &str) -> Result<bool, ValueError> {
        self.read(key, BOOL, as_bool)
    }

    pub fn u64(&self, key: &str) -> Result<u64, ValueError> {
        self.read(key, WHOLE, as_u64)
    }

    pub fn f64(&self, key: &str) -> Result<f64, ValueError> {
        self.read(key, NUMBER, as_f64)
    }

    pub fn string(&self, key: &str) -> Result<String, ValueError> {
        self.read(key, TEXT, as_text)
    }

    pub fn strings(&self, key: &str) -> Result<Vec<String>, ValueError> {
        self.read(key, TEXTS, |value| {
            value.as_array()?.iter().map(as_text).collect()
        })
    }

    /// Reads a length of time written in seconds.
    pub fn seconds(&self, key: &str) -> Result<Duration, ValueError> {
        self.read(key, SECONDS, |value| {
            Duration::try_from_secs_f64(as_f64(value)?).ok()
        })
    }

    /// Reads a number that may be `null`.
    pub fn optional_u64(&self, key: &str) -> Result<Option<u64>, ValueError> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.u64(key).map(Some),
        }
    }

    /// Reads a text that may be `null` or empty, which both mean that there is none.
    pub fn optional_string(&self, key: &str) -> Result<Option<String>, ValueError> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => Ok(Some(self.string(key)?).filter(|text| !text.is_empty())),
        }
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, ValueError> {
        let value = self.get(key);
        value.and_then(convert).ok_or_else(|| ValueError {
            key: key.to_owned(),
            expected,
            found: value.map_or("not set".to_owned(), |value| describe(key, value)),
            origin: self.origin(key),
        })
    }
}

fn as_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => truth(text),
        _ => None,
    }
}

/// Reads the words people use for yes and no.
pub(crate) fn truth(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["true", "yes", "on"]) {
        Some(true)
    } else if is_one_of(["false", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

// Numbers may be quoted, or come from a `${VARIABLE}`, which is always text.

fn as_u64(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => resolve_scalar(text).as_u64(),
        value => value.as_u64(),
    }
}

fn as_f64(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => resolve_scalar(text).as_f64(),
        value => value.as_f64(),
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Longest part of a wrong value that a message repeats, in characters.
const QUOTED_CHARS_MAX: usize = 60;

pub(crate) fn describe(key: &str, value: &Value) -> String {
    match mask(key, value) {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("`{flag}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => {
            let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
            let ellipsis = if short.len() < text.len() { "…" } else { "" };
            format!("the text `{short}{ellipsis}`")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section".to_owned(),
    }
}

/// Returns what a setting must be when `value` does not fit its `default`; text and `null` fit any single value.
pub(crate) fn misfit(default: &Value, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match default {
        Value::Null => (true, ""),
        Value::Bool(_) => (as_bool(value).is_some(), BOOL),
        Value::Number(_) => (as_f64(value).is_some(), NUMBER),
        Value::String(_) => (!value.is_array() && !value.is_object(), TEXT),
        Value::Array(_) => (value.is_array(), "a list"),
        Value::Object(_) => (value.is_object(), "a section"),
    };
    (!fits && !value.is_null()).then_some(expected)
}
