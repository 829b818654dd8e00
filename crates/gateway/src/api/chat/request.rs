//! What clients of chat completions send.

use hermes_core::{Message, UserMessage};
use serde_json::Value;

use crate::api::error::{ApiError, ApiResult};
use crate::api::said;

/// A request, as far as it counts here. What else clients send (temperature, tools of their own) is the agent's own
/// business, and not read.
#[derive(Debug)]
pub(super) struct ChatRequest {
    /// As the client wrote it: it is told the same name.
    pub(super) model: String,
    pub(super) stream: bool,
    /// Whether a stream ends with a chunk of its own for what was used.
    pub(super) wants_usage: bool,
    /// What the system prompt is to say besides.
    pub(super) system: Option<String>,
    /// What was said before, by the client's account.
    pub(super) history: Vec<Message>,
    pub(super) message: UserMessage,
}

impl ChatRequest {
    pub(super) fn read(body: &[u8]) -> ApiResult<Self> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ApiError::invalid(format!("the body is not JSON: {error}")).code("invalid_json")
        })?;
        let Some(messages) = body["messages"]
            .as_array()
            .filter(|messages| !messages.is_empty())
        else {
            return Err(
                ApiError::invalid("`messages` must be a list with at least one message")
                    .param("messages"),
            );
        };
        let mut said = said::messages(messages, "messages")?;
        let system = said.system();
        let Some(message) = said.take_last() else {
            return Err(ApiError::invalid("the last message must be the user's").param("messages"));
        };
        Ok(Self {
            model: body["model"].as_str().unwrap_or("hermes-agent").to_owned(),
            stream: flag(&body["stream"], "stream")?,
            wants_usage: flag(
                &body["stream_options"]["include_usage"],
                "stream_options.include_usage",
            )?,
            system,
            history: said.messages,
            message,
        })
    }

    /// The message that is to be answered.
    pub(super) fn said(&self) -> Message {
        Message::from(self.message.clone())
    }
}

fn flag(value: &Value, name: &str) -> ApiResult<bool> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(is_on) => Ok(*is_on),
        _ => Err(ApiError::invalid(format!("`{name}` must be true or false")).param(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> ApiResult<ChatRequest> {
        ChatRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn the_last_message_is_asked_and_the_others_were_said() {
        let request = read(&json!({"model": "m", "stream": true, "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "content": "x", "tool_call_id": "c"},
            {"role": "assistant", "content": "hello"},
            {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "input_text", "text": " now?"}]},
        ]}))
        .unwrap();
        assert_eq!(request.system.as_deref(), Some("be kind\n\nbe brief"));
        let said: Vec<_> = request.history.iter().map(Message::text).collect();
        assert_eq!(said, ["hi", "hello"]);
        assert_eq!(request.said().text(), "what now?");
        assert!(request.stream);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_place() {
        for (body, place) in [
            (json!({}), "messages"),
            (json!({"messages": []}), "messages"),
            (json!({"messages": "hi"}), "messages"),
            (json!({"messages": [{"content": "hi"}]}), "messages[0]"),
            (
                json!({"messages": [{"role": "user", "content": ""}]}),
                "messages[0]",
            ),
            (
                json!({"messages": [{"role": "assistant", "content": "hi"}]}),
                "messages",
            ),
            (
                json!({"messages": [{"role": "user", "content": 7}]}),
                "messages[0].content",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]}),
                "messages[0].content[0]",
            ),
            (
                json!({"messages": [{"role": "user", "content": "x"}], "stream": "yes"}),
                "stream",
            ),
        ] {
            let error = read(&body).unwrap_err();
            assert_eq!(error.body()["error"]["param"], place, "{body}");
        }
    }

    #[test]
    fn pictures_come_along_when_they_are_some() {
        let with = |url: &str| {
            read(&json!({"messages": [{"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": url}},
            ]}]}))
        };
        let data = format!("data:image/png;base64,{}", hermes_testkit::PIXEL_BASE64);
        for url in [data.as_str(), "https://example.org/a.png"] {
            assert_eq!(with(url).unwrap().said().images().count(), 1, "{url}");
        }
        for url in [
            "file:///etc/passwd",
            "data:image/png;base64,%%%",
            "data:image/png;base64,aGk=",
            "data:text/plain,hi",
        ] {
            let error = with(url).unwrap_err();
            assert_eq!(error.body()["error"]["code"], "invalid_image_url", "{url}");
        }
    }
}
