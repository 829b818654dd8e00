//! Turns the schemas that servers send into schemas that every model provider accepts.
//!
//! Pure, and never fails: what cannot be understood becomes an object without properties. Nothing is resolved or
//! expanded, so a schema that refers to itself is as harmless as any other; nesting is cut at a depth limit.

use serde_json::{Map, Value, json};

/// Deeper schemas are cut: far beyond anything a model could fill in.
const DEPTH_MAX: usize = 64;

/// Keys that a collapsed union hands down to the branch that is left.
const CARRIED: &[&str] = &["title", "description", "default", "examples"];

/// Keywords that some endpoints refuse at the top level.
const REFUSED_AT_TOP: &[&str] = &["allOf", "anyOf", "oneOf", "enum", "not"];

/// Normalises a tool's input schema. The result is always an object schema with `properties`.
pub(crate) fn normalised(schema: &Value) -> Value {
    let mut top = match node(schema, 0) {
        Value::Object(map) => map,
        _ => empty_object(),
    };
    for keyword in REFUSED_AT_TOP {
        top.remove(*keyword);
    }
    top.insert("type".into(), json!("object"));
    ensure_properties(&mut top);
    Value::Object(top)
}

/// Normalises one place where a schema is expected.
fn node(schema: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Object(empty_object());
    }
    match schema {
        Value::Object(map) => Value::Object(object_node(map, depth)),
        Value::String(name) => named_type(name),
        _ => Value::Object(empty_object()),
    }
}

/// Reads a bare type name, which some servers write where a schema belongs.
fn named_type(name: &str) -> Value {
    match name {
        "string" | "number" | "integer" | "boolean" | "array" | "null" => json!({ "type": name }),
        _ => Value::Object(empty_object()),
    }
}

fn object_node(map: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in map {
        insert_keyword(&mut out, key, value, depth);
    }
    split_type_list(&mut out);
    let mut out = collapse_nullable_union(out);
    if !out.contains_key("type") && (out.contains_key("properties") || out.contains_key("required"))
    {
        out.insert("type".into(), json!("object"));
    }
    if out.get("type").is_some_and(|kind| kind == "object") {
        ensure_properties(&mut out);
        prune_required(&mut out);
    }
    if out.contains_key("$ref") {
        // Draft-07 backends refuse siblings of `$ref`, `default` first of all.
        out.remove("default");
    }
    out
}

fn insert_keyword(out: &mut Map<String, Value>, key: &str, value: &Value, depth: usize) {
    let below = depth + 1;
    let (key, value) = match (key, value) {
        // Names inside these maps are the user's, only the values are schemas.
        ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
            (key, named_nodes(named, below))
        }
        ("definitions", Value::Object(named)) => ("$defs", named_nodes(named, below)),
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(branches)) => {
            let branches = branches.iter().map(|branch| node(branch, below)).collect();
            (key, Value::Array(branches))
        }
        ("items" | "additionalProperties", Value::Object(_) | Value::String(_)) => {
            (key, node(value, below))
        }
        ("$ref", Value::String(target)) => (
            key,
            Value::String(target.replace("#/definitions/", "#/$defs/")),
        ),
        _ => (key, value.clone()),
    };
    out.insert(key.to_owned(), value);
}

fn named_nodes(named: &Map<String, Value>, depth: usize) -> Value {
    let nodes = named
        .iter()
        .map(|(name, schema)| (name.clone(), node(schema, depth)));
    Value::Object(nodes.collect())
}

/// Replaces `"type": [...]`, which strict backends refuse.
fn split_type_list(out: &mut Map<String, Value>) {
    let Some(Value::Array(list)) = out.get("type") else {
        return;
    };
    let kinds: Vec<Value> = list
        .iter()
        .filter(|kind| *kind != "null")
        .cloned()
        .collect();
    let is_nullable = kinds.len() < list.len();
    match kinds.as_slice() {
        [] if is_nullable => {
            out.insert("type".into(), json!("null"));
            return;
        }
        [] => {
            out.insert("type".into(), json!("object"));
        }
        [kind] => {
            out.insert("type".into(), kind.clone());
        }
        several => {
            let branches = several.iter().map(|kind| json!({ "type": kind })).collect();
            out.remove("type");
            out.insert("anyOf".into(), Value::Array(branches));
        }
    }
    if is_nullable {
        out.insert("nullable".into(), json!(true));
    }
}

/// Replaces "this or null" by "this", marked `nullable`.
fn collapse_nullable_union(mut out: Map<String, Value>) -> Map<String, Value> {
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = out.get(keyword) else {
            continue;
        };
        let is_null = |branch: &&Value| branch.get("type").is_some_and(|kind| kind == "null");
        let real: Vec<&Value> = branches.iter().filter(|b| !is_null(b)).collect();
        let (&[Value::Object(only)], true) = (real.as_slice(), real.len() < branches.len()) else {
            continue;
        };
        let mut only = only.clone();
        only.insert("nullable".into(), json!(true));
        for key in CARRIED {
            if let Some(value) = out.remove(*key) {
                only.entry(*key).or_insert(value);
            }
        }
        return only;
    }
    out
}

fn ensure_properties(map: &mut Map<String, Value>) {
    if !map.get("properties").is_some_and(Value::is_object) {
        map.insert("properties".into(), json!({}));
    }
}

/// Drops required names that no property has; strict backends refuse them.
fn prune_required(map: &mut Map<String, Value>) {
    let Some(required) = map.get("required") else {
        return;
    };
    let known: Vec<Value> = required
        .as_array()
        .into_iter()
        .flatten()
        .filter(|name| {
            let name = name.as_str().unwrap_or_default();
            map.get("properties").is_some_and(|p| p.get(name).is_some())
        })
        .cloned()
        .collect();
    if known.is_empty() {
        map.remove("required");
    } else {
        map.insert("required".into(), Value::Array(known));
    }
}

fn empty_object() -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({})),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_of_the_fixture_comes_out_as_expected() {
        let cases: Value = serde_json::from_str(include_str!("schema_fixtures.json")).unwrap();
        for (at, case) in cases.as_array().unwrap().iter().enumerate() {
            assert_eq!(normalised(&case["in"]), case["out"], "case {at}");
        }
    }

    #[test]
    fn definitions_are_renamed_but_not_a_property_of_that_name() {
        let schema = json!({
            "properties": { "definitions": { "$ref": "#/definitions/D" } },
            "definitions": { "D": { "type": "string" } },
        });
        let expected = json!({
            "properties": { "definitions": { "$ref": "#/$defs/D" } },
            "$defs": { "D": { "type": "string" } },
            "type": "object",
        });
        assert_eq!(normalised(&schema), expected);
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_kept_as_it_is() {
        let schema = json!({
            "type": "object",
            "properties": { "next": { "$ref": "#" } },
        });
        assert_eq!(normalised(&schema), schema);
    }

    #[test]
    fn endless_nesting_is_cut() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..120 {
            schema = json!({ "type": "array", "items": schema });
        }
        normalised(&json!({ "properties": { "deep": schema } }));
    }

    #[test]
    fn the_result_is_stable() {
        let cases: Value = serde_json::from_str(include_str!("schema_fixtures.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let once = normalised(&case["in"]);
            assert_eq!(normalised(&once), once);
        }
    }
}
