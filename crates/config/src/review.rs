//! Comparing a layer with what is known: names that mean nothing, and values that cannot be used.

use serde_json::Value;

use crate::{
    choices::{choices, is_refused},
    environment::Environment,
    expand::expanded_value,
    key::Key,
    layer::Layer,
    origin::Problem,
    suggest,
    typed::{describe, misfit},
    yaml::{Content, Entry, Node, Role},
};

/// Sections that list some names and take any other.
const OPEN_SECTIONS: [&[&str]; 2] = [&["auxiliary"], &["display", "platforms"]];

/// Names, which numbers and the like are none of. Other texts may be: keys of digits, versions.
const NAMES: [&str; 2] = ["model.default", "model.provider"];

/// Reports the problems of a layer, and takes out what cannot stand for a section: the defaults stay in its place.
pub(crate) fn review(
    layer: &mut Layer,
    defaults: &Node,
    environment: &Environment,
) -> Vec<Problem> {
    let mut root = std::mem::replace(&mut layer.root, Node::empty_map());
    let mut review = Review {
        layer,
        defaults,
        environment,
        problems: Vec::new(),
    };
    review.section(&mut root, defaults, &mut Vec::new());
    let problems = review.problems;
    layer.root = root;
    problems
}

/// Tells whether a setting is known, or stands in a section that takes any name.
pub(crate) fn is_known(defaults: &Node, key: &Key) -> bool {
    let mut node = defaults;
    for (depth, segment) in key.segments().iter().enumerate() {
        let is_open = match &node.content {
            Content::Map(_) => is_open(node, &key.segments()[..depth]),
            Content::List(_) => true,
            Content::Scalar(value) => value.is_null(),
        };
        match node.child(segment) {
            Some(child) => node = child,
            None => return is_open,
        }
    }
    true
}

fn is_open(section: &Node, path: &[String]) -> bool {
    section.entries().next().is_none() || OPEN_SECTIONS.iter().any(|open| path == *open)
}

struct Review<'a> {
    layer: &'a Layer,
    defaults: &'a Node,
    environment: &'a Environment,
    problems: Vec<Problem>,
}

impl Review<'_> {
    fn section(&mut self, node: &mut Node, known: &Node, path: &mut Vec<String>) {
        let Content::Map(entries) = &mut node.content else {
            return;
        };
        entries.retain_mut(|entry| {
            path.push(entry.key.clone());
            let is_kept = entry.role == Role::Merge || self.entry(entry, known, path);
            path.pop();
            is_kept
        });
    }

    /// Reviews one entry; tells whether it can be used.
    fn entry(&mut self, entry: &mut Entry, known: &Node, path: &mut Vec<String>) -> bool {
        let Some(default) = known.child(&entry.key) else {
            let section = &path[..path.len() - 1];
            // A leading underscore marks what programs write for themselves.
            if !is_open(known, section) && !entry.key.starts_with('_') {
                self.unknown(entry, path);
            }
            return true;
        };
        let is_section = matches!(default.content, Content::Map(_));
        if is_section && entry.value.is_null() {
            return false;
        }
        let value = expanded_value(&entry.value, self.environment);
        if let Some(expected) = misfit(&default.to_value(), &value) {
            self.misfit(entry, path, expected, &value, is_section);
            return !is_section;
        }
        let key = path.join(".");
        if NAMES.contains(&key.as_str()) && (value.is_number() || value.is_boolean()) {
            self.misfit(entry, path, "a name", &value, false);
        }
        if is_refused(&key, &value) {
            self.refused(entry, path, &value);
        }
        if is_section && default.entries().next().is_some() {
            self.section(&mut entry.value, default, path);
        }
        true
    }

    fn unknown(&mut self, entry: &Entry, path: &[String]) {
        let (name, section) = (&entry.key, &path[..path.len() - 1]);
        let hint = suggest::nearest(self.defaults, section, name)
            .map(|near| format!("did you mean `{near}`?"));
        self.problems.push(Problem {
            message: format!("unknown setting `{}`", path.join(".")),
            origin: self.layer.origin(entry.key_at),
            hint,
        });
    }

    fn refused(&mut self, entry: &Entry, path: &[String], value: &Value) {
        let key = path.join(".");
        let choices = choices(&key).unwrap_or_default();
        self.problems.push(Problem {
            message: format!(
                "`{key}` must be {choices}, but is {}",
                describe(&key, value)
            ),
            origin: self.layer.origin(entry.value.at),
            hint: None,
        });
    }

    fn misfit(
        &mut self,
        entry: &Entry,
        path: &[String],
        expected: &str,
        value: &Value,
        is_ignored: bool,
    ) {
        let key = path.join(".");
        let ending = if is_ignored { ", so it is ignored" } else { "" };
        self.problems.push(Problem {
            message: format!(
                "`{key}` must be {expected}, but is {}{ending}",
                describe(&key, value)
            ),
            origin: self.layer.origin(entry.value.at),
            hint: None,
        });
    }
}
