//! The chats that Hermes knows: which conversation each of them is in, and how that is to be.

use serde::{Deserialize, Serialize};

use crate::channel::{Address, Chat};
use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait Chats: Send + Sync {
    fn chat(&self, key: &str) -> BoxFuture<'_, Result<Option<KnownChat>, StoreError>>;

    /// Writes down what is known of a chat.
    fn keep_chat(&self, chat: KnownChat) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Chats, those that were used last first; of one platform if one is named.
    fn chats(
        &self,
        platform: Option<&str>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<KnownChat>, StoreError>>;

    /// The chat that a conversation is in, the one used last if there are several.
    fn chat_of(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<KnownChat>, StoreError>>;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChat {
    /// The lane: `agent:main:telegram:dm:42`.
    pub key: String,
    pub account: String,
    pub address: Address,
    pub chat: Chat,
    /// Who talks there, or the chat itself where several do: whose notes count.
    pub person: Option<String>,
    /// The conversation it is in; `None` begins a new one.
    pub session: Option<SessionId>,
    /// What `/model` and the like chose there.
    pub choices: ChatChoices,
    pub updated: Timestamp,
    /// The owner of the home talks there, alone.
    #[serde(default)]
    pub is_owners: bool,
}

/// What people chose for one chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatChoices {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    /// `allow` or `ask`: what happens to calls that need consent, in the conversation that the chat is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
    /// `interrupt`, `queue` or `steer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<String>,
}
