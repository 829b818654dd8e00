//! Threads: opened when asked to, and for conversations that begin with our name.

use hermes_core::{Address, ChannelError, Chat, ChatKind, IncomingMessage, MessageId, Trouble};
use serde_json::json;

use super::Discord;
use super::places::{Kind, Place};
use super::refusal::Cause;
use super::send::{ARCHIVE_MINUTES, channel, reference, title_of};

const PUBLIC_THREAD: u64 = 11;
const NAME_CHARS_MAX: usize = 100;

impl Discord {
    pub(super) async fn open_thread(
        &self,
        below: &Address,
        message: Option<&MessageId>,
        title: &str,
    ) -> Result<Address, ChannelError> {
        let title = hermes_core::text::shorten(title.trim(), NAME_CHARS_MAX);
        let chat = channel(below);
        let thread = match message {
            Some(message) => {
                let message = reference(chat, message)?;
                self.thread_at(&message.channel, &message.message, &title)
                    .await?
            }
            None => self.thread_in(chat, &title).await?,
        };
        Ok(Address {
            chat: thread,
            thread: None,
            ..below.clone()
        })
    }

    /// Where a message that names us in a channel is answered: in a thread that hangs on it.
    pub(super) async fn thread_for(&self, message: &IncomingMessage) -> Option<Chat> {
        let chat = &message.chat;
        let is_plain = message.id.as_str().chars().all(|c| c.is_ascii_digit());
        if !message.mentions.us || !is_plain || !self.settings.threads.are_opened_in(chat) {
            return None;
        }
        let title = title_of(&message.text);
        match self.thread_at(&chat.id, message.id.as_str(), &title).await {
            Ok(thread) => Some(Chat {
                id: thread,
                kind: ChatKind::Thread,
                title: Some(title),
                thread: None,
                parent: Some(chat.id.clone()),
                scope: chat.scope.clone(),
                former: None,
            }),
            Err(error) => {
                tracing::info!(%error, "no thread was opened: it is answered in the channel");
                None
            }
        }
    }

    /// The thread that hangs on a message, opened if it is not there. It has the number of the message.
    async fn thread_at(
        &self,
        chat: &str,
        message: &str,
        title: &str,
    ) -> Result<String, ChannelError> {
        let path = format!("/channels/{chat}/messages/{message}/threads");
        let body = json!({"name": title, "auto_archive_duration": ARCHIVE_MINUTES});
        let mut opened = self.api.post(&path, &body).await;
        // One that may have been opened has been, or is now.
        if opened
            .as_ref()
            .is_err_and(|failure| failure.error.trouble == Trouble::Ambiguous)
        {
            opened = self.api.post(&path, &body).await;
        }
        let id = match opened {
            Ok(thread) => {
                self.places.learn(&thread, None);
                thread["id"].as_str().unwrap_or(message).to_owned()
            }
            Err(failure) if failure.is(Cause::HasThread) => message.to_owned(),
            Err(failure) => return Err(failure.error),
        };
        if self.places.get(&id).is_none() {
            let known = json!({"id": id, "type": PUBLIC_THREAD, "parent_id": chat});
            self.places.put(&id, Place::read(&known, None));
        }
        self.places.join(&id);
        Ok(id)
    }

    async fn thread_in(&self, chat: &str, title: &str) -> Result<String, ChannelError> {
        let is_forum = self.place(chat, None).await?.kind == Kind::Forum;
        let mut body = json!({"name": title, "auto_archive_duration": ARCHIVE_MINUTES});
        if is_forum {
            // A post is nothing without a first message.
            body["message"] = json!({"content": title, "allowed_mentions": {"parse": []}});
        } else {
            body["type"] = PUBLIC_THREAD.into();
        }
        let opened = self
            .api
            .post(&format!("/channels/{chat}/threads"), &body)
            .await;
        let opened = opened.map_err(|failure| failure.error)?;
        self.places.learn(&opened, None);
        let id = opened["id"].as_str().ok_or_else(|| {
            ChannelError::new(
                Trouble::Ambiguous,
                "Discord opened a thread and did not say which",
            )
        })?;
        self.places.join(id);
        Ok(id.to_owned())
    }
}
