//! Reads what a request says, on any wire, as far as a script needs it to choose an answer.

use serde_json::Value;

use super::wire::Wire;

/// The messages of a request in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Conversation {
    pub(crate) fn read(wire: Wire, body: &Value) -> Self {
        let messages = match wire {
            Wire::Chat | Wire::Ollama => chat_messages(body),
            Wire::Messages => items(body, "messages").flat_map(messages_message).collect(),
            Wire::Gemini => items(body, "contents").flat_map(gemini_content).collect(),
            Wire::Responses => responses_input(&body["input"]),
        };
        Self { messages }
    }

    pub(crate) fn last(&self) -> Option<&Message> {
        self.messages.last()
    }

    pub(crate) fn last_user_text(&self) -> &str {
        match self.since_last_user().first() {
            Some(message) => &message.text,
            None => "",
        }
    }

    /// Returns the last user message and what came after it; nothing if no user spoke.
    pub(crate) fn since_last_user(&self) -> &[Message] {
        let is_user = |message: &Message| message.role == Role::User;
        match self.messages.iter().rposition(is_user) {
            Some(start) => &self.messages[start..],
            None => &[],
        }
    }

    /// Counts the assistant messages after the last user message.
    pub(crate) fn step(&self) -> usize {
        let is_assistant = |message: &&Message| message.role == Role::Assistant;
        self.since_last_user().iter().filter(is_assistant).count()
    }
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    fn from_name(name: &Value) -> Self {
        match name.as_str() {
            Some("assistant" | "model") => Self::Assistant,
            Some("tool" | "function") => Self::Tool,
            Some("system" | "developer") => Self::System,
            _ => Self::User,
        }
    }
}

fn items<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    body[key].as_array().into_iter().flatten()
}

/// Reads chat messages. Results cannot hold pictures there, so those of a step follow it, as if from the user.
fn chat_messages(body: &Value) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for message in items(body, "messages") {
        let mut read = plain_message(message);
        let is_after_result = messages.last().is_some_and(|last| last.role == Role::Tool);
        if is_after_result && read.role == Role::User && has_picture(message) {
            read.role = Role::Tool;
        }
        messages.push(read);
    }
    messages
}

fn has_picture(message: &Value) -> bool {
    items(message, "content").any(|part| part["type"] == "image_url")
}

fn plain_message(message: &Value) -> Message {
    Message {
        role: Role::from_name(&message["role"]),
        text: text_of(&message["content"]),
    }
}

/// Reads an Anthropic message, whose tool results hide in user messages.
fn messages_message(message: &Value) -> Vec<Message> {
    let is_result = |block: &Value| block["type"] == "tool_result";
    split_results(message, &message["content"], is_result)
}

/// Reads a Gemini content, whose tool results hide in user contents.
fn gemini_content(content: &Value) -> Vec<Message> {
    let is_result = |part: &Value| part.get("functionResponse").is_some();
    split_results(content, &content["parts"], is_result)
}

/// Returns the tool results of a message as one message and the rest as another.
fn split_results(
    message: &Value,
    content: &Value,
    is_result: impl Fn(&Value) -> bool,
) -> Vec<Message> {
    let role = Role::from_name(&message["role"]);
    let Some(blocks) = content.as_array() else {
        let text = text_of(content);
        return vec![Message { role, text }];
    };
    let (results, others): (Vec<&Value>, Vec<&Value>) = blocks.iter().partition(|b| is_result(b));
    let join = |blocks: &[&Value]| blocks.iter().map(|block| text_of(block)).collect();
    let mut messages = Vec::new();
    if !results.is_empty() {
        let text = join(&results);
        messages.push(Message {
            role: Role::Tool,
            text,
        });
    }
    if !others.is_empty() || results.is_empty() {
        let text = join(&others);
        messages.push(Message { role, text });
    }
    messages
}

/// Reads the items of the Responses API, where one assistant message is a run of items.
fn responses_input(input: &Value) -> Vec<Message> {
    if let Value::String(text) = input {
        let text = text.clone();
        return vec![Message {
            role: Role::User,
            text,
        }];
    }
    let mut messages: Vec<Message> = Vec::new();
    for item in input.as_array().into_iter().flatten() {
        let message = responses_item(item);
        match messages.last_mut() {
            Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
                last.text.push_str(&message.text);
            }
            _ => messages.push(message),
        }
    }
    messages
}

fn responses_item(item: &Value) -> Message {
    match item["type"].as_str() {
        Some("function_call_output" | "custom_tool_call_output") => Message {
            role: Role::Tool,
            text: text_of(&item["output"]),
        },
        Some("function_call" | "custom_tool_call" | "reasoning") => Message {
            role: Role::Assistant,
            text: String::new(),
        },
        _ => plain_message(item),
    }
}

/// Returns the readable text of a message, a block, or a list of blocks.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect(),
        Value::Object(block) => {
            if let Some(response) = block.get("functionResponse") {
                return response["response"].to_string();
            }
            let inner = block.get("text").or_else(|| block.get("content"));
            inner.map(text_of).unwrap_or_default()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks a conversation with one tool step after the question `why?`.
    fn check(wire: Wire, body: &Value) {
        let conversation = Conversation::read(wire, body);
        assert_eq!(conversation.last_user_text(), "why?", "{wire:?}");
        assert_eq!(conversation.step(), 1, "{wire:?}");
        let last = conversation.last().unwrap();
        assert_eq!(last.role, Role::Tool, "{wire:?}");
        assert!(last.text.contains("42"), "{wire:?}: {last:?}");
    }

    #[test]
    fn every_wire_tells_the_question_the_step_and_the_tool_result() {
        let chat = json!({"messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "before"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": [{"type": "text", "text": "why?"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": "42"}]});
        check(Wire::Chat, &chat);
        check(Wire::Ollama, &chat);
        check(
            Wire::Messages,
            &json!({"system": "be brief", "messages": [
                {"role": "user", "content": "why?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
                    "content": [{"type": "text", "text": "42"}]}]}]}),
        );
        check(
            Wire::Gemini,
            &json!({"contents": [
                {"role": "user", "parts": [{"text": "why?"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f",
                    "response": {"answer": 42}}}]}]}),
        );
        check(
            Wire::Responses,
            &json!({"input": [
                {"role": "user", "content": [{"type": "input_text", "text": "why?"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "41"},
                {"type": "function_call_output", "call_id": "b", "output": "42"}]}),
        );
    }

    #[test]
    fn pictures_behind_a_tool_result_are_part_of_it() {
        let mut body = json!({"messages": [
            {"role": "user", "content": "why?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": "a picture"},
            {"role": "user", "content": [{"type": "text", "text": "42"},
                {"type": "image_url", "image_url": {"url": "data:"}}]}]});
        check(Wire::Chat, &body);
        body["messages"][3]["content"] = json!("really?");
        let conversation = Conversation::read(Wire::Chat, &body);
        assert_eq!(conversation.last_user_text(), "really?");
    }

    #[test]
    fn words_beside_a_tool_result_are_a_user_message_after_it() {
        let body = json!({"messages": [
            {"role": "user", "content": "why?"},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [{"type": "tool_result", "content": "42"},
                {"type": "text", "text": "stop"}]}]});
        let conversation = Conversation::read(Wire::Messages, &body);
        assert_eq!(conversation.last_user_text(), "stop");
        assert_eq!(conversation.step(), 0);
    }
}
