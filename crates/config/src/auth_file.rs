//! Keys in `auth.json`: several per provider, for rotation. Read only; nothing here writes the file.

use std::collections::BTreeMap;

use hermes_core::Secret;
use serde_json::Value;

use crate::{
    disk::{ReadError, read_text},
    home::Home,
};

/// Returns the API keys of the credential pool by provider, in their order of priority.
///
/// A file that does not parse holds no keys we could use; it is left alone, and `None` says so.
pub fn stored_keys(home: &Home) -> Result<Option<BTreeMap<String, Vec<Secret>>>, ReadError> {
    let Some(text) = read_text(&home.directory().join("auth.json"))? else {
        return Ok(Some(BTreeMap::new()));
    };
    let Ok(file) = serde_json::from_str::<Value>(&text) else {
        return Ok(None);
    };
    let pools = file.get("credential_pool").and_then(Value::as_object);
    let pools = pools.into_iter().flatten().map(|(provider, entries)| {
        let mut entries: Vec<&Value> = entries.as_array().into_iter().flatten().collect();
        entries.sort_by_key(|entry| entry.get("priority").and_then(Value::as_i64).unwrap_or(0));
        let keys = entries.into_iter().filter_map(api_key);
        (provider.clone(), keys.collect())
    });
    Ok(Some(pools.collect()))
}

/// Tokens of a login expire and need refreshing; only plain keys can be used as they stand.
fn api_key(entry: &Value) -> Option<Secret> {
    let is_key = entry.get("auth_type").and_then(Value::as_str) == Some("api_key");
    let is_dead = entry.get("last_status").and_then(Value::as_str) == Some("dead");
    let key = entry.get("access_token").and_then(Value::as_str)?;
    (is_key && !is_dead && !key.is_empty()).then(|| Secret::new(key))
}
