//! What a conversation is made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::id::CallId;
use crate::inbox::InboxId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    /// Carries one [`Part::ToolResult`].
    Tool,
}

/// One message. The system prompt is not a message: it is part of the session's frozen [`crate::Prefix`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// Where a message of the role [`Role::User`] came from; those of other roles have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    pub parts: Vec<Part>,
}

/// Where words in the user's role came from. Providers see one role; we do not have to guess from the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Somebody said it.
    Person {
        /// The surface they said it on; the session's own when it is not named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        surface: Option<String>,
        /// Who, in the terms of the session's person (`SessionOptions::person`): none is whoever the session is held with, the owner
        /// of the home where it is nobody else's. See [`Origin::is_of`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The request of a program that it came with, by which its turn is found again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        /// The entries of the inbox that brought it. The commit that begins a turn with it takes them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inbox: Vec<InboxId>,
        /// What was sent to the chat apart from its conversation, and stands behind the words. The commit that begins a turn
        /// with them notes that it was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mirrored: Option<Mirrored>,
    },
    /// Words for a turn that was running, which came too late for it.
    Steering,
    /// Hermes tells what happened beside the conversation: a process ended, a server brings tools.
    Notice,
    /// What subagents found that ran in the background.
    SubagentReport { delegation: String },
    /// A schedule asked.
    Schedule { job: String },
    /// What stands for the part of the conversation that was compacted. Begins no turn.
    Summary,
}

/// Words that were sent to a chat apart from its conversation: the records of a scope, up to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirrored {
    pub scope: String,
    pub until: Timestamp,
}

impl Origin {
    /// Somebody on the session's own surface.
    pub fn person() -> Self {
        Self::Person {
            surface: None,
            id: None,
            request: None,
            inbox: Vec::new(),
            mirrored: None,
        }
    }

    /// Whether these are words of the person that a session is held with; none is the owner of the home.
    pub fn is_of(&self, person: Option<&str>) -> bool {
        let Self::Person { surface, id, .. } = self else {
            return matches!(self, Self::Steering);
        };
        match (id.as_deref(), person) {
            (None, _) => true,
            // Earlier versions kept requests in this place, and ids of chats without their platform.
            (Some(id), _) if id.starts_with(Self::REQUEST) => true,
            (Some(id), Some(person)) => {
                let account = surface.as_ref().map(|surface| format!("{surface}:{id}"));
                id == person || account.as_deref() == Some(person)
            }
            (Some(_), None) => false,
        }
    }

    /// Whether they came with this request.
    pub fn is_of_request(&self, wanted: &str) -> bool {
        match self {
            Self::Person { id, request, .. } => {
                // Earlier versions had it in the place of the person.
                request.as_deref().or(id.as_deref()) == Some(wanted)
            }
            _ => false,
        }
    }

    /// What names of requests begin with.
    pub const REQUEST: &'static str = "request:";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    Image(Media),
    Audio(Media),
    /// What the model thought. Sent back to the provider that signed it, never to another.
    Reasoning(Reasoning),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Media {
    pub mime: String,
    pub source: MediaSource,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    Base64(String),
    Url(String),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    /// The provider's proof that the text is its own; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub arguments: Arguments,
    /// Opaque provider data that must come back with the call (Gemini's thought signatures).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
}

/// A call's arguments as the model wrote them: kept as they are, so that the history is sent back byte for byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    Json(Value),
    /// Not a JSON object. The model is told where it broke.
    Malformed(String),
}

impl Arguments {
    /// Reads what a model streamed. Nothing at all means "no arguments".
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Json(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => Self::Json(value),
            // Some servers encode the object twice.
            Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
                Ok(value @ Value::Object(_)) => Self::Json(value),
                _ => Self::Malformed(text.to_owned()),
            },
            _ => Self::Malformed(text.to_owned()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: CallId,
    pub tool: String,
    pub text: String,
    pub status: ResultStatus,
    /// What the tool shows beside its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Media>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Ok,
    /// The tool ran, or refused to, and says why; the model can do something about it.
    Failed,
    /// The call never started: interrupted, refused, or out of time before its turn came.
    NotRun,
    /// It may have happened or not; nobody repeats it blindly.
    OutcomeUnknown,
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            origin: Some(Origin::person()),
            parts: vec![Part::text(text)],
        }
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            origin: None,
            parts: vec![Part::text(text)],
        }
    }

    pub fn result(result: ToolResult) -> Self {
        Self {
            role: Role::Tool,
            origin: None,
            parts: vec![Part::ToolResult(result)],
        }
    }

    /// The entries of the inbox that brought it.
    pub fn inbox(&self) -> &[InboxId] {
        match &self.origin {
            Some(Origin::Person { inbox, .. }) => inbox,
            _ => &[],
        }
    }

    /// What it tells of that was sent apart from the conversation.
    pub fn mirrored(&self) -> Option<&Mirrored> {
        match &self.origin {
            Some(Origin::Person { mirrored, .. }) => mirrored.as_ref(),
            _ => None,
        }
    }

    /// Returns whether a turn begins with this message.
    pub fn begins_turn(&self) -> bool {
        self.role == Role::User && self.origin != Some(Origin::Summary)
    }

    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    pub fn tool_result(&self) -> Option<&ToolResult> {
        self.parts.iter().find_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Returns the pictures of a message, a user's or those of a result, in their order.
    pub fn images(&self) -> impl Iterator<Item = &Media> {
        self.parts.iter().flat_map(|part| match part {
            Part::Image(media) => std::slice::from_ref(media),
            Part::ToolResult(result) => result.images.as_slice(),
            _ => &[],
        })
    }

    /// Returns what somebody said, without what came along behind it: skills, files, news, what was piped in. Of words that
    /// nobody typed, all.
    pub fn said(&self) -> String {
        let first = self.parts.iter().find_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        match self.origin {
            Some(Origin::Person { .. } | Origin::Steering) => first.unwrap_or_default().to_owned(),
            _ => self.text(),
        }
    }

    /// Returns what people know a message by: what was said, and of a message without a word what came along.
    pub fn shown(&self) -> String {
        let said = self.said();
        if said.trim().is_empty() {
            self.text().trim().to_owned()
        } else {
            said
        }
    }

    /// Returns the visible text: no reasoning, no calls, no results.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl ToolResult {
    pub fn new(call: &ToolCall, status: ResultStatus, text: impl Into<String>) -> Self {
        Self {
            call: call.id.clone(),
            tool: call.name.clone(),
            text: text.into(),
            status,
            images: Vec::new(),
        }
    }

    pub fn with_images(self, images: Vec<Media>) -> Self {
        Self { images, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_an_object_or_kept_as_written() {
        assert_eq!(Arguments::parse(""), Arguments::Json(json!({})));
        assert_eq!(
            Arguments::parse(r#"{"a":1}"#),
            Arguments::Json(json!({"a": 1}))
        );
        assert_eq!(
            Arguments::parse(r#""{\"a\":1}""#),
            Arguments::Json(json!({"a": 1}))
        );
        assert_eq!(
            Arguments::parse(r#"{"a":"#),
            Arguments::Malformed(r#"{"a":"#.into())
        );
        assert_eq!(Arguments::parse("[1]"), Arguments::Malformed("[1]".into()));
    }

    #[test]
    fn a_result_without_pictures_is_written_as_if_there_were_none() {
        let call = ToolCall {
            id: "c1".into(),
            name: "read_file".into(),
            arguments: Arguments::parse(""),
            signatures: vec![],
        };
        let plain = ToolResult::new(&call, ResultStatus::Ok, "hi");
        let written = r#"{"call":"c1","tool":"read_file","text":"hi","status":"ok"}"#;
        assert_eq!(serde_json::to_string(&plain).unwrap(), written);
        assert_eq!(serde_json::from_str::<ToolResult>(written).unwrap(), plain);

        let picture = Media {
            mime: "image/png".into(),
            source: MediaSource::Base64("AAAA".into()),
        };
        let seen = Message::result(plain.with_images(vec![picture.clone()]));
        let stored = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), seen);
        assert_eq!(seen.images().collect::<Vec<_>>(), [&picture]);
    }

    #[test]
    fn a_message_survives_its_stored_form() {
        let message = Message {
            role: Role::Assistant,
            origin: None,
            parts: vec![
                Part::Reasoning(Reasoning {
                    text: "hm".into(),
                    signature: Some("sig".into()),
                }),
                Part::text("hello"),
                Part::ToolCall(ToolCall {
                    id: "c1".into(),
                    name: "read_file".into(),
                    arguments: Arguments::Json(json!({"path": "x"})),
                    signatures: vec![],
                }),
            ],
        };
        let stored = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
        assert_eq!(message.text(), "hello");
    }
}
