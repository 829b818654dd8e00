//! Reads the arguments of a call, and says clearly what is wrong with them.

use std::ops::RangeInclusive;

use hermes_core::text::{nearest, shorten};
use serde_json::{Map, Value};

use super::answer::Refused;

const SHOWN_CHARS_MAX: usize = 80;

/// The arguments of one call, of which only `known` ones are allowed.
#[derive(Debug)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(super) fn new(values: Map<String, Value>, known: &[&str]) -> Result<Self, Refused> {
        let Some(stray) = values.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(Self(values));
        };
        let stray = shorten(stray, SHOWN_CHARS_MAX);
        Err(Refused(
            match nearest(&stray, known.iter().copied()).first() {
                Some(near) => format!("there is no argument `{stray}`; did you mean `{near}`?"),
                None if known.is_empty() => {
                    format!("there is no argument `{stray}`; it takes none")
                }
                None => format!(
                    "there is no argument `{stray}`; there are: {}",
                    known.join(", ")
                ),
            },
        ))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, Refused> {
        match self.optional_text(name)? {
            Some(text) => Ok(text),
            None => Err(Refused(format!("the argument `{name}` is missing"))),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, Refused> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(other) => Err(wrong(name, "a text that is not empty", other)),
        }
    }

    /// Reads a whole number, also one that was written as a text.
    pub(super) fn number(
        &self,
        name: &str,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Refused> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = match value {
            Value::Number(number) => whole(number),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| allowed.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (low, high) = (allowed.start(), allowed.end());
                let expected = match *high {
                    u64::MAX => format!("a whole number from {low}"),
                    high => format!("a whole number from {low} to {high}"),
                };
                Err(wrong(name, &expected, value))
            }
        }
    }

    /// Reads one of a few words.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Result<String, Refused> {
        let word = self.text(name)?;
        if words.contains(&word.as_str()) {
            Ok(word)
        } else {
            let expected = format!("one of `{}`", words.join("`, `"));
            Err(wrong(name, &expected, &Value::String(word)))
        }
    }

    /// `null` is the same as absent: some clients send every argument they know of.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// Reads `5`, and `5.0`, which some clients make of it.
fn whole(number: &serde_json::Number) -> Option<u64> {
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        let is_whole = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
        is_whole.then_some(number as u64)
    })
}

fn wrong(name: &str, expected: &str, found: &Value) -> Refused {
    let found = shorten(&found.to_string(), SHOWN_CHARS_MAX);
    Refused(format!(
        "the argument `{name}` must be {expected}, but it is `{found}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Result<Arguments, Refused> {
        let Value::Object(values) = value else {
            panic!("{value}")
        };
        Arguments::new(values, &["limit", "session_key"])
    }

    #[test]
    fn numbers_are_read_as_clients_write_them() {
        let limit = |value: Value| {
            arguments(json!({ "limit": value }))
                .unwrap()
                .number("limit", 1..=200)
        };
        for value in [json!(5), json!(5.0), json!("5")] {
            assert_eq!(limit(value), Ok(Some(5)));
        }
        assert_eq!(limit(json!(null)), Ok(None));
        for value in [
            json!(0),
            json!(201),
            json!(-1),
            json!(1.5),
            json!("x"),
            json!([1]),
            json!(1e300),
        ] {
            let Refused(text) = limit(value.clone()).unwrap_err();
            assert!(
                text.contains("`limit` must be a whole number from 1 to 200"),
                "{value}: {text}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let refused = |value: Value| match arguments(value) {
            Ok(arguments) => arguments.text("session_key").unwrap_err().0,
            Err(Refused(text)) => text,
        };
        assert_eq!(refused(json!({})), "the argument `session_key` is missing");
        assert!(refused(json!({"session_keys": "x"})).contains("did you mean `session_key`"));
        assert!(refused(json!({"session_key": ""})).contains("not empty"));
    }

    #[test]
    fn a_huge_value_is_not_repeated_whole() {
        let long = "x".repeat(1 << 20);
        let arguments = arguments(json!({ "session_key": { "a": long } })).unwrap();
        let Refused(text) = arguments.text("session_key").unwrap_err();
        assert!(text.len() < 300, "{}", text.len());
    }
}
