//! Older and shorter spellings of settings, understood everywhere the current ones are.

use serde_json::Value;

use crate::{
    key::Key,
    yaml::{Content, Node},
};

/// Spellings and the settings they mean. The current spelling wins where both are written.
const ALIASES: [(&[&str], &[&str]); 7] = [
    (&["max_turns"], &["agent", "max_turns"]),
    (&["provider"], &["model", "provider"]),
    (&["base_url"], &["model", "base_url"]),
    (&["api_base"], &["model", "base_url"]),
    (&["context_length"], &["model", "context_length"]),
    (&["model", "model"], &["model", "default"]),
    (&["model", "name"], &["model", "default"]),
];

/// The section that may be written as its one most important value: `model: NAME`.
const MODEL: &str = "model";
const MODEL_DEFAULT: [&str; 2] = [MODEL, "default"];

/// Moves values from older spellings to the current ones.
pub(crate) fn normalise(root: &mut Node) {
    if is_short_model(root)
        && let Some(model) = root.take(&owned(&[MODEL]))
    {
        root.put(&owned(&MODEL_DEFAULT), model);
    }
    for (old, new) in ALIASES {
        if let Some(node) = root.take(&owned(old)) {
            let is_taken = root
                .find(&owned(new))
                .is_some_and(|current| !is_blank(current));
            if !is_taken {
                root.put(&owned(new), node);
            }
        }
    }
}

/// Returns the current spelling of a key that a user typed.
pub(crate) fn canonical(key: Key) -> Key {
    let renamed = ALIASES
        .iter()
        .find(|(old, _)| key.segments() == *old)
        .and_then(|(_, new)| Key::from_segments(owned(new)));
    renamed.unwrap_or(key)
}

/// Returns the paths under which a file has the setting `key`, the one that counts first.
pub(crate) fn spellings(root: Option<&Node>, key: &Key) -> Vec<Vec<String>> {
    let Some(root) = root else {
        return Vec::new();
    };
    let current = key.segments().to_vec();
    let short_model = (current == MODEL_DEFAULT && is_short_model(root)).then(|| owned(&[MODEL]));
    let older = ALIASES
        .iter()
        .filter(|(_, new)| key.segments() == *new)
        .map(|(old, _)| owned(old));
    let all = short_model.into_iter().chain([current]).chain(older);
    all.filter(|path| root.find(path).is_some()).collect()
}

/// Tells whether the document writes `model: NAME`.
pub(crate) fn is_short_model(root: &Node) -> bool {
    root.child(MODEL)
        .is_some_and(|model| matches!(model.content, Content::Scalar(_)) && !model.is_null())
}

fn is_blank(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(Value::Null) => true,
        Content::Scalar(Value::String(text)) => text.is_empty(),
        _ => false,
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|&segment| segment.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        let mut root = crate::yaml::parse(text).unwrap().unwrap();
        normalise(&mut root);
        assert_eq!(root.to_value(), *expected);
    }

    #[test]
    fn older_spellings_mean_the_current_settings() {
        check("max_turns: 5", &json!({"agent": {"max_turns": 5}}));
        check(
            "model: gpt\nprovider: x",
            &json!({"model": {"default": "gpt", "provider": "x"}}),
        );
        check(
            "model: {name: gpt}\napi_base: u",
            &json!({"model": {"default": "gpt", "base_url": "u"}}),
        );
        check("model:\nprovider: x", &json!({"model": {"provider": "x"}}));
    }

    #[test]
    fn the_current_spelling_wins() {
        check(
            "max_turns: 5\nagent: {max_turns: 7}",
            &json!({"agent": {"max_turns": 7}}),
        );
        check(
            "model: {default: '', model: gpt}",
            &json!({"model": {"default": "gpt"}}),
        );
    }
}
