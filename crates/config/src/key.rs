//! Names of settings: `agent.max_turns`, `fallback_providers.0.model`, `agent.reasoning_overrides."gpt-5.5"`.

use std::{fmt, str::FromStr};

/// The path of a setting: names and list indices, outermost first; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(Vec<String>);

/// A text that names no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the name of a setting: {problem}")]
pub struct KeyError {
    text: String,
    problem: &'static str,
}

impl KeyError {
    pub fn hint(&self) -> &'static str {
        "write names with dots between, like `agent.max_turns`, and quote a name that has dots, like `a.\"b.c\"`"
    }
}

impl Key {
    /// Makes a key from its parts; `None` when there are none.
    pub fn from_segments(segments: Vec<String>) -> Option<Self> {
        (!segments.is_empty()).then_some(Self(segments))
    }

    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let fail = |problem| KeyError {
            text: text.to_owned(),
            problem,
        };
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let (segment, behind) = match rest.strip_prefix('"') {
                Some(quoted) => quoted
                    .split_once('"')
                    .ok_or_else(|| fail("a quote is not closed"))?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            if segment.is_empty() {
                return Err(fail("a part of it is empty"));
            }
            if !rest.starts_with('"') && is_indexed(segment) {
                return Err(fail(
                    "an item of a list is written with a dot, as in `toolsets.0`",
                ));
            }
            segments.push(segment.to_owned());
            if behind.is_empty() {
                return Ok(Self(segments));
            }
            rest = behind
                .strip_prefix('.')
                .ok_or_else(|| fail("a dot is missing behind a quote"))?;
        }
    }
}

/// Whether a name ends as an item of a list does in other places: `toolsets[0]`.
fn is_indexed(segment: &str) -> bool {
    let index = segment
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['));
    index.is_some_and(|(_, index)| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if segment.contains('.') {
                write!(f, "\"{segment}\"")?;
            } else {
                f.write_str(segment)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_as_it_was_written() {
        for text in [
            "model",
            "agent.max_turns",
            "a.0.b",
            "agent.reasoning_overrides.\"gpt-5.5\"",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_item_of_a_list_is_not_written_in_brackets() {
        let error = "toolsets[0]".parse::<Key>().unwrap_err().to_string();
        assert!(error.contains("`toolsets.0`"), "{error}");
        assert!("a[1].b".parse::<Key>().is_err());
        for text in ["a.\"b[0]\"", "a[b]", "a[]"] {
            assert!(text.parse::<Key>().is_ok(), "{text}");
        }
    }

    #[test]
    fn a_key_with_an_empty_part_is_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "\"\"", "\"a", "\"a\"b"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}
