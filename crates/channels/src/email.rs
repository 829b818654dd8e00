//! Email: a mailbox by IMAP, and a server that takes mail by SMTP.
//!
//! Start at [`receive`] for what comes in and [`send`] for what goes out. [`update`] and [`compose`] translate, as pure
//! functions; [`authentication`] says whether a mail is from whom it says, [`automated`] whether a person wrote it; [`refusal`]
//! says what servers mean when they refuse; [`imap`] and [`smtp`] are connections. A mail of ours has the same Message-ID
//! whenever it is sent again, and the copy in the mailbox for sent mail proves that it went out. Left out on purpose: edits,
//! buttons, typing (mail has none), OAuth.

mod address;
mod authentication;
mod automated;
mod compose;
mod connect;
mod files;
mod imap;
mod markdown;
mod quotes;
mod receive;
mod refusal;
mod send;
mod settings;
mod smtp;
mod tls;
mod update;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::tool::BoxFuture;
use hermes_core::{
    Arrival, Channel, ChannelError, ChannelFacts, ChannelPorts, FileBytes, Inlet, MessageId,
    Outgoing, Platform, PlatformSettingError, PlatformSettings,
};
use rustls::ClientConfig;

use self::imap::Imap;
use self::send::Threads;
use self::settings::Settings;
use self::update::LetterPlace;

pub(crate) const PLATFORM: Platform = Platform {
    name: "email",
    label: "Email",
    settings: settings::SETTINGS,
    how_to: "Give Hermes a mailbox of its own, with IMAP switched on.\n\
             Gmail, iCloud, Yahoo and Fastmail want an app password: it is made in the security settings of the account.",
    // A code in answer to a forged sender would be mail to somebody who never wrote.
    ignores_strangers: true,
    requires_mention: true,
    shows_calls: false,
    open,
};

const HINT: &str = "You are answering by email. Markdown is shown (bold, italics, links, quotes, lists, tables, code). A mail is read whole and \
                    later, maybe hours later: answer completely, and do not promise to follow up.";

fn open(
    settings: &PlatformSettings,
    ports: ChannelPorts,
) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let settings = settings::read(settings)?;
    Ok(Arc::new(Email {
        facts: facts(&settings),
        settings,
        ports,
        tls: Mutex::default(),
        threads: Mutex::default(),
        unfetched: Mutex::default(),
    }))
}

struct Email {
    settings: Settings,
    facts: ChannelFacts,
    ports: ChannelPorts,
    /// Made when it is needed: reading the system's certificates takes milliseconds.
    tls: Mutex<Option<Arc<ClientConfig>>>,
    threads: Mutex<Threads>,
    /// The mail that could not be fetched last, and how often that was tried.
    unfetched: Mutex<Option<(LetterPlace, u32)>>,
}

impl Email {
    async fn connect(&self) -> Result<Imap, ChannelError> {
        let tls = self.tls_config()?;
        Imap::open(&self.settings, &tls).await
    }

    fn tls_config(&self) -> Result<Arc<ClientConfig>, ChannelError> {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &*tls {
            return Ok(Arc::clone(tls));
        }
        let made = tls::config(self.settings.ca_file.as_deref())?;
        *tls = Some(Arc::clone(&made));
        Ok(made)
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_in(&self) -> Result<(), ChannelError> {
        let mut imap = self.connect().await?;
        imap.noop().await?;
        imap.close().await;
        smtp::probe(&self.settings).await
    }
}

fn facts(settings: &Settings) -> ChannelFacts {
    ChannelFacts {
        platform: PLATFORM.name,
        account: settings.address.clone(),
        length_max: compose::TEXT_CHARS_MAX,
        caption_length_max: compose::TEXT_CHARS_MAX,
        file_bytes_max: compose::FILE_BYTES_MAX,
        edit_interval: None,
        has_buttons: false,
        typing: None,
        has_reactions: false,
        // Some servers know a Message-ID again, and many do not.
        knows_keys: false,
        silence_max: receive::silence_max(settings.poll_interval),
        joining: Duration::ZERO,
        split_length: usize::MAX,
        has_private_ids: true,
        hint: HINT,
    }
}

impl Channel for Email {
    fn facts(&self) -> &ChannelFacts {
        &self.facts
    }

    fn receive<'a>(&'a self, inlet: &'a dyn Inlet) -> BoxFuture<'a, ChannelError> {
        Box::pin(self.run(inlet))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(self.look_in())
    }

    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>> {
        Box::pin(self.send_message(message))
    }

    fn find_sent<'a>(
        &'a self,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Arrival, ChannelError>> {
        Box::pin(self.look_for(message))
    }

    fn download<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<FileBytes, ChannelError>> {
        Box::pin(self.fetch(file))
    }
}
