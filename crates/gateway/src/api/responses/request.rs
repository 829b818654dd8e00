//! What clients of the Responses API send.

use hermes_core::{Message, UserMessage};
use serde_json::Value;

use crate::api::error::{ApiError, ApiResult};
use crate::api::ids::SESSION_ID;
use crate::api::{ids, said};

/// `truncation: auto` keeps so many of the messages that a client says were said before.
const TRUNCATED_MESSAGES: usize = 100;

#[derive(Debug)]
pub(super) struct ResponseRequest {
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) store: bool,
    pub(super) instructions: Option<String>,
    pub(super) before: Before,
    pub(super) previous: Option<String>,
    pub(super) metadata: Value,
    /// What was said before, by the client's account.
    pub(super) history: Vec<Message>,
    pub(super) message: UserMessage,
}

/// What it goes on with.
#[derive(Debug)]
pub(super) enum Before {
    Nothing,
    Response(String),
    Conversation(String),
}

impl ResponseRequest {
    /// `named` is the conversation that a header names.
    pub(super) fn read(body: &[u8], named: Option<&str>) -> ApiResult<Self> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ApiError::invalid(format!("the body is not JSON: {error}")).code("invalid_json")
        })?;
        let (mut input, place) = match &body["input"] {
            Value::String(text) => (text_only(text), "input"),
            Value::Array(items) => (said::messages(&with_roles(items), "input")?, "input"),
            _ => {
                let message = "`input` must be a text or a list of messages";
                return Err(ApiError::invalid(message).param("input"));
            }
        };
        let system = input.system();
        let Some(message) = input.take_last() else {
            return Err(ApiError::invalid("the last message must be the user's").param(place));
        };
        let mut history = earlier(&body["conversation_history"])?;
        history.append(&mut input.messages);
        if body["truncation"] == "auto" && history.len() > TRUNCATED_MESSAGES {
            history.drain(..history.len() - TRUNCATED_MESSAGES);
        }
        let own = body["instructions"].as_str().map(str::to_owned);
        let instructions: Vec<String> = own.into_iter().chain(system).collect();
        let previous = body["previous_response_id"].as_str().map(str::to_owned);
        Ok(Self {
            model: body["model"].as_str().unwrap_or("hermes-agent").to_owned(),
            stream: body["stream"].as_bool().unwrap_or(false),
            store: body["store"].as_bool().unwrap_or(true),
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            before: before(previous.clone(), &body["conversation"], named)?,
            previous,
            metadata: match &body["metadata"] {
                Value::Object(fields) => Value::Object(fields.clone()),
                _ => Value::Object(serde_json::Map::new()),
            },
            history,
            message,
        })
    }
}

fn text_only(text: &str) -> said::Said {
    let mut said = said::Said::default();
    said.messages
        .extend((!text.trim().is_empty()).then(|| Message::user(text)));
    said
}

/// Items that are messages; a message without a role is the user's.
fn with_roles(items: &[Value]) -> Vec<Value> {
    let messages = items
        .iter()
        .filter(|item| item["type"].as_str().is_none_or(|kind| kind == "message"));
    let with_role = messages.map(|item| match item {
        Value::String(text) => serde_json::json!({"role": "user", "content": text}),
        item if item["role"].is_null() => {
            let mut item = item.clone();
            item["role"] = "user".into();
            item
        }
        item => item.clone(),
    });
    with_role.collect()
}

fn earlier(history: &Value) -> ApiResult<Vec<Message>> {
    match history {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(said::messages(items, "conversation_history")?.messages),
        _ => {
            let message = "`conversation_history` must be a list of messages";
            Err(ApiError::invalid(message).param("conversation_history"))
        }
    }
}

fn before(
    previous: Option<String>,
    conversation: &Value,
    named: Option<&str>,
) -> ApiResult<Before> {
    let conversation = conversation
        .as_str()
        .or_else(|| conversation["id"].as_str());
    if let Some(name) = named {
        let field = match (&previous, conversation) {
            (Some(_), _) => "previous_response_id",
            (None, Some(_)) => "conversation",
            (None, None) => return Ok(Before::Conversation(name.to_owned())),
        };
        let message = format!("`{field}` and the header `{SESSION_ID}` say two things; send one");
        return Err(ApiError::invalid(message).param(field));
    }
    match (previous, conversation) {
        (Some(_), Some(_)) => {
            let message = "`previous_response_id` and `conversation` say two things; send one";
            Err(ApiError::invalid(message).param("conversation"))
        }
        (Some(previous), None) => Ok(Before::Response(previous)),
        (None, Some(name)) => {
            let wrong =
                |what| ApiError::invalid(format!("`conversation` {what}")).param("conversation");
            ids::check_name(name).map_err(wrong)?;
            Ok(Before::Conversation(name.to_owned()))
        }
        (None, None) => Ok(Before::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> ApiResult<ResponseRequest> {
        ResponseRequest::read(body.to_string().as_bytes(), None)
    }

    #[test]
    fn input_is_a_text_or_messages() {
        let text = read(&json!({"input": "hi"})).unwrap();
        assert_eq!(Message::from(text.message).text(), "hi");
        let list = read(&json!({"instructions": "be kind", "input": [
            {"role": "system", "content": "be brief"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"type": "reasoning", "summary": []},
            {"role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            {"role": "user", "content": "three"},
        ]}))
        .unwrap();
        assert_eq!(list.instructions.as_deref(), Some("be kind\n\nbe brief"));
        let said: Vec<_> = list.history.iter().map(Message::text).collect();
        assert_eq!(said, ["one", "two"]);
        assert_eq!(Message::from(list.message).text(), "three");
    }

    #[test]
    fn two_ways_to_go_on_are_one_too_many() {
        for (body, param) in [
            (
                json!({"input": "x", "previous_response_id": "r", "conversation": "c"}),
                "conversation",
            ),
            (json!({"input": "x", "conversation": "a/b"}), "conversation"),
            (json!({"input": ""}), "input"),
            (json!({"input": []}), "input"),
            (json!({}), "input"),
            (
                json!({"input": "x", "conversation_history": "y"}),
                "conversation_history",
            ),
        ] {
            let error = read(&body).unwrap_err();
            assert_eq!(error.body()["error"]["param"], param, "{body}");
        }
    }

    #[test]
    fn a_header_names_the_conversation_unless_the_body_does() {
        let read = |body: Value| ResponseRequest::read(body.to_string().as_bytes(), Some("talk"));
        let named = read(json!({"input": "x"})).unwrap();
        assert!(matches!(named.before, Before::Conversation(name) if name == "talk"));
        for (field, value) in [("conversation", "talk"), ("previous_response_id", "resp_1")] {
            let error = read(json!({"input": "x", field: value})).unwrap_err();
            assert_eq!(error.body()["error"]["param"], field);
        }
    }
}
