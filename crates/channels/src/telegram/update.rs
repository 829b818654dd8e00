//! Turns what Telegram says into what the gateway understands. Pure.

use hermes_core::{
    Chat, ChatKind, Forwarded, Incoming, IncomingMessage, Mentions, MessageId, Press, RepliedTo,
    Sender, Thread, Timestamp, Update,
};
use serde_json::Value;

use super::content;
use super::wire::{
    RawUpdate, WireCallback, WireChat, WireEntity, WireMessage, WireUpdate, WireUser,
};

/// The topic that every forum has, and that messages in it do not name.
pub(super) const GENERAL: &str = "1";

/// Who we are, as far as it matters to what is said to us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Us {
    pub(super) id: i64,
    /// Without its `@`; empty until Telegram told us.
    pub(super) username: String,
}

/// Reads one update; `None` for kinds that nobody here answers.
pub(super) fn read(update: RawUpdate, us: &Us) -> Option<Update> {
    let wire: WireUpdate = serde_json::from_value(update.raw.clone()).ok()?;
    let (incoming, sent) = if let Some(message) = wire.message.or(wire.channel_post) {
        let sent = message.date;
        (Incoming::Message(read_message(message, us)?), sent)
    } else if let Some(message) = wire.edited_message.or(wire.edited_channel_post) {
        let sent = message.edit_date.or(message.date);
        (Incoming::Edited(read_edited(message, us)?), sent)
    } else {
        (Incoming::Press(press(wire.callback_query?)?), None)
    };
    Some(Update {
        id: id_of(update.id, &incoming, sent),
        sent: sent.map(|secs| Timestamp::from_millis(secs.saturating_mul(1000))),
        raw: update.raw,
        incoming,
    })
}

/// What a group was called, and what it is called now that it is a supergroup, if an update tells that.
pub(super) fn moved(raw: &Value) -> Option<(i64, i64)> {
    let message = &raw["message"];
    let here = message["chat"]["id"].as_i64()?;
    let to = message["migrate_to_chat_id"].as_i64();
    let from = message["migrate_from_chat_id"].as_i64();
    to.map(|to| (here, to))
        .or_else(|| from.map(|from| (from, here)))
}

/// Numbers begin anew somewhere after a quiet week, and on another server; one that was used before is then another update.
/// So what never changes about an update is part of its id: when it was sent, or what the press is called.
fn id_of(number: i64, incoming: &Incoming, sent: Option<i64>) -> String {
    match (incoming, sent) {
        (Incoming::Press(press), _) => format!("{number}.{}", press.id),
        (_, Some(secs)) => format!("{number}.{secs}"),
        (_, None) => number.to_string(),
    }
}

/// Somebody who walks with a live location edits it all the time, and says nothing.
fn read_edited(message: WireMessage, us: &Us) -> Option<IncomingMessage> {
    let is_walking = message.location.is_some() && message.venue.is_none();
    if is_walking {
        None
    } else {
        read_message(message, us)
    }
}

fn read_message(message: WireMessage, us: &Us) -> Option<IncomingMessage> {
    let sender = sender(&message)?;
    if sender.id == us.id.to_string() {
        return None;
    }
    let attachments = content::attachments(&message);
    let words = Words::of(&message);
    let text = content::with_description(&words.addressed(us), &message);
    if text.is_empty() && attachments.is_empty() {
        return None;
    }
    let (text, forwarded) = if is_forwarded(&message) {
        (String::new(), Some(forwarded(&message, text)))
    } else {
        (text, None)
    };
    Some(IncomingMessage {
        chat: chat(&message),
        sender,
        id: message_id(message.message_id),
        text,
        forwarded,
        attachments,
        replies_to: replied_to(&message, us),
        mentions: words.mentions(us),
        album: message.media_group_id.clone(),
    })
}

/// Whether somebody else said it first. What people pass on of their own they did write.
fn is_forwarded(message: &WireMessage) -> bool {
    let Some(origin) = &message.forward_origin else {
        // Older servers of the Bot API.
        return message.forward_date.is_some();
    };
    let (author, sender) = (&origin.sender_user, &message.from);
    match (author, sender) {
        (Some(author), Some(sender)) => author.id != sender.id,
        _ => true,
    }
}

fn forwarded(message: &WireMessage, text: String) -> Forwarded {
    let origin = message.forward_origin.as_ref();
    let from = origin.and_then(|origin| {
        let user = origin.sender_user.as_ref().map(person);
        let chat = origin.chat.as_ref().or(origin.sender_chat.as_ref());
        user.and_then(|user| user.name)
            .or_else(|| origin.sender_user_name.clone())
            .or_else(|| chat.and_then(chat_title))
    });
    Forwarded { from, text }
}

pub(super) fn message_id(id: i64) -> MessageId {
    MessageId::from(id.to_string())
}

fn sender(message: &WireMessage) -> Option<Sender> {
    // A message in the name of a chat has somebody who never wrote it beside it, for old programs.
    if let Some(chat) = &message.sender_chat {
        return Some(Sender {
            id: chat.id.to_string(),
            name: chat_title(chat),
            username: chat.username.clone(),
            ..Sender::default()
        });
    }
    match &message.from {
        Some(user) => Some(person(user)),
        None if message.chat.r#type.as_deref() == Some("channel") => Some(Sender {
            id: message.chat.id.to_string(),
            name: chat_title(&message.chat),
            ..Sender::default()
        }),
        None => None,
    }
}

fn person(user: &WireUser) -> Sender {
    Sender {
        id: user.id.to_string(),
        name: full_name(user.first_name.as_deref(), user.last_name.as_deref()),
        username: user.username.clone(),
        is_bot: user.is_bot.unwrap_or(false),
        ..Sender::default()
    }
}

fn full_name(first: Option<&str>, last: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [first, last].into_iter().flatten().collect();
    let name = parts.join(" ").trim().to_owned();
    (!name.is_empty()).then_some(name)
}

fn chat_title(chat: &WireChat) -> Option<String> {
    let name = || full_name(chat.first_name.as_deref(), chat.last_name.as_deref());
    chat.title.clone().or_else(name)
}

fn chat(message: &WireMessage) -> Chat {
    let chat = &message.chat;
    let is_forum = chat.is_forum.unwrap_or(false);
    let kind = match chat.r#type.as_deref() {
        Some("private") => ChatKind::Dm,
        Some("channel") => ChatKind::Channel,
        _ if is_forum => ChatKind::Forum,
        // A kind of chat that does not exist yet is treated as one with strangers in it.
        _ => ChatKind::Group,
    };
    Chat {
        id: chat.id.to_string(),
        kind,
        title: chat_title(chat),
        thread: thread(message, kind),
        parent: None,
        scope: None,
        former: None,
    }
}

/// The topic a message is in. Replies in ordinary groups have a thread's number too, which is none.
fn thread(message: &WireMessage, kind: ChatKind) -> Option<Thread> {
    let is_topic = message.is_topic_message.unwrap_or(false);
    let id = message.message_thread_id.filter(|_| is_topic);
    let id = match (id, kind) {
        (Some(id), _) => id.to_string(),
        (None, ChatKind::Forum) => GENERAL.to_owned(),
        (None, _) => return None,
    };
    let created = message.reply_to_message.as_ref();
    let title =
        created.and_then(|created| Some(created.forum_topic_created.as_ref()?.name.clone()));
    Some(Thread { id, title })
}

fn replied_to(message: &WireMessage, us: &Us) -> Option<RepliedTo> {
    let quote = message.quote.as_ref().map(|quote| quote.text.clone());
    if let Some(original) = &message.reply_to_message {
        // Everything in a topic replies to the message that opened it.
        let opened_topic = original.forum_topic_created.is_some()
            || (message.is_topic_message == Some(true)
                && message.message_thread_id == Some(original.message_id));
        if opened_topic {
            return None;
        }
        let said = content::with_description(Words::of(original).text, original);
        let text = quote.or((!said.is_empty()).then_some(said));
        return Some(RepliedTo {
            id: message_id(original.message_id),
            text: text.or_else(|| content::label(original)),
            is_ours: original.from.as_ref().is_some_and(|from| from.id == us.id),
        });
    }
    let elsewhere = message.external_reply.as_ref()?.message_id?;
    Some(RepliedTo {
        id: message_id(elsewhere),
        text: quote,
        is_ours: false,
    })
}

fn press(callback: WireCallback) -> Option<Press> {
    let message = callback.message?;
    Some(Press {
        id: callback.id,
        chat: chat(&message),
        sender: person(&callback.from),
        message: message_id(message.message_id),
        data: callback.data?,
    })
}

/// The words of a message, with what Telegram found in them.
struct Words<'a> {
    text: &'a str,
    entities: &'a [WireEntity],
}

impl<'a> Words<'a> {
    fn of(message: &'a WireMessage) -> Self {
        match (&message.text, &message.caption) {
            (Some(text), _) => Self {
                text,
                entities: &message.entities,
            },
            (None, Some(caption)) => Self {
                text: caption,
                entities: &message.caption_entities,
            },
            (None, None) => Self {
                text: "",
                entities: &[],
            },
        }
    }

    fn mentions(&self, us: &Us) -> Mentions {
        let mut mentions = Mentions::default();
        for entity in self.entities {
            match self.named(entity) {
                Some(Named::Name(name)) if us.is(name) => mentions.us = true,
                // Names of bots end so, and no others do.
                Some(Named::Name(name)) if name.to_ascii_lowercase().ends_with("bot") => {
                    mentions.other_bots = true;
                }
                Some(Named::User(user)) if user.id == us.id => mentions.us = true,
                Some(Named::User(user)) => mentions.other_bots |= user.is_bot.unwrap_or(false),
                Some(Named::Name(_)) | None => {}
            }
        }
        mentions
    }

    /// Whom an entity names.
    fn named(&self, entity: &'a WireEntity) -> Option<Named<'a>> {
        match entity.r#type.as_str() {
            "mention" => Some(Named::Name(self.part(entity)?.strip_prefix('@')?)),
            "bot_command" => Some(Named::Name(self.part(entity)?.split_once('@')?.1)),
            "text_mention" => Some(Named::User(entity.user.as_ref()?)),
            _ => None,
        }
    }

    fn part(&self, entity: &WireEntity) -> Option<&'a str> {
        let start = byte_of_utf16(self.text, entity.offset)?;
        let end = byte_of_utf16(self.text, entity.offset.checked_add(entity.length)?)?;
        self.text.get(start..end)
    }

    /// The words without our name in front, as people call us in groups: `@us do it`, `/do@us it`.
    fn addressed(&self, us: &Us) -> String {
        let text = self.text.trim();
        if us.username.is_empty() {
            return text.to_owned();
        }
        let rest = match text.strip_prefix('@') {
            Some(called) if us.begins(called) => called[us.username.len()..]
                .trim_start_matches([',', ':'])
                .trim_start(),
            _ => text,
        };
        let (word, after) = match rest.find(char::is_whitespace) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        match word.split_once('@') {
            Some((command, name)) if command.starts_with('/') && us.is(name) => {
                format!("{command}{after}")
            }
            _ => rest.to_owned(),
        }
    }
}

enum Named<'a> {
    Name(&'a str),
    User(&'a WireUser),
}

impl Us {
    fn is(&self, name: &str) -> bool {
        !self.username.is_empty() && name.eq_ignore_ascii_case(&self.username)
    }

    /// Whether a text begins with our name, and not with a longer one.
    fn begins(&self, text: &str) -> bool {
        let name = text.get(..self.username.len());
        let next = text
            .get(self.username.len()..)
            .and_then(|rest| rest.chars().next());
        name.is_some_and(|name| self.is(name))
            && next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    }
}

/// Where a position in UTF-16 is in UTF-8; `None` beyond the end or inside a character.
fn byte_of_utf16(text: &str, units: usize) -> Option<usize> {
    let mut seen = 0;
    for (at, c) in text.char_indices() {
        if seen >= units {
            return (seen == units).then_some(at);
        }
        seen += c.len_utf16();
    }
    (seen == units).then_some(text.len())
}
