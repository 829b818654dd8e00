//! The tools other programs may call: their names, what they say about themselves, what they take.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Conversations or messages in one answer.
pub(super) const ITEMS_MAX: u64 = 200;
/// A wait that is longer outlives the patience of most clients.
pub(super) const WAIT_MS_MAX: u64 = 300_000;
/// Of a message, so many characters are shown.
pub(super) const CONTENT_CHARS_MAX: usize = 2000;

pub(super) const DECISIONS: &[&str] = &["allow-once", "allow-always", "deny"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedTool {
    ConversationsList,
    ConversationGet,
    MessagesRead,
    AttachmentsFetch,
    EventsPoll,
    EventsWait,
    MessagesSend,
    ChannelsList,
    PermissionsListOpen,
    PermissionsRespond,
}

use ServedTool::{
    AttachmentsFetch, ChannelsList, ConversationGet, ConversationsList, EventsPoll, EventsWait,
    MessagesRead, MessagesSend, PermissionsListOpen, PermissionsRespond,
};

/// Every tool, in the order clients see them.
pub(super) const ALL: [ServedTool; 10] = [
    ConversationsList,
    ConversationGet,
    MessagesRead,
    AttachmentsFetch,
    EventsPoll,
    EventsWait,
    MessagesSend,
    ChannelsList,
    PermissionsListOpen,
    PermissionsRespond,
];

static TOOLS: LazyLock<Vec<Tool>> =
    LazyLock::new(|| ALL.iter().map(ServedTool::described).collect());

/// As clients list them.
pub(super) fn tools() -> &'static [Tool] {
    &TOOLS
}

impl ServedTool {
    pub(super) fn find(name: &str) -> Option<Self> {
        ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ConversationsList => "conversations_list",
            ConversationGet => "conversation_get",
            MessagesRead => "messages_read",
            AttachmentsFetch => "attachments_fetch",
            EventsPoll => "events_poll",
            EventsWait => "events_wait",
            MessagesSend => "messages_send",
            ChannelsList => "channels_list",
            PermissionsListOpen => "permissions_list_open",
            PermissionsRespond => "permissions_respond",
        }
    }

    /// The names of all arguments it takes.
    pub(super) fn arguments(self) -> Vec<&'static str> {
        let tool = tools().iter().find(|tool| tool.name == self.name());
        let properties = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
        properties
            .into_iter()
            .flat_map(|known| known.keys())
            .map(String::as_str)
            .collect()
    }

    fn description(self) -> &'static str {
        match self {
            ConversationsList => {
                "Lists the agent's conversations, newest first. Each has a session_key, which the other tools take."
            }
            ConversationGet => {
                "Describes one conversation: title, model, folder, times, counts, cost."
            }
            MessagesRead => {
                "Reads the last messages of a conversation, oldest first, without the results of tools. To read a long \
                 conversation from its beginning, use events_poll with its session_key and after_cursor 0."
            }
            AttachmentsFetch => "Returns the pictures and sounds of one message.",
            EventsPoll => {
                "Returns what was said since a cursor, oldest first, at once. Pass next_cursor of one answer as \
                 after_cursor of the next call. Cursors stay valid for ever. Without one, only the current end is told; \
                 0 is the beginning."
            }
            EventsWait => {
                "Waits for the first message after a cursor. Without a cursor it waits for a new one. When none comes in \
                 time, event is null."
            }
            MessagesSend => {
                "Sends a message to a chat on a platform. channels_list shows the targets."
            }
            ChannelsList => "Lists the chats on platforms that messages_send can reach.",
            PermissionsListOpen => {
                "Lists the questions of the agent that wait for somebody's permission."
            }
            PermissionsRespond => {
                "Answers a question that permissions_list_open lists, with the code that stands there; the first answer is \
                 final. allow-always allows the same, or one of its patterns, for the rest of its conversation in its \
                 folder."
            }
        }
    }

    /// The schema of each argument.
    fn properties(self) -> Value {
        let session_key = json!({"type": "string", "description": "The session_key of a conversation, a unique beginning of it, or its title"});
        let platform = json!({"type": "string", "description": "Only this platform"});
        let cursor = json!({"type": "integer", "minimum": 0, "description": "next_cursor of an earlier answer; 0 for the beginning; left out for now"});
        let limit = |default: u64| json!({"type": "integer", "minimum": 1, "maximum": ITEMS_MAX, "default": default});
        match self {
            ConversationsList => json!({
                "platform": {"type": "string", "description": "Only conversations that came through this surface: cli, oneshot, …"},
                "search": {"type": "string", "description": "Only conversations with these words in their title or messages"},
                "limit": limit(50),
            }),
            ConversationGet => json!({"session_key": session_key}),
            MessagesRead => json!({"session_key": session_key, "limit": limit(50)}),
            AttachmentsFetch => json!({
                "session_key": session_key,
                "message_id": {"type": "integer", "minimum": 1, "description": "The id of a message"},
            }),
            EventsPoll => {
                json!({"after_cursor": cursor, "session_key": session_key, "limit": limit(20)})
            }
            EventsWait => json!({
                "after_cursor": cursor,
                "session_key": session_key,
                "timeout_ms": {"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": 30_000},
            }),
            MessagesSend => json!({
                "target": {"type": "string", "description": "A target of channels_list"},
                "message": {"type": "string"},
            }),
            ChannelsList => json!({"platform": platform}),
            PermissionsListOpen => json!({}),
            PermissionsRespond => json!({
                "id": {"type": "string", "description": "The id of the question"},
                "code": {"type": "string", "description": "The code of the question"},
                "decision": {"type": "string", "enum": DECISIONS},
                "pattern": {"type": "string", "description": "With allow-always: one of the question's patterns"},
                "reason": {"type": "string", "description": "With deny: what the agent is told to do instead"},
            }),
        }
    }

    fn required(self) -> &'static [&'static str] {
        match self {
            ConversationGet | MessagesRead => &["session_key"],
            AttachmentsFetch => &["session_key", "message_id"],
            MessagesSend => &["target", "message"],
            PermissionsRespond => &["id", "code", "decision"],
            ConversationsList | EventsPoll | EventsWait | ChannelsList | PermissionsListOpen => &[],
        }
    }

    fn described(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": self.properties(),
            "required": self.required(),
            "additionalProperties": false,
        });
        let Value::Object(schema) = schema else {
            unreachable!("the literal above is an object");
        };
        let is_read_only = !matches!(self, MessagesSend | PermissionsRespond);
        let annotations = ToolAnnotations::new()
            .read_only(is_read_only)
            .open_world(*self == MessagesSend);
        Tool::new(self.name(), self.description(), Arc::new(schema)).with_annotations(annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_argument_is_described() {
        for tool in ALL {
            let properties = tool.properties();
            for name in tool.required() {
                assert!(properties.get(name).is_some(), "{tool:?}: {name}");
            }
            assert_eq!(ServedTool::find(tool.name()), Some(tool));
        }
        assert_eq!(ServedTool::find("conversations"), None);
    }
}
