//! An event as it came: what it is called, which delivery it is, what it says.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::signature::Signed;
use crate::api::ids::{hex, sha256_of};

/// What the name of a delivery begins with that is known by its body alone.
pub(super) const BODY: &str = "body-";

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
/// Where the signature does not cover the name that the sender gives it, whoever saw the event could send it again under
/// another, so that what is signed counts too. Where it does, no other name counts: anybody could have added it.
pub(super) fn delivery_ids(headers: &HeaderMap, body: &[u8], signed: &Signed) -> Vec<String> {
    let of_body = || format!("{BODY}{}", hex(sha256_of(body).as_ref(), 16));
    let named = || DELIVERY_IDS.iter().find_map(|name| text(headers, name));
    match signed {
        Signed::Id(id) => vec![shortened(id)],
        Signed::Time(time) => {
            let signed = [time.as_bytes(), b".", body].concat();
            let of_time = format!("time-{}", hex(sha256_of(&signed).as_ref(), 16));
            vec![named().unwrap_or_else(of_body), of_time]
        }
        Signed::Body => named().into_iter().chain([of_body()]).collect(),
        Signed::Token => vec![named().unwrap_or_else(of_body)],
    }
}

/// A name as records have it: two that are long and begin alike are two.
fn shortened(id: &str) -> String {
    if id.chars().count() <= NAME_CHARS_MAX {
        return id.to_owned();
    }
    format!("id-{}", hex(sha256_of(id.as_bytes()).as_ref(), 32))
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
    fn a_replay_under_another_id_is_known_by_what_is_signed() {
        let again = |signed: &Signed, one: &'static str, other: &'static str| {
            let ids = |name| delivery_ids(&headers(&[(name, "x")]), b"{}", signed);
            let first = delivery_ids(&headers(&[(one, "1")]), b"{}", signed);
            ids(other).iter().any(|id| first.contains(id))
        };
        let time = Signed::Time("1794777845".to_owned());
        let id = Signed::Id("msg_1".to_owned());
        for (signed, is_known) in [
            (&Signed::Body, true),
            (&time, true),
            (&id, true),
            (&Signed::Token, false),
        ] {
            for (one, other) in [
                ("x-github-delivery", "x-github-delivery"),
                ("x-request-id", "x-github-delivery"),
            ] {
                assert_eq!(again(signed, one, other), is_known, "{signed:?} {other}");
            }
        }
        let later = Signed::Time("1794777846".to_owned());
        let named = headers(&[("x-request-id", "2")]);
        assert!(!delivery_ids(&named, b"{}", &later).iter().any(|id| {
            delivery_ids(&headers(&[("x-request-id", "1")]), b"{}", &time).contains(id)
        }));
        let svix = headers(&[("svix-id", "msg_1"), ("x-github-delivery", "x")]);
        assert_eq!(delivery_ids(&svix, b"{}", &id), ["msg_1"]);
        assert_eq!(delivery_ids(&headers(&[]), b"{}", &Signed::Body).len(), 1);
    }

    #[test]
    fn long_names_that_begin_alike_are_two() {
        let id = |end: &str| Signed::Id(format!("{}{end}", "x".repeat(300)));
        let ids = |end: &str| delivery_ids(&headers(&[]), b"{}", &id(end));
        assert_ne!(ids("1"), ids("2"));
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
