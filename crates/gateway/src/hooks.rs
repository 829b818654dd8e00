//! What others may hear of, and have a say in: commands that the owner of the home put there (`hooks/` of the home).
//!
//! A hook that fails, or takes too long, changes nothing.

use hermes_core::BoxFuture;
use serde_json::{Value, json};

/// Something that happened, or is about to.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// `agent:start`, `command:new`.
    pub name: String,
    /// Who, where and what; an object.
    pub context: Value,
}

impl HookEvent {
    pub fn new(name: impl Into<String>, context: Value) -> Self {
        Self {
            name: name.into(),
            context,
        }
    }

    /// What a hook reads.
    pub fn to_json(&self) -> Value {
        json!({"event": self.name, "context": self.context})
    }
}

/// What hooks say to a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HookVerdict {
    #[default]
    Allow,
    /// It is not done.
    Deny { message: Option<String> },
    /// The hook did it itself.
    Handled { message: Option<String> },
    /// This line is done instead.
    Rewrite { line: String },
}

impl HookVerdict {
    /// Reads what a hook printed. What is nothing of the kind lets everything be.
    pub fn read(printed: &str) -> Self {
        let Ok(said) = serde_json::from_str::<Value>(printed.trim()) else {
            return Self::Allow;
        };
        let text = |keys: &[&str]| {
            let mut texts = keys.iter().filter_map(|key| said[*key].as_str());
            texts
                .find(|text| !text.trim().is_empty())
                .map(str::to_owned)
        };
        let message = text(&["message", "reason"]);
        match said["decision"].as_str() {
            Some("deny") => Self::Deny { message },
            Some("handled") => Self::Handled { message },
            Some("rewrite") => match text(&["command", "text", "line"]) {
                Some(line) => Self::Rewrite { line },
                None => Self::Allow,
            },
            _ => Self::Allow,
        }
    }
}

pub trait Hooks: Send + Sync {
    /// Tells of something that happened. Nobody waits for what hooks do then.
    fn tell(&self, event: HookEvent);

    /// Asks about something that is about to happen. A hook that fails allows it.
    fn ask(&self, event: HookEvent) -> BoxFuture<'_, HookVerdict>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_print_is_read_and_nonsense_allows() {
        let check = |printed: &str, verdict| assert_eq!(HookVerdict::read(printed), verdict);
        let some = |text: &str| Some(text.to_owned());
        for allows in [
            "",
            "ok",
            "[]",
            "{}",
            r#"{"decision":"rewrite"}"#,
            r#"{"decision":7}"#,
        ] {
            check(allows, HookVerdict::Allow);
        }
        check(
            " {\"decision\":\"deny\",\"message\":\"not now\"}\n",
            HookVerdict::Deny {
                message: some("not now"),
            },
        );
        check(
            r#"{"decision":"handled"}"#,
            HookVerdict::Handled { message: None },
        );
        check(
            r#"{"decision":"rewrite","command":"/status"}"#,
            HookVerdict::Rewrite {
                line: "/status".into(),
            },
        );
    }
}
