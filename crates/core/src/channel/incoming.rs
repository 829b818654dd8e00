//! What platforms say.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::id::MessageId;

/// One thing that happened on a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Unique on the account; the same when the platform sends it again.
    pub id: String,
    /// When it was sent, by the platform's clock.
    pub sent: Option<Timestamp>,
    /// As the platform told it.
    pub raw: Value,
    pub incoming: Incoming,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "incoming", rename_all = "snake_case")]
pub enum Incoming {
    Message(IncomingMessage),
    /// Somebody put other words in place of a message of theirs.
    Edited(IncomingMessage),
    Press(Press),
}

impl Incoming {
    pub fn chat(&self) -> &Chat {
        match self {
            Self::Message(message) | Self::Edited(message) => &message.chat,
            Self::Press(press) => &press.chat,
        }
    }

    pub fn chat_mut(&mut self) -> &mut Chat {
        match self {
            Self::Message(message) | Self::Edited(message) => &mut message.chat,
            Self::Press(press) => &mut press.chat,
        }
    }

    pub fn sender(&self) -> &Sender {
        match self {
            Self::Message(message) | Self::Edited(message) => &message.sender,
            Self::Press(press) => &press.sender,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncomingMessage {
    pub chat: Chat,
    pub sender: Sender,
    pub id: MessageId,
    /// What the sender typed, and nothing that others said.
    pub text: String,
    /// What they passed on. Those are words of others, whoever sends them here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<RepliedTo>,
    #[serde(default)]
    pub mentions: Mentions,
    /// Messages with the same album belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
}

/// Words that somebody passed on. Untrusted text under an untrusted name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarded {
    /// Whose they are, where the platform says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Empty where only files were passed on.
    pub text: String,
}

impl IncomingMessage {
    /// All its words, also those of others that it passes on: for whoever only listens.
    pub fn words(&self) -> String {
        let forwarded = self.forwarded.as_ref().map(|one| one.text.as_str());
        let all = [Some(self.text.as_str()), forwarded].into_iter().flatten();
        let all: Vec<&str> = all.filter(|text| !text.trim().is_empty()).collect();
        all.join("\n")
    }
}

/// What somebody said before, whoever they are: untrusted text under an untrusted name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierMessage {
    pub name: String,
    pub text: String,
}

/// Whom a message names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mentions {
    pub us: bool,
    pub other_bots: bool,
    /// It was said in a thread that we talk in: there nobody has to be named.
    #[serde(default)]
    pub in_our_thread: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chat {
    pub id: String,
    pub kind: ChatKind,
    /// What people call it. Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Thread>,
    /// The chat a thread belongs to, where threads are chats of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The server, workspace or team it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Its id before its platform gave it another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
}

impl Chat {
    pub fn direct(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: ChatKind::Dm,
            title: None,
            thread: None,
            parent: None,
            scope: None,
            former: None,
        }
    }

    /// The id that conversations know it by: it stays when the chat gets another one.
    pub fn first_id(&self) -> &str {
        self.former.as_deref().unwrap_or(&self.id)
    }

    /// The ids that settings may call it by.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.id.as_str()).chain(self.former.as_deref())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// One person and us.
    Dm,
    Group,
    Channel,
    Thread,
    Forum,
}

impl ChatKind {
    /// As session keys write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dm => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Thread => "thread",
            Self::Forum => "forum",
        }
    }
}

/// Who sent something. Names are untrusted text; only ids decide anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Empty when the platform does not say.
    pub id: String,
    /// Another id of the same person (a number beside a UUID, or one without the suffix that a platform writes behind it),
    /// for lists of who may ask: those have whole ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    #[serde(default)]
    pub is_bot: bool,
    /// Roles the platform vouches for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub kind: AttachmentKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What [`Channel::download`] takes.
    pub file: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    Picture,
    Sticker,
    Video,
    /// Spoken for us, not a piece of music.
    Voice,
    Audio,
    Document,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepliedTo {
    pub id: MessageId,
    /// What it said, or the part of it that was quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It was ours.
    pub is_ours: bool,
}

/// A button was pressed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Press {
    /// What [`Channel::acknowledge`] needs.
    pub id: String,
    pub chat: Chat,
    pub sender: Sender,
    /// The message the button is under.
    pub message: MessageId,
    /// As [`Button::data`] said.
    pub data: String,
}
