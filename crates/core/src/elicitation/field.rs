//! One thing asked for in a form: what it is called, what it may be, and how a typed line becomes its value.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::format::TextFormat;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    /// What to show instead of the name.
    pub title: Option<String>,
    pub description: Option<String>,
    pub is_required: bool,
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// What a value may be. Defaults fit the rest of their kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FieldKind {
    Text {
        chars_min: Option<u64>,
        chars_max: Option<u64>,
        format: Option<TextFormat>,
        default: Option<String>,
    },
    Number {
        min: Option<f64>,
        max: Option<f64>,
        default: Option<Number>,
    },
    Integer {
        min: Option<i64>,
        max: Option<i64>,
        default: Option<i64>,
    },
    Boolean {
        default: Option<bool>,
    },
    /// One of these, or words of the person's own.
    Suggestions {
        options: Vec<FieldOption>,
    },
    /// One of these.
    Choice {
        options: Vec<FieldOption>,
        default: Option<String>,
    },
    /// Some of these.
    Choices {
        options: Vec<FieldOption>,
        min: Option<u64>,
        max: Option<u64>,
        default: Option<Vec<String>>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldOption {
    pub value: String,
    /// What to show instead of the value.
    pub title: Option<String>,
}

impl FieldOption {
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// Words in the name of a field that holds what nobody should type into a form.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "credential",
    "pincode",
    "cvv",
    "cardnumber",
];

impl Field {
    /// An optional field without a title.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            is_required: false,
            kind,
        }
    }

    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether the field seems to ask for a secret, by its name or its title.
    pub fn seems_secret(&self) -> bool {
        let letters = |text: &str| -> String {
            let letters = text.chars().filter(|c| c.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        let texts = [letters(&self.name), letters(self.label())];
        matches!(self.kind, FieldKind::Text { .. })
            && texts
                .iter()
                .any(|text| SECRETS.iter().any(|secret| text.contains(secret)))
    }

    /// Returns what an empty answer means.
    pub fn default(&self) -> Option<Value> {
        match &self.kind {
            FieldKind::Text { default, .. } | FieldKind::Choice { default, .. } => {
                default.clone().map(Value::from)
            }
            FieldKind::Number { default, .. } => default.clone().map(Value::from),
            FieldKind::Integer { default, .. } => default.map(Value::from),
            FieldKind::Boolean { default } => default.map(Value::from),
            FieldKind::Choices { default, .. } => default.clone().map(Value::from),
            FieldKind::Suggestions { .. } => None,
        }
    }

    /// Reads a typed line. `None` leaves the field out.
    pub fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match self.default() {
                None if self.is_required => Err("this needs an answer".to_owned()),
                default => Ok(default),
            };
        }
        let value = self.kind.read(line)?;
        self.kind.check(&value)?;
        Ok(Some(value))
    }

    /// Checks a value. The error is for whoever gave it.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let wrong = |error| format!("`{}`: {error}", self.name);
        self.kind.check(value).map_err(wrong)
    }
}

impl FieldKind {
    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            Self::Text { .. } => Ok(line.into()),
            Self::Number { .. } => {
                let number = line.parse::<Number>();
                number.map(Value::from).map_err(|_| NOT_A_NUMBER.to_owned())
            }
            Self::Integer { .. } => {
                let number = line.parse::<i64>();
                number
                    .map(Value::from)
                    .map_err(|_| NOT_AN_INTEGER.to_owned())
            }
            Self::Boolean { .. } => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" | "on" => Ok(true.into()),
                "n" | "no" | "false" | "off" => Ok(false.into()),
                _ => Err(NOT_A_BOOLEAN.to_owned()),
            },
            Self::Suggestions { options } => Ok(chosen(options, line).unwrap_or(line).into()),
            Self::Choice { options, .. } => chosen(options, line).map(Value::from),
            Self::Choices { options, .. } => {
                let lines = line.split(',').map(str::trim);
                let values: Result<Vec<&str>, String> = lines
                    .filter(|line| !line.is_empty())
                    .map(|line| chosen(options, line))
                    .collect();
                values.map(Value::from)
            }
        }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text {
                chars_min,
                chars_max,
                format,
                ..
            } => {
                let text = value.as_str().ok_or("it must be a text")?;
                let chars = text.chars().count() as u64;
                within(&chars, chars_min.as_ref(), chars_max.as_ref(), "characters")?;
                format.map_or(Ok(()), |format| format.check(text))
            }
            Self::Number { min, max, .. } => {
                let number = value.as_f64().ok_or(NOT_A_NUMBER)?;
                within(&number, min.as_ref(), max.as_ref(), "")
            }
            Self::Integer { min, max, .. } => {
                let number = value.as_i64().ok_or(NOT_AN_INTEGER)?;
                within(&number, min.as_ref(), max.as_ref(), "")
            }
            Self::Boolean { .. } => match value {
                Value::Bool(_) => Ok(()),
                _ => Err(NOT_A_BOOLEAN.to_owned()),
            },
            Self::Suggestions { .. } => match value {
                Value::String(_) => Ok(()),
                _ => Err("it must be a text".to_owned()),
            },
            Self::Choice { options, .. } => is_option(options, value),
            Self::Choices {
                options, min, max, ..
            } => {
                let values = value.as_array().ok_or("it must be a list")?;
                for (position, value) in values.iter().enumerate() {
                    is_option(options, value)?;
                    if values[..position].contains(value) {
                        return Err(format!("{value} is chosen twice"));
                    }
                }
                within(
                    &(values.len() as u64),
                    min.as_ref(),
                    max.as_ref(),
                    "of them",
                )
            }
        }
    }
}

const NOT_A_NUMBER: &str = "it must be a number";
const NOT_AN_INTEGER: &str = "it must be a whole number";
const NOT_A_BOOLEAN: &str = "it must be yes or no";

/// Finds the option that a person means: by its number, its value or its title.
fn chosen<'a>(options: &'a [FieldOption], line: &str) -> Result<&'a str, String> {
    let same = |text: &str| text.to_lowercase() == line.to_lowercase();
    let named = options
        .iter()
        .find(|option| same(&option.value) || same(option.label()));
    let numbered = || {
        let number: usize = line.parse().ok()?;
        options.get(number.checked_sub(1)?)
    };
    named
        .or_else(numbered)
        .map(|option| option.value.as_str())
        .ok_or_else(|| format!("`{line}` is none of the choices"))
}

fn is_option(options: &[FieldOption], value: &Value) -> Result<(), String> {
    if options.iter().any(|option| *value == *option.value) {
        Ok(())
    } else {
        Err(format!("{value} is none of the choices"))
    }
}

fn within<T: PartialOrd + std::fmt::Display>(
    value: &T,
    min: Option<&T>,
    max: Option<&T>,
    what: &str,
) -> Result<(), String> {
    let bound = |words: &str, bound: &T| Err(format!("{words} {bound} {what}").trim().to_owned());
    match (min, max) {
        (Some(min), _) if value < min => bound("at least", min),
        (_, Some(max)) if value > max => bound("at most", max),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(kind: Value) -> Field {
        let mut field =
            json!({ "name": "f", "title": null, "description": null, "is_required": true });
        let more = kind.as_object().unwrap().clone();
        field.as_object_mut().unwrap().extend(more);
        serde_json::from_value(field).unwrap()
    }

    /// Reads each line; `null` stands for a line that is refused.
    fn check(kind: Value, cases: &[(&str, Value)]) {
        let field = field(kind);
        for (line, expected) in cases {
            let read = field.read(line).ok().flatten().unwrap_or(Value::Null);
            assert_eq!(read, *expected, "{line}");
        }
    }

    #[test]
    fn a_line_becomes_a_value_of_its_kind_or_is_refused() {
        check(
            json!({ "type": "text", "chars_min": 2, "chars_max": 3 }),
            &[
                ("äö", json!("äö")),
                ("a", json!(null)),
                ("abcd", json!(null)),
                ("", json!(null)),
            ],
        );
        check(
            json!({ "type": "number", "min": 0.5 }),
            &[
                ("3", json!(3)),
                ("0.25", json!(null)),
                ("x", json!(null)),
                ("NaN", json!(null)),
            ],
        );
        check(
            json!({ "type": "integer", "max": 9 }),
            &[("9", json!(9)), ("10", json!(null)), ("1.5", json!(null))],
        );
        check(
            json!({ "type": "boolean", "default": true }),
            &[("", json!(true)), ("No", json!(false)), ("?", json!(null))],
        );
    }

    #[test]
    fn a_choice_is_made_by_number_value_or_title() {
        let options = json!([{ "value": "#f00", "title": "Red" }, { "value": "#0f0" }]);
        check(
            json!({ "type": "choice", "options": options }),
            &[
                ("1", json!("#f00")),
                ("red", json!("#f00")),
                ("#0F0", json!("#0f0")),
                ("3", json!(null)),
                ("0", json!(null)),
            ],
        );
        check(
            json!({ "type": "choices", "options": options, "max": 1 }),
            &[
                ("2", json!(["#0f0"])),
                ("1, 2", json!(null)),
                ("1,1", json!(null)),
            ],
        );
    }

    #[test]
    fn an_empty_line_leaves_an_optional_field_out() {
        let mut field = field(json!({ "type": "integer" }));
        field.is_required = false;
        assert_eq!(field.read("  "), Ok(None));
    }

    #[test]
    fn a_secret_is_recognised_by_its_name() {
        let named = |name: &str| Field {
            name: name.into(),
            ..field(json!({ "type": "text" }))
        };
        assert!(named("db_password").seems_secret() && named("API-Key").seems_secret());
        assert!(!named("name").seems_secret());
    }
}
