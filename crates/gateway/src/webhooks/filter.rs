//! Which events count: those whose fields are as the route wants them.

use hermes_core::wildcard;
use serde_json::Value;

use super::template::{at, shown};

/// One thing that must be so.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    field: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// One of these, in which `*` stands for anything.
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
    Contains(String),
}

impl Filter {
    /// Reads `{field: value}`, `{field: [values]}`, or a list of `{field, equals | in | not | contains}`.
    pub fn read_all(written: &Value) -> Result<Vec<Self>, String> {
        match written {
            Value::Null => Ok(Vec::new()),
            Value::Object(fields) => {
                let filters = fields.iter().map(|(field, wanted)| Self {
                    field: field.clone(),
                    test: Test::OneOf(texts(wanted)),
                });
                Ok(filters.collect())
            }
            Value::Array(items) => items.iter().map(Self::read).collect(),
            _ => Err("`filters` must be fields with the values that count".to_owned()),
        }
    }

    fn read(item: &Value) -> Result<Self, String> {
        let field = item["field"].as_str().ok_or("a filter needs a `field`")?;
        let test = if let Some(wanted) = item.get("equals").or_else(|| item.get("in")) {
            Test::OneOf(texts(wanted))
        } else if let Some(unwanted) = item.get("not").or_else(|| item.get("not_equals")) {
            Test::NoneOf(texts(unwanted))
        } else if let Some(part) = item["contains"].as_str() {
            Test::Contains(part.to_owned())
        } else {
            return Err("a filter needs one of `equals`, `in`, `not`, `contains`".to_owned());
        };
        let field = field.to_owned();
        Ok(Self { field, test })
    }

    pub(super) fn admits(&self, event: &Value) -> bool {
        let found = at(event, &self.field).map(shown).unwrap_or_default();
        let is_one = |wanted: &[String]| wanted.iter().any(|one| wildcard::matches(one, &found));
        match &self.test {
            Test::OneOf(wanted) => is_one(wanted),
            Test::NoneOf(unwanted) => !is_one(unwanted),
            Test::Contains(part) => found.contains(part),
        }
    }

    pub(super) fn field(&self) -> &str {
        &self.field
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(shown).collect(),
        value => vec![shown(value)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_count_when_all_fields_are_as_wanted() {
        let event =
            json!({"action": "opened", "pr": {"draft": false, "base": "main", "title": "fix: x"}});
        let admits = |filters: Value| {
            let filters = Filter::read_all(&filters).unwrap();
            filters.iter().all(|filter| filter.admits(&event))
        };
        assert!(admits(json!(null)));
        assert!(admits(
            json!({"action": ["opened", "reopened"], "pr.draft": false})
        ));
        assert!(!admits(json!({"action": "closed"})));
        assert!(!admits(json!({"missing": "x"})));
        assert!(admits(json!({"pr.base": "ma*"})));
        assert!(admits(
            json!([{"field": "pr.title", "contains": "fix"}, {"field": "action", "not": "closed"}])
        ));
        assert!(!admits(json!([{"field": "action", "not": ["opened"]}])));
        for wrong in [json!("x"), json!([{"equals": 1}]), json!([{"field": "x"}])] {
            assert!(Filter::read_all(&wrong).is_err(), "{wrong}");
        }
    }
}
