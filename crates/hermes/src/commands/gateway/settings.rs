//! The settings of a platform: variables first, as in Hermes Agent, then the sections that may hold them.

pub(super) mod api;
pub(crate) mod webhook;

use serde_json::Value;

use crate::base::Base;
use crate::failure::{Failure, Outcome, code};

/// What the settings say of one platform.
#[derive(Clone, Copy)]
struct Platform<'a> {
    base: &'a Base,
    name: &'static str,
    /// What its variables begin with.
    variables: &'static str,
}

impl<'a> Platform<'a> {
    /// A setting, from the first place that has it.
    fn get(self, name: &str) -> Option<&'a Value> {
        let sections = sections(self.name);
        let mut found = sections
            .iter()
            .filter_map(|section| self.base.settings.get(&format!("{section}.{name}")));
        found.find(|value| !value.is_null())
    }

    /// A variable that is not blank.
    fn variable(self, name: &str) -> Option<&'a str> {
        let variable = format!("{}_{name}", self.variables);
        let value = self.base.environment.get(&variable).map(str::trim);
        value.filter(|value| !value.is_empty())
    }

    /// Switched on, or off, or neither.
    fn is_enabled(self) -> Option<bool> {
        if self.variable("ENABLED").is_some() {
            return Some(
                self.base
                    .environment
                    .is_on(&format!("{}_ENABLED", self.variables)),
            );
        }
        match self.get("enabled")? {
            Value::Bool(is_on) => Some(*is_on),
            Value::String(word) => Some(matches!(
                word.to_lowercase().as_str(),
                "true" | "on" | "yes"
            )),
            _ => None,
        }
    }

    fn text(self, variable: &str, name: &str) -> Option<String> {
        let written = || self.get(name).and_then(Value::as_str).map(str::trim);
        let text = self.variable(variable).or_else(written)?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A list, or a text with commas.
    fn list(self, variable: &str, name: &str) -> Vec<String> {
        let parts = |text: &str| -> Vec<String> {
            let parts = text.split(',').map(|part| part.trim().to_owned());
            parts.filter(|part| !part.is_empty()).collect()
        };
        if let Some(text) = self.variable(variable) {
            return parts(text);
        }
        match self.get(name) {
            Some(Value::Array(items)) => {
                let texts = items.iter().filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            Some(Value::String(text)) => parts(text),
            _ => Vec::new(),
        }
    }

    fn number(self, name: &str, usual: u64) -> Outcome<u64> {
        let Some(value) = self.get(name) else {
            return Ok(usual);
        };
        let read = value
            .as_u64()
            .or_else(|| value.as_str()?.trim().parse().ok());
        read.ok_or_else(|| self.wrong(name, &value.to_string(), "a whole number"))
    }

    fn port(self, usual: u16) -> Outcome<u16> {
        const EXPECTED: &str = "a port, from 0 to 65535";
        if let Some(word) = self.variable("PORT") {
            return word
                .parse()
                .map_err(|_| unusable(&format!("{}_PORT", self.variables), word, EXPECTED));
        }
        let port = self.number("port", usual.into())?;
        u16::try_from(port).map_err(|_| self.wrong("port", &port.to_string(), EXPECTED))
    }

    fn wrong(self, name: &str, found: &str, expected: &str) -> Failure {
        unusable(&format!("platforms.{}.{name}", self.name), found, expected)
    }
}

/// The sections that may say something of a platform, the one that counts first.
pub(super) fn sections(platform: &str) -> [String; 6] {
    [
        format!("platforms.{platform}"),
        format!("platforms.{platform}.extra"),
        format!("gateway.platforms.{platform}"),
        format!("gateway.platforms.{platform}.extra"),
        format!("gateway.{platform}"),
        platform.to_owned(),
    ]
}

fn unusable(name: &str, found: &str, expected: &str) -> Failure {
    Failure {
        code: code::SETTINGS,
        ..Failure::new(format!("`{name}` is `{found}`"))
    }
    .hint(format!("it takes {expected}"))
}
