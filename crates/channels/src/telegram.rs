//! Telegram, by its Bot API.
//!
//! Start at [`receive`] for what comes in and [`send`] for what goes out. [`update`] and [`markdown`] translate, as pure
//! functions; [`refusal`] says what Telegram means when it refuses; [`api`] is HTTP. There are no message keys: a send whose
//! answer was lost stays in doubt, and Telegram cannot be asked. Left out on purpose: drafts (they have no message to edit),
//! albums out (one message is one file), rich messages.

mod api;
mod commands;
mod content;
mod cursor;
mod files;
mod markdown;
mod receive;
mod refusal;
mod send;
mod settings;
mod update;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hermes_core::tool::BoxFuture;
use hermes_core::{
    Address, Channel, ChannelError, ChannelFacts, ChannelPorts, ChatCommand, FileBytes, Inlet,
    MessageId, Outgoing, Platform, PlatformSettingError, PlatformSettings, Press, Reaction,
    WebRequest, WebResponse, WebhookPlace,
};
use serde_json::{Value, json};

use self::api::Api;
use self::refusal::Cause;
use self::send::{chat_id, number};
use self::settings::Settings;
use self::update::Us;

pub(crate) const PLATFORM: Platform = Platform {
    name: "telegram",
    label: "Telegram",
    settings: settings::SETTINGS,
    how_to: "In Telegram, write /newbot to @BotFather, choose a name, and copy the token it answers with.\n\
             To use the bot in groups without mentioning it, also write /setprivacy there, and choose Disable.",
    ignores_strangers: false,
    requires_mention: false,
    shows_calls: false,
    open,
};

/// Telegram shows typing for five seconds.
const TYPING: Duration = Duration::from_secs(5);
/// About one edit each second and chat is taken for long.
const EDIT_INTERVAL: Duration = Duration::from_millis(1000);
/// Parts of an album, and of a text that a person's app split, come within this time.
const JOINING: Duration = Duration::from_millis(800);
/// Apps split what people paste at 4,096 characters.
const SPLIT_LENGTH: usize = 4000;
const TOPIC_CHARS_MAX: usize = 128;
const ACKNOWLEDGEMENT_CHARS_MAX: usize = 200;
/// Groups that moved and that we still write to by their old id.
const MOVES_COUNT_MAX: usize = 1000;

const HINT: &str = "You are on Telegram, read mostly on phones. Markdown is shown (bold, italics, strikethrough, links, quotes, lists, \
                    code with its language, ||spoilers||); headings become bold lines, and tables become lists: prefer lists.";

fn open(
    settings: &PlatformSettings,
    _ports: ChannelPorts,
) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let settings = settings::read(settings)?;
    let api = Api::new(settings.token.clone(), settings.server.clone());
    Ok(Arc::new(Telegram::new(settings, api)))
}

struct Telegram {
    settings: Settings,
    facts: ChannelFacts,
    api: Api,
    us: RwLock<Us>,
    /// Where groups are that became supergroups, by what they were called before. Kept with how far updates were read.
    moves: Mutex<BTreeMap<String, String>>,
}

impl Telegram {
    fn new(settings: Settings, api: Api) -> Self {
        let us = Us {
            id: settings.bot_id,
            username: String::new(),
        };
        Self {
            facts: facts(&settings),
            settings,
            api,
            us: RwLock::new(us),
            moves: Mutex::default(),
        }
    }

    fn us(&self) -> Us {
        self.us
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_us(&self, us: Us) {
        *self.us.write().unwrap_or_else(PoisonError::into_inner) = us;
    }

    /// What a chat is called now.
    fn place_of(&self, chat: &str) -> String {
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        moves.get(chat).cloned().unwrap_or_else(|| chat.to_owned())
    }

    fn remember_move(&self, from: &str, to: &str) {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        if moves.len() >= MOVES_COUNT_MAX && !moves.contains_key(from) {
            moves.pop_first();
        }
        moves.insert(from.to_owned(), to.to_owned());
    }

    /// What a chat was called before it moved.
    fn former(&self, chat: &str) -> Option<String> {
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        let mut moves = moves.iter();
        moves
            .find(|(_, to)| *to == chat)
            .map(|(from, _)| from.clone())
    }

    /// Calls a method; what has gone in the meantime, or says the same already, needs nothing done.
    async fn settle(
        &self,
        method: &str,
        body: Value,
        needless: &[Cause],
    ) -> Result<(), ChannelError> {
        match self.api.call(method, &body).await {
            Ok(_) => Ok(()),
            Err(failure) if needless.contains(&failure.cause) => Ok(()),
            Err(failure) => Err(failure.error),
        }
    }

    async fn open_topic(&self, below: &Address, title: &str) -> Result<Address, ChannelError> {
        let title = hermes_core::text::shorten(title.trim(), TOPIC_CHARS_MAX);
        let body = json!({"chat_id": chat_id(&self.place_of(&below.chat)), "name": title});
        let topic = self.api.call("createForumTopic", &body).await;
        let topic = topic.map_err(|failure| failure.error)?;
        Ok(Address {
            thread: topic["message_thread_id"].as_i64().map(|id| id.to_string()),
            ..below.clone()
        })
    }
}

fn facts(settings: &Settings) -> ChannelFacts {
    ChannelFacts {
        platform: PLATFORM.name,
        account: settings.bot_id.to_string(),
        length_max: send::TEXT_LENGTH_MAX,
        caption_length_max: send::CAPTION_LENGTH_MAX,
        file_bytes_max: settings.server.upload_bytes_max(),
        edit_interval: Some(EDIT_INTERVAL),
        has_buttons: true,
        typing: Some(TYPING),
        has_reactions: settings.has_reactions,
        knows_keys: false,
        silence_max: receive::SILENCE_MAX,
        joining: JOINING,
        split_length: SPLIT_LENGTH,
        has_private_ids: true,
        hint: HINT,
    }
}

fn emoji(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Seen => "👀",
        Reaction::Done => "👍",
        Reaction::Failed => "👎",
    }
}

impl Channel for Telegram {
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

    fn edit<'a>(
        &'a self,
        id: &'a MessageId,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.edit_message(id, message))
    }

    fn has_drafts(&self, to: &Address) -> bool {
        send::is_private(&to.chat)
    }

    fn draft<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.show_draft(message))
    }

    fn delete<'a>(
        &'a self,
        from: &'a Address,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let body =
                json!({"chat_id": chat_id(&self.place_of(&from.chat)), "message_id": number(id)?});
            self.settle("deleteMessage", body, &[Cause::NoMessage])
                .await
        })
    }

    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let mut body =
                json!({"chat_id": chat_id(&self.place_of(&to.chat)), "action": "typing"});
            // Here, and only here, the general topic goes by its number.
            if let Some(thread) = to
                .thread
                .as_deref()
                .and_then(|thread| thread.parse::<i64>().ok())
            {
                body["message_thread_id"] = thread.into();
            }
            self.settle("sendChatAction", body, &[Cause::NoThread])
                .await
        })
    }

    fn react<'a>(
        &'a self,
        to: &'a Address,
        id: &'a MessageId,
        reaction: Option<Reaction>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let shown = reaction.map(|reaction| json!({"type": "emoji", "emoji": emoji(reaction)}));
            let shown: Vec<Value> = shown.into_iter().collect();
            let chat = chat_id(&self.place_of(&to.chat));
            let body = json!({"chat_id": chat, "message_id": number(id)?, "reaction": shown});
            self.settle("setMessageReaction", body, &[Cause::NotModified])
                .await
        })
    }

    fn acknowledge<'a>(
        &'a self,
        press: &'a Press,
        words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let mut body = json!({"callback_query_id": press.id});
            if let Some(words) = words {
                body["text"] = hermes_core::text::shorten(words, ACKNOWLEDGEMENT_CHARS_MAX).into();
            }
            self.settle("answerCallbackQuery", body, &[Cause::TooLate])
                .await
        })
    }

    fn download<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<FileBytes, ChannelError>> {
        Box::pin(self.fetch(file))
    }

    fn create_thread<'a>(
        &'a self,
        below: &'a Address,
        _message: Option<&'a MessageId>,
        title: &'a str,
    ) -> BoxFuture<'a, Result<Address, ChannelError>> {
        Box::pin(self.open_topic(below, title))
    }

    fn set_commands<'a>(
        &'a self,
        commands: &'a [ChatCommand],
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.put_commands(commands))
    }

    fn length(&self, markdown: &str) -> usize {
        markdown::utf16_length(&markdown::render(markdown).plain)
    }

    fn webhook(&self) -> Option<WebhookPlace> {
        let webhook = self.settings.webhook.as_ref()?;
        Some(WebhookPlace {
            host: "0.0.0.0".to_owned(),
            port: webhook.port,
            path: webhook.path.clone(),
            body_bytes_max: receive::WEBHOOK_BODY_BYTES_MAX,
        })
    }

    fn on_request<'a>(
        &'a self,
        request: WebRequest,
        inlet: &'a dyn Inlet,
    ) -> BoxFuture<'a, WebResponse> {
        Box::pin(async move { self.called(&request, inlet).await })
    }
}
