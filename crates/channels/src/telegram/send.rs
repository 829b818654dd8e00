//! Sending: texts, and what is tried instead when Telegram does not like how they are.

use hermes_core::{Address, Body, Button, ChannelError, MessageId, Outgoing, Trouble};
use serde_json::{Value, json};

use super::Telegram;
use super::markdown::{Rendered, render, utf16_length};
use super::refusal::{Cause, Failure};
use super::update::{self, GENERAL};

/// By UTF-16, of what people see.
pub(super) const TEXT_LENGTH_MAX: usize = 4096;
pub(super) const CAPTION_LENGTH_MAX: usize = 1024;

/// By bytes, with all its signs: addresses of links count here and not above.
const MARKED_BYTES_MAX: usize = 32_000;

/// How often one message is tried in another way: without markup, thread and reply, in the group's new place, as a document.
pub(super) const WAYS_MAX: usize = 6;

/// How a message is written this time.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) has_markup: bool,
    pub(super) has_thread: bool,
    pub(super) has_reply: bool,
    pub(super) as_document: bool,
    pub(super) chat: String,
}

impl Way {
    pub(super) fn first(to: &Address, telegram: &Telegram) -> Self {
        Self {
            has_markup: true,
            has_thread: true,
            has_reply: true,
            as_document: false,
            chat: telegram.place_of(&to.chat),
        }
    }

    /// What to do differently after a failure; `None` when nothing would help.
    pub(super) fn after(&self, failure: &Failure) -> Option<Self> {
        let mut other = self.clone();
        match failure.cause {
            Cause::Markup if self.has_markup => other.has_markup = false,
            Cause::NoThread if self.has_thread => other.has_thread = false,
            Cause::NoReplyTarget if self.has_reply => other.has_reply = false,
            Cause::WrongFile if !self.as_document => other.as_document = true,
            Cause::Moved(chat) if self.chat != chat.to_string() => other.chat = chat.to_string(),
            _ => return None,
        }
        Some(other)
    }
}

impl Telegram {
    pub(super) async fn send_message(&self, message: &Outgoing) -> Result<MessageId, ChannelError> {
        check_buttons(&message.buttons)?;
        let mut way = Way::first(&message.to, self);
        for _ in 0..WAYS_MAX {
            let sent = match &message.body {
                Body::Text {
                    markdown,
                    is_preview,
                } => self.send_text(message, markdown, *is_preview, &way).await,
                Body::File { .. } => self.send_file(message, &way).await,
            };
            let failure = match sent {
                Ok(sent) => return self.id_of(&sent),
                Err(failure) => failure,
            };
            way = self.other_way(&message.to, &way, failure)?;
        }
        Err(ChannelError::new(
            Trouble::Refused,
            "Telegram likes no way in which this can be sent",
        ))
    }

    /// What to try after a failure; the failure itself when there is nothing.
    pub(super) fn other_way(
        &self,
        to: &Address,
        way: &Way,
        failure: Failure,
    ) -> Result<Way, ChannelError> {
        let other = way.after(&failure).ok_or(failure.error)?;
        if other.chat != way.chat {
            self.remember_move(&to.chat, &other.chat);
        }
        Ok(other)
    }

    async fn send_text(
        &self,
        message: &Outgoing,
        markdown: &str,
        is_preview: bool,
        way: &Way,
    ) -> Result<Value, Failure> {
        let mut body = self.addressed(message, way);
        self.put_text(&mut body, markdown, is_preview, way)?;
        self.api.call("sendMessage", &body).await
    }

    pub(super) async fn edit_message(
        &self,
        id: &MessageId,
        message: &Outgoing,
    ) -> Result<(), ChannelError> {
        check_buttons(&message.buttons)?;
        let mut way = Way::first(&message.to, self);
        for _ in 0..WAYS_MAX {
            let failure = match self.edit_once(id, message, &way).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.is(Cause::NotModified) => return Ok(()),
                Err(failure) => failure,
            };
            way = self.other_way(&message.to, &way, failure)?;
        }
        Err(ChannelError::new(
            Trouble::Refused,
            "Telegram likes no way in which this can be edited",
        ))
    }

    async fn edit_once(
        &self,
        id: &MessageId,
        message: &Outgoing,
        way: &Way,
    ) -> Result<Value, Failure> {
        let mut body = json!({"chat_id": chat_id(&way.chat), "message_id": number(id)?});
        // Without it the buttons go, which is what no buttons mean.
        if !message.buttons.is_empty() {
            body["reply_markup"] = keyboard(&message.buttons);
        }
        match &message.body {
            Body::Text {
                markdown,
                is_preview,
            } => {
                self.put_text(&mut body, markdown, *is_preview, way)?;
                self.api.call("editMessageText", &body).await
            }
            Body::File { caption, .. } => {
                put_caption(&mut body, caption, way);
                self.api.call("editMessageCaption", &body).await
            }
        }
    }

    /// Shows what there is of a message where one is being written.
    pub(super) async fn show_draft(&self, message: &Outgoing) -> Result<(), ChannelError> {
        let Body::Text { markdown, .. } = &message.body else {
            let words = "only words can be shown while they are written";
            return Err(ChannelError::new(Trouble::Unsupported, words));
        };
        let way = Way::first(&message.to, self);
        let mut body = self.addressed(
            &Outgoing {
                replies_to: None,
                buttons: Vec::new(),
                is_silent: false,
                ..message.clone()
            },
            &way,
        );
        body["draft_id"] = draft_id(&message.key).into();
        let plain = render(markdown).plain;
        body["text"] = cut(&plain, TEXT_LENGTH_MAX).into();
        let shown = self.api.call("sendMessageDraft", &body).await;
        shown.map(|_| ()).map_err(|failure| failure.error)
    }

    /// Where a message goes, what it replies to, and what is below it.
    pub(super) fn addressed(&self, message: &Outgoing, way: &Way) -> Value {
        let mut body = json!({"chat_id": chat_id(&way.chat)});
        // The general topic is where messages without a topic go; by its number it is not found.
        let thread = message
            .to
            .thread
            .as_deref()
            .filter(|thread| *thread != GENERAL && way.has_thread);
        if let Some(thread) = thread.and_then(|thread| thread.parse::<i64>().ok()) {
            body["message_thread_id"] = thread.into();
        }
        let reply = message.replies_to.as_ref().filter(|_| way.has_reply);
        if let Some(reply) = reply.and_then(|id| id.as_str().parse::<i64>().ok()) {
            body["reply_parameters"] =
                json!({"message_id": reply, "allow_sending_without_reply": true});
        }
        if message.is_silent {
            body["disable_notification"] = true.into();
        }
        if !message.buttons.is_empty() {
            body["reply_markup"] = keyboard(&message.buttons);
        }
        body
    }

    fn put_text(
        &self,
        body: &mut Value,
        markdown: &str,
        is_preview: bool,
        way: &Way,
    ) -> Result<(), ChannelError> {
        let Rendered {
            markdown: marked,
            plain,
        } = render(markdown);
        // What is nothing but signs is shown as it is.
        let plain = if plain.trim().is_empty() {
            markdown.to_owned()
        } else {
            plain
        };
        if plain.trim().is_empty() {
            return Err(ChannelError::new(
                Trouble::Refused,
                "there is no text to send",
            ));
        }
        if utf16_length(&plain) > TEXT_LENGTH_MAX {
            let words = format!("the text is longer than {TEXT_LENGTH_MAX} UTF-16 units");
            return Err(ChannelError::new(Trouble::TooLong, words));
        }
        let is_marked = !marked.trim().is_empty() && marked.len() <= MARKED_BYTES_MAX;
        if !is_preview && way.has_markup && is_marked {
            body["text"] = marked.into();
            body["parse_mode"] = "MarkdownV2".into();
        } else {
            body["text"] = plain.into();
        }
        if is_preview || !self.settings.has_link_previews {
            body["link_preview_options"] = json!({"is_disabled": true});
        }
        Ok(())
    }

    pub(super) fn id_of(&self, sent: &Value) -> Result<MessageId, ChannelError> {
        let id = sent["message_id"].as_i64().map(update::message_id);
        id.ok_or_else(|| {
            ChannelError::new(
                Trouble::Ambiguous,
                "Telegram took the message and did not say under which number",
            )
        })
    }
}

/// People have numbers above zero; groups and channels are below.
pub(super) fn is_private(chat: &str) -> bool {
    chat.parse::<i64>().is_ok_and(|chat| chat > 0)
}

/// A number that stays the same for a message, and is not zero (FNV-1a).
fn draft_id(key: &str) -> i64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::from((hash >> 33) as i32) + 1
}

/// The beginning of a text, by UTF-16 units.
fn cut(text: &str, units_max: usize) -> &str {
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > units_max
    });
    end.map_or(text, |(at, _)| &text[..at])
}

pub(super) fn put_caption(body: &mut Value, caption: &str, way: &Way) {
    let Rendered { markdown, plain } = render(caption);
    if plain.trim().is_empty() {
        return;
    }
    if way.has_markup {
        body["caption"] = markdown.into();
        body["parse_mode"] = "MarkdownV2".into();
    } else {
        body["caption"] = plain.into();
    }
}

/// Chats are numbers; public channels have names too.
pub(super) fn chat_id(chat: &str) -> Value {
    chat.parse::<i64>()
        .map_or_else(|_| chat.into(), Value::from)
}

pub(super) fn number(id: &MessageId) -> Result<i64, ChannelError> {
    id.as_str().parse().map_err(|_| {
        ChannelError::new(
            Trouble::NotFound,
            format!("`{id}` is not a message of Telegram"),
        )
    })
}

fn check_buttons(rows: &[Vec<Button>]) -> Result<(), ChannelError> {
    let too_long = |button: &&Button| {
        button.data.is_empty() || button.data.len() > hermes_core::channel::BUTTON_DATA_BYTES_MAX
    };
    match rows.iter().flatten().find(too_long) {
        Some(button) => Err(ChannelError::new(
            Trouble::Refused,
            format!(
                "the button `{}` must have 1 to {} bytes of data",
                button.label,
                hermes_core::channel::BUTTON_DATA_BYTES_MAX
            ),
        )),
        None => Ok(()),
    }
}

fn keyboard(rows: &[Vec<Button>]) -> Value {
    let key = |button: &Button| json!({"text": button.label, "callback_data": button.data});
    let rows: Vec<Vec<Value>> = rows
        .iter()
        .map(|row| row.iter().map(key).collect())
        .collect();
    json!({"inline_keyboard": rows})
}
