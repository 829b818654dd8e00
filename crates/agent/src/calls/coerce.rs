//! Repairs arguments whose value is right and whose type is not: `"10"` for 10, `"a"` for `["a"]`.

use serde_json::{Map, Number, Value};

/// Returns the value brought to the types its schema asks for, where that loses nothing.
pub(super) fn coerce(value: Value, schema: &Value) -> Value {
    let Value::Object(rules) = schema else {
        return value;
    };
    let types = types_of(rules);
    if types.is_empty() || types.iter().any(|kind| has_type(&value, kind)) {
        return inside(value, rules);
    }
    let coerced = types.iter().find_map(|kind| to_type(&value, kind));
    inside(coerced.unwrap_or(value), rules)
}

/// Goes into the elements of a container.
fn inside(value: Value, rules: &Map<String, Value>) -> Value {
    match value {
        Value::Array(items) => match rules.get("items") {
            Some(schema) => items.into_iter().map(|item| coerce(item, schema)).collect(),
            None => Value::Array(items),
        },
        Value::Object(fields) => {
            let properties = rules.get("properties");
            let fields = fields.into_iter().map(|(name, field)| {
                let field = match properties.and_then(|properties| properties.get(&name)) {
                    Some(schema) => coerce(field, schema),
                    None => field,
                };
                (name, field)
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

pub(super) fn types_of(rules: &Map<String, Value>) -> Vec<&str> {
    let mut types: Vec<&str> = match rules.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if rules.get("nullable") == Some(&Value::Bool(true)) {
        types.push("null");
    }
    types
}

pub(super) fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn to_type(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("null", Value::String(text)) if text == "null" => Some(Value::Null),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") => {
            Some(Value::Bool(true))
        }
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") => {
            Some(Value::Bool(false))
        }
        ("integer" | "number", Value::String(text)) => to_number(text, kind),
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(truth)) => Some(Value::String(truth.to_string())),
        ("object", Value::String(text)) => parse(text).filter(Value::is_object),
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => Some(
            parse(text)
                .filter(Value::is_array)
                .unwrap_or_else(|| Value::Array(vec![value.clone()])),
        ),
        ("array", Value::Null) => None,
        ("array", scalar) => Some(Value::Array(vec![scalar.clone()])),
        _ => None,
    }
}

fn to_number(text: &str, kind: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let number: f64 = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some(Value::from(number as i64));
    }
    if kind == "integer" {
        None
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value, schema: Value, expected: Value) {
        assert_eq!(
            coerce(value.clone(), &schema),
            expected,
            "{value} as {schema}"
        );
    }

    #[test]
    fn numbers_and_truths_come_out_of_strings() {
        check(json!("10"), json!({"type": "integer"}), json!(10));
        check(json!("10.0"), json!({"type": "integer"}), json!(10));
        check(json!("5.5"), json!({"type": "integer"}), json!("5.5"));
        check(json!("5.5"), json!({"type": "number"}), json!(5.5));
        check(json!("inf"), json!({"type": "number"}), json!("inf"));
        check(json!("TRUE"), json!({"type": "boolean"}), json!(true));
        check(json!("maybe"), json!({"type": "boolean"}), json!("maybe"));
        check(json!(7), json!({"type": "string"}), json!("7"));
    }

    #[test]
    fn scalars_become_lists_and_texts_become_containers() {
        check(
            json!("http://a"),
            json!({"type": "array"}),
            json!(["http://a"]),
        );
        check(json!("[1,2]"), json!({"type": "array"}), json!([1, 2]));
        check(
            json!("[broken"),
            json!({"type": "array"}),
            json!(["[broken"]),
        );
        check(json!(null), json!({"type": "array"}), json!(null));
        check(
            json!("{\"a\":1}"),
            json!({"type": "object"}),
            json!({"a": 1}),
        );
        check(
            json!("null"),
            json!({"type": ["array", "null"]}),
            json!(["null"]),
        );
        check(
            json!("null"),
            json!({"type": ["null", "integer"]}),
            json!(null),
        );
    }

    #[test]
    fn elements_are_repaired_in_depth() {
        let schema = json!({"type": "object", "properties": {
            "todos": {"type": "array", "items": {"type": "object", "properties": {"done": {"type": "boolean"}}}},
        }});
        let value = json!({"todos": ["{\"done\": \"true\"}"], "unknown": "10"});
        check(
            value,
            schema,
            json!({"todos": [{"done": true}], "unknown": "10"}),
        );
    }

    #[test]
    fn a_value_of_an_allowed_type_is_untouched() {
        check(
            json!("10"),
            json!({"type": ["integer", "string"]}),
            json!("10"),
        );
        check(json!({"a": "1"}), json!({}), json!({"a": "1"}));
    }
}
