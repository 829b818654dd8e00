//! `WWW-Authenticate`: where to find out how to log in, and what a token lacks.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::json;

use super::http::{Web, exchange};

/// Asks a server for something harmless, without a token, and returns how it refuses.
///
/// Many servers refuse only what clients really send, so it is a message. One that cannot be asked gives no challenge:
/// the usual places are looked at then.
pub(super) async fn challenge(url: &str, web: &Web) -> Option<String> {
    let client = web.client(url).await.ok()?;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let request = client
        .post(url)
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(ping.to_string());
    let answer = exchange(&client, request.build().ok()?).await.ok()?;
    (answer.status() == 401).then(|| best(answer.headers()))?
}

/// Chooses among several challenges the one that leads further.
fn best(headers: &HeaderMap) -> Option<String> {
    let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
    let leads_further = |challenge: &&&str| parameter(challenge, "resource_metadata").is_some();
    let chosen = challenges.iter().find(leads_further);
    chosen
        .or(challenges.first())
        .map(|challenge| (*challenge).to_owned())
}

/// Returns the scope that a challenge asks for, if the token lacks it.
pub(crate) fn missing_scope(challenge: &str) -> Option<String> {
    (parameter(challenge, "error")? == "insufficient_scope")
        .then(|| parameter(challenge, "scope"))?
}

/// Returns a parameter of a challenge, with or without quotes around its value.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let at = rest.find(name)?;
        let is_whole = rest[..at].ends_with([' ', ',']) || at == 0;
        let value = &rest[at + name.len()..];
        match value.trim_start().strip_prefix('=') {
            Some(value) if is_whole => return Some(unquoted(value.trim_start())),
            _ => rest = value,
        }
    }
}

fn unquoted(value: &str) -> String {
    let end = |text: &str, stop: &[char]| text.find(stop).unwrap_or(text.len());
    match value.strip_prefix('"') {
        Some(quoted) => quoted[..end(quoted, &['"'])].to_owned(),
        None => value[..end(value, &[',', ' '])].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_scope_is_read_from_any_spelling() {
        let found = |challenge| missing_scope(challenge);
        let scope = Some("files:read files:write".to_owned());
        assert_eq!(
            found(r#"Bearer error="insufficient_scope", scope="files:read files:write""#),
            scope
        );
        assert_eq!(
            found(r#"Bearer scope="files:read files:write",error=insufficient_scope"#),
            scope
        );
        assert_eq!(found(r#"Bearer error="invalid_token", scope="a""#), None);
        assert_eq!(found(r#"Bearer error="insufficient_scope""#), None);
        assert_eq!(
            found(r#"Bearer error_description="scope=x", error="insufficient_scope", scope=y"#),
            Some("y".to_owned())
        );
        assert_eq!(found("Basic realm=x"), None);
    }
}
