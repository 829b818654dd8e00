//! The YAML of front matter and bundles: read leniently, every scalar as text; written strictly, in block style only.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// Levels of nesting: more is a mistake, and walking the tree must not exhaust the stack.
const DEPTH_MAX: usize = 16;
/// Values of a document; no skill says more about itself.
const NODES_MAX: usize = 10_000;

/// Reads one document. Scalars are texts, whatever they look like: `1.0` stays a version.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let line = span.start.line();
        reader
            .accept(event)
            .map_err(|why| format!("line {line}: {why}"))?;
    }
    Ok(reader.root.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    nodes: usize,
    root: Option<Value>,
}

/// A collection that is not closed yet.
enum Open {
    List(Vec<Value>),
    Map {
        entries: Map<String, Value>,
        key: Option<String>,
    },
}

impl Reader {
    fn accept(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, ..) => self.scalar(&text),
            Event::SequenceStart(..) => self.open(Open::List(Vec::new())),
            Event::MappingStart(..) => self.open(Open::Map {
                entries: Map::new(),
                key: None,
            }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.place(Value::Array(items)),
                Some(Open::Map { entries, .. }) => self.place(Value::Object(entries)),
                None => Ok(()),
            },
            Event::Alias(_) => Err("aliases are not read here".to_owned()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("a second document starts here".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, collection: Open) -> Result<(), String> {
        if self.open.len() >= DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} deep"));
        }
        self.open.push(collection);
        Ok(())
    }

    fn scalar(&mut self, text: &str) -> Result<(), String> {
        if let Some(Open::Map { key, .. }) = self.open.last_mut()
            && key.is_none()
        {
            *key = Some(text.to_owned());
            return Ok(());
        }
        self.place(Value::from(text))
    }

    fn place(&mut self, value: Value) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(format!("more than {NODES_MAX} values"));
        }
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map { entries, key }) => match key.take() {
                Some(key) => {
                    entries.insert(key, value);
                }
                None => return Err("a key must be a word".to_owned()),
            },
            None => self.root = Some(value),
        }
        Ok(())
    }
}

/// Writes a map in block style; empty collections are left out, for strict readers refuse `[]` and `{}`.
pub(super) fn write(fields: &Map<String, Value>) -> String {
    let mut lines = String::new();
    write_map(fields, 0, &mut lines);
    lines
}

fn write_map(fields: &Map<String, Value>, depth: usize, lines: &mut String) {
    let indent = "  ".repeat(depth);
    for (key, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
        let key = scalar(key);
        match value {
            Value::Object(inner) => {
                lines.push_str(&format!("{indent}{key}:\n"));
                write_map(inner, depth + 1, lines);
            }
            Value::Array(items) => {
                lines.push_str(&format!("{indent}{key}:\n"));
                write_list(items, depth + 1, lines);
            }
            value => lines.push_str(&format!("{indent}{key}: {}\n", scalar(&text_of(value)))),
        }
    }
}

fn write_list(items: &[Value], depth: usize, lines: &mut String) {
    let indent = "  ".repeat(depth);
    for item in items.iter().filter(|item| !is_empty(item)) {
        match item {
            Value::Object(inner) => {
                let mut below = String::new();
                write_map(inner, depth + 1, &mut below);
                let below = below.trim_start();
                lines.push_str(&format!("{indent}- {below}"));
            }
            Value::Array(items) => {
                let words: Vec<String> = items.iter().map(text_of).collect();
                lines.push_str(&format!("{indent}- {}\n", scalar(&words.join(", "))));
            }
            value => lines.push_str(&format!("{indent}- {}\n", scalar(&text_of(value)))),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A text as it stands where nothing could be misread, else in double quotes.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-.,/()'".contains(c);
    let begins_plainly = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word_of_yaml = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    if begins_plainly && !is_word_of_yaml && text.chars().all(is_plain) && text.trim() == text {
        return text.to_owned();
    }
    // Escapes of JSON are escapes of YAML.
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_texts_and_collections_are_kept() {
        let read = read("a: 1.0\nb: [x, true]\nc:\n  - {d: e}\n  - f\n").unwrap();
        assert_eq!(
            read,
            json!({"a": "1.0", "b": ["x", "true"], "c": [{"d": "e"}, "f"]})
        );
    }

    #[test]
    fn what_is_no_plain_document_is_refused_with_its_line() {
        assert!(super::read("a: [b").is_err());
        assert!(
            super::read("a: &x 1\nb: *x\n")
                .unwrap_err()
                .starts_with("line 2")
        );
        assert!(
            super::read(&"- ".repeat(40))
                .unwrap_err()
                .contains("nested")
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        let fields = json!({
            "name": "a-b",
            "description": "Use when: it \"breaks\" — or # fails",
            "version": "1.0",
            "is": "true",
            "empty": [],
            "metadata": {"hermes": {"tags": ["x y", "- z"], "list": [{"name": "A", "help": "b: c"}]}},
        });
        let Value::Object(map) = &fields else {
            panic!("a map")
        };
        let text = write(map);
        assert!(!text.contains('[') && !text.contains('{'), "{text}");
        let mut expected = fields.clone();
        expected.as_object_mut().unwrap().remove("empty");
        assert_eq!(read(&text).unwrap(), expected, "{text}");
    }
}
