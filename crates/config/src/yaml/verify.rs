//! The safety net below every edit: the new text must read as the old values with just the wanted change.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{Node, parse};

/// A change of the text: what replaces which bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) with: String,
}

/// Applies `splice`, and returns the new text only if it reads as `expected`.
pub(super) fn apply(text: &str, splice: &Splice, expected: &Value) -> Option<String> {
    let mut changed = text.to_owned();
    changed.replace_range(splice.range.clone(), &splice.with);
    let root = parse(&changed).ok()?;
    (read(root.as_ref()) == *expected).then_some(changed)
}

/// Returns the settings of a document; nothing written means no settings.
pub(super) fn read(root: Option<&Node>) -> Value {
    match root.map(Node::to_value) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(value) => value,
    }
}

/// Wraps `value` in the parents that `path` names; an index `0` makes a list.
pub(super) fn nest(path: &[String], value: Value) -> Value {
    path.iter()
        .rev()
        .fold(value, |value, segment| match segment.as_str() {
            "0" => Value::Array(vec![value]),
            segment => single(segment, value),
        })
}

pub(super) fn single(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

/// Sets the value at `path`, making parents where nothing is; `None` when a plain value stands in the way.
pub(super) fn set_value(tree: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((first, rest)) = path.split_first() else {
        *tree = value;
        return Some(());
    };
    match tree {
        Value::Null => *tree = nest(path, value),
        Value::Object(map) => match map.get_mut(first) {
            Some(child) => return set_value(child, rest, value),
            None => {
                map.insert(first.clone(), nest(rest, value));
            }
        },
        Value::Array(items) => {
            let index: usize = first.parse().ok()?;
            if index == items.len() {
                items.push(nest(rest, value));
            } else {
                return set_value(items.get_mut(index)?, rest, value);
            }
        }
        _ => return None,
    }
    Some(())
}

/// Removes the value at `path` and the parents this empties; `None` when there is none.
pub(super) fn unset_value(tree: &mut Value, path: &[String]) -> Option<()> {
    let (first, rest) = path.split_first()?;
    let is_emptied = |child: &Value| match child {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match tree {
        Value::Object(map) => {
            let child = map.get_mut(first)?;
            if !rest.is_empty() {
                unset_value(child, rest)?;
            }
            if rest.is_empty() || is_emptied(child) {
                map.shift_remove(first);
            }
        }
        Value::Array(items) => {
            let index: usize = first.parse().ok()?;
            let child = items.get_mut(index)?;
            if !rest.is_empty() {
                unset_value(child, rest)?;
            }
            if rest.is_empty() || is_emptied(child) {
                items.remove(index);
            }
        }
        _ => return None,
    }
    Some(())
}
