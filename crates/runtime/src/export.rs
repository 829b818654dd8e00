//! Whole conversations, for other programs or for reading.

use hermes_core::redact::redact;
use hermes_core::{Archive as _, SessionId, Store as _};
use hermes_store::SqliteStore;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::shown::transcript;

/// How a conversation is written.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub format: Format,
    pub redacts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One session per line: its record, with its messages.
    JsonLines,
    Markdown,
}

impl Manner {
    pub fn new(format: &str, redacts: bool) -> Self {
        let format = match format {
            "md" => Format::Markdown,
            _ => Format::JsonLines,
        };
        Self { format, redacts }
    }
}

/// One session, as it is written.
pub async fn session_text(
    store: &SqliteStore,
    session: &SessionId,
    manner: Manner,
) -> Result<String> {
    let record = store.load(session).await?.record;
    let lines = store.transcript(session).await?;
    Ok(match manner.format {
        Format::Markdown => {
            let text = transcript::markdown(&record, &lines);
            if manner.redacts { redact(&text) } else { text }
        }
        Format::JsonLines => {
            let mut value = json!(record);
            value["transcript"] = json!(lines);
            if manner.redacts {
                redact_texts(&mut value);
            }
            format!("{value}\n")
        }
    })
}

/// Redacts every text on its own, so that the JSON around it stays whole. Pictures and sound are not text.
fn redact_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(redact_texts),
        Value::Object(fields) if is_media(fields) => {}
        Value::Object(fields) => fields.values_mut().for_each(redact_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether this is a [`hermes_core::Media`] that holds its bytes.
fn is_media(fields: &Map<String, Value>) -> bool {
    let data = fields.get("source").and_then(|source| source.get("base64"));
    fields.len() == 2 && fields.contains_key("mime") && data.is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Media, MediaSource};

    #[test]
    fn redaction_keeps_the_json_whole() {
        let mut value = json!({"a": ["api_key=abcdefgh12345 \"quoted\""], "n": 1});
        redact_texts(&mut value);
        assert_eq!(value, json!({"a": ["api_key=*** \"quoted\""], "n": 1}));
    }

    #[test]
    fn pictures_are_not_searched_for_secrets() {
        let looks_secret = "sk-proj-abc123def456ghi789jkl".to_owned();
        let picture = Media {
            mime: "image/png".into(),
            source: MediaSource::Base64(looks_secret.clone()),
        };
        let mut value = json!({"image": picture, "base64": looks_secret});
        redact_texts(&mut value);
        assert_eq!(value["image"], json!(picture));
        assert_ne!(value["base64"], json!(looks_secret));
    }
}
