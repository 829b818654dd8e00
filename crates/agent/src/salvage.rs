//! Finds tool calls that a model wrote as text, as small local models do.
//!
//! Only a reply that is nothing but the call counts, give or take a sentence before it: an example in an explanation
//! must not run.

use hermes_core::{Arguments, CallId, Message, Part, ToolCall, ToolSpec};
use serde_json::Value;

/// Words around a call before it is taken for an explanation rather than a call.
const PROSE_CHARS_MAX: usize = 300;

/// Turns calls written in the text into real ones. Returns whether there were any.
pub(crate) fn calls_from_text(message: &mut Message, tools: &[ToolSpec]) -> bool {
    if message.calls().next().is_some() {
        return false;
    }
    let text = message.text();
    let Some((prose, calls)) = find_calls(&text, tools) else {
        return false;
    };
    message
        .parts
        .retain(|part| !matches!(part, Part::Text { .. }));
    if !prose.is_empty() {
        message.parts.push(Part::text(prose));
    }
    message.parts.extend(
        calls
            .into_iter()
            .enumerate()
            .map(|(number, (name, arguments))| {
                Part::ToolCall(ToolCall {
                    id: CallId::from(format!("text_call_{number}")),
                    name,
                    arguments,
                    signatures: Vec::new(),
                })
            }),
    );
    true
}

type TextCall = (String, Arguments);

/// Splits a text into its prose and the calls of known tools in it.
fn find_calls(text: &str, tools: &[ToolSpec]) -> Option<(String, Vec<TextCall>)> {
    let mut prose = String::new();
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let mut values = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        let call = values
            .next()
            .and_then(Result::ok)
            .and_then(|value| as_call(value, tools));
        match call {
            Some(call) => {
                prose.push_str(&rest[..start]);
                calls.push(call);
                rest = &rest[start + values.byte_offset()..];
            }
            None => {
                prose.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
    }
    prose.push_str(rest);
    let prose = without_wrapping(&prose);
    (!calls.is_empty() && prose.chars().count() <= PROSE_CHARS_MAX).then_some((prose, calls))
}

fn as_call(value: Value, tools: &[ToolSpec]) -> Option<TextCall> {
    let Value::Object(mut object) = value else {
        return None;
    };
    let name = object.get("name")?.as_str()?.to_owned();
    tools.iter().find(|tool| tool.name == name)?;
    let arguments = object
        .remove("arguments")
        .or_else(|| object.remove("parameters"))?;
    let arguments = match arguments {
        Value::String(text) => Arguments::parse(&text),
        Value::Object(_) => Arguments::Json(arguments),
        _ => return None,
    };
    Some((name, arguments))
}

/// Removes what wrapped the calls: code fences and `<tool_call>` tags.
fn without_wrapping(prose: &str) -> String {
    let is_wrapping = |line: &str| {
        let line = line.trim();
        line.starts_with("```") || line.is_empty()
    };
    let bare = prose.replace("<tool_call>", "").replace("</tool_call>", "");
    let lines: Vec<&str> = bare.lines().filter(|line| !is_wrapping(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn salvage(text: &str) -> (String, Vec<(String, Arguments)>) {
        let tool = ToolSpec {
            name: "read_file".into(),
            description: String::new(),
            parameters: json!({}),
        };
        let mut message = Message::assistant(text);
        calls_from_text(&mut message, &[tool]);
        let calls = message
            .calls()
            .map(|call| (call.name.clone(), call.arguments.clone()))
            .collect();
        (message.text(), calls)
    }

    fn read(path: &str) -> (String, Arguments) {
        ("read_file".into(), Arguments::Json(json!({ "path": path })))
    }

    #[test]
    fn a_call_in_any_wrapping_is_found() {
        let bare = r#"{"name": "read_file", "arguments": {"path": "a"}}"#;
        for text in [
            bare.to_owned(),
            format!("```json\n{bare}\n```"),
            format!("<tool_call>\n{bare}\n</tool_call>"),
            r#"{"name":"read_file","arguments":"{\"path\":\"a\"}"}"#.to_owned(),
            r#"{"name":"read_file","parameters":{"path":"a"}}"#.to_owned(),
        ] {
            assert_eq!(salvage(&text), (String::new(), vec![read("a")]), "{text}");
        }
    }

    #[test]
    fn words_before_the_call_stay_as_text() {
        let (text, calls) = salvage(
            "I will look.\n```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```",
        );
        assert_eq!((text.as_str(), calls), ("I will look.", vec![read("a")]));
    }

    #[test]
    fn several_calls_are_found_in_order() {
        let one = |path| {
            format!(
                r#"<tool_call>{{"name":"read_file","arguments":{{"path":"{path}"}}}}</tool_call>"#
            )
        };
        assert_eq!(
            salvage(&format!("{}\n{}", one("a"), one("b"))).1,
            vec![read("a"), read("b")]
        );
    }

    #[test]
    fn other_json_and_long_explanations_are_left_alone() {
        let explanation = format!(
            "{}\n```json\n{{\"name\":\"read_file\",\"arguments\":{{\"path\":\"a\"}}}}\n```",
            "This is how a call looks. ".repeat(20)
        );
        for text in [
            r#"{"name": "Ada", "arguments": {"born": 1815}}"#,
            r#"{"name": "read_file"}"#,
            "no json { here",
            "{{{{{{",
            explanation.as_str(),
        ] {
            assert_eq!(salvage(text), (text.to_owned(), vec![]), "{text}");
        }
    }
}
