//! Sending: texts, and what is tried instead when Discord does not like how they are.

use hermes_core::{Arrival, Body, Button, ChannelError, MessageId, Outgoing, Trouble};
use reqwest::Method;
use serde_json::{Value, json};

use super::Discord;
use super::files::{self, Upload};
use super::interaction::Interaction;
use super::markdown::{length, render};
use super::places::Kind;
use super::refusal::{Cause, Failure};

pub(super) const TEXT_LENGTH_MAX: usize = 2000;
/// How often one message is tried in another way: without a reply, as a post of a forum.
const WAYS_MAX: usize = 4;
const TITLE_CHARS_MAX: usize = 80;
/// A day, in minutes: a thread in which nothing is said for so long is put away, and comes back with the next word.
pub(super) const ARCHIVE_MINUTES: u64 = 1440;
const BUTTONS_IN_ROW_MAX: usize = 5;
const ROWS_MAX: usize = 5;
const LABEL_CHARS_MAX: usize = 80;
/// Nobody's phone rings for it.
const SILENT: u64 = 1 << 12;
/// The newest messages, among which one that was cut off would be.
const LOOKED_AT: usize = 50;

/// How a message is written this time.
#[derive(Debug, Clone)]
struct Way {
    has_reply: bool,
    as_post: bool,
}

/// A message, and where it is if that is not where it was sent to: `MESSAGE`, or `CHANNEL.MESSAGE`.
pub(super) struct Reference {
    pub(super) channel: String,
    pub(super) message: String,
}

impl Discord {
    pub(super) async fn send_message(&self, message: &Outgoing) -> Result<MessageId, ChannelError> {
        let payload = payload(message)?;
        let upload = self.upload_of(message).await?;
        let chat = channel_of(message);
        if let Some(id) = self
            .fill_in(chat, message, &payload, upload.as_ref())
            .await?
        {
            return Ok(id);
        }
        let mut way = Way {
            has_reply: self.settings.has_replies,
            as_post: self
                .places
                .get(chat)
                .is_some_and(|place| place.kind == Kind::Forum),
        };
        for _ in 0..WAYS_MAX {
            let sent = self
                .send_once(chat, message, &payload, upload.as_ref(), &way)
                .await;
            let failure = match sent {
                Ok(id) => {
                    self.places.join(chat);
                    return Ok(id);
                }
                Err(failure) => failure,
            };
            way = self.other_way(chat, &way, failure).await?;
        }
        Err(ChannelError::new(
            Trouble::Refused,
            "Discord likes no way in which this can be sent",
        ))
    }

    /// What to try after a failure; the failure itself when there is nothing.
    async fn other_way(
        &self,
        chat: &str,
        way: &Way,
        failure: Failure,
    ) -> Result<Way, ChannelError> {
        let mut other = way.clone();
        match failure.cause {
            Cause::NoReplyTarget | Cause::NoMessage if way.has_reply => other.has_reply = false,
            Cause::WrongChannel if !way.as_post => {
                let place = self.place(chat, None).await?;
                if place.kind != Kind::Forum {
                    return Err(failure.error);
                }
                other.as_post = true;
            }
            _ => return Err(failure.error),
        }
        Ok(other)
    }

    async fn send_once(
        &self,
        chat: &str,
        message: &Outgoing,
        payload: &Value,
        upload: Option<&Upload>,
        way: &Way,
    ) -> Result<MessageId, Failure> {
        if way.as_post {
            return self.post(chat, message, payload, upload).await;
        }
        let mut payload = once(message, payload);
        // The message that a thread hangs on is not in the thread.
        let reply = message.replies_to.as_ref().filter(|_| way.has_reply);
        let reply = reply.map(MessageId::as_str).filter(|id| *id != chat);
        if let Some(id) = reply.filter(|id| id.chars().all(|c| c.is_ascii_digit())) {
            payload["message_reference"] = json!({"message_id": id, "fail_if_not_exists": false});
        }
        let path = format!("/channels/{chat}/messages");
        let sent = self.write(Method::POST, &path, &payload, upload).await?;
        id_in(&sent, chat).map_err(Failure::from)
    }

    /// Writes into a forum: a post with its first message. What else belongs to the same text follows in it.
    async fn post(
        &self,
        forum: &str,
        message: &Outgoing,
        payload: &Value,
        upload: Option<&Upload>,
    ) -> Result<MessageId, Failure> {
        let before = message.follows.as_ref();
        if let Some((post, _)) = before.and_then(|before| before.as_str().split_once('.')) {
            let path = format!("/channels/{post}/messages");
            let payload = once(message, payload);
            match self.write(Method::POST, &path, &payload, upload).await {
                Ok(sent) => return id_in(&sent, forum).map_err(Failure::from),
                // Somebody took the post away: the rest of the text is one of its own.
                Err(failure) if failure.is(Cause::NoChannel) => {}
                Err(failure) => return Err(failure),
            }
        }
        let body = json!({
            "name": title_of(payload["content"].as_str().unwrap_or_default()),
            "auto_archive_duration": ARCHIVE_MINUTES,
            "message": payload,
        });
        let path = format!("/channels/{forum}/threads");
        let opened = self.write(Method::POST, &path, &body, upload).await?;
        let post = opened["id"].as_str().ok_or_else(unnamed)?;
        self.places.learn(&opened, None);
        self.places.join(post);
        Ok(MessageId::from(format!("{post}.{post}")))
    }

    /// Makes the message the answer that a command was promised, if it is one. `None`: it is a message of its own.
    async fn fill_in(
        &self,
        chat: &str,
        message: &Outgoing,
        payload: &Value,
        upload: Option<&Upload>,
    ) -> Result<Option<MessageId>, ChannelError> {
        // What answers somebody's message is no answer to another's command.
        let interaction = match &message.replies_to {
            Some(id) => Interaction::parse(id.as_str()),
            None => self.deferred.first(chat),
        };
        let Some(interaction) = interaction else {
            return Ok(None);
        };
        let path = interaction.answer_path();
        let written = self.write(Method::PATCH, &path, payload, upload).await;
        match written {
            Ok(written) => {
                self.deferred.done(chat, &interaction);
                id_in(&written, chat).map(Some)
            }
            Err(failure)
                if matches!(
                    failure.error.trouble,
                    Trouble::NotFound | Trouble::NotAuthorised | Trouble::Forbidden
                ) =>
            {
                self.deferred.done(chat, &interaction);
                Ok(None)
            }
            Err(failure) => Err(failure.error),
        }
    }

    async fn write(
        &self,
        method: Method,
        path: &str,
        payload: &Value,
        upload: Option<&Upload>,
    ) -> Result<Value, Failure> {
        match upload {
            Some(upload) => {
                let form = upload.form(payload).await?;
                self.api.upload(method, path, form).await
            }
            None => self.api.call(method, path, Some(payload)).await,
        }
    }

    pub(super) async fn edit_message(
        &self,
        id: &MessageId,
        message: &Outgoing,
    ) -> Result<(), ChannelError> {
        let mut payload = payload(message)?;
        // Without it the buttons stay.
        payload["components"] = components(&message.buttons);
        let reference = reference(channel_of(message), id)?;
        let path = format!(
            "/channels/{}/messages/{}",
            reference.channel, reference.message
        );
        let edited = self.api.call(Method::PATCH, &path, Some(&payload)).await;
        edited.map(|_| ()).map_err(|failure| failure.error)
    }

    /// Looks whether a message is the last that we said in a chat.
    pub(super) async fn look_for(&self, message: &Outgoing) -> Result<Arrival, ChannelError> {
        let chat = channel_of(message);
        // A forum has no messages of its own, and two posts may say the same.
        if self.place(chat, None).await?.kind == Kind::Forum {
            return Ok(Arrival::Unknown);
        }
        let written = payload(message)?;
        let Some(replied) = message
            .replies_to
            .as_ref()
            .and_then(|id| id.as_str().parse::<u64>().ok())
        else {
            return Ok(Arrival::Unknown);
        };
        let path = format!("/channels/{chat}/messages?limit={LOOKED_AT}");
        let found = self.api.get(&path).await.map_err(|failure| failure.error)?;
        let us = self.us();
        let ours = found
            .as_array()
            .into_iter()
            .flatten()
            .find(|found| found["author"]["id"] == us.id.as_str());
        let is_it = |found: &&Value| {
            let is_later =
                found["id"].as_str().and_then(|id| id.parse::<u64>().ok()) > Some(replied);
            is_later && found["content"] == written["content"]
        };
        Ok(match ours.filter(is_it) {
            Some(found) => Arrival::Arrived(id_in(found, chat)?),
            None => Arrival::Unknown,
        })
    }

    async fn upload_of(&self, message: &Outgoing) -> Result<Option<Upload>, ChannelError> {
        match &message.body {
            Body::File { path, name, .. } => files::upload(path, name).await.map(Some),
            Body::Text { .. } => Ok(None),
        }
    }
}

/// The message as Discord takes it once only, however often it is sent.
fn once(message: &Outgoing, payload: &Value) -> Value {
    let mut payload = payload.clone();
    payload["nonce"] = nonce(&message.key).into();
    payload["enforce_nonce"] = true.into();
    if message.is_silent {
        payload["flags"] = SILENT.into();
    }
    payload
}

/// Threads are channels of their own: an address names one as its chat, or below the channel that it belongs to.
pub(super) fn channel_of(message: &Outgoing) -> &str {
    channel(&message.to)
}

pub(super) fn channel(to: &hermes_core::Address) -> &str {
    to.thread.as_deref().unwrap_or(&to.chat)
}

pub(super) fn reference(chat: &str, id: &MessageId) -> Result<Reference, ChannelError> {
    let (channel, message) = match id.as_str().split_once('.') {
        Some((channel, message)) => (channel, message),
        None => (chat, id.as_str()),
    };
    let is_id = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if is_id(channel) && is_id(message) {
        return Ok(Reference {
            channel: channel.to_owned(),
            message: message.to_owned(),
        });
    }
    let words = format!("`{id}` is not a message of Discord");
    Err(ChannelError::new(Trouble::NotFound, words))
}

/// What a message is called; with its channel where that is another one.
fn id_in(sent: &Value, chat: &str) -> Result<MessageId, ChannelError> {
    let id = sent["id"].as_str().ok_or_else(unnamed)?;
    Ok(MessageId::from(match sent["channel_id"].as_str() {
        Some(channel) if channel != chat => format!("{channel}.{id}"),
        _ => id.to_owned(),
    }))
}

fn unnamed() -> ChannelError {
    let words = "Discord took the message and did not say under which number";
    ChannelError::new(Trouble::Ambiguous, words)
}

/// What a message says and has below it. Whatever a model writes, it calls nobody: not everybody, no role and no person.
fn payload(message: &Outgoing) -> Result<Value, ChannelError> {
    let (markdown, is_file) = match &message.body {
        Body::Text { markdown, .. } => (markdown, false),
        Body::File { caption, .. } => (caption, true),
    };
    let content = render(markdown);
    // What is nothing but signs is shown as it is.
    let content = if content.trim().is_empty() {
        markdown.trim().to_owned()
    } else {
        content
    };
    if content.is_empty() && !is_file {
        let words = "there is no text to send";
        return Err(ChannelError::new(Trouble::Refused, words));
    }
    if length(&content) > TEXT_LENGTH_MAX {
        let words = format!("the text is longer than {TEXT_LENGTH_MAX} characters");
        return Err(ChannelError::new(Trouble::TooLong, words));
    }
    check_buttons(&message.buttons)?;
    let mut payload = json!({
        "content": content,
        "allowed_mentions": {"parse": [], "replied_user": false},
    });
    if !message.buttons.is_empty() {
        payload["components"] = components(&message.buttons);
    }
    Ok(payload)
}

fn check_buttons(rows: &[Vec<Button>]) -> Result<(), ChannelError> {
    let max = hermes_core::channel::BUTTON_DATA_BYTES_MAX;
    let is_unfit = |button: &&Button| button.data.is_empty() || button.data.len() > max;
    if let Some(button) = rows.iter().flatten().find(is_unfit) {
        let words = format!(
            "the button `{}` must have 1 to {max} bytes of data",
            button.label
        );
        return Err(ChannelError::new(Trouble::Refused, words));
    }
    if rows_of(rows).len() > ROWS_MAX {
        let words = format!("Discord takes {ROWS_MAX} rows of {BUTTONS_IN_ROW_MAX} buttons");
        return Err(ChannelError::new(Trouble::Refused, words));
    }
    Ok(())
}

/// Rows as Discord has them; longer ones go on in the next.
fn rows_of(rows: &[Vec<Button>]) -> Vec<&[Button]> {
    rows.iter()
        .flat_map(|row| row.chunks(BUTTONS_IN_ROW_MAX))
        .collect()
}

fn components(rows: &[Vec<Button>]) -> Value {
    let button = |button: &Button| {
        let label = match button.label.trim() {
            "" => "…".to_owned(),
            label => hermes_core::text::shorten(label, LABEL_CHARS_MAX),
        };
        json!({"type": 2, "style": 2, "label": label, "custom_id": button.data})
    };
    let row = |row: &&[Button]| {
        let buttons: Vec<Value> = row.iter().map(button).collect();
        json!({"type": 1, "components": buttons})
    };
    rows_of(rows).iter().map(row).collect()
}

/// What a thread is called that a text begins.
pub(super) fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line
        .unwrap_or("Conversation")
        .trim_start_matches(['#', '>', '-', '*', ' ']);
    match hermes_core::text::shorten(line, TITLE_CHARS_MAX).trim() {
        "" => "Conversation".to_owned(),
        title => title.to_owned(),
    }
}

/// A key as Discord takes it: 25 characters at most. The same key is the same every time, in every process.
fn nonce(key: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hash = key.bytes().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    let mut digits = Vec::new();
    while hash > 0 {
        digits.push(char::from(DIGITS[(hash % 36) as usize]));
        hash /= 36;
    }
    digits.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_fit_and_differ() {
        let one = nonce("turn/1#0");
        assert_eq!(one, nonce("turn/1#0"));
        assert_ne!(one, nonce("turn/1#1"));
        assert!((20..=25).contains(&one.len()), "{one}");
        assert!(nonce("").len() <= 25);
    }

    #[test]
    fn titles_are_the_first_words() {
        assert_eq!(title_of("\n## The plan\n\nmore"), "The plan");
        assert_eq!(title_of("***"), "Conversation");
        assert_eq!(title_of(""), "Conversation");
        assert!(title_of(&"word ".repeat(50)).chars().count() <= TITLE_CHARS_MAX);
    }

    #[test]
    fn messages_may_be_elsewhere_than_where_they_were_sent() {
        let of = |id: &str| reference("7", &MessageId::from(id));
        assert_eq!(of("5").expect("one").channel, "7");
        assert_eq!(of("9.9").expect("one").channel, "9");
        for id in ["", "x", "9.", "1/2/3"] {
            assert!(of(id).is_err(), "{id}");
        }
    }

    #[test]
    fn long_rows_go_on_in_the_next() {
        let button = |at: usize| Button {
            label: String::new(),
            data: at.to_string(),
        };
        let row: Vec<Button> = (0..12).map(button).collect();
        assert_eq!(rows_of(std::slice::from_ref(&row)).len(), 3);
        assert!(check_buttons(&[row.clone(), row.clone()]).is_err());
        assert!(check_buttons(&[row]).is_ok());
    }
}
