//! Files that came with mails. They stay in the mailbox until somebody wants them.

use futures_util::StreamExt as _;
use hermes_core::tool::BoxFuture;
use hermes_core::{ChannelError, FileBytes, Identity, Inlet, InletError, Trouble, Updates};

use super::Email;
use super::receive::INBOX;
use super::update::{self, LetterPlace, WHOLE_TEXT};

const CHUNK_BYTES: usize = 64 * 1024;

impl Email {
    pub(super) async fn fetch(&self, file: &str) -> Result<FileBytes, ChannelError> {
        let (place, part) = LetterPlace::of_file(file).ok_or_else(gone)?;
        let mut imap = self.connect().await?;
        let opened = imap.select(INBOX).await?;
        if opened.validity != place.validity {
            return Err(gone());
        }
        let letter = self.fetch_letter(&mut imap, place, &Nobody).await?;
        imap.close().await;
        let letter = letter.ok_or_else(gone)?;
        let bytes = part_of(&letter.bytes, part).ok_or_else(gone)?;
        let chunks: Vec<Vec<u8>> = bytes.chunks(CHUNK_BYTES).map(<[u8]>::to_vec).collect();
        Ok(futures_util::stream::iter(chunks.into_iter().map(Ok)).boxed())
    }
}

fn part_of(mail: &[u8], part: &str) -> Option<Vec<u8>> {
    let message = update::parse(mail)?;
    if part == WHOLE_TEXT {
        return Some(update::whole_text(&message).into_bytes());
    }
    let part = message.attachment(part.parse().ok()?)?;
    Some(update::part_bytes(&message, part).into_owned())
}

fn gone() -> ChannelError {
    ChannelError::new(
        Trouble::NotFound,
        "the mail with this file is not in the mailbox any more",
    )
}

/// Nobody watches while a file is fetched.
struct Nobody;

impl Inlet for Nobody {
    fn accept(&self, _updates: Updates) -> BoxFuture<'_, Result<(), InletError>> {
        Box::pin(async { Ok(()) })
    }

    fn cursor(&self) -> Option<String> {
        None
    }

    fn connected(&self, _identity: Identity) {}

    fn heard(&self) {}

    fn passed_over(&self, _: &str) {}
}
