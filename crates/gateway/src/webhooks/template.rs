//! Words with places for what an event says: `{pull_request.title}`.

use hermes_core::text::shorten;
use serde_json::Value;

/// The whole event, as JSON.
const RAW: &str = "__raw__";
const RAW_CHARS_MAX: usize = 4_000;
const VALUE_CHARS_MAX: usize = 2_000;

/// Fills in what the event says. What it does not say stays as it is written.
pub(super) fn filled(template: &str, event: &Value) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        match behind.split_once('}') {
            Some((path, after)) if is_path(path) => {
                match value(event, path) {
                    Some(value) => text.push_str(&value),
                    None => text.push_str(&format!("{{{path}}}")),
                }
                rest = after;
            }
            _ => {
                text.push('{');
                rest = behind;
            }
        }
    }
    text.push_str(rest);
    text
}

fn is_path(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@');
    !text.is_empty() && text.chars().all(is_part)
}

fn value(event: &Value, path: &str) -> Option<String> {
    if path == RAW {
        let raw = serde_json::to_string_pretty(event).ok()?;
        return Some(shorten(&raw, RAW_CHARS_MAX));
    }
    Some(shorten(&shown(at(event, path)?), VALUE_CHARS_MAX))
}

/// What stands at a path: names of fields, and numbers of items.
pub(super) fn at<'a>(event: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(event, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

/// A value as people write it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_filled_and_the_rest_stays() {
        let event = json!({"a": {"b": "x", "n": 7, "list": ["p", {"q": true}]}, "none": null});
        let check = |template: &str, expected: &str| assert_eq!(filled(template, &event), expected);
        check("it is {a.b}.", "it is x.");
        check("{a.n} {a.list.0} {a.list.1.q} {none}", "7 p true ");
        check(
            "{a.missing} {} { x } {\"a\": 1} }{",
            "{a.missing} {} { x } {\"a\": 1} }{",
        );
        check("{a.list}", r#"["p",{"q":true}]"#);
        check("{{a.b}}", "{x}");
        assert!(filled("{__raw__}", &event).contains("\"list\""));
    }

    #[test]
    fn what_is_long_is_cut_and_what_is_filled_in_is_not_filled_again() {
        let event = json!({"long": "y".repeat(5_000), "evil": "{secret}", "secret": "s"});
        assert!(filled("{long}", &event).chars().count() <= VALUE_CHARS_MAX);
        assert!(filled("{__raw__}", &event).chars().count() <= RAW_CHARS_MAX);
        assert_eq!(filled("{evil}", &event), "{secret}");
    }
}
