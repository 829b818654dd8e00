//! The older part of a conversation as text, for whoever summarises it, and a summary of it made without a model.

use std::collections::BTreeMap;

use hermes_core::text::{head, shorten, tail};
use hermes_core::{Arguments, Message, Origin, Part, Role};

/// Of one message, this much is shown at most: its beginning and its end.
const MESSAGE_BYTES_MAX: usize = 6_000;
const ARGUMENTS_CHARS_MAX: usize = 1_500;
/// No message is cut to less, however many there are.
const MESSAGE_BYTES_MIN: usize = 160;

/// Of what the user and the assistant said, this much goes into a summary without a model.
const QUOTE_CHARS: usize = 240;
/// Calls that a summary without a model names, by tool.
const TARGETS_MAX: usize = 12;

/// Writes messages out, in pieces of at most so many bytes, at most so many pieces: messages are cut the shorter, the more
/// there are.
pub(super) fn written(messages: &[Message], piece_bytes: usize, pieces_max: usize) -> Vec<String> {
    let share = piece_bytes.saturating_mul(pieces_max) / messages.len().max(1);
    let bytes_max = MESSAGE_BYTES_MAX
        .min(piece_bytes / 2)
        .min(share.max(MESSAGE_BYTES_MIN));
    let lines: Vec<String> = messages
        .iter()
        .map(|message| one(message, bytes_max))
        .filter(|line| !line.is_empty())
        .collect();
    let mut pieces: Vec<String> = Vec::new();
    for line in lines {
        match pieces.last_mut() {
            Some(piece) if piece.len() + line.len() <= piece_bytes => piece.push_str(&line),
            _ => pieces.push(line),
        }
    }
    // Of more than may be shown, the newest: what is older is in the summary before, or in the store.
    let surplus = pieces.len().saturating_sub(pieces_max);
    pieces.split_off(surplus)
}

fn one(message: &Message, bytes_max: usize) -> String {
    let mut text = String::new();
    for part in &message.parts {
        match part {
            Part::Text { text: said } => text.push_str(said),
            Part::Image(_) => text.push_str("[a picture]"),
            Part::Audio(_) => text.push_str("[a recording]"),
            Part::Reasoning(_) => {}
            Part::ToolCall(call) => {
                let arguments = match &call.arguments {
                    Arguments::Json(value) => value.to_string(),
                    Arguments::Malformed(text) => text.clone(),
                };
                let arguments = shorten(&arguments, ARGUMENTS_CHARS_MAX.min(bytes_max));
                text.push_str(&format!("\n[calls {} {arguments}]", call.name));
            }
            Part::ToolResult(result) => text.push_str(&result.text),
        }
    }
    let text = ends(text.trim(), bytes_max);
    if text.is_empty() {
        return text;
    }
    let who = match (message.role, &message.origin) {
        (Role::Assistant, _) => "ASSISTANT".to_owned(),
        (Role::Tool, _) => {
            let tool = message.tool_result().map(|result| result.tool.as_str());
            format!("RESULT OF {}", tool.unwrap_or("a tool"))
        }
        (Role::User, Some(Origin::Person { .. } | Origin::Steering) | None) => "USER".to_owned(),
        (Role::User, Some(_)) => "NOTICE".to_owned(),
    };
    format!("{who}: {text}\n\n")
}

fn ends(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = tail(text, bytes_max / 4);
    format!("{} […] {end}", head(text, bytes_max - bytes_max / 4))
}

/// Makes a summary without a model: what the user asked for, what was called, what was said last.
pub(super) fn digest(before: Option<&str>, messages: &[Message], bytes_max: usize) -> String {
    let quote = |message: &Message| {
        let said = message.shown();
        shorten(
            &said.split_whitespace().collect::<Vec<_>>().join(" "),
            QUOTE_CHARS,
        )
    };
    let asked = messages
        .iter()
        .filter(|message| message.begins_turn())
        .map(quote)
        .filter(|said| !said.is_empty());
    let answered = messages
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .map(quote)
        .filter(|said| !said.is_empty());
    let mut text = String::new();
    if let Some(before) = before {
        let before = before.trim();
        text.push_str(head(before, bytes_max / 2).trim_end());
        text.push_str("\n\n");
    }
    let room = bytes_max.saturating_sub(text.len());
    section(&mut text, "What the user asked for", asked, room / 2);
    section(
        &mut text,
        "What was called",
        calls(messages).into_iter(),
        room / 5,
    );
    section(&mut text, "What the assistant said", answered, room / 4);
    head(text.trim_end(), bytes_max).to_owned()
}

/// Adds the newest lines that fit, in their order.
fn section(
    text: &mut String,
    title: &str,
    lines: impl DoubleEndedIterator<Item = String>,
    bytes_max: usize,
) {
    let mut left = bytes_max;
    let fits = |line: &String| {
        left = left.saturating_sub(line.len() + 3);
        left > 0
    };
    let mut shown: Vec<String> = lines.rev().take_while(fits).collect();
    shown.reverse();
    if !shown.is_empty() {
        text.push_str(&format!("## {title}\n- {}\n\n", shown.join("\n- ")));
    }
}

/// What was called, and on what: `write_file: a.rs, b.rs`.
fn calls(messages: &[Message]) -> Vec<String> {
    let mut by_tool: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for call in messages.iter().flat_map(Message::calls) {
        let targets = by_tool.entry(&call.name).or_default();
        let Arguments::Json(arguments) = &call.arguments else {
            continue;
        };
        let target = ["path", "command", "url", "query", "pattern"]
            .iter()
            .find_map(|name| arguments.get(name)?.as_str());
        let target = target.map(|target| shorten(target.trim(), 60).replace('\n', " "));
        targets.extend(target.filter(|target| !targets.contains(target)));
    }
    let told = by_tool.into_iter().map(|(tool, mut targets)| {
        let older = targets.len().saturating_sub(TARGETS_MAX);
        let newest = targets.split_off(older).join(", ");
        format!("{tool}: {newest}")
            .trim_end_matches(": ")
            .to_owned()
    });
    told.collect()
}
