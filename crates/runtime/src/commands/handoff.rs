//! `/handoff PLATFORM`: a chat goes on with this conversation.
//!
//! What is handed over goes through the inbox like everything else that a chat is told, so that it is done once, in order, and
//! also when the gateway is not running yet.

use hermes_core::{
    Address, Archive as _, ChatKind, Chats as _, Inbox, Incoming, IncomingMessage, KnownChat,
    Mentions, MessageId, NewUpdate, NewUpdates, People, Sender, Timestamp,
};
use serde_json::json;

use super::{Conversation, Done, Here, Then};
use crate::base::Base;
use crate::setup::Start;
use crate::{Error, Result};

/// Chats that are looked through for the home of a platform.
const CHATS_MAX: usize = 1_000;

impl Conversation {
    pub(super) async fn handoff(&self, platform: &str, here: &Here) -> Result<Done> {
        let platform = platform.trim().to_lowercase();
        if platform.is_empty() {
            return Err(Error::asked("where to?")
                .with_hint("`/handoff PLATFORM` lets your chat there go on with this"));
        }
        if self.archive().record(&here.session).await.is_err() {
            return Err(
                Error::asked("there is nothing to hand over yet").with_hint("say something first")
            );
        }
        let chat = self.home_chat(&platform).await?;
        let line = format!("/resume {}", here.session);
        tell_chat(
            self.runtime.store().as_ref(),
            &chat,
            line,
            self.runtime.clock().now(),
        )
        .await?;
        let words = format!(
            "{} goes on with this conversation, as soon as the gateway runs; a new one begins here \
             (`hermes -c --from {platform}` brings it back)",
            chat.address
        );
        Ok(Done {
            then: Then::Open(Start::New { title: None }),
            ..Done::text(words)
        })
    }

    /// The home chat of a platform, or the owner's private one that was used last: nobody else is told what was said here.
    async fn home_chat(&self, platform: &str) -> Result<KnownChat> {
        let chats = self
            .runtime
            .store()
            .chats(Some(platform), CHATS_MAX)
            .await?;
        let home = home_chat(&self.base, platform);
        let is_home = |chat: &&KnownChat| home.as_ref().is_some_and(|home| chat.address == *home);
        let is_private = |chat: &&KnownChat| chat.chat.kind == ChatKind::Dm;
        let found = chats
            .iter()
            .find(|chat| is_home(chat) && is_private(chat))
            .or_else(|| chats.iter().find(|chat| chat.is_owners && is_private(chat)));
        found.cloned().ok_or_else(|| {
            Error::asked(format!("no private chat of yours on {platform} is known")).with_hint(
                "write to the bot there once, or say /sethome; `hermes gateway run` connects platforms that are set up",
            )
        })
    }
}

/// Puts a line into the inbox of a chat, as if whoever talks there had written it.
pub async fn tell_chat(
    store: &(impl Inbox + People),
    chat: &KnownChat,
    line: String,
    now: Timestamp,
) -> Result<()> {
    let sender = Sender {
        id: user_of(store, chat).await?,
        ..Sender::default()
    };
    let id = format!("handoff:{}", now.as_millis());
    let message = IncomingMessage {
        chat: chat.chat.clone(),
        sender,
        id: MessageId::from(id.as_str()),
        text: line,
        attachments: Vec::new(),
        replies_to: None,
        mentions: Mentions::default(),
        album: None,
        forwarded: None,
    };
    let update = NewUpdate {
        update: id,
        lane: chat.key.clone(),
        sent: None,
        raw: json!({}),
        incoming: Incoming::Message(message),
    };
    let batch = NewUpdates {
        platform: chat.address.platform.clone(),
        account: chat.account.clone(),
        received: now,
        updates: vec![update],
        cursor: None,
    };
    store.accept_updates(batch).await?;
    Ok(())
}

/// Who talks in a chat, as its own platform calls them: a person is known by the account that was linked first, which may be
/// another platform's.
async fn user_of(people: &impl People, chat: &KnownChat) -> Result<String> {
    let platform = &chat.address.platform;
    let on_platform = |account: &str| {
        let (of, user) = account.split_once(':')?;
        (of == platform).then(|| user.to_owned())
    };
    let Some(person) = chat.person.as_deref() else {
        return Ok(chat.address.chat.clone());
    };
    let linked = people.accounts_of(person).await?;
    let accounts = std::iter::once(person).chain(linked.iter().map(String::as_str));
    let mut users = accounts.filter_map(on_platform);
    Ok(users.next().unwrap_or_else(|| chat.address.chat.clone()))
}

/// The home chat of a platform, as its variable or the settings name it.
fn home_chat(base: &Base, platform: &str) -> Option<Address> {
    let name = format!("{}_HOME_CHANNEL", platform.to_uppercase());
    let said = base.variable(&name).map(|chat| chat.expose().to_owned());
    let setting = || {
        let home = base
            .settings
            .get(&format!("platforms.{platform}.home_channel"))?;
        let home = home.get("chat_id").unwrap_or(home);
        home.as_str().map_or_else(
            || home.as_i64().map(|id| id.to_string()),
            |id| Some(id.to_owned()),
        )
    };
    Some(Address {
        platform: platform.to_owned(),
        chat: said.or_else(setting)?,
        thread: None,
    })
}
