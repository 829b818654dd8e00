//! Random documents, decorated with comments, and random changes of them.

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;
use crate::yaml::parse;

#[derive(Debug, Clone)]
enum Doc {
    Empty,
    Plain(&'static str),
    Quoted(String),
    Literal(Vec<String>),
    Flow(&'static str),
    List(Vec<Doc>),
    Map(Vec<Doc>),
}

fn doc() -> impl Strategy<Value = Doc> {
    let leaf = prop_oneof![
        Just(Doc::Empty),
        prop::sample::select(vec![
            "1",
            "true",
            "0.5",
            "two words",
            "http://x/y#z",
            "é",
            "~"
        ])
        .prop_map(Doc::Plain),
        "[a-z #:'é]{0,8}".prop_map(Doc::Quoted),
        vec("[a-z#: ]{0,6}x", 1..3).prop_map(Doc::Literal),
        prop::sample::select(vec![
            "[]",
            "{}",
            "[1, 'a # b', {c: 2}]",
            "{k0: 1, k1: [x], k2: {k0: y}}"
        ])
        .prop_map(Doc::Flow),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(Doc::List),
            vec(inner, 1..4).prop_map(Doc::Map),
        ]
    })
}

fn document() -> impl Strategy<Value = String> {
    let newline = prop::sample::select(vec!["\n", "\r\n"]);
    (vec(doc(), 1..4), vec(any::<u8>(), 1..40), newline).prop_map(|(entries, dice, newline)| {
        let mut writer = Writer {
            lines: Vec::new(),
            dice,
            thrown: 0,
            comments: 0,
        };
        writer.map(&entries, 0);
        writer.lines.join(newline) + newline
    })
}

/// Writes a document, with comments where the dice say so.
struct Writer {
    lines: Vec<String>,
    dice: Vec<u8>,
    thrown: usize,
    comments: usize,
}

impl Writer {
    fn throw(&mut self, one_in: u8) -> bool {
        self.thrown += 1;
        let die = self.dice[self.thrown % self.dice.len()];
        die.wrapping_add(self.thrown as u8).is_multiple_of(one_in)
    }

    fn comment(&mut self) -> String {
        self.comments += 1;
        format!("# note {}.", self.comments)
    }

    fn push(&mut self, mut line: String) {
        if self.throw(4) {
            line = format!("{line}  {}", self.comment());
        }
        self.lines.push(line);
    }

    fn decorate(&mut self, indent: usize) {
        if self.throw(6) {
            self.lines.push(String::new());
        }
        if self.throw(4) {
            let comment = self.comment();
            self.lines.push(format!("{}{comment}", " ".repeat(indent)));
        }
    }

    fn map(&mut self, entries: &[Doc], indent: usize) {
        for (index, value) in entries.iter().enumerate() {
            self.decorate(indent);
            self.value(value, &format!("{}k{index}:", " ".repeat(indent)), indent);
        }
    }

    fn value(&mut self, value: &Doc, head: &str, indent: usize) {
        match value {
            Doc::Empty => self.push(head.to_owned()),
            Doc::Plain(text) | Doc::Flow(text) => self.push(format!("{head} {text}")),
            Doc::Quoted(text) => self.push(format!("{head} '{}'", text.replace('\'', "''"))),
            Doc::Literal(texts) => {
                self.push(format!("{head} |"));
                for text in texts {
                    self.lines
                        .push(format!("{}x{text}", " ".repeat(indent + 2)));
                }
            }
            Doc::List(items) => {
                self.push(head.to_owned());
                for item in items {
                    self.decorate(indent + 2);
                    self.item(item, indent + 2);
                }
            }
            Doc::Map(entries) => {
                self.push(head.to_owned());
                self.map(entries, indent + 3);
            }
        }
    }

    fn item(&mut self, item: &Doc, indent: usize) {
        let dash = format!("{}-", " ".repeat(indent));
        match item {
            Doc::Map(entries) => {
                let (first, rest) = entries.split_first().unwrap();
                self.value(first, &format!("{dash} k0:"), indent + 2);
                for (index, value) in rest.iter().enumerate() {
                    self.decorate(indent + 2);
                    self.value(
                        value,
                        &format!("{}k{}:", " ".repeat(indent + 2), index + 1),
                        indent + 2,
                    );
                }
            }
            item => self.value(item, &dash, indent),
        }
    }
}

/// Follows `choices` through a tree; a choice beyond the children is a new one, and ends the walk.
fn walk(tree: &Value, choices: &[usize]) -> Vec<String> {
    let mut path = Vec::new();
    let mut node = tree;
    for choice in choices {
        let segment = match node {
            Value::Object(map) => map
                .keys()
                .nth(choice % (map.len() + 1))
                .cloned()
                .unwrap_or("fresh".into()),
            Value::Array(items) => (choice % (items.len() + 1)).to_string(),
            Value::Null => "fresh".to_owned(),
            _ => break,
        };
        path.push(segment.clone());
        match node
            .get(&segment)
            .or_else(|| node.get(segment.parse::<usize>().ok()?))
        {
            Some(child) => node = child,
            None => break,
        }
    }
    path
}

fn comments(text: &str) -> Vec<&str> {
    let mut comments: Vec<_> = text
        .match_indices("# note ")
        .map(|(at, _)| text[at..].split_inclusive('.').next().unwrap())
        .collect();
    comments.sort_unstable();
    comments
}

fn new_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "\\PC{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!({"a": {"b": [1, "x: y"]}, "c": []})),
        Just(json!([{"a": 1, "b": {}}, [2]])),
        Just(json!([])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn setting_a_value_changes_just_that_and_keeps_every_comment(
        text in document(),
        choices in vec(0_usize..5, 1..5),
        value in new_value(),
    ) {
        let root = parse(&text).unwrap();
        let mut expected = verify::read(root.as_ref());
        let path = walk(&expected, &choices);
        let changed = set(&text, root.as_ref(), &path, &value);
        prop_assert!(changed.is_ok(), "{changed:?}");
        let changed = changed.unwrap();
        verify::set_value(&mut expected, &path, value).unwrap();
        prop_assert_eq!(verify::read(parse(&changed).unwrap().as_ref()), expected);
        prop_assert_eq!(comments(&changed), comments(&text));
        prop_assert_eq!(changed.contains("\r\n"), text.contains("\r\n"));
    }

    #[test]
    fn removing_a_value_removes_just_that_and_keeps_every_comment(
        text in document(),
        choices in vec(0_usize..5, 1..5),
    ) {
        let root = parse(&text).unwrap();
        let mut expected = verify::read(root.as_ref());
        let path = walk(&expected, &choices);
        let is_there = verify::unset_value(&mut expected, &path).is_some();
        let changed = unset(&text, root.as_ref(), &path);
        prop_assert!(changed.is_ok(), "{changed:?}");
        match changed.unwrap() {
            Some(changed) => {
                prop_assert_eq!(verify::read(parse(&changed).unwrap().as_ref()), expected);
                prop_assert_eq!(comments(&changed), comments(&text));
            }
            None => prop_assert!(!is_there),
        }
    }

    #[test]
    fn no_text_makes_the_parser_or_an_edit_panic(
        text in "[ \n\r\t:#a'\"{}\\[\\],&*|>!?%~<é+-]{0,60}",
        choices in vec(0_usize..5, 1..5),
    ) {
        if let Ok(root) = parse(&text) {
            let path = walk(&verify::read(root.as_ref()), &choices);
            if !path.is_empty() {
                let _ = set(&text, root.as_ref(), &path, &json!({"x": 1}));
                let _ = set(&text, root.as_ref(), &path, &json!("y"));
                let _ = unset(&text, root.as_ref(), &path);
            }
        }
    }

    #[test]
    fn arbitrary_text_never_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse(&text);
    }
}
