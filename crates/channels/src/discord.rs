//! Discord, by its gateway and its API.
//!
//! Start at [`receive`] for what comes in and [`send`] for what goes out. [`update`] and [`markdown`] translate, as pure
//! functions; [`refusal`] says what Discord means when it refuses; [`api`] is HTTP, [`socket`] the gateway's frames. Messages
//! have keys: one that is sent again within some minutes is known to Discord, unless it opens a post in a forum. Threads are
//! chats of their own. Left out on purpose: voice channels, several connections for one bot (shards), what was said before we
//! were named.

mod api;
mod commands;
mod cursor;
mod earlier;
mod files;
mod interaction;
mod limits;
mod markdown;
mod missed;
mod places;
mod receive;
mod refusal;
mod send;
mod settings;
mod socket;
mod threads;
mod update;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hermes_core::tool::BoxFuture;
use hermes_core::{
    Address, Arrival, Channel, ChannelError, ChannelFacts, ChannelPorts, Chat, ChatCommand, Clock,
    EarlierMessage, FileBytes, Incoming, IncomingMessage, Inlet, MessageId, Outgoing, Platform,
    PlatformSettingError, PlatformSettings, Press, Random, Reaction,
};
use reqwest::Method;

use self::api::Api;
use self::interaction::{Deferred, Interaction};
use self::places::{Kind, Place, Places};
use self::refusal::Cause;
use self::send::{channel, reference};
use self::settings::Settings;
use self::update::Us;

pub(crate) const PLATFORM: Platform = Platform {
    name: "discord",
    label: "Discord",
    settings: settings::SETTINGS,
    how_to: "At https://discord.com/developers/applications make a New Application. In Bot, press Reset Token and copy the token, and\n\
             switch on Message Content Intent. In Installation or OAuth2, choose the scopes bot and applications.commands, open the\n\
             link it makes, and let the bot into your server.",
    ignores_strangers: false,
    requires_mention: true,
    shows_calls: true,
    open,
};

/// Discord shows typing for ten seconds.
const TYPING: Duration = Duration::from_secs(8);
/// Five edits in five seconds are taken in each channel.
const EDIT_INTERVAL: Duration = Duration::from_millis(1200);
/// Parts of a text that a person's app split come within this time.
const JOINING: Duration = Duration::from_millis(1000);
/// Apps split what people paste at 2,000 characters.
const SPLIT_LENGTH: usize = 1900;
/// Marks that are remembered, to take them away without asking.
const MARKS_COUNT_MAX: usize = 1000;
/// Servers whose channels are listed.
const GUILDS_COUNT_MAX: usize = 50;

const HINT: &str = "You are on Discord. Markdown is shown (headings to the third level, bold, italics, strikethrough, links, quotes, lists, \
                    code with its language, ||spoilers||); tables become lists: prefer lists. Nobody is notified by mentions that you write.";

fn open(
    settings: &PlatformSettings,
    ports: ChannelPorts,
) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let settings = settings::read(settings)?;
    let api = Api::new(settings.token.clone(), settings.server.clone());
    Ok(Arc::new(Discord::new(settings, api, ports)))
}

struct Discord {
    settings: Settings,
    facts: ChannelFacts,
    api: Api,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    us: RwLock<Us>,
    application: Mutex<Option<String>>,
    places: Places,
    deferred: Deferred,
    /// How messages are marked, by their ids.
    marks: Recent,
}

/// A few things that are remembered as long as there is room.
struct Recent {
    count_max: usize,
    entries: Mutex<VecDeque<(String, String)>>,
}

impl Recent {
    fn new(count_max: usize) -> Self {
        Self {
            count_max,
            entries: Mutex::default(),
        }
    }

    fn get(&self, key: &str) -> Option<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone())
    }

    fn put(&self, key: &str, value: &str) {
        self.forget(key);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.count_max {
            entries.pop_front();
        }
        entries.push_back((key.to_owned(), value.to_owned()));
    }

    fn forget(&self, key: &str) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(known, _)| known != key);
    }
}

impl Discord {
    fn new(settings: Settings, api: Api, ports: ChannelPorts) -> Self {
        let us = Us {
            id: settings.account.clone(),
            name: String::new(),
        };
        Self {
            facts: facts(&settings),
            settings,
            api,
            clock: ports.clock,
            random: ports.random,
            us: RwLock::new(us),
            application: Mutex::default(),
            places: Places::default(),
            deferred: Deferred::default(),
            marks: Recent::new(MARKS_COUNT_MAX),
        }
    }

    fn us(&self) -> Us {
        let us = self.us.read().unwrap_or_else(PoisonError::into_inner);
        us.clone()
    }

    fn set_us(&self, us: Us) {
        *self.us.write().unwrap_or_else(PoisonError::into_inner) = us;
    }

    fn known_application(&self) -> Option<String> {
        let application = self.application.lock();
        application.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_application(&self, id: &str) {
        let mut application = self
            .application
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *application = Some(id.to_owned());
    }

    /// Calls; what has gone in the meantime needs nothing done.
    async fn settle(
        &self,
        method: Method,
        path: &str,
        needless: &[Cause],
    ) -> Result<(), ChannelError> {
        match self.api.call(method, path, None).await {
            Ok(_) => Ok(()),
            Err(failure) if needless.contains(&failure.cause) => Ok(()),
            Err(failure) => Err(failure.error),
        }
    }

    /// Marks a message in place of how it is marked.
    async fn mark(
        &self,
        to: &Address,
        id: &MessageId,
        reaction: Option<Reaction>,
    ) -> Result<(), ChannelError> {
        // There is no message below a command.
        if Interaction::parse(id.as_str()).is_some() {
            return Ok(());
        }
        let mut message = reference(channel(to), id)?;
        // The message that a thread hangs on is in the channel above it.
        if message.channel == message.message
            && let Some(parent) = self.place(&message.channel, None).await?.parent()
        {
            parent.clone_into(&mut message.channel);
        }
        let path = |emoji: &str| {
            let at = format!("/channels/{}/messages/{}", message.channel, message.message);
            format!("{at}/reactions/{emoji}/@me")
        };
        let before = self.marks.get(id.as_str());
        let wanted = reaction.map(emoji);
        if before.as_deref() == wanted {
            return Ok(());
        }
        let old = before.as_deref().unwrap_or(emoji(Reaction::Seen));
        if wanted != Some(old) {
            let gone = [Cause::NoReaction, Cause::NoMessage];
            self.settle(Method::DELETE, &path(old), &gone).await?;
        }
        self.marks.forget(id.as_str());
        if let Some(wanted) = wanted {
            self.settle(Method::PUT, &path(wanted), &[Cause::NoMessage])
                .await?;
            self.marks.put(id.as_str(), wanted);
        }
        Ok(())
    }

    async fn list_chats(&self) -> Result<Vec<Chat>, ChannelError> {
        let guilds = self.api.get("/users/@me/guilds").await;
        let guilds = guilds.map_err(|failure| failure.error)?;
        let ids = guilds.as_array().into_iter().flatten();
        let ids = ids.filter_map(|guild| guild["id"].as_str());
        let mut chats = BTreeMap::new();
        for guild in ids.take(GUILDS_COUNT_MAX) {
            let channels = self.api.get(&format!("/guilds/{guild}/channels")).await;
            let channels = channels.map_err(|failure| failure.error)?;
            for channel in channels.as_array().into_iter().flatten() {
                // Categories and voice are no places to write to.
                let is_written_in = matches!(channel["type"].as_u64(), Some(0 | 5 | 15 | 16));
                if let Some(id) = channel["id"].as_str().filter(|_| is_written_in) {
                    let place = Place::read(channel, Some(guild));
                    let mut chat = place.chat(id);
                    if place.kind == Kind::Forum {
                        chat.kind = hermes_core::ChatKind::Forum;
                    }
                    chats.insert(id.to_owned(), chat);
                }
            }
        }
        Ok(chats.into_values().collect())
    }
}

fn facts(settings: &Settings) -> ChannelFacts {
    ChannelFacts {
        platform: PLATFORM.name,
        account: settings.account.clone(),
        length_max: send::TEXT_LENGTH_MAX,
        caption_length_max: send::TEXT_LENGTH_MAX,
        file_bytes_max: files::UPLOAD_BYTES_MAX,
        edit_interval: Some(EDIT_INTERVAL),
        has_buttons: true,
        typing: Some(TYPING),
        has_reactions: settings.has_reactions,
        knows_keys: true,
        silence_max: receive::SILENCE_MAX,
        joining: JOINING,
        split_length: SPLIT_LENGTH,
        has_private_ids: false,
        hint: HINT,
    }
}

/// As addresses have it.
fn emoji(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Seen => "%F0%9F%91%80",
        Reaction::Done => "%E2%9C%85",
        Reaction::Failed => "%E2%9D%8C",
    }
}

impl Channel for Discord {
    fn facts(&self) -> &ChannelFacts {
        &self.facts
    }

    fn receive<'a>(&'a self, inlet: &'a dyn Inlet) -> BoxFuture<'a, ChannelError> {
        Box::pin(self.run(inlet))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async { self.who_are_we().await.map(|_| ()) })
    }

    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>> {
        Box::pin(self.send_message(message))
    }

    fn knows_keys(&self, to: &Address) -> bool {
        // What opens a post in a forum has no nonce.
        let place = self.places.get(channel(to));
        place.is_none_or(|place| place.kind != Kind::Forum)
    }

    fn edit<'a>(
        &'a self,
        id: &'a MessageId,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.edit_message(id, message))
    }

    fn delete<'a>(
        &'a self,
        from: &'a Address,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let message = reference(channel(from), id)?;
            let path = format!("/channels/{}/messages/{}", message.channel, message.message);
            self.settle(Method::DELETE, &path, &[Cause::NoMessage])
                .await
        })
    }

    fn find_sent<'a>(
        &'a self,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Arrival, ChannelError>> {
        Box::pin(self.look_for(message))
    }

    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let path = format!("/channels/{}/typing", channel(to));
            self.settle(Method::POST, &path, &[]).await
        })
    }

    fn react<'a>(
        &'a self,
        to: &'a Address,
        id: &'a MessageId,
        reaction: Option<Reaction>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.mark(to, id, reaction))
    }

    fn acknowledge<'a>(
        &'a self,
        press: &'a Press,
        words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.answer_press(press, words))
    }

    fn place_for<'a>(&'a self, message: &'a IncomingMessage) -> BoxFuture<'a, Option<Chat>> {
        Box::pin(self.thread_for(message))
    }

    fn download<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<FileBytes, ChannelError>> {
        Box::pin(self.fetch(file))
    }

    fn create_thread<'a>(
        &'a self,
        below: &'a Address,
        message: Option<&'a MessageId>,
        title: &'a str,
    ) -> BoxFuture<'a, Result<Address, ChannelError>> {
        Box::pin(self.open_thread(below, message, title))
    }

    fn earlier<'a>(
        &'a self,
        message: &'a IncomingMessage,
    ) -> BoxFuture<'a, Result<Vec<EarlierMessage>, ChannelError>> {
        Box::pin(self.said_before(message))
    }

    fn turn_away<'a>(&'a self, incoming: &'a Incoming) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Incoming::Message(message) = incoming {
                self.take_back(&message.chat.id, &message.id).await;
            }
        })
    }

    fn chats(&self) -> BoxFuture<'_, Result<Vec<Chat>, ChannelError>> {
        Box::pin(self.list_chats())
    }

    fn set_commands<'a>(
        &'a self,
        commands: &'a [ChatCommand],
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.put_commands(commands))
    }

    fn length(&self, markdown: &str) -> usize {
        markdown::length(&markdown::render(markdown))
    }
}
