//! An event as it came: what it is called, which delivery it is, what it says.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::signature::Signed;
use crate::api::ids::{hex, sha256_of};

/// The headers that name a delivery.
const DELIVERY_IDS: [&str; 5] = [
    "x-github-delivery",
    "svix-id",
    "webhook-id",
    "x-gitlab-event-uuid",
    "x-request-id",
];
const EVENTS: [&str; 2] = ["x-github-event", "x-gitlab-event"];
const EVENT_FIELDS: [&str; 4] = ["event_type", "event", "type", "object_kind"];
const NAME_CHARS_MAX: usize = 200;

/// What the event is called: by its sender, or by itself.
pub(super) fn name(headers: &HeaderMap, event: &Value) -> String {
    let headers = EVENTS.iter().filter_map(|name| text(headers, name));
    let fields = EVENT_FIELDS
        .iter()
        .filter_map(|name| event[*name].as_str().map(str::to_owned));
    headers
        .chain(fields)
        .next()
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The names under which a delivery is known. One that was seen under any of them is a second time.
///
/// Where the signature covers neither id nor time, whoever saw an event could send it again under another id, so that the
/// body counts too.
pub(super) fn delivery_ids(headers: &HeaderMap, body: &[u8], signed: Signed) -> Vec<String> {
    let named = DELIVERY_IDS.iter().find_map(|name| text(headers, name));
    let is_github = headers.contains_key("x-hub-signature-256");
    let mut ids: Vec<String> = named.into_iter().collect();
    if ids.is_empty() || (is_github && signed == Signed::Body) {
        ids.push(format!("body-{}", hex(sha256_of(body).as_ref(), 16)));
    }
    ids
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.chars().take(NAME_CHARS_MAX).collect())
}

/// Reads what it says: JSON, or a form with JSON in its field `payload`.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Value, String> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_form = kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    if !is_form {
        return serde_json::from_slice(body)
            .map_err(|error| format!("the body is not JSON: {error}"));
    }
    let fields: Vec<_> = form_urlencoded::parse(body).into_owned().collect();
    let payload = fields.iter().find(|(name, _)| name == "payload");
    match payload {
        Some((_, payload)) => serde_json::from_str(payload)
            .map_err(|error| format!("the field `payload` is not JSON: {error}")),
        None => Ok(Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let read = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        read.collect()
    }

    #[test]
    fn events_are_named_by_their_sender_or_by_themselves() {
        let body = json!({"type": "invoice.paid"});
        assert_eq!(name(&headers(&[("x-github-event", "push")]), &body), "push");
        assert_eq!(name(&headers(&[]), &body), "invoice.paid");
        assert_eq!(name(&headers(&[]), &json!([])), "unknown");
    }

    #[test]
    fn a_replay_under_another_id_is_known_by_its_body() {
        let first = headers(&[("x-github-delivery", "1"), ("x-hub-signature-256", "s")]);
        let again = headers(&[("x-github-delivery", "2"), ("x-hub-signature-256", "s")]);
        let ids = |headers: &HeaderMap| delivery_ids(headers, b"{}", Signed::Body);
        assert_ne!(ids(&first)[0], ids(&again)[0]);
        assert_eq!(ids(&first)[1], ids(&again)[1]);
        let svix = headers(&[("svix-id", "msg_1")]);
        assert_eq!(delivery_ids(&svix, b"{}", Signed::WithTime), ["msg_1"]);
    }

    #[test]
    fn forms_bring_json_along() {
        let form = headers(&[("content-type", "application/x-www-form-urlencoded")]);
        let read_form = |body: &[u8]| read(&form, body);
        assert_eq!(read_form(b"payload=%7B%22a%22%3A1%7D"), Ok(json!({"a": 1})));
        assert_eq!(read_form(b"a=1&b=x+y"), Ok(json!({"a": "1", "b": "x y"})));
        assert!(read(&headers(&[]), b"a=1").is_err());
    }
}
