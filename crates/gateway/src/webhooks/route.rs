//! Where events come in, and what is done with them.

use hermes_core::Secret;
use serde_json::{Map, Value};

use super::filter::Filter;

/// In place of a secret it says that anybody may send; only on this machine.
pub const NO_AUTH: &str = "INSECURE_NO_AUTH";

/// A place of the known program that answers do not go to here.
const GITHUB_COMMENT: &str = "github_comment";

/// One address for events, as it stands in the settings or among the subscriptions.
#[derive(Debug, Clone)]
pub struct Route {
    pub name: String,
    pub description: String,
    /// That of all routes without one.
    pub secret: Option<Secret>,
    /// The events that count; all without one.
    pub events: Vec<String>,
    /// What the agent is told, with places for what the event says.
    pub prompt: String,
    pub skills: Vec<String>,
    pub deliver: String,
    /// What is sent is the prompt itself: no model is asked.
    pub deliver_only: bool,
    pub filters: Vec<Filter>,
    /// A file below `scripts/` of the home, which reads the event and says what becomes of it.
    pub script: Option<String>,
    pub enabled: bool,
}

impl Route {
    /// Reads a route. The error says what is wrong with it, for whoever wrote it.
    pub fn read(name: &str, written: &Value) -> Result<Self, String> {
        check_name(name)?;
        let Value::Object(fields) = written else {
            return Err("it must be a section with settings".to_owned());
        };
        let secret = text(fields, "secret")?;
        Ok(Self {
            name: name.to_owned(),
            description: text(fields, "description")?.unwrap_or_default(),
            secret: secret.filter(|secret| !secret.is_empty()).map(Secret::new),
            events: list(fields, "events")?,
            prompt: text(fields, "prompt")?.unwrap_or_default(),
            skills: list(fields, "skills")?,
            deliver: target(fields)?,
            deliver_only: flag(fields, "deliver_only", false)?,
            filters: Filter::read_all(fields.get("filters").unwrap_or(&Value::Null))?,
            script: text(fields, "script")?.filter(|script| !script.trim().is_empty()),
            enabled: flag(fields, "enabled", true)?,
        })
    }
}

/// Names become part of addresses and of file names.
pub fn check_name(name: &str) -> Result<(), String> {
    const CHARS_MAX: usize = 64;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > CHARS_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "a route is named with up to {CHARS_MAX} lower-case letters, digits, `-` and `_`"
        ));
    }
    Ok(())
}

/// `deliver`, and the chat that `deliver_extra` names.
fn target(fields: &Map<String, Value>) -> Result<String, String> {
    let mut target = text(fields, "deliver")?.unwrap_or_else(|| "log".to_owned());
    if target == GITHUB_COMMENT {
        return Err(format!(
            "`deliver: {GITHUB_COMMENT}` is not there in this version; write `deliver: log`, and let the prompt tell the agent to \
             comment with `gh`"
        ));
    }
    let Some(Value::Object(extra)) = fields.get("deliver_extra") else {
        return Ok(target);
    };
    for name in ["chat_id", "thread_id"] {
        match extra.get(name) {
            None | Some(Value::Null) => break,
            Some(Value::String(id)) => target.push_str(&format!(":{id}")),
            Some(Value::Number(id)) => target.push_str(&format!(":{id}")),
            Some(_) => return Err(format!("`deliver_extra.{name}` must be a text")),
        }
    }
    Ok(target)
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` must be a text")),
    }
}

fn list(fields: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` must be a list of texts");
    match fields.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => {
            let parts = text.split(',').map(|part| part.trim().to_owned());
            Ok(parts.filter(|part| !part.is_empty()).collect())
        }
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

fn flag(fields: &Map<String, Value>, name: &str, usual: bool) -> Result<bool, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(usual),
        Some(Value::Bool(is_on)) => Ok(*is_on),
        Some(_) => Err(format!("`{name}` must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_route_is_read_as_it_is_written() {
        let route = Route::read(
            "pull-requests",
            &json!({"secret": "s", "events": ["pull_request"], "prompt": "look at {number}", "deliver": "telegram",
                "deliver_extra": {"chat_id": 42, "thread_id": "7"}, "filters": {"action": "opened"}}),
        )
        .unwrap();
        assert_eq!(route.deliver, "telegram:42:7");
        assert!(route.enabled && !route.deliver_only);
        assert_eq!(route.filters.len(), 1);
        assert_eq!(Route::read("r", &json!({})).unwrap().deliver, "log");
    }

    #[test]
    fn what_is_wrong_with_a_route_is_said() {
        for (name, written, phrase) in [
            ("Ups", json!({}), "lower-case"),
            ("../x", json!({}), "lower-case"),
            ("r", json!("x"), "section"),
            ("r", json!({"events": 7}), "`events`"),
            ("r", json!({"secret": 7}), "`secret`"),
            ("r", json!({"script": 7}), "`script`"),
            ("r", json!({"deliver": "github_comment"}), "`gh`"),
            ("r", json!({"enabled": "yes"}), "`enabled`"),
        ] {
            let error = Route::read(name, &written).unwrap_err();
            assert!(error.contains(phrase), "{error}");
        }
    }
}
