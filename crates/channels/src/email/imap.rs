//! One connection to a mailbox. Knows deadlines and limits, and nothing of what mails mean.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_core::{ChannelError, Timestamp, Trouble};
use io_imap::codec::fragmentizer::Fragmentizer;
use io_imap::coroutine::{ImapCoroutine, ImapCoroutineState, ImapYield};
use io_imap::rfc2177::idle::{ImapIdle, ImapIdleOptions, ImapIdleYield};
use io_imap::rfc2971::id::{ImapServerId, ImapServerIdOptions};
use io_imap::rfc3501::append::{ImapMessageAppend, ImapMessageAppendOptions};
use io_imap::rfc3501::capability::ImapCapabilityGet;
use io_imap::rfc3501::fetch::{ImapMessageFetch, ImapMessageFetchOptions};
use io_imap::rfc3501::greeting::{ImapGreetingGet, ImapGreetingGetOptions};
use io_imap::rfc3501::list::ImapMailboxList;
use io_imap::rfc3501::login::{ImapLogin, ImapLoginError, ImapLoginOptions};
use io_imap::rfc3501::logout::ImapLogout;
use io_imap::rfc3501::noop::ImapNoop;
use io_imap::rfc3501::search::{ImapMessageSearch, ImapMessageSearchOptions};
use io_imap::rfc3501::select::{ImapMailboxSelect, ImapMailboxSelectOptions};
use io_imap::rfc3501::starttls::ImapStartTls;
use io_imap::rfc3501::store::{ImapMessageStoreOptions, ImapMessageStoreSilent};
use io_imap::types::core::{AString, IString, NString, Vec1};
use io_imap::types::fetch::{
    MacroOrMessageDataItemNames, MessageDataItem, MessageDataItemName, Section,
};
use io_imap::types::flag::{Flag, StoreType};
use io_imap::types::mailbox::{ListMailbox, Mailbox};
use io_imap::types::response::Capability;
use io_imap::types::search::SearchKey;
use io_imap::types::sequence::SequenceSet;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::refusal;
use super::settings::{PASSWORD_VARIABLE, Security, Settings};

const CONNECT_MAX: Duration = Duration::from_secs(15);
/// What a server needs for one command, on a bad line.
const CALL_MAX: Duration = Duration::from_secs(60);
/// A mail is fetched in pieces, so that one on a slow line never looks like silence.
const PIECE_BYTES: u32 = 1024 * 1024;
/// A piece, or a list of a few hundred thousand numbers.
const ANSWER_BYTES_MAX: u32 = 4 * 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open and authenticated connection.
pub(super) struct Imap {
    stream: Box<dyn Stream>,
    fragmentizer: Fragmentizer,
    capabilities: Vec<Capability<'static>>,
    news: News,
}

/// Whether the server spoke of new mail while it answered something else: it says so once.
#[derive(Debug, Default)]
struct News {
    is_there: bool,
    /// The end of what was read before, for words that come in two pieces.
    end: Vec<u8>,
}

impl News {
    /// Words of a mail may look the same, which costs one look too many.
    fn listen(&mut self, bytes: &[u8]) {
        const WORD: &[u8] = b" EXISTS";
        self.end.extend_from_slice(bytes);
        self.is_there |= self.end.windows(WORD.len()).any(|word| word == WORD);
        let kept = self.end.len().saturating_sub(WORD.len() - 1);
        self.end.drain(..kept);
    }
}

/// A mailbox that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) validity: u32,
    /// The last number that was given to a mail, if the server says.
    pub(super) last: Option<u32>,
    pub(super) count: u32,
}

/// What a server says of a mail without showing it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About {
    pub(super) bytes_count: u64,
    pub(super) received: Option<Timestamp>,
}

/// Why waiting for mail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// Something changed in the mailbox.
    Changed,
    /// Nothing did, for as long as we waited.
    Quiet,
}

impl Imap {
    pub(super) async fn open(
        settings: &Settings,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, ChannelError> {
        let stream = connect(settings, tls).await?;
        let mut imap = Self {
            stream,
            fragmentizer: Fragmentizer::new(ANSWER_BYTES_MAX),
            capabilities: Vec::new(),
            news: News::default(),
        };
        imap.greet(settings.imap.security).await?;
        imap.log_in(settings).await?;
        imap.introduce().await;
        Ok(imap)
    }

    async fn greet(&mut self, security: Security) -> Result<(), ChannelError> {
        // After an upgrade there is no second greeting.
        if security == Security::StartTls {
            self.capabilities = self.run(ImapCapabilityGet::new()).await?;
            return Ok(());
        }
        let options = ImapGreetingGetOptions {
            ensure_capabilities: true,
        };
        self.capabilities = self.run(ImapGreetingGet::new(options)).await?.capability;
        Ok(())
    }

    async fn log_in(&mut self, settings: &Settings) -> Result<(), ChannelError> {
        let options = ImapLoginOptions {
            ensure_capabilities: true,
            auto_id: None,
        };
        let password = settings.password.expose();
        let login = ImapLogin::new(&settings.address, password, options)
            .map_err(|_| wrong_password("the password has characters that no server takes"))?;
        self.capabilities = match self.answer(login, CALL_MAX).await? {
            Ok(capabilities) => capabilities,
            Err(ImapLoginError::No(words) | ImapLoginError::Bad(words)) => {
                return Err(login_refused(&words));
            }
            Err(other) => return Err(passing(other)),
        };
        Ok(())
    }

    /// Some providers show no mail to programs that do not say who they are.
    async fn introduce(&mut self) {
        if !self.capabilities.contains(&Capability::Id) {
            return;
        }
        let pairs = [("name", "Hermes"), ("version", env!("CARGO_PKG_VERSION"))];
        let pair = |(name, value): (&str, &str)| {
            let name = IString::try_from(name.to_owned()).ok()?;
            let value = NString::try_from(value.to_owned()).ok()?;
            Some((name, value))
        };
        let options = ImapServerIdOptions {
            parameters: Some(pairs.into_iter().filter_map(pair).collect()),
        };
        if let Err(error) = self.run(ImapServerId::new(options)).await {
            tracing::debug!(%error, "the mail server does not want to know who we are");
        }
    }

    /// Whether new mail was spoken of since this was asked last.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news.is_there)
    }

    pub(super) fn can_idle(&self) -> bool {
        self.capabilities.contains(&Capability::Idle)
    }

    pub(super) async fn select(&mut self, mailbox: &str) -> Result<Opened, ChannelError> {
        let mailbox = mailbox_named(mailbox)?;
        let select = ImapMailboxSelect::new(mailbox, ImapMailboxSelectOptions::default());
        let opened = self.run(select).await?;
        let validity = opened.uid_validity.map(NonZeroU32::get);
        Ok(Opened {
            validity: validity.unwrap_or_default(),
            last: opened.uid_next.map(|next| next.get() - 1),
            count: opened.exists.unwrap_or_default(),
        })
    }

    /// The numbers of mails above one, in order.
    pub(super) async fn uids_above(&mut self, last: u32) -> Result<Vec<u32>, ChannelError> {
        let Some(first) = last.checked_add(1).and_then(NonZeroU32::new) else {
            return Ok(Vec::new());
        };
        let set = SequenceSet::try_from(first.get()..).map_err(passing)?;
        let mut uids = self.search(SearchKey::Uid(set)).await?;
        // `n:*` is the last mail even where its number is lower.
        uids.retain(|uid| *uid > last);
        Ok(uids)
    }

    pub(super) async fn uids_with_id(&mut self, id: &str) -> Result<Vec<u32>, ChannelError> {
        let word = |text: &str| AString::try_from(text.to_owned()).map_err(passing);
        let key = SearchKey::Header(word("Message-ID")?, word(&format!("<{id}>"))?);
        self.search(key).await
    }

    /// Mails of somebody that were taken: those alone are marked as read by us.
    pub(super) async fn uids_read_from(&mut self, from: &str) -> Result<Vec<u32>, ChannelError> {
        let from = AString::try_from(from.to_owned()).map_err(passing)?;
        let keys = vec![SearchKey::Seen, SearchKey::From(from)];
        let keys = Vec1::try_from(keys).map_err(passing)?;
        self.search(SearchKey::And(keys)).await
    }

    async fn search(&mut self, key: SearchKey<'static>) -> Result<Vec<u32>, ChannelError> {
        let options = ImapMessageSearchOptions { uid: true };
        let search = ImapMessageSearch::new(Vec1::from(key), options);
        let mut uids: Vec<u32> = self
            .run(search)
            .await?
            .into_iter()
            .map(NonZeroU32::get)
            .collect();
        uids.sort_unstable();
        uids.dedup();
        Ok(uids)
    }

    /// Numbers and times of the newest mails, as many as asked for, in order.
    pub(super) async fn newest(
        &mut self,
        opened: Opened,
        count: u32,
    ) -> Result<Vec<(u32, Timestamp)>, ChannelError> {
        if opened.count == 0 {
            return Ok(Vec::new());
        }
        let first = opened.count.saturating_sub(count).saturating_add(1);
        let set = SequenceSet::try_from(first..).map_err(passing)?;
        let items = vec![MessageDataItemName::Uid, MessageDataItemName::InternalDate];
        let fetched = self
            .fetch(set, items, ImapMessageFetchOptions::default())
            .await?;
        let mail = |items: &Vec<MessageDataItem<'static>>| {
            let uid = items.iter().find_map(|item| match item {
                MessageDataItem::Uid(uid) => Some(uid.get()),
                _ => None,
            })?;
            Some((
                uid,
                about(items).received.unwrap_or(Timestamp::from_millis(0)),
            ))
        };
        let mut mails: Vec<_> = fetched.values().filter_map(mail).collect();
        mails.sort_unstable();
        Ok(mails)
    }

    /// `None` if there is no such mail any more.
    pub(super) async fn about(&mut self, uid: u32) -> Result<Option<About>, ChannelError> {
        let items = vec![
            MessageDataItemName::Uid,
            MessageDataItemName::Rfc822Size,
            MessageDataItemName::InternalDate,
        ];
        let items = self.fetch_one(uid, items).await?;
        let has_size = items
            .iter()
            .any(|item| matches!(item, MessageDataItem::Rfc822Size(_)));
        Ok(has_size.then(|| about(&items)))
    }

    /// A piece of a mail; shorter than it might be at the end of the mail, `None` if there is no such mail any more.
    async fn piece(
        &mut self,
        uid: u32,
        at: u32,
        count: u32,
    ) -> Result<Option<Vec<u8>>, ChannelError> {
        let item = MessageDataItemName::BodyExt {
            section: None,
            partial: NonZeroU32::new(count).map(|count| (at, count)),
            peek: true,
        };
        Ok(body(self.fetch_one(uid, vec![item]).await?))
    }

    /// A mail, or its first `bytes_max` bytes. `on_piece` is told after every piece.
    pub(super) async fn mail(
        &mut self,
        uid: u32,
        bytes_max: u32,
        on_piece: &(dyn Fn() + Send + Sync),
    ) -> Result<Option<Vec<u8>>, ChannelError> {
        let mut mail = Vec::new();
        loop {
            let at = mail.len() as u32;
            let wanted = PIECE_BYTES.min(bytes_max.saturating_sub(at));
            if wanted == 0 {
                return Ok(Some(mail));
            }
            let Some(piece) = self.piece(uid, at, wanted).await? else {
                return Ok((at > 0).then_some(mail));
            };
            on_piece();
            mail.extend_from_slice(&piece);
            if (piece.len() as u32) < wanted {
                return Ok(Some(mail));
            }
        }
    }

    /// The headers of a mail that answers refer to.
    pub(super) async fn thread_headers(
        &mut self,
        uid: u32,
    ) -> Result<Option<Vec<u8>>, ChannelError> {
        let names = ["Message-ID", "Subject", "References", "In-Reply-To"];
        let names: Vec<AString<'static>> = names
            .into_iter()
            .filter_map(|name| AString::try_from(name.to_owned()).ok())
            .collect();
        let names = Vec1::try_from(names).map_err(passing)?;
        let item = MessageDataItemName::BodyExt {
            section: Some(Section::HeaderFields(None, names)),
            partial: None,
            peek: true,
        };
        Ok(body(self.fetch_one(uid, vec![item]).await?))
    }

    async fn fetch_one(
        &mut self,
        uid: u32,
        items: Vec<MessageDataItemName<'static>>,
    ) -> Result<Vec<MessageDataItem<'static>>, ChannelError> {
        let Some(uid) = NonZeroU32::new(uid) else {
            return Ok(Vec::new());
        };
        let set = SequenceSet::try_from(uid.get()).map_err(passing)?;
        let options = ImapMessageFetchOptions {
            uid: true,
            ..ImapMessageFetchOptions::default()
        };
        let fetched = self.fetch(set, items, options).await?;
        // Others may change flags of other mails meanwhile, which is told here, too.
        let is_it = |items: &&Vec<MessageDataItem<'static>>| {
            items
                .iter()
                .any(|item| matches!(item, MessageDataItem::Uid(found) if *found == uid))
        };
        Ok(fetched.values().find(is_it).cloned().unwrap_or_default())
    }

    async fn fetch(
        &mut self,
        set: SequenceSet,
        items: Vec<MessageDataItemName<'static>>,
        options: ImapMessageFetchOptions,
    ) -> Result<BTreeMap<NonZeroU32, Vec<MessageDataItem<'static>>>, ChannelError> {
        let items = MacroOrMessageDataItemNames::MessageDataItemNames(items);
        let fetched = self.run(ImapMessageFetch::new(set, items, options)).await?;
        let mails = fetched.into_iter();
        Ok(mails
            .map(|(seq, items)| (seq, items.into_inner()))
            .collect())
    }

    /// Marks a mail as read.
    pub(super) async fn mark_seen(&mut self, uid: u32) -> Result<(), ChannelError> {
        let set = SequenceSet::try_from(uid).map_err(passing)?;
        let options = ImapMessageStoreOptions { uid: true };
        let flags = vec![Flag::Seen];
        let store = ImapMessageStoreSilent::new(set, StoreType::Add, flags, options);
        self.run(store).await
    }

    /// Where sent mail is kept: the mailbox that says so, else one that is called so.
    pub(super) async fn sent_mailbox(&mut self) -> Result<Option<String>, ChannelError> {
        let everything = ListMailbox::try_from("*").map_err(passing)?;
        let root = Mailbox::try_from("").map_err(passing)?;
        let listed = self.run(ImapMailboxList::new(root, everything)).await?;
        let named = listed.into_iter().map(|(mailbox, _, attributes)| {
            let is_sent = attributes
                .iter()
                .any(|attribute| attribute.to_string().eq_ignore_ascii_case("\\Sent"));
            (name_of(&mailbox), is_sent)
        });
        let named: Vec<(String, bool)> = named.collect();
        let marked = named.iter().find(|(_, is_sent)| *is_sent);
        let called = || {
            let names = [
                "sent",
                "sent items",
                "sent mail",
                "sent messages",
                "inbox.sent",
            ];
            named
                .iter()
                .find(|(name, _)| names.contains(&name.to_lowercase().as_str()))
        };
        Ok(marked.or_else(called).map(|(name, _)| name.clone()))
    }

    pub(super) async fn append(&mut self, mailbox: &str, mail: &[u8]) -> Result<(), ChannelError> {
        let options = ImapMessageAppendOptions {
            flags: vec![Flag::Seen],
            ..ImapMessageAppendOptions::default()
        };
        let append = ImapMessageAppend::new(mailbox_named(mailbox)?, mail.to_vec(), options);
        self.run(append).await.map(|_| ())
    }

    pub(super) async fn noop(&mut self) -> Result<(), ChannelError> {
        self.run(ImapNoop::new()).await.map(|_| ())
    }

    /// Says goodbye; whether it is heard does not matter.
    pub(super) async fn close(mut self) {
        let _ = self.run(ImapLogout::new()).await;
    }

    /// Waits until the server says that something changed, for so long at most.
    pub(super) async fn idle(&mut self, patience: Duration) -> Result<Waited, ChannelError> {
        let is_done = Arc::new(AtomicBool::new(false));
        let mut idle = ImapIdle::new(Arc::clone(&is_done), ImapIdleOptions::default());
        let mut waited = Waited::Quiet;
        let end = tokio::time::Instant::now() + patience;
        let mut buffer = vec![0; READ_BYTES];
        let mut read = None;
        loop {
            let arg = read.take().map(|count: usize| &buffer[..count]);
            match idle.resume(&mut self.fragmentizer, arg) {
                ImapCoroutineState::Complete(Ok(())) => return Ok(waited),
                ImapCoroutineState::Complete(Err(error)) => return Err(passing(error)),
                ImapCoroutineState::Yielded(ImapIdleYield::WantsWrite(bytes)) => {
                    self.write(&bytes).await?;
                }
                ImapCoroutineState::Yielded(ImapIdleYield::Event(event)) => {
                    if !event.data.is_empty() {
                        waited = Waited::Changed;
                        is_done.store(true, Ordering::SeqCst);
                    }
                }
                ImapCoroutineState::Yielded(ImapIdleYield::WantsRead) => {
                    let is_ending = is_done.load(Ordering::SeqCst);
                    let until = match is_ending {
                        true => tokio::time::Instant::now() + CALL_MAX,
                        false => end,
                    };
                    match tokio::time::timeout_at(until, self.stream.read(&mut buffer)).await {
                        Ok(count) => read = Some(count.map_err(broken_off)?),
                        Err(_) if is_ending => return Err(silent()),
                        Err(_) => is_done.store(true, Ordering::SeqCst),
                    }
                }
            }
        }
    }

    async fn run<C, T, E>(&mut self, command: C) -> Result<T, ChannelError>
    where
        C: ImapCoroutine<Yield = ImapYield, Return = Result<T, E>>,
        E: Display,
    {
        self.answer(command, CALL_MAX).await?.map_err(passing)
    }

    /// Runs a command, and returns what the server made of it.
    async fn answer<C, R>(&mut self, mut command: C, deadline: Duration) -> Result<R, ChannelError>
    where
        C: ImapCoroutine<Yield = ImapYield, Return = R>,
    {
        let running = async {
            let mut buffer = vec![0; READ_BYTES];
            let mut read = None;
            loop {
                let arg = read.take().map(|count: usize| &buffer[..count]);
                match command.resume(&mut self.fragmentizer, arg) {
                    ImapCoroutineState::Complete(answer) => return Ok(answer),
                    ImapCoroutineState::Yielded(ImapYield::WantsWrite(bytes)) => {
                        self.write(&bytes).await?;
                    }
                    ImapCoroutineState::Yielded(ImapYield::WantsRead) => {
                        let count = self.stream.read(&mut buffer).await.map_err(broken_off)?;
                        self.news.listen(&buffer[..count]);
                        read = Some(count);
                    }
                }
            }
        };
        match tokio::time::timeout(deadline, running).await {
            Ok(answer) => answer,
            Err(_) => Err(silent()),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(CALL_MAX, writing).await {
            Ok(written) => written.map_err(broken_off),
            Err(_) => Err(silent()),
        }
    }
}

async fn connect(
    settings: &Settings,
    tls: &Arc<ClientConfig>,
) -> Result<Box<dyn Stream>, ChannelError> {
    let server = &settings.imap;
    let connecting = async {
        let tcp = super::connect::connect(&server.host, server.port).await;
        let tcp = tcp.map_err(|error| unreachable(settings, &error))?;
        match server.security {
            Security::None => Ok(Box::new(tcp) as Box<dyn Stream>),
            Security::Tls => secured(tcp, settings, tls).await,
            Security::StartTls => secured(start_tls(tcp).await?, settings, tls).await,
        }
    };
    match tokio::time::timeout(CONNECT_MAX, connecting).await {
        Ok(stream) => stream,
        Err(_) => {
            let words = format!("no answer from `{}:{}`", server.host, server.port);
            Err(ChannelError::new(Trouble::Passing, words))
        }
    }
}

/// Asks for TLS on a plain connection. Whatever comes with the answer might be somebody else's, so nothing may.
async fn start_tls(tcp: TcpStream) -> Result<TcpStream, ChannelError> {
    let mut tcp = tcp;
    let mut command = ImapStartTls::new();
    let mut fragmentizer = Fragmentizer::new(ANSWER_BYTES_MAX);
    let mut buffer = vec![0; READ_BYTES];
    let mut read = None;
    loop {
        let arg = read.take().map(|count: usize| &buffer[..count]);
        match command.resume(&mut fragmentizer, arg) {
            ImapCoroutineState::Complete(Ok(rest)) if rest.is_empty() => return Ok(tcp),
            ImapCoroutineState::Complete(Ok(_)) => {
                let words =
                    "somebody spoke on the connection to the mail server before it was secured";
                return Err(ChannelError::new(Trouble::Passing, words));
            }
            ImapCoroutineState::Complete(Err(error)) => return Err(passing(error)),
            ImapCoroutineState::Yielded(ImapYield::WantsWrite(bytes)) => {
                tcp.write_all(&bytes).await.map_err(broken_off)?;
            }
            ImapCoroutineState::Yielded(ImapYield::WantsRead) => {
                read = Some(tcp.read(&mut buffer).await.map_err(broken_off)?);
            }
        }
    }
}

async fn secured(
    tcp: TcpStream,
    settings: &Settings,
    tls: &Arc<ClientConfig>,
) -> Result<Box<dyn Stream>, ChannelError> {
    let host = settings.imap.host.clone();
    let name = ServerName::try_from(host).map_err(passing)?;
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await;
    match stream {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(refusal::of_tls(&settings.imap.host, &error)),
    }
}

fn about(items: &[MessageDataItem<'static>]) -> About {
    let mut about = About::default();
    for item in items {
        match item {
            MessageDataItem::Rfc822Size(bytes) => about.bytes_count = u64::from(*bytes),
            MessageDataItem::InternalDate(date) => {
                let millis = date.as_ref().timestamp_millis();
                about.received = Some(Timestamp::from_millis(millis));
            }
            _ => {}
        }
    }
    about
}

fn body(items: Vec<MessageDataItem<'static>>) -> Option<Vec<u8>> {
    items.into_iter().find_map(|item| match item {
        MessageDataItem::BodyExt { data, .. } => Some(
            data.into_option()
                .map(std::borrow::Cow::into_owned)
                .unwrap_or_default(),
        ),
        _ => None,
    })
}

fn mailbox_named(name: &str) -> Result<Mailbox<'static>, ChannelError> {
    Mailbox::try_from(name.to_owned()).map_err(passing)
}

fn name_of(mailbox: &Mailbox<'static>) -> String {
    match mailbox {
        Mailbox::Inbox => "INBOX".to_owned(),
        Mailbox::Other(other) => String::from_utf8_lossy(other.inner().as_ref()).into_owned(),
    }
}

fn passing(error: impl Display) -> ChannelError {
    let words = hermes_core::text::shorten(&error.to_string(), 300);
    ChannelError::new(Trouble::Passing, format!("the mailbox: {words}"))
}

fn broken_off(error: std::io::Error) -> ChannelError {
    ChannelError::new(
        Trouble::Passing,
        format!("the connection to the mailbox broke off: {error}"),
    )
}

fn silent() -> ChannelError {
    let words = format!("the mailbox does not answer for {} s", CALL_MAX.as_secs());
    ChannelError::new(Trouble::Passing, words)
}

fn unreachable(settings: &Settings, error: &std::io::Error) -> ChannelError {
    let server = &settings.imap;
    let words = format!(
        "`{}:{}` cannot be reached: {error}",
        server.host, server.port
    );
    ChannelError::new(Trouble::Passing, words)
        .with_hint("check `EMAIL_IMAP_HOST` and `EMAIL_IMAP_PORT`, and the network")
}

fn login_refused(words: &str) -> ChannelError {
    const PASSING: &[&str] = &[
        "too many",
        "temporar",
        "unavailable",
        "try again",
        "internal error",
        "limit",
    ];
    let lower = words.to_lowercase();
    if PASSING.iter().any(|sign| lower.contains(sign)) {
        return ChannelError::new(
            Trouble::Passing,
            format!("the mailbox is not opened for now: {words}"),
        );
    }
    wrong_password(words)
}

pub(super) fn wrong_password(words: &str) -> ChannelError {
    ChannelError::new(
        Trouble::NotAuthorised,
        format!("the mail server does not accept the address and password: {words}"),
    )
    .with_hint(format!(
        "put the right password into `{PASSWORD_VARIABLE}` and start the gateway again. Gmail, iCloud, Yahoo and Fastmail take only an app password, made in the account's security settings (for Gmail: https://myaccount.google.com/apppasswords, with two-step verification on); some providers want IMAP to be switched on first"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_heard_once_however_they_are_cut() {
        let text = b"* 3 FETCH ()\r\n* 17 EXISTS\r\na1 OK done\r\n";
        for cut in 0..text.len() {
            let mut news = News::default();
            news.listen(&text[..cut]);
            news.listen(&text[cut..]);
            assert!(std::mem::take(&mut news.is_there), "{cut}");
            news.listen(b"* 1 RECENT\r\n");
            assert!(!news.is_there, "{cut}");
        }
    }

    #[test]
    fn a_refusal_that_passes_is_not_a_wrong_password() {
        let trouble = |words| login_refused(words).trouble;
        assert_eq!(
            trouble("Too many simultaneous connections"),
            Trouble::Passing
        );
        assert_eq!(trouble("Authentication failed."), Trouble::NotAuthorised);
        let hint = login_refused("Invalid credentials").hint.expect("a hint");
        assert!(hint.contains("app password") && hint.contains(PASSWORD_VARIABLE));
    }
}
