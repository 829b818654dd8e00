//! Hiding the values of settings that look like secrets, for everything we print.

use hermes_core::Secret;
use serde_json::Value;

use crate::key::Key;

const MASKED: &str = "***";

/// Names whose values are secrets, whatever stands before them.
const SECRET_ENDINGS: [&str; 9] = [
    "api_key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "private_key",
    "access_key",
    "authorization",
];

/// Sections whose every value may be a secret: the headers and environments of MCP servers.
const SECRET_SECTIONS: [&str; 3] = ["env", "headers", "extra_headers"];

/// Returns the value of the setting `key` with the texts in it that look like secrets replaced by `***`.
///
/// An empty key means all settings. A reference like `${OPENAI_API_KEY}` is no secret and stays.
pub fn mask(key: &str, value: &Value) -> Value {
    let key = key.parse::<Key>().ok();
    let segments = key.as_ref().map_or(&[][..], Key::segments);
    let (name, sections) = match segments.split_last() {
        Some((name, sections)) => (name.as_str(), sections),
        None => ("", segments),
    };
    let is_secret_section = |name: &String| SECRET_SECTIONS.contains(&name.as_str());
    mask_below(name, value, sections.iter().any(is_secret_section))
}

fn mask_below(name: &str, value: &Value, in_secret_section: bool) -> Value {
    let is_secret = in_secret_section || names_a_secret(name);
    match value {
        Value::Object(map) => {
            let below = is_secret || SECRET_SECTIONS.contains(&name);
            let entries = map
                .iter()
                .map(|(name, value)| (name.clone(), mask_below(name, value, below)));
            Value::Object(entries.collect())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| mask_below(name, item, in_secret_section))
            .collect(),
        Value::String(text) if is_secret && !text.is_empty() && !is_reference(text) => {
            MASKED.into()
        }
        Value::Number(_) if is_secret => MASKED.into(),
        value => value.clone(),
    }
}

/// Returns the texts whose names say that they are secrets. Of `Bearer x` the secret is `x`.
pub(crate) fn secrets(settings: &Value) -> Vec<Secret> {
    match settings {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if names_a_secret(name) => text
                    .split_whitespace()
                    .last()
                    .map(Secret::new)
                    .into_iter()
                    .collect(),
                value => secrets(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(secrets).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_reference(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.contains(['$', '{', '}']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_and_settings_are_not() {
        let settings = json!({
            "api_key": "sk-1", "key_env": "OPENAI_API_KEY", "max_tokens": 4096, "record_key": "ctrl+b",
            "bot_token": 12345, "empty": {"api_key": ""}, "reference": {"api_key": "${KEY}"},
            "headers": {"Authorization": "Bearer x", "X-Other": "y"}, "env": {"ANY": "z"},
            "list": [{"client_secret": "s"}],
        });
        assert_eq!(
            mask("", &settings),
            json!({
                "api_key": "***", "key_env": "OPENAI_API_KEY", "max_tokens": 4096, "record_key": "ctrl+b",
                "bot_token": "***", "empty": {"api_key": ""}, "reference": {"api_key": "${KEY}"},
                "headers": {"Authorization": "***", "X-Other": "***"}, "env": {"ANY": "***"},
                "list": [{"client_secret": "***"}],
            })
        );
        assert_eq!(mask("OPENAI_API_KEY", &json!("sk-1")), json!("***"));
        assert_eq!(
            mask("mcp_servers.x.headers.X-Other", &json!("y")),
            json!("***")
        );
        assert_eq!(mask("mcp_servers.x.command", &json!("y")), json!("y"));
    }

    #[test]
    fn secrets_are_found_by_their_names() {
        let settings = json!({
            "api_key": "sk-1", "max_tokens": 4096, "env": {"MODE": "production", "GH_TOKEN": "t"},
            "headers": {"Authorization": "Bearer x"}, "list": [{"client_secret": "s"}], "empty": {"api_key": ""},
        });
        let found = secrets(&settings);
        let found: Vec<&str> = found.iter().map(Secret::expose).collect();
        assert_eq!(found, ["sk-1", "t", "x", "s"]);
    }
}
