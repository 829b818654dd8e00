//! Shorter forms of single messages. Pure: the same message always gets the same short form.

use hermes_core::text::{head, shorten, tail};
use hermes_core::{Arguments, Message, Part, Role, ToolResult};
use serde_json::Value;

/// Results up to this are left as they are: what would stand in their place is as long.
const RESULT_CHARS_MIN: usize = 200;
/// Of an old result, this much of its beginning is left.
const RESULT_HEAD_CHARS: usize = 120;
/// Longer texts inside the arguments of old calls are shortened.
const ARGUMENT_CHARS_MAX: usize = 500;
const ARGUMENT_HEAD_CHARS: usize = 120;
/// Nothing that somebody said is cut to less. A result of which less could stay becomes a line.
const BYTES_MIN: usize = 200;

/// Counts the tokens of a message.
pub(crate) type Size<'a> = dyn Fn(&Message) -> u64 + Sync + 'a;

/// Returns the short form of a message outside the tail: results in one line, no pictures, no thoughts, short arguments.
/// `None` when it is short already.
pub(crate) fn shorten_old(message: &Message) -> Option<Message> {
    let shorter = Message {
        parts: message.parts.iter().filter_map(shorten_part).collect(),
        ..message.clone()
    };
    (shorter != *message && !shorter.parts.is_empty()).then_some(shorter)
}

fn shorten_part(part: &Part) -> Option<Part> {
    Some(match part {
        Part::Image(_) => Part::text("[A picture was here; it is no longer shown.]"),
        Part::Audio(_) => Part::text("[A recording was here; it is no longer played.]"),
        // Providers want back what they signed only while the same reply goes on.
        Part::Reasoning(_) => return None,
        Part::ToolResult(result) => Part::ToolResult(shorten_result(result)),
        Part::ToolCall(call) if call.signatures.is_empty() => {
            let mut call = call.clone();
            if let Arguments::Json(value) = &mut call.arguments {
                shorten_values(value);
            }
            Part::ToolCall(call)
        }
        part => part.clone(),
    })
}

fn shorten_result(result: &ToolResult) -> ToolResult {
    let has_pictures = !result.images.is_empty();
    if result.text.chars().count() <= RESULT_CHARS_MIN && !has_pictures {
        return result.clone();
    }
    let first = result.text.lines().find(|line| !line.trim().is_empty());
    let first = shorten(first.unwrap_or_default().trim(), RESULT_HEAD_CHARS);
    let pictures = if has_pictures { ", pictures" } else { "" };
    let text = format!(
        "{first}\n[An old result, shortened to make room: it had {} lines, {} characters{pictures}. Call the tool again if you need it.]",
        result.text.lines().count(),
        result.text.chars().count(),
    );
    ToolResult {
        text,
        images: Vec::new(),
        ..result.clone()
    }
}

fn shorten_values(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > ARGUMENT_CHARS_MAX => {
            let left_out = text.chars().count() - ARGUMENT_HEAD_CHARS;
            let begin: String = text.chars().take(ARGUMENT_HEAD_CHARS).collect();
            *text = format!("{begin}… [{left_out} characters left out to make room]");
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_values),
        Value::Object(fields) => fields.values_mut().for_each(shorten_values),
        _ => {}
    }
}

/// Returns what stands for a result that says the same as a later one.
pub(crate) fn shorten_repeated(message: &Message) -> Option<Message> {
    let result = message.tool_result()?;
    if result.text.chars().count() < RESULT_CHARS_MIN {
        return None;
    }
    Some(Message::result(ToolResult {
        text: "[The same as a later result of this tool, which follows below.]".to_owned(),
        images: Vec::new(),
        ..result.clone()
    }))
}

/// Cuts the middle out of a message, so that it takes about so many tokens. `None` when there is nothing to cut.
pub(crate) fn shorten_to(message: &Message, tokens: u64, size: &Size<'_>) -> Option<Message> {
    let now = size(message);
    if now <= tokens {
        return None;
    }
    let mut shorter = message.clone();
    for part in &mut shorter.parts {
        match part {
            Part::Text { text } => *text = without_middle(text, tokens, now, message.role),
            Part::ToolResult(result) => {
                result.images.clear();
                result.text = without_middle(&result.text, tokens, now, message.role);
            }
            Part::ToolCall(call) if call.signatures.is_empty() => {
                if let Arguments::Json(value) = &mut call.arguments {
                    shorten_values(value);
                }
            }
            Part::Image(_) | Part::Audio(_) => {
                *part = Part::text("[It did not fit and is not shown.]");
            }
            Part::Reasoning(_) | Part::ToolCall(_) => {}
        }
    }
    (shorter != *message).then_some(shorter)
}

fn without_middle(text: &str, tokens: u64, of: u64, role: Role) -> String {
    let bytes = (text.len() as u64).saturating_mul(tokens) / of.max(1);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if role == Role::Tool && bytes < BYTES_MIN && text.len() > BYTES_MIN / 2 {
        return format!("[A result of {} bytes, left out to make room.]", text.len());
    }
    let bytes = bytes.max(BYTES_MIN);
    if text.len() <= bytes {
        return text.to_owned();
    }
    let (begin, end) = (head(text, bytes * 2 / 3), tail(text, bytes / 3));
    let left_out = text.len() - begin.len() - end.len();
    let what = match role {
        Role::Tool => {
            "of this result are left out here to make room; ask for a part of it if you need more"
        }
        _ => "of this message are left out here, because it is too long for this model",
    };
    format!("{begin}\n[… {left_out} bytes {what} …]\n{end}")
}

#[cfg(test)]
mod tests {
    use hermes_core::{Media, MediaSource, Reasoning, ResultStatus, ToolCall};
    use serde_json::json;

    use super::*;

    fn result(text: &str) -> Message {
        Message::result(ToolResult {
            call: "c1".into(),
            tool: "read_file".into(),
            text: text.into(),
            status: ResultStatus::Ok,
            images: Vec::new(),
        })
    }

    #[test]
    fn an_old_result_becomes_a_line_once() {
        let long = result(&format!("first line\n{}", "x".repeat(5_000)));
        let short = shorten_old(&long).expect("it is long");
        let text = &short.tool_result().expect("a result").text;
        assert!(
            text.starts_with("first line\n[An old result") && text.len() < 250,
            "{text}"
        );
        assert_eq!(shorten_old(&short), None, "it does not get shorter again");
        assert_eq!(shorten_old(&result("short")), None);
    }

    #[test]
    fn pictures_thoughts_and_long_arguments_of_old_messages_go() {
        let picture = Part::Image(Media {
            mime: "image/png".into(),
            source: MediaSource::Base64("AAAA".into()),
        });
        let said = Message {
            parts: vec![Part::text("look"), picture],
            ..Message::user("")
        };
        let short = shorten_old(&said).expect("it has a picture");
        assert_eq!(short.images().count(), 0);
        assert!(short.text().starts_with("look"));

        let call = |signatures: Vec<String>| ToolCall {
            id: "c1".into(),
            name: "write_file".into(),
            arguments: Arguments::Json(json!({"path": "a", "content": "é".repeat(2_000)})),
            signatures,
        };
        let reply = |signatures| Message {
            parts: vec![
                Part::Reasoning(Reasoning::default()),
                Part::ToolCall(call(signatures)),
            ],
            ..Message::assistant("")
        };
        let short = shorten_old(&reply(vec![])).expect("it is long");
        let arguments = &short.calls().next().expect("a call").arguments;
        let Arguments::Json(arguments) = arguments else {
            panic!("arguments stay JSON");
        };
        assert_eq!(arguments["path"], "a");
        assert!(
            arguments["content"]
                .as_str()
                .unwrap()
                .ends_with("left out to make room]")
        );
        // What a provider signed goes back as it came.
        let signed = shorten_old(&reply(vec!["s".into()])).expect("its thought goes");
        assert_eq!(signed.calls().next(), Some(&call(vec!["s".into()])));
    }

    #[test]
    fn a_long_message_keeps_its_ends() {
        let size = |message: &Message| message.text().len() as u64 / 4;
        let long = Message::user(format!("begin {} end", "é".repeat(10_000)));
        let short = shorten_to(&long, 500, &size).expect("it is long");
        let text = short.text();
        assert!(text.starts_with("begin") && text.ends_with("end"), "{text}");
        assert!(size(&short) < 560, "{}", size(&short));
        assert_eq!(shorten_to(&short, 5_000, &size), None);
    }
}
