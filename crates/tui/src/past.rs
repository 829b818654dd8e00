//! A conversation that goes on, as it is shown again: what was said, the calls with what came of them, and where a turn
//! was cut short.

use std::time::Duration;

use hermes_core::{Arguments, Message, ResultStatus, Role, ToolCall, ToolResult, skill, wording};

use crate::item::{FinishedCall, Item};
use crate::markdown::Piece;
use crate::{theme, wrap};

/// How the last words of a turn begin that came to no answer.
const CUT_SHORT: [&str; 3] = ["[Interrupted", "[Stopped", "[No answer"];

/// The items of the messages, in their order.
pub(crate) fn items(messages: &[Message]) -> Vec<Item> {
    let mut items = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        items.extend(words(message));
        let results = &messages[at + 1..];
        items.extend(message.calls().map(|call| called(call, results)));
    }
    items
}

fn words(message: &Message) -> Option<Item> {
    let text = message.shown();
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    match message.role {
        Role::User => Some(Item::User(skill::as_typed(text).to_owned())),
        Role::Assistant if CUT_SHORT.iter().any(|begin| text.starts_with(begin)) => {
            let words = text.trim_matches(['[', ']', '.']);
            Some(Item::note(theme::WARNING, words.to_lowercase()))
        }
        Role::Assistant => Some(Item::Reply(Piece {
            source: wrap::clean(text),
            is_continued: false,
        })),
        Role::Tool => None,
    }
}

fn called(call: &ToolCall, after: &[Message]) -> Item {
    let mut results = after.iter().filter_map(Message::tool_result);
    let result = results.find(|result| result.call == call.id);
    let brief = match &call.arguments {
        Arguments::Json(value) => wording::brief(value),
        Arguments::Malformed(text) => hermes_core::text::shorten(text, 100),
    };
    let status = result.map_or(ResultStatus::OutcomeUnknown, |result| result.status);
    Item::Call(FinishedCall {
        tool: call.name.clone(),
        brief,
        status,
        text: result
            .map_or("it has no result", |result: &ToolResult| &result.text)
            .to_owned(),
        change: None,
        elapsed: Duration::ZERO,
        shows_output: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Size;
    use hermes_core::Part;
    use serde_json::json;

    #[test]
    fn calls_and_interruptions_are_shown_again() {
        let call = ToolCall {
            id: "c1".into(),
            name: "terminal".into(),
            arguments: Arguments::Json(json!({"command": "ls x"})),
            signatures: Default::default(),
        };
        let result = ToolResult::new(
            &call,
            ResultStatus::Failed,
            "ls: x: none\n[exit code 2, 0.1 s]",
        );
        let messages = [
            Message::user("look"),
            Message {
                role: Role::Assistant,
                origin: None,
                parts: vec![Part::text("I look."), Part::ToolCall(call)],
            },
            Message::result(result),
            Message::assistant("[Interrupted by the user.]"),
        ];
        let size = Size {
            columns: 60,
            rows: 24,
        };
        let rows: Vec<String> = items(&messages)
            .iter()
            .flat_map(|item| item.rows(size))
            .map(|row| row.to_string())
            .collect();
        assert_eq!(
            rows,
            [
                "› look",
                "I look.",
                "  ✗ terminal ls x",
                "    ls: x: none",
                "    [exit code 2, 0.1 s]",
                "  interrupted by the user",
            ]
        );
    }
}
