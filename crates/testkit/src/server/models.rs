//! The model lists of the APIs.

use serde_json::{Value, json};

use super::wire::CREATED_S;

/// Lists models with the fields of OpenAI and of Anthropic, who share the path, and the length that vLLM adds.
pub(super) fn openai(names: &[String], context_length: Option<u64>) -> Value {
    let models = names.iter().map(|id| {
        json!({"max_model_len": context_length, "id": id, "object": "model", "created": CREATED_S, "owned_by": "script",
            "type": "model", "display_name": id, "created_at": "2023-11-14T22:13:20Z"})
    });
    json!({"object": "list", "data": models.collect::<Vec<_>>(), "has_more": false,
        "first_id": names.first(), "last_id": names.last()})
}

pub(super) fn gemini(names: &[String]) -> Value {
    let models = names.iter().map(|id| {
        json!({"name": format!("models/{id}"), "displayName": id,
            "supportedGenerationMethods": ["generateContent"]})
    });
    json!({"models": models.collect::<Vec<_>>()})
}

pub(super) fn ollama(names: &[String]) -> Value {
    let models = names.iter().map(|id| {
        json!({"name": id, "model": id, "modified_at": "2023-11-14T22:13:20Z", "size": 1,
            "digest": "0", "details": {"format": "gguf", "family": "scripted"}})
    });
    json!({"models": models.collect::<Vec<_>>()})
}
