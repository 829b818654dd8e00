//! Receiving: new mail is fetched, kept, and only then marked as read.

use std::sync::PoisonError;
use std::time::Duration;

use hermes_core::{ChannelError, Identity, Inlet, Timestamp, Trouble, Updates};

use super::imap::{Imap, Opened, Waited};
use super::update::{self, Letter, LetterPlace, ReadLetter};
use super::{Email, smtp};

pub(super) const INBOX: &str = "INBOX";
/// How long one wait for news lasts. Routers forget connections that rest for longer than some minutes.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// Nothing heard for this long: a wait and an answer that never came, and some more.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// What the largest providers let through.
const MAIL_BYTES_MAX: u32 = 36 * 1024 * 1024;
/// Of a mail that is larger, to know what it is about.
const BEGINNING_BYTES: u32 = 256 * 1024;
/// A mail that ended so many connections, one after the other, is passed over. Between them are minutes in all: a line that is
/// bad for longer has trouble with more than one mail, and before that.
const FETCHES_MAX: u32 = 8;
/// How far back new mail is looked for when the mailbox numbers its mails anew.
const RENUMBERED_COUNT_MAX: u32 = 1000;

pub(super) fn silence_max(poll_interval: Duration) -> Duration {
    SILENCE_MAX.max(poll_interval * 2 + Duration::from_secs(60))
}

/// How far the mailbox was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    /// Numbers mean something only as long as this is the same.
    validity: u32,
    uid: u32,
    /// When the last mail came: what counts when the numbers mean nothing any more.
    at: Timestamp,
}

impl Cursor {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let cursor = Self {
            validity: parts.next()?.parse().ok()?,
            uid: parts.next()?.parse().ok()?,
            at: Timestamp::from_millis(parts.next()?.parse().ok()?),
        };
        parts.next().is_none().then_some(cursor)
    }

    fn write(self) -> String {
        format!("{}:{}:{}", self.validity, self.uid, self.at.as_millis())
    }

    fn after(self, place: LetterPlace, received: Option<Timestamp>) -> Self {
        Self {
            validity: place.validity,
            uid: place.uid,
            at: received.map_or(self.at, |received| received.max(self.at)),
        }
    }
}

impl Email {
    pub(super) async fn run(&self, inlet: &dyn Inlet) -> ChannelError {
        match self.receive_mail(inlet).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn receive_mail(
        &self,
        inlet: &dyn Inlet,
    ) -> Result<std::convert::Infallible, ChannelError> {
        let mut imap = self.connect().await?;
        self.check_smtp().await?;
        let opened = imap.select(INBOX).await?;
        let mut cursor = self.begin(&mut imap, opened, inlet).await?;
        inlet.connected(Identity {
            id: self.settings.address.clone(),
            name: self.settings.address.clone(),
        });
        loop {
            inlet.heard();
            imap.take_news();
            for uid in imap.uids_above(cursor.uid).await? {
                cursor = self.take(&mut imap, uid, cursor, inlet).await?;
                inlet.heard();
            }
            if !imap.take_news() {
                self.wait(&mut imap).await?;
            }
        }
    }

    /// A password that is wrong for sending should not be found out with the first answer.
    async fn check_smtp(&self) -> Result<(), ChannelError> {
        match smtp::probe(&self.settings).await {
            Err(error) if error.trouble == Trouble::NotAuthorised => Err(error),
            Err(error) => {
                tracing::warn!(%error, "mail can be received, and not sent for now");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Where to read on. What lay in the mailbox before we first came is not for us.
    async fn begin(
        &self,
        imap: &mut Imap,
        opened: Opened,
        inlet: &dyn Inlet,
    ) -> Result<Cursor, ChannelError> {
        let known = inlet.cursor().as_deref().and_then(Cursor::read);
        let cursor = match known {
            Some(known) if known.validity == opened.validity => return Ok(known),
            Some(known) => self.begin_renumbered(imap, opened, known).await?,
            None => Cursor {
                validity: opened.validity,
                uid: last_uid(imap, opened).await?,
                at: self.ports.clock.now(),
            },
        };
        self.keep(inlet, None, cursor).await?;
        Ok(cursor)
    }

    /// The mailbox was moved or rebuilt: what came since the last mail we know is new. Mails that we know are known again.
    async fn begin_renumbered(
        &self,
        imap: &mut Imap,
        opened: Opened,
        known: Cursor,
    ) -> Result<Cursor, ChannelError> {
        tracing::warn!("the mailbox numbers its mails anew; what came since is looked for");
        let newest = imap.newest(opened, RENUMBERED_COUNT_MAX).await?;
        let first_new = newest.iter().find(|(_, received)| *received >= known.at);
        let uid = match first_new {
            Some((uid, _)) => uid.saturating_sub(1),
            None => last_uid(imap, opened).await?,
        };
        Ok(Cursor {
            validity: opened.validity,
            uid,
            at: known.at,
        })
    }

    /// Takes one mail, and returns where to read on.
    async fn take(
        &self,
        imap: &mut Imap,
        uid: u32,
        cursor: Cursor,
        inlet: &dyn Inlet,
    ) -> Result<Cursor, ChannelError> {
        let place = LetterPlace {
            validity: cursor.validity,
            uid,
        };
        let fetched = self.fetch_letter(imap, place, inlet).await;
        let Some(letter) = (match fetched {
            Ok(letter) => letter,
            Err(error) => return Err(self.unfetched(place, cursor, inlet, error).await),
        }) else {
            // Somebody moved it away meanwhile.
            return Ok(Cursor { uid, ..cursor });
        };
        let cursor = cursor.after(place, letter.received);
        match update::read(&letter, &self.settings) {
            Ok(read) => {
                self.remember(&read);
                self.keep(inlet, Some(read), cursor).await?;
                // Without it people see the mail as unread, and that is all.
                if let Err(error) = imap.mark_seen(uid).await {
                    tracing::debug!(%error, "a mail cannot be marked as read");
                    return Err(error);
                }
            }
            Err(reason) => {
                tracing::info!(uid, reason, "a mail is not answered");
                self.keep(inlet, None, cursor).await?;
            }
        }
        Ok(cursor)
    }

    /// What cannot be fetched ends the connection, and is tried again with the next one. A mail that has ended many holds up all
    /// others: it is passed over, and stays in the mailbox unread.
    async fn unfetched(
        &self,
        place: LetterPlace,
        cursor: Cursor,
        inlet: &dyn Inlet,
        error: ChannelError,
    ) -> ChannelError {
        let times = self.count_unfetched(place);
        if times < FETCHES_MAX {
            return error;
        }
        let uid = place.uid;
        if let Err(error) = self.keep(inlet, None, Cursor { uid, ..cursor }).await {
            return error;
        }
        inlet.passed_over(&format!(
            "mail {uid} of the mailbox, which could not be fetched {times} times and stays unread: {error}"
        ));
        error
    }

    fn count_unfetched(&self, place: LetterPlace) -> u32 {
        let mut unfetched = self
            .unfetched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let times = match *unfetched {
            Some((known, times)) if known == place => times + 1,
            _ => 1,
        };
        *unfetched = Some((place, times));
        times
    }

    pub(super) async fn fetch_letter(
        &self,
        imap: &mut Imap,
        place: LetterPlace,
        inlet: &dyn Inlet,
    ) -> Result<Option<Letter>, ChannelError> {
        let Some(about) = imap.about(place.uid).await? else {
            return Ok(None);
        };
        let bytes_max = match about.bytes_count {
            bytes if bytes <= u64::from(MAIL_BYTES_MAX) => MAIL_BYTES_MAX,
            _ => BEGINNING_BYTES,
        };
        let on_piece = || inlet.heard();
        let bytes = imap.mail(place.uid, bytes_max, &on_piece).await?;
        Ok(bytes.map(|bytes| Letter {
            place,
            received: about.received,
            // Some servers count lines otherwise; what came whole is whole.
            bytes_count: match (bytes.len() as u32) < bytes_max {
                true => bytes.len() as u64,
                false => about.bytes_count,
            },
            bytes,
        }))
    }

    async fn keep(
        &self,
        inlet: &dyn Inlet,
        read: Option<ReadLetter>,
        cursor: Cursor,
    ) -> Result<(), ChannelError> {
        let updates = Updates {
            updates: read.map(|read| read.update).into_iter().collect(),
            cursor: Some(cursor.write()),
        };
        let kept = inlet.accept(updates).await;
        kept.map_err(|error| ChannelError::new(Trouble::Passing, error.to_string()))
    }

    async fn wait(&self, imap: &mut Imap) -> Result<(), ChannelError> {
        if imap.can_idle() {
            let waited = imap.idle(IDLE_MAX).await?;
            tracing::trace!(
                changed = (waited == Waited::Changed),
                "the mailbox was waited for"
            );
            return Ok(());
        }
        tokio::time::sleep(self.settings.poll_interval).await;
        imap.noop().await
    }
}

/// The number of the last mail. Servers that do not say it on opening are asked.
async fn last_uid(imap: &mut Imap, opened: Opened) -> Result<u32, ChannelError> {
    match opened.last {
        Some(last) => Ok(last),
        None => Ok(imap.uids_above(0).await?.last().copied().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let cursor = Cursor {
            validity: 7,
            uid: 42,
            at: Timestamp::from_millis(1_790_000_000_000),
        };
        assert_eq!(cursor.write(), "7:42:1790000000000");
        assert_eq!(Cursor::read(&cursor.write()), Some(cursor));
        for wrong in ["", "7", "7:42", "a:b:c", "7:42:1:2", "-1:2:3"] {
            assert_eq!(Cursor::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn time_does_not_go_back_with_a_mail_that_was_moved_in() {
        let at = Timestamp::from_millis(1000);
        let cursor = Cursor {
            validity: 1,
            uid: 1,
            at,
        };
        let place = LetterPlace {
            validity: 1,
            uid: 2,
        };
        let old = cursor.after(place, Some(Timestamp::from_millis(10)));
        assert_eq!((old.uid, old.at), (2, at));
        let new = cursor.after(place, Some(Timestamp::from_millis(2000)));
        assert_eq!(new.at, Timestamp::from_millis(2000));
    }
}
