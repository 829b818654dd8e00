//! Sending: answers in their thread, and a copy where sent mail is kept.

use std::path::Path;
use std::time::Duration;

use hermes_core::{Arrival, Body, ChannelError, MessageId, Outgoing, Trouble};

use super::Email;
use super::compose::{self, FILE_BYTES_MAX, Mail};
use super::receive::INBOX;
use super::smtp;
use super::update::{self, ReadLetter, ThreadOf, is_id};

/// A copy for ourselves is not worth a longer wait.
const COPY_MAX: Duration = Duration::from_secs(60);
/// Looking for the mail that is answered is not worth a longer wait: without it the subject is missing.
const LOOK_UP_MAX: Duration = Duration::from_secs(30);
/// What is said to somebody without answering a mail belongs to their last one, if it is not older.
const LAST_MAIL_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Mails that may be answered without looking them up.
const THREADS_COUNT_MAX: usize = 1000;

/// The mails that people sent last, and what each person sent last.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// In the order they came, with whose they are.
    known: Vec<(String, ThreadOf)>,
}

impl Threads {
    fn remember(&mut self, from: String, thread: ThreadOf) {
        if self.known.len() >= THREADS_COUNT_MAX {
            self.known.remove(0);
        }
        self.known.push((from, thread));
    }

    fn with_id(&self, id: &str) -> Option<ThreadOf> {
        let found = self.known.iter().rev().find(|(_, thread)| thread.id == id);
        found.map(|(_, thread)| thread.clone())
    }

    fn last_of(&self, from: &str) -> Option<ThreadOf> {
        let found = self.known.iter().rev().find(|(whose, _)| whose == from);
        found.map(|(_, thread)| thread.clone())
    }
}

impl Email {
    pub(super) fn remember(&self, read: &ReadLetter) {
        let from = read.update.incoming.sender().id.clone();
        self.threads().remember(from, read.thread.clone());
    }

    pub(super) async fn send_message(&self, message: &Outgoing) -> Result<MessageId, ChannelError> {
        let file = match &message.body {
            Body::File { path, name, .. } => Some(read_file(path, name).await?),
            Body::Text { .. } => None,
        };
        let thread = self.thread_for(message).await;
        let now = self.ports.clock.now();
        let mail = compose::compose(message, &self.settings, thread.as_ref(), file, now)?;
        smtp::deliver(&self.settings, &mail).await?;
        self.keep_copy(&mail).await;
        Ok(MessageId::from(mail.id))
    }

    /// What a message belongs to: the mail it answers, else the last one of whom it is for.
    async fn thread_for(&self, message: &Outgoing) -> Option<ThreadOf> {
        let answered = message.replies_to.as_ref().map(|id| id.as_str());
        let answered = answered.filter(|id| is_id(id));
        let known = match answered {
            Some(id) => self.threads().with_id(id),
            None => self.threads().last_of(&message.to.chat),
        };
        if known.is_some() {
            return known;
        }
        let looking = async {
            match answered {
                Some(id) => self.look_up(id).await,
                None => self.look_up_last(&message.to.chat).await,
            }
        };
        match tokio::time::timeout(LOOK_UP_MAX, looking).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the mail that is answered cannot be looked up");
                None
            }
            Err(_) => None,
        }
    }

    /// The last mail of somebody that was taken, if that is not long ago: what a process before this one was about to answer.
    async fn look_up_last(&self, from: &str) -> Result<Option<ThreadOf>, ChannelError> {
        let mut imap = self.connect().await?;
        imap.select(INBOX).await?;
        let mut found = None;
        if let Some(uid) = imap.uids_read_from(from).await?.last().copied() {
            let about = imap.about(uid).await?;
            let received = about.and_then(|about| about.received);
            let now = self.ports.clock.now();
            if received.is_some_and(|received| now.since(received) <= LAST_MAIL_AGE_MAX) {
                let headers = imap.thread_headers(uid).await?;
                found = headers.as_deref().and_then(update::thread_of_headers);
            }
        }
        imap.close().await;
        Ok(found)
    }

    async fn look_up(&self, id: &str) -> Result<Option<ThreadOf>, ChannelError> {
        let mut imap = self.connect().await?;
        imap.select(INBOX).await?;
        let uids = imap.uids_with_id(id).await?;
        let headers = match uids.last() {
            Some(uid) => imap.thread_headers(*uid).await?,
            None => None,
        };
        imap.close().await;
        let thread = headers.as_deref().and_then(update::thread_of_headers);
        Ok(thread.filter(|thread| thread.id == id))
    }

    /// Puts a copy where sent mail is kept, if there is such a place and the server has not done it itself.
    async fn keep_copy(&self, mail: &Mail) {
        let copying = async {
            let mut imap = self.connect().await?;
            let Some(sent) = imap.sent_mailbox().await? else {
                return Ok(());
            };
            imap.select(&sent).await?;
            if imap.uids_with_id(&mail.id).await?.is_empty() {
                imap.append(&sent, &mail.bytes).await?;
            }
            imap.close().await;
            Ok::<(), ChannelError>(())
        };
        match tokio::time::timeout(COPY_MAX, copying).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "no copy of a sent mail could be kept"),
            Err(_) => tracing::warn!("no copy of a sent mail could be kept in time"),
        }
    }

    /// Whether a mail went out: it did if there is a copy. Without one nobody knows, for the copy comes last.
    pub(super) async fn look_for(&self, message: &Outgoing) -> Result<Arrival, ChannelError> {
        let id = compose::message_id(message, &self.settings);
        let mut imap = self.connect().await?;
        let Some(sent) = imap.sent_mailbox().await? else {
            return Ok(Arrival::Unknown);
        };
        imap.select(&sent).await?;
        let found = imap.uids_with_id(&id).await?;
        imap.close().await;
        Ok(match found.is_empty() {
            true => Arrival::Unknown,
            false => Arrival::Arrived(MessageId::from(id)),
        })
    }
}

async fn read_file(path: &Path, name: &str) -> Result<Vec<u8>, ChannelError> {
    let unreadable = |error: std::io::Error| {
        let words = format!("`{}` cannot be read: {error}", path.display());
        ChannelError::new(Trouble::Refused, words)
    };
    let about = tokio::fs::metadata(path).await.map_err(unreadable)?;
    if about.len() > FILE_BYTES_MAX {
        let words = format!(
            "`{name}` has {} bytes; mail takes {FILE_BYTES_MAX}",
            about.len()
        );
        return Err(ChannelError::new(Trouble::TooLong, words));
    }
    tokio::fs::read(path).await.map_err(unreadable)
}
