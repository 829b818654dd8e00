//! `${NAME}`, or `${env:NAME}`, in the text of a setting.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    environment::Environment,
    yaml::{Content, Node},
};

/// Puts the values of variables into `text`; a variable that is not set stays as it is written.
pub(crate) fn expand<'t>(text: &'t str, environment: &Environment) -> Cow<'t, str> {
    if !text.contains("${") {
        return Cow::Borrowed(text);
    }
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = rest.split_at(start);
        expanded.push_str(before);
        let value = reference[2..].split_once('}').and_then(|(name, behind)| {
            let name = name.strip_prefix("env:").unwrap_or(name);
            Some((environment.get(name)?, behind))
        });
        (rest, _) = match value {
            Some((value, behind)) => (behind, expanded.push_str(value)),
            None => (&reference[2..], expanded.push_str("${")),
        };
    }
    expanded.push_str(rest);
    Cow::Owned(expanded)
}

/// Returns the value of a node with the variables in its texts expanded.
pub(crate) fn expanded_value(node: &Node, environment: &Environment) -> Value {
    match &node.content {
        Content::Scalar(Value::String(text)) => expand(text, environment).into(),
        Content::Scalar(value) => value.clone(),
        Content::List(items) => items
            .iter()
            .map(|item| expanded_value(item, environment))
            .collect(),
        Content::Map(_) => Value::Object(
            node.entries()
                .map(|entry| (entry.key.clone(), expanded_value(&entry.value, environment)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_variables_are_expanded_and_unknown_ones_stay() {
        let environment = Environment::from_pairs([("A", "1"), ("EMPTY", "")]);
        for (text, expected) in [
            ("x${A}y${A}", "x1y1"),
            ("${env:A} ${env:B}", "1 ${env:B}"),
            ("${B} ${A}", "${B} 1"),
            ("${EMPTY}|", "|"),
            ("${A", "${A"),
            ("$A ${${A}}", "$A ${1}"),
        ] {
            assert_eq!(expand(text, &environment), expected);
        }
    }
}
