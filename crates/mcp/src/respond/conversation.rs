//! The conversation of a sampling request in our own words, and our answer in the protocol's.

use hermes_core::{
    Arguments, CallId, FinishReason, Finished, Media, MediaSource, Message, Part, ResultStatus,
    Role, ToolCall, ToolResult, ToolSpec,
};
use rmcp::model::{ContentBlock, Role as RemoteRole};
#[expect(deprecated, reason = "servers of today's era ask for samples")]
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
    ToolChoiceMode, ToolResultContent, ToolUseContent,
};
use serde_json::{Map, Value};

use crate::schema::normalised;

/// What a model is asked.
#[derive(Debug, PartialEq)]
pub(super) struct Conversation {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSpec>,
}

const NOT_FOR_MODELS: &str = "a message has content that this client cannot pass on";

#[expect(deprecated, reason = "servers of today's era ask for samples")]
impl Conversation {
    pub(super) fn of(request: &CreateMessageRequestParams) -> Result<Self, &'static str> {
        let choice = request
            .tool_choice
            .as_ref()
            .and_then(|choice| choice.mode.clone());
        let tools = request.tools.iter().flatten();
        let tools = tools.filter(|_| choice != Some(ToolChoiceMode::None));
        let mut conversation = Self {
            system: request.system_prompt.clone().unwrap_or_default(),
            messages: Vec::new(),
            tools: tools.map(spec).collect(),
        };
        for message in &request.messages {
            conversation.add(message)?;
        }
        if conversation.messages.is_empty() {
            Err("there is no message to answer")
        } else {
            Ok(conversation)
        }
    }

    /// Returns how often the model has used tools so far.
    pub(super) fn tool_rounds(&self) -> usize {
        let uses_tools = |message: &&Message| message.calls().next().is_some();
        self.messages.iter().filter(uses_tools).count()
    }

    fn add(&mut self, message: &SamplingMessage) -> Result<(), &'static str> {
        let mut parts = Vec::new();
        for block in message.content.iter() {
            match block {
                SamplingMessageContentBlock::Text(text) => parts.push(Part::text(&text.text)),
                SamplingMessageContentBlock::Image(image) => {
                    parts.push(Part::Image(media(&image.mime_type, &image.data)));
                }
                SamplingMessageContentBlock::Audio(audio) => {
                    parts.push(Part::Audio(media(&audio.mime_type, &audio.data)));
                }
                SamplingMessageContentBlock::ToolUse(tool_use) => parts.push(call(tool_use)),
                SamplingMessageContentBlock::ToolResult(result) => {
                    let result = self.result(result)?;
                    self.messages.push(Message::result(result));
                }
                _ => return Err(NOT_FOR_MODELS),
            }
        }
        let role = match message.role {
            RemoteRole::User => Role::User,
            RemoteRole::Assistant => Role::Assistant,
        };
        if !parts.is_empty() {
            self.messages.push(Message {
                role,
                origin: None,
                parts,
            });
        }
        Ok(())
    }

    fn result(&self, result: &ToolResultContent) -> Result<ToolResult, &'static str> {
        let mut calls = self.messages.iter().flat_map(Message::calls);
        let call = calls
            .find(|call| call.id.as_str() == result.tool_use_id)
            .ok_or("a result belongs to no use of a tool")?;
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for block in &result.content {
            match block {
                ContentBlock::Text(text) => texts.push(text.text.clone()),
                ContentBlock::Image(image) => images.push(media(&image.mime_type, &image.data)),
                _ => return Err(NOT_FOR_MODELS),
            }
        }
        let status = match result.is_error {
            Some(true) => ResultStatus::Failed,
            _ => ResultStatus::Ok,
        };
        Ok(ToolResult::new(call, status, texts.join("\n")).with_images(images))
    }
}

fn media(mime: &str, base64: &str) -> Media {
    Media {
        mime: mime.to_owned(),
        source: MediaSource::Base64(base64.to_owned()),
    }
}

#[expect(deprecated, reason = "servers of today's era ask for samples")]
fn call(tool_use: &ToolUseContent) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::from(tool_use.id.as_str()),
        name: tool_use.name.clone(),
        arguments: Arguments::Json(Value::Object(tool_use.input.clone())),
        signatures: Vec::new(),
    })
}

fn spec(tool: &rmcp::model::Tool) -> ToolSpec {
    let description = tool.description.as_deref().unwrap_or(&tool.name);
    ToolSpec {
        name: tool.name.to_string(),
        description: description.to_owned(),
        parameters: normalised(&Value::Object(tool.input_schema.as_ref().clone())),
    }
}

/// Turns a model's reply into the answer for the server, or says why there is none.
#[expect(deprecated, reason = "servers of today's era ask for samples")]
pub(super) fn result(
    message: &Message,
    finished: &Finished,
) -> Result<CreateMessageResult, &'static str> {
    let stop_reason = match finished.reason {
        FinishReason::Stop => CreateMessageResult::STOP_REASON_END_TURN,
        FinishReason::ToolCalls => CreateMessageResult::STOP_REASON_TOOL_USE,
        FinishReason::Length => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        FinishReason::ContentFilter => return Err("the model's provider refused to answer"),
        FinishReason::Cut => return Err("the model's answer broke off"),
    };
    let mut blocks = Vec::new();
    let text = message.text();
    if !text.is_empty() {
        blocks.push(SamplingMessageContentBlock::text(text));
    }
    for call in message.calls() {
        let input = match &call.arguments {
            Arguments::Json(Value::Object(input)) => input.clone(),
            Arguments::Json(_) => Map::new(),
            Arguments::Malformed(_) => return Err("the model used a tool in a wrong way"),
        };
        let id = call.id.as_str();
        blocks.push(SamplingMessageContentBlock::tool_use(id, &call.name, input));
    }
    let message = match blocks.len() {
        0 => return Err("the model's answer was empty"),
        // Older servers know nothing but a single block.
        1 => SamplingMessage::new(RemoteRole::Assistant, blocks.remove(0)),
        _ => SamplingMessage::new_multiple(RemoteRole::Assistant, blocks),
    };
    let model = finished.model.model.clone();
    Ok(CreateMessageResult::new(message, model).with_stop_reason(stop_reason))
}

#[cfg(test)]
mod tests {
    use hermes_core::{Cost, ModelName, Usage};
    use serde_json::json;

    use super::*;

    fn conversation(request: Value) -> Result<Conversation, &'static str> {
        Conversation::of(&serde_json::from_value(request).unwrap())
    }

    fn with_tools() -> Value {
        json!({
            "maxTokens": 10, "systemPrompt": "Be brief.",
            "tools": [{ "name": "look", "inputSchema": { "type": "object" } }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "what is it?" },
                    { "type": "image", "data": "AA==", "mimeType": "image/png" }] },
                { "role": "assistant", "content": { "type": "tool_use", "id": "u1", "name": "look", "input": {} } },
                { "role": "user", "content": { "type": "tool_result", "toolUseId": "u1",
                    "content": [{ "type": "text", "text": "a cat" },
                        { "type": "image", "data": "BB==", "mimeType": "image/png" }] } },
            ],
        })
    }

    #[test]
    fn a_conversation_with_images_and_tools_is_passed_on() {
        let conversation = conversation(with_tools()).unwrap();
        assert_eq!(conversation.system, "Be brief.");
        assert_eq!(conversation.tools[0].name, "look");
        assert_eq!(conversation.messages.len(), 3);
        assert!(matches!(conversation.messages[0].parts[1], Part::Image(_)));
        let result = conversation.messages[2].tool_result().unwrap();
        assert_eq!(
            (result.tool.as_str(), result.text.as_str()),
            ("look", "a cat")
        );
        assert_eq!(result.images, [media("image/png", "BB==")]);
        assert_eq!(conversation.tool_rounds(), 1);
    }

    #[test]
    fn tools_that_are_not_to_be_used_are_not_shown() {
        let mut request = with_tools();
        request["toolChoice"] = json!({ "mode": "none" });
        assert!(conversation(request).unwrap().tools.is_empty());
    }

    #[test]
    fn what_has_no_answer_is_refused() {
        assert!(conversation(json!({ "maxTokens": 1, "messages": [] })).is_err());
    }

    #[test]
    fn an_answer_says_why_it_stopped_and_who_gave_it() {
        let finished = |reason| Finished {
            reason,
            usage: Usage::default(),
            cost: Cost::Unknown,
            model: ModelName {
                provider: "p".into(),
                model: "m".into(),
            },
        };
        let said = Message::assistant("a cat");
        let answer = json!(result(&said, &finished(FinishReason::Stop)).unwrap());
        assert_eq!(
            answer,
            json!({ "model": "m", "stopReason": "endTurn", "role": "assistant",
                "content": { "type": "text", "text": "a cat" } })
        );
        assert!(result(&said, &finished(FinishReason::Cut)).is_err());
        let nothing = Message::assistant("");
        assert!(result(&nothing, &finished(FinishReason::Stop)).is_err());
    }
}
