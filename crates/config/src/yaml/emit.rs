//! Writing values as YAML: on one line, in brackets, or by indentation.

use serde_json::Value;

use super::scalar::quote;

/// Spaces per level in text that we write.
const INDENT: usize = 2;

/// Writes a value that fits on one line in block style; `None` for a collection with content.
pub(super) fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) if !map.is_empty() => None,
        Value::Array(items) if !items.is_empty() => None,
        value => Some(flow(value)),
    }
}

/// Writes any value on one line.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", quote(key), flow(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Writes a value as lines indented by `indent`, without a newline at the end.
pub(crate) fn block(value: &Value, indent: usize, newline: &str) -> String {
    let mut lines = Vec::new();
    push_block(value, indent, &mut lines);
    lines.join(newline)
}

fn push_block(value: &Value, indent: usize, lines: &mut Vec<String>) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let key = quote(key);
                if let Some(text) = inline(value) {
                    lines.push(format!("{margin}{key}: {text}"));
                } else {
                    lines.push(format!("{margin}{key}:"));
                    push_block(value, indent + INDENT, lines);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let first = lines.len();
                push_block(item, indent + INDENT, lines);
                // The item's first line starts beside its dash.
                let text = lines[first].trim_start().to_owned();
                lines[first] = format!("{margin}- {text}");
            }
        }
        value => lines.push(format!("{margin}{}", flow(value))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_values_are_written_by_indentation() {
        let value = json!({"a": {"b": [1, {"c": "x", "d": [[2], []]}]}, "e": {}, "f.g": null});
        assert_eq!(
            block(&value, 0, "\n"),
            "a:\n  b:\n    - 1\n    - c: x\n      d:\n        - - 2\n        - []\ne: {}\nf.g: null"
        );
    }

    #[test]
    fn any_value_fits_on_one_line() {
        assert_eq!(
            flow(&json!({"a": [1, "b c"], "d": {}})),
            "{a: [1, b c], d: {}}"
        );
    }
}
