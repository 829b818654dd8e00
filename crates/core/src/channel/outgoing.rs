//! What is said to platforms, and where.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::incoming::{AttachmentKind, Chat};
use crate::id::MessageId;

/// A chat on a platform, or a thread in one: `telegram:-100123:7`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    pub platform: String,
    pub chat: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Address {
    /// Reads `PLATFORM:CHAT[:THREAD]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (platform, rest) = text.trim().split_once(':')?;
        let (chat, thread) = match rest.split_once(':') {
            Some((chat, thread)) => (chat, Some(thread)),
            None => (rest, None),
        };
        let is_given = |part: &str| !part.is_empty();
        let is_whole = is_given(platform) && is_given(chat) && thread.is_none_or(is_given);
        is_whole.then(|| Self {
            platform: platform.to_ascii_lowercase(),
            chat: chat.to_owned(),
            thread: thread.map(ToOwned::to_owned),
        })
    }

    pub fn of(platform: &str, chat: &Chat) -> Self {
        Self {
            platform: platform.to_owned(),
            chat: chat.id.clone(),
            thread: chat.thread.as_ref().map(|thread| thread.id.clone()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.platform, self.chat)?;
        match &self.thread {
            Some(thread) => write!(f, ":{thread}"),
            None => Ok(()),
        }
    }
}

/// One message for a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    pub to: Address,
    /// The same whenever this message is sent again.
    pub key: String,
    pub body: Body,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<MessageId>,
    /// The part of the same text before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<MessageId>,
    /// Rows of buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Vec<Button>>,
    /// Nobody's phone should ring for it.
    #[serde(default)]
    pub is_silent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "body", rename_all = "snake_case")]
pub enum Body {
    Text {
        /// As models write it.
        markdown: String,
        /// It is still being written: what it looks like matters less than that it is accepted.
        #[serde(default)]
        is_preview: bool,
    },
    File {
        path: PathBuf,
        kind: AttachmentKind,
        /// What people see it called.
        name: String,
        #[serde(default)]
        caption: String,
    },
}

/// A button below a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    pub label: String,
    /// At most [`BUTTON_DATA_BYTES_MAX`]; comes back in [`Press::data`].
    pub data: String,
}

/// What the tightest of the platforms takes.
pub const BUTTON_DATA_BYTES_MAX: usize = 64;

/// How far we are with somebody's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    Seen,
    Done,
    Failed,
}

/// Whether a message arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    Arrived(MessageId),
    NotArrived,
    /// The platform cannot say.
    Unknown,
}

/// A command that a platform suggests to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatCommand {
    /// Without its slash.
    pub name: String,
    pub description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["telegram:42", "telegram:-100123:7", "email:a@b.example"] {
            let address = Address::parse(text).expect("an address");
            assert_eq!(address.to_string(), text);
        }
        for text in ["telegram", "telegram:", ":42", "telegram:42:", ""] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }
}
