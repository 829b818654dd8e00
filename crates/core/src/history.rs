//! Puts a stored conversation into the order providers want: every call followed by its one result.

use crate::id::CallId;
use crate::message::{Message, Role};

/// Reorders the results after each reply to the order of its calls: parallel calls finish in any order.
pub fn in_call_order(messages: Vec<Message>) -> Vec<Message> {
    in_call_order_by(messages, |message| message)
}

/// The same for whatever comes with a message.
pub fn in_call_order_by<T>(items: Vec<T>, message_of: impl Fn(&T) -> &Message) -> Vec<T> {
    let mut ordered: Vec<T> = Vec::with_capacity(items.len());
    let mut calls: Vec<CallId> = Vec::new();
    let mut results_from = 0;
    for item in items {
        let message = message_of(&item);
        if message.role != Role::Tool {
            sort_results(&mut ordered[results_from..], &calls, &message_of);
            calls = message.calls().map(|call| call.id.clone()).collect();
            ordered.push(item);
            results_from = ordered.len();
        } else {
            ordered.push(item);
        }
    }
    sort_results(&mut ordered[results_from..], &calls, &message_of);
    ordered
}

fn sort_results<T>(results: &mut [T], calls: &[CallId], message_of: impl Fn(&T) -> &Message) {
    results.sort_by_key(|item| {
        let result = message_of(item).tool_result();
        result
            .and_then(|result| calls.iter().position(|call| *call == result.call))
            .unwrap_or(usize::MAX)
    });
}

/// Returns the ids of calls in the last reply that have no result yet, in call order.
pub fn unanswered(messages: &[Message]) -> Vec<CallId> {
    let Some(last) = messages
        .iter()
        .rposition(|message| message.role != Role::Tool)
    else {
        return Vec::new();
    };
    let answered = |id: &CallId| {
        messages[last + 1..]
            .iter()
            .filter_map(Message::tool_result)
            .any(|result| result.call == *id)
    };
    messages[last]
        .calls()
        .map(|call| call.id.clone())
        .filter(|id| !answered(id))
        .collect()
}

/// Returns the end of a conversation: so many exchanges, each beginning with what the user said.
pub fn last_exchanges(messages: &[Message], count: usize) -> &[Message] {
    let begins = (0..messages.len()).rev();
    let begins = begins.filter(|at| messages[*at].begins_turn());
    let first = begins.take(count).last().unwrap_or(messages.len());
    &messages[first..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Arguments, Part, ResultStatus, ToolCall, ToolResult};

    fn reply(ids: &[&str]) -> Message {
        let call = |id: &&str| {
            Part::ToolCall(ToolCall {
                id: CallId::from(*id),
                name: "t".into(),
                arguments: Arguments::parse(""),
                signatures: vec![],
            })
        };
        Message {
            role: Role::Assistant,
            origin: None,
            parts: ids.iter().map(call).collect(),
        }
    }

    fn result(id: &str) -> Message {
        Message::result(ToolResult {
            call: id.into(),
            tool: "t".into(),
            text: String::new(),
            status: ResultStatus::Ok,
            images: Vec::new(),
        })
    }

    #[test]
    fn results_stand_in_the_order_of_their_calls() {
        let stored = vec![
            reply(&["a", "b"]),
            result("b"),
            result("a"),
            reply(&["a"]),
            result("a"),
        ];
        let expected = vec![
            reply(&["a", "b"]),
            result("a"),
            result("b"),
            reply(&["a"]),
            result("a"),
        ];
        assert_eq!(in_call_order(stored), expected);
    }

    #[test]
    fn an_exchange_begins_with_what_the_user_said() {
        let messages = [
            Message::user("a"),
            Message::assistant("1"),
            Message::user("b"),
            reply(&["c"]),
            result("c"),
        ];
        assert_eq!(last_exchanges(&messages, 1), &messages[2..]);
        assert_eq!(last_exchanges(&messages, 9), messages);
        assert_eq!(last_exchanges(&messages, 0), []);
        assert_eq!(last_exchanges(&messages[1..2], 9), []);
    }

    #[test]
    fn only_the_last_reply_can_have_unanswered_calls() {
        let messages = vec![Message::user("hi"), reply(&["a", "b"]), result("b")];
        assert_eq!(unanswered(&messages), [CallId::from("a")]);
        assert!(unanswered(&[Message::user("hi")]).is_empty());
    }
}
