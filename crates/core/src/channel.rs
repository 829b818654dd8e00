//! The port to chat platforms, and the words both sides share.
//!
//! A [`Channel`] is one account on one platform. It turns what the platform says into [`Update`]s and our [`Outgoing`] messages
//! into the platform's own; it knows nothing of sessions, models or who may ask. Everything that differs between platforms and
//! that others must know is in its [`ChannelFacts`]. Start at [`Channel`].

mod incoming;
mod outgoing;
mod platform;
mod trouble;
mod web;

use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

pub use self::incoming::{
    Attachment, AttachmentKind, Chat, ChatKind, EarlierMessage, Forwarded, Incoming,
    IncomingMessage, Mentions, Press, RepliedTo, Sender, Thread, Update,
};
pub use self::outgoing::{
    Address, Arrival, BUTTON_DATA_BYTES_MAX, Body, Button, ChatCommand, Outgoing, Reaction,
};
pub use self::platform::{
    ChannelPorts, OpenChannel, Platform, PlatformSetting, PlatformSettingError, PlatformSettings,
};
pub use self::trouble::{ChannelError, Trouble};
pub use self::web::{WebRequest, WebResponse, WebhookPlace};
use crate::id::MessageId;
use crate::tool::BoxFuture;

/// One account on a chat platform.
///
/// Every call has a deadline of its own inside the implementation. Dropping a future stops what it does.
pub trait Channel: Send + Sync {
    fn facts(&self) -> &ChannelFacts;

    /// Connects and receives, until the connection is lost. It ends only with a reason: whoever supervises it connects again.
    ///
    /// Updates go through [`Inlet::accept`], and only what it has taken is acknowledged to the platform.
    fn receive<'a>(&'a self, inlet: &'a dyn Inlet) -> BoxFuture<'a, ChannelError>;

    /// Asks the platform whether we are still who we were.
    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>>;

    /// Sends one message: its text is at most [`ChannelFacts::length_max`] long by [`Channel::length`].
    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>>;

    /// Whether sending a message there again with the same [`Outgoing::key`] is harmless: the platform knows it. Otherwise one
    /// that may have arrived is marked when it is sent again.
    fn knows_keys(&self, to: &Address) -> bool {
        let _ = to;
        self.facts().knows_keys
    }

    /// Puts other text, and other buttons, in place of a message of ours. The same again is no error.
    fn edit<'a>(
        &'a self,
        id: &'a MessageId,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = (id, message);
        unsupported("edit messages")
    }

    /// Whether a chat has a place for what is still being written that is no message: nothing of it stays.
    fn has_drafts(&self, to: &Address) -> bool {
        let _ = to;
        false
    }

    /// Shows in that place what there is of a message, instead of what was shown there under the same key.
    fn draft<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = message;
        unsupported("show drafts")
    }

    /// Takes a message of ours away. One that is gone is no error.
    fn delete<'a>(
        &'a self,
        from: &'a Address,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = (from, id);
        unsupported("delete messages")
    }

    /// Finds out whether a message arrived whose sending was cut off.
    fn find_sent<'a>(
        &'a self,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Arrival, ChannelError>> {
        let _ = message;
        Box::pin(async { Ok(Arrival::Unknown) })
    }

    /// Shows that an answer is being written, for as long as platforms show that.
    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = to;
        unsupported("show typing")
    }

    /// Marks somebody's message, or takes the mark away.
    fn react<'a>(
        &'a self,
        to: &'a Address,
        id: &'a MessageId,
        reaction: Option<Reaction>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = (to, id, reaction);
        unsupported("react")
    }

    /// Tells whoever pressed a button that it was noticed.
    fn acknowledge<'a>(
        &'a self,
        press: &'a Press,
        words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = (press, words);
        Box::pin(async { Ok(()) })
    }

    /// Somebody may not ask, and gets no answer: what was promised to them is taken back.
    fn turn_away<'a>(&'a self, incoming: &'a Incoming) -> BoxFuture<'a, ()> {
        let _ = incoming;
        Box::pin(async {})
    }

    /// Where a message is to be answered, if that is not where it was said: where conversations have threads of their own, one
    /// is opened for it.
    ///
    /// Asked once somebody may ask, before their message is kept; for the same message it is the same place every time.
    fn place_for<'a>(&'a self, message: &'a IncomingMessage) -> BoxFuture<'a, Option<Chat>> {
        let _ = message;
        Box::pin(async { None })
    }

    /// What others said before a message where it was said, oldest first, back to our own last words: for platforms on which
    /// we hear only what names us.
    fn earlier<'a>(
        &'a self,
        message: &'a IncomingMessage,
    ) -> BoxFuture<'a, Result<Vec<EarlierMessage>, ChannelError>> {
        let _ = message;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The bytes of a file that somebody sent, in pieces.
    fn download<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<FileBytes, ChannelError>> {
        let _ = file;
        unsupported("receive files")
    }

    /// Opens a thread below a chat, or below a message in it.
    fn create_thread<'a>(
        &'a self,
        below: &'a Address,
        message: Option<&'a MessageId>,
        title: &'a str,
    ) -> BoxFuture<'a, Result<Address, ChannelError>> {
        let _ = (below, message, title);
        unsupported("open threads")
    }

    /// The chats this account is in, where the platform says.
    fn chats(&self) -> BoxFuture<'_, Result<Vec<Chat>, ChannelError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Tells the platform which commands to suggest.
    fn set_commands<'a>(
        &'a self,
        commands: &'a [ChatCommand],
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = commands;
        Box::pin(async { Ok(()) })
    }

    /// How long a text is once it is written in the platform's own way, in the platform's own unit.
    fn length(&self, markdown: &str) -> usize {
        markdown.chars().count()
    }

    /// Where the platform sends its requests to, if it calls us.
    fn webhook(&self) -> Option<WebhookPlace> {
        None
    }

    /// Answers a request that came to [`Channel::webhook`]. It is acknowledged only once the inlet has taken it.
    fn on_request<'a>(
        &'a self,
        request: WebRequest,
        inlet: &'a dyn Inlet,
    ) -> BoxFuture<'a, WebResponse> {
        let _ = (request, inlet);
        Box::pin(async { WebResponse::status(404) })
    }
}

fn unsupported<T>(what: &str) -> BoxFuture<'static, Result<T, ChannelError>>
where
    T: Send + 'static,
{
    let error = ChannelError::new(Trouble::Unsupported, format!("it cannot {what}"));
    Box::pin(async { Err(error) })
}

/// The bytes of a file, in pieces.
pub type FileBytes = BoxStream<'static, Result<Vec<u8>, ChannelError>>;

/// What others must know of a platform, because platforms differ in it.
#[derive(Debug, Clone)]
pub struct ChannelFacts {
    /// As in settings, session keys and addresses: `telegram`.
    pub platform: &'static str,
    /// Which account; it must not change when its password does.
    pub account: String,
    /// How long a message may be, by [`Channel::length`].
    pub length_max: usize,
    pub caption_length_max: usize,
    /// Bytes of a file that may be sent.
    pub file_bytes_max: u64,
    /// How often a message may be edited while it is written; `None` where messages cannot be edited.
    pub edit_interval: Option<Duration>,
    pub has_buttons: bool,
    /// How long typing is shown for; `None` where it is not.
    pub typing: Option<Duration>,
    pub has_reactions: bool,
    /// Messages have keys, in most places at least: [`Channel::knows_keys`].
    pub knows_keys: bool,
    /// How long nothing may be heard ([`Inlet::heard`]) before the connection counts as lost.
    pub silence_max: Duration,
    /// How long to wait for the rest of what was split or sent in a burst.
    pub joining: Duration,
    /// Longer pieces than this look like the first part of something split; by characters.
    pub split_length: usize,
    /// Ids of people are names and numbers that models need not see.
    pub has_private_ids: bool,
    /// What a model should know of the platform: how text looks there.
    pub hint: &'static str,
}

/// Where a channel puts what it hears.
pub trait Inlet: Send + Sync {
    /// Keeps updates, and how far the platform was read, in one commit. Those that were known already are no error.
    ///
    /// What was not taken must not be acknowledged to the platform.
    fn accept(&self, updates: Updates) -> BoxFuture<'_, Result<(), InletError>>;

    /// How far the platform was read: the last cursor that was accepted.
    fn cursor(&self) -> Option<String>;

    /// We are connected, and the platform has proven it.
    fn connected(&self, identity: Identity);

    /// The platform was heard from, if only with "nothing new".
    fn heard(&self);

    /// Something that came was not taken, and will not be: what, and why, in words for people.
    fn passed_over(&self, what: &str);
}

/// Updates in the order they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Updates {
    pub updates: Vec<Update>,
    /// Where reading goes on after a restart; opaque, of the channel's own making.
    pub cursor: Option<String>,
}

/// Updates could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("updates cannot be kept: {0}")]
pub struct InletError(pub String);

/// Who we are on the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub id: String,
    pub name: String,
}
