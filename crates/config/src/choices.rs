//! Settings that take one of a few words.

use serde_json::Value;

/// Each with the words it takes, in the order they are told.
const CHOICES: [(&str, &[&str]); 9] = [
    ("approvals.edits", &["auto", "ask"]),
    ("approvals.headless", &["deny", "allow"]),
    ("approvals.mode", &["manual", "smart", "off"]),
    ("code_execution.mode", &["project", "strict"]),
    (
        "display.tool_progress",
        &["", "off", "new", "all", "verbose", "log"],
    ),
    ("display.busy_input_mode", &["interrupt", "queue", "steer"]),
    ("display.edit_mode", &["emacs", "vi"]),
    (
        "terminal.backend",
        &[
            "local",
            "docker",
            "ssh",
            "singularity",
            "apptainer",
            "modal",
            "daytona",
        ],
    ),
    ("terminal.sandbox", &["off", "project", "strict", "offline"]),
];

/// Returns the words that a setting takes, as a person is told them; nothing for one that takes any.
pub fn choices(key: &str) -> Option<String> {
    words(key).map(|words| match words {
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    })
}

/// Whether the value is a word that the setting does not take.
pub(crate) fn is_refused(key: &str, value: &Value) -> bool {
    match (words(key), value) {
        (Some(words), Value::String(word)) => !words.contains(&word.as_str()),
        _ => false,
    }
}

fn words(key: &str) -> Option<&'static [&'static str]> {
    let choice = CHOICES.iter().find(|(name, _)| *name == key);
    choice.map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Settings;

    #[test]
    fn only_words_that_stand_there_are_taken() {
        assert!(!is_refused("display.edit_mode", &json!("vi")));
        assert!(is_refused("display.edit_mode", &json!("vim")));
        assert!(!is_refused("display.personality", &json!("vim")));
        // YAML reads a bare `off` as false.
        assert!(!is_refused("approvals.mode", &json!(false)));
        let told = choices("approvals.mode");
        assert_eq!(told.as_deref(), Some("manual, smart or off"));
        assert_eq!(choices("timezone"), None);
    }

    #[test]
    fn what_is_built_in_is_among_the_choices() {
        let defaults = Settings::defaults();
        for (key, words) in CHOICES {
            let word = defaults.get(key).and_then(Value::as_str);
            assert!(word.is_some_and(|word| words.contains(&word)), "{key}");
        }
    }
}
