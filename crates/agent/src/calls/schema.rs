//! Checks arguments against the part of JSON Schema that tools use, with messages a model can act on.

use hermes_core::text;
use serde_json::{Map, Value};

use super::coerce::{has_type, types_of};

/// Problems told at once. More would only bury the first.
const PROBLEMS_MAX: usize = 5;
/// Characters of a wrong value that are repeated to the model.
const VALUE_CHARS_MAX: usize = 100;

/// Returns what is wrong, in words. Empty when the arguments fit. Rules it does not know are not checked.
pub(super) fn problems(arguments: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(arguments, schema, "", &mut found);
    found.truncate(PROBLEMS_MAX);
    found
}

fn visit(value: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(rules) = schema else { return };
    if found.len() >= PROBLEMS_MAX {
        return;
    }
    let types = types_of(rules);
    if !types.is_empty() && !types.iter().any(|kind| has_type(value, kind)) {
        found.push(format!(
            "{} must be {}, not {}",
            name(path),
            types.join(" or "),
            kind_of(value)
        ));
        return;
    }
    if let Some(Value::Array(allowed)) = rules.get("enum")
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        found.push(format!(
            "{} must be one of {}, not {}",
            name(path),
            allowed.join(", "),
            text::shorten(&value.to_string(), VALUE_CHARS_MAX)
        ));
    }
    match value {
        Value::Object(fields) => visit_object(fields, rules, path, found),
        Value::Array(items) => visit_array(items, rules, path, found),
        Value::Number(number) => {
            visit_number(number.as_f64().unwrap_or_default(), rules, path, found);
        }
        Value::String(text) => visit_string(text, rules, path, found),
        _ => {}
    }
}

fn visit_object(
    fields: &Map<String, Value>,
    rules: &Map<String, Value>,
    path: &str,
    found: &mut Vec<String>,
) {
    let required = rules
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for field in required
        .filter_map(Value::as_str)
        .filter(|field| !fields.contains_key(*field))
    {
        found.push(format!("{} is missing", name(&join(path, field))));
    }
    let properties = rules.get("properties").and_then(Value::as_object);
    for (field, value) in fields {
        match properties.and_then(|properties| properties.get(field)) {
            Some(schema) => visit(value, schema, &join(path, field), found),
            None if rules.get("additionalProperties") == Some(&Value::Bool(false)) => {
                let known = properties
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(String::as_str);
                let near = text::nearest(field, known);
                let hint = near
                    .first()
                    .map(|near| format!(" (did you mean `{near}`?)"))
                    .unwrap_or_default();
                found.push(format!("{} is not known{hint}", name(&join(path, field))));
            }
            None => {}
        }
    }
}

fn visit_array(items: &[Value], rules: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let limit = |rule: &str| rules.get(rule).and_then(Value::as_u64);
    if limit("minItems").is_some_and(|least| (items.len() as u64) < least) {
        found.push(format!(
            "{} has too few elements ({})",
            name(path),
            items.len()
        ));
    }
    if limit("maxItems").is_some_and(|most| (items.len() as u64) > most) {
        found.push(format!(
            "{} has too many elements ({})",
            name(path),
            items.len()
        ));
    }
    if let Some(schema) = rules.get("items") {
        for (index, item) in items.iter().enumerate() {
            visit(item, schema, &join(path, &index.to_string()), found);
        }
    }
}

fn visit_number(number: f64, rules: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let limit = |rule: &str| rules.get(rule).and_then(Value::as_f64);
    if let Some(least) = limit("minimum").filter(|least| number < *least) {
        found.push(format!(
            "{} must be at least {least}, not {number}",
            name(path)
        ));
    }
    if let Some(most) = limit("maximum").filter(|most| number > *most) {
        found.push(format!(
            "{} must be at most {most}, not {number}",
            name(path)
        ));
    }
}

fn visit_string(text: &str, rules: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let least = rules.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    if (text.chars().count() as u64) < least {
        found.push(format!("{} must not be empty", name(path)));
    }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

fn name(path: &str) -> String {
    if path.is_empty() {
        "the arguments".into()
    } else {
        format!("`{path}`")
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: Value, expected: &[&str]) {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": 2000},
                "mode": {"enum": ["a", "b"]},
                "items": {"type": "array", "items": {"type": "object", "required": ["id"]}},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        assert_eq!(problems(&arguments, &schema), expected, "{arguments}");
    }

    #[test]
    fn problems_name_the_field_and_the_way_out() {
        check(json!({"path": "a", "limit": 5}), &[]);
        check(json!({}), &["`path` is missing"]);
        check(json!({"path": 5}), &["`path` must be string, not number"]);
        check(json!({"path": ""}), &["`path` must not be empty"]);
        check(
            json!({"path": "a", "limit": 0}),
            &["`limit` must be at least 1, not 0"],
        );
        check(
            json!({"path": "a", "mode": "c"}),
            &["`mode` must be one of \"a\", \"b\", not \"c\""],
        );
        check(
            json!({"path": "a", "limt": 1}),
            &["`limt` is not known (did you mean `limit`?)"],
        );
        check(
            json!({"path": "a", "items": [{"id": 1}, {}]}),
            &["`items.1.id` is missing"],
        );
    }

    #[test]
    fn a_schema_we_do_not_understand_lets_everything_pass() {
        assert!(problems(&json!({"a": 1}), &json!(true)).is_empty());
        assert!(problems(&json!({"a": 1}), &json!({"$ref": "#/x"})).is_empty());
    }
}
