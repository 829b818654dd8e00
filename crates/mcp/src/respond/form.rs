//! Reads the schema of an elicitation: a flat object whose properties become the fields of a form.

use hermes_core::{Field, FieldKind, FieldOption, TextFormat};
use serde_json::{Map, Value};

/// Nobody fills in a longer form in a chat.
const FIELDS_MAX: usize = 32;
/// A longer list cannot be chosen from.
const OPTIONS_MAX: usize = 200;

/// Returns the fields in the order the server gave them, or why they cannot be asked for.
pub(super) fn fields(schema: &Value) -> Result<Vec<Field>, String> {
    let nothing = Map::new();
    let properties = match schema.get("properties") {
        None => &nothing,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("`properties` must be an object".to_owned()),
    };
    if properties.len() > FIELDS_MAX {
        return Err(format!("a form has at most {FIELDS_MAX} fields"));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    properties
        .iter()
        .map(|(name, property)| {
            let kind = kind(property).map_err(|error| format!("`{name}`: {error}"))?;
            let mut field = Field {
                title: text(property, "title"),
                description: text(property, "description"),
                is_required: is_required(name),
                ..Field::new(name, kind)
            };
            drop_unfit_default(&mut field);
            Ok(field)
        })
        .collect()
}

fn kind(property: &Value) -> Result<FieldKind, String> {
    let default = property.get("default");
    let default_text = || default.and_then(Value::as_str).map(str::to_owned);
    match property.get("type").and_then(Value::as_str) {
        Some("string") => match options(property)? {
            Some(options) => Ok(FieldKind::Choice {
                options,
                default: default_text(),
            }),
            None => Ok(FieldKind::Text {
                chars_min: count(property, "minLength"),
                chars_max: count(property, "maxLength"),
                format: format(property),
                default: default_text(),
            }),
        },
        Some("number") => Ok(FieldKind::Number {
            min: property.get("minimum").and_then(Value::as_f64),
            max: property.get("maximum").and_then(Value::as_f64),
            default: default.and_then(Value::as_number).cloned(),
        }),
        Some("integer") => Ok(FieldKind::Integer {
            min: whole(property.get("minimum")),
            max: whole(property.get("maximum")),
            default: whole(default),
        }),
        Some("boolean") => Ok(FieldKind::Boolean {
            default: default.and_then(Value::as_bool),
        }),
        Some("array") => {
            let items = property.get("items").unwrap_or(&Value::Null);
            let texts = |list: &Vec<Value>| list.iter().map(plain).collect();
            Ok(FieldKind::Choices {
                options: options(items)?.ok_or("a list needs choices")?,
                min: count(property, "minItems"),
                max: count(property, "maxItems"),
                default: default.and_then(Value::as_array).and_then(texts),
            })
        }
        Some(other) => Err(format!("a form has no fields of type `{other}`")),
        None => Err("its type is missing".to_owned()),
    }
}

/// Returns the choices of an enumeration in any of its spellings; `None` if it is none.
fn options(schema: &Value) -> Result<Option<Vec<FieldOption>>, String> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let options: Option<Vec<FieldOption>> =
        if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
            let option = |item: &Value| {
                Some(FieldOption {
                    value: text(item, "const")?,
                    title: text(item, "title"),
                })
            };
            titled.iter().map(option).collect()
        } else if let Some(values) = list("enum") {
            let titles = list("enumNames");
            let title = |position: usize| titles.and_then(|titles| plain(titles.get(position)?));
            let option = |(position, value): (usize, &Value)| {
                Some(FieldOption {
                    value: plain(value)?,
                    title: title(position),
                })
            };
            values.iter().enumerate().map(option).collect()
        } else {
            return Ok(None);
        };
    match options {
        None => Err("its choices must be texts".to_owned()),
        Some(options) if options.is_empty() => Err("it has no choices".to_owned()),
        Some(options) if options.len() > OPTIONS_MAX => {
            Err(format!("it has more than {OPTIONS_MAX} choices"))
        }
        options => Ok(options),
    }
}

/// Returns the format of a text; one we do not know is left to the server to check.
fn format(property: &Value) -> Option<TextFormat> {
    match property.get("format")?.as_str()? {
        "email" => Some(TextFormat::Email),
        "uri" => Some(TextFormat::Uri),
        "date" => Some(TextFormat::Date),
        "date-time" => Some(TextFormat::DateTime),
        _ => None,
    }
}

/// A default that the server itself would refuse is none.
fn drop_unfit_default(field: &mut Field) {
    if field
        .default()
        .is_none_or(|value| field.check(&value).is_ok())
    {
        return;
    }
    match &mut field.kind {
        FieldKind::Text { default, .. } | FieldKind::Choice { default, .. } => *default = None,
        FieldKind::Number { default, .. } => *default = None,
        FieldKind::Integer { default, .. } => *default = None,
        FieldKind::Boolean { default } => *default = None,
        FieldKind::Choices { default, .. } => *default = None,
        FieldKind::Suggestions { .. } => {}
    }
}

fn text(object: &Value, key: &str) -> Option<String> {
    object.get(key).and_then(plain)
}

fn plain(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn count(object: &Value, key: &str) -> Option<u64> {
    object.get(key).and_then(Value::as_u64)
}

/// Reads a whole number, also one that was written as `3.0`.
fn whole(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    let from_float = |number: f64| (number.fract() == 0.0).then_some(number as i64);
    value
        .as_i64()
        .or_else(|| value.as_f64().and_then(from_float))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(property: Value) -> Field {
        let schema = json!({ "type": "object", "properties": { "f": property } });
        fields(&schema).unwrap().remove(0)
    }

    #[test]
    fn every_kind_of_the_specification_is_understood() {
        let email =
            field(json!({ "type": "string", "format": "email", "minLength": 3, "default": "a@b" }));
        assert_eq!(
            email.kind,
            FieldKind::Text {
                chars_min: Some(3),
                chars_max: None,
                format: Some(TextFormat::Email),
                default: Some("a@b".into()),
            }
        );
        let number = field(json!({ "type": "number", "minimum": 0.5, "default": 1 }));
        assert_eq!(number.default(), Some(json!(1)));
        let integer = field(json!({ "type": "integer", "maximum": 9.0, "default": 2 }));
        assert_eq!(
            integer.kind,
            FieldKind::Integer {
                min: None,
                max: Some(9),
                default: Some(2),
            }
        );
        let boolean = field(json!({ "type": "boolean", "default": false }));
        assert_eq!(boolean.default(), Some(json!(false)));
    }

    #[test]
    fn choices_are_understood_in_all_their_spellings() {
        let spellings = [
            json!({ "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] }),
            json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] }),
        ];
        for spelling in spellings {
            let FieldKind::Choice { options, .. } = field(spelling).kind else {
                panic!("not a choice");
            };
            assert_eq!(
                (options[0].value.as_str(), options[1].label()),
                ("r", "Green")
            );
        }
        let items = [
            json!({ "type": "string", "enum": ["r", "g"] }),
            json!({ "anyOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] }),
        ];
        for items in items {
            let list = json!({ "type": "array", "items": items, "maxItems": 1, "default": ["g"] });
            assert_eq!(field(list).default(), Some(json!(["g"])));
        }
    }

    #[test]
    fn a_default_that_does_not_fit_is_dropped() {
        assert_eq!(
            field(json!({ "type": "integer", "maximum": 3, "default": 9 })).default(),
            None
        );
        assert_eq!(
            field(json!({ "type": "string", "enum": ["a"], "default": "b" })).default(),
            None
        );
    }

    #[test]
    fn what_cannot_be_asked_is_refused_by_name() {
        for property in [
            json!({ "type": "object" }),
            json!({}),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "string", "enum": [] }),
        ] {
            let schema = json!({ "properties": { "odd": property } });
            assert!(fields(&schema).unwrap_err().contains("`odd`"));
        }
        let many: Map<String, Value> = (0..100)
            .map(|number| (number.to_string(), json!({ "type": "boolean" })))
            .collect();
        assert!(fields(&json!({ "properties": many })).is_err());
    }

    #[test]
    fn the_order_of_the_server_is_kept() {
        let schema = json!({ "properties": { "z": { "type": "boolean" }, "a": { "type": "boolean" } }, "required": ["a"] });
        let fields = fields(&schema).unwrap();
        assert_eq!(
            (fields[0].name.as_str(), fields[1].is_required),
            ("z", true)
        );
    }
}
