//! Words for chats that no turn there began: schedules, webhooks, the model elsewhere and `hermes send` bring them.

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::schedule::ORIGIN_TARGET;
use hermes_core::{
    Address, Answers, BoxFuture, Chat, Chats, Clock, NewOutboxEntry, Outbox, OutboxEntry, Records,
    Stage, StoreError,
};

use super::files::{self, FilePolicy};
use super::lanes::{ChannelParts, Channels};
use super::ports::{ChatPorts, LiveSettings};
use super::{mirror, reply};
use crate::deliver::{self, Arrival, Deliver, DeliverError, DeliveryId, Place};

/// Puts words into the outbox of the channels that are there.
pub struct ToChats {
    channels: Arc<Channels>,
    outbox: Arc<dyn Outbox>,
    chats: Arc<dyn Chats>,
    files: Arc<dyn FilePolicy>,
    clock: Arc<dyn Clock>,
    records: Arc<dyn Records>,
    settings: LiveSettings,
}

/// The target that means every platform with a home chat.
const ALL: &str = "all";
/// Between keys of entries that were handed over together.
const SEPARATOR: char = '\u{1f}';
/// Chats that are looked through for a name.
const CHATS_MAX: usize = 1_000;

impl ToChats {
    pub(super) fn new(channels: Arc<Channels>, ports: &ChatPorts) -> Self {
        Self {
            channels,
            outbox: Arc::clone(&ports.outbox),
            chats: Arc::clone(&ports.chats),
            files: Arc::clone(&ports.files),
            clock: Arc::clone(&ports.clock),
            records: Arc::clone(&ports.records),
            settings: ports.settings.clone(),
        }
    }

    fn homes(&self) -> impl Iterator<Item = (Arc<ChannelParts>, Address)> + use<> {
        let channels = self.channels.now().into_iter();
        channels.filter_map(|parts| {
            let home = parts.home()?;
            Some((parts, home))
        })
    }

    fn channel(&self, target: &str) -> Result<Arc<ChannelParts>, DeliverError> {
        let platform = target.split(':').next().unwrap_or_default();
        let is_named = |parts: &Arc<ChannelParts>| {
            let name = parts.channel.facts().platform;
            name.eq_ignore_ascii_case(platform)
        };
        let missing = "there is no such platform, or it is not set up";
        let named = self.channels.now().into_iter().find(is_named);
        named.ok_or_else(|| nowhere(target, missing))
    }

    /// The chats that a target means. Ids are not looked up: a platform knows more chats than we do.
    fn places_of(&self, target: &str) -> Result<Vec<(Arc<ChannelParts>, Address)>, DeliverError> {
        let some = |homes: Vec<_>, why| match homes.is_empty() {
            true => Err(nowhere(target, why)),
            false => Ok(homes),
        };
        if target == ALL {
            return some(self.homes().collect(), "no platform has a home chat");
        }
        if target == ORIGIN_TARGET {
            let why = "it came from no chat, and no platform has a home chat";
            return some(self.homes().take(1).collect(), why);
        }
        let parts = self.channel(target)?;
        match Address::parse(target).or_else(|| parts.home()) {
            Some(address) => Ok(vec![(parts, address)]),
            None => Err(nowhere(target, "the platform has no home chat")),
        }
    }

    /// A chat that is called so, where a target has a name in place of an id: `telegram:#family`, `telegram:Alice`.
    async fn named(&self, target: &str) -> Result<Option<String>, DeliverError> {
        let Some((_, name)) = target.split_once(':') else {
            return Ok(None);
        };
        let parts = self.channel(target)?;
        let known = self.places_on(&parts, Asked::Nobody).await?;
        let is_id = |place: &NamedPlace| {
            let address = &place.address;
            address.to_string() == target || address.chat.eq_ignore_ascii_case(name)
        };
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':');
        if known.iter().any(is_id) || name.chars().all(is_number) {
            return Ok(None);
        }
        let mut called = called(&known, name);
        if called.is_empty() {
            let listed = self.places_on(&parts, Asked::Platform).await?;
            called = self::called(&listed, name);
        }
        match called.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => {
                let why = format!("several chats are called so: {}", several.join(", "));
                Err(nowhere(target, &why))
            }
        }
    }

    /// The chats of a platform, each once: those that were used last first, then those that only the platform knows of.
    async fn places_on(
        &self,
        parts: &ChannelParts,
        asked: Asked,
    ) -> Result<Vec<NamedPlace>, DeliverError> {
        let platform = parts.channel.facts().platform;
        let settings = self.settings.now();
        let aliases = settings.aliases.get(platform);
        let known = self.chats.chats(Some(platform), CHATS_MAX).await;
        let known = known.map_err(|error| not_now(&error))?;
        let known = known.into_iter().map(|known| (known.address, known.chat));
        let listed = match asked {
            Asked::Nobody => Arc::default(),
            Asked::Platform => parts.directory.chats(parts.channel.as_ref()).await,
        };
        let listed = listed
            .iter()
            .map(|chat| (Address::of(platform, chat), chat.clone()));
        let mut places: Vec<NamedPlace> = Vec::new();
        let mut seen = HashSet::new();
        for (address, chat) in known.chain(listed) {
            if seen.insert(address.clone()) {
                let alias = aliases.and_then(|names| names.get(&address.chat));
                places.push(NamedPlace {
                    name: alias.cloned().unwrap_or_else(|| name_of(&address, &chat)),
                    kind: chat.kind.name(),
                    address,
                });
            }
        }
        for (id, name) in aliases.into_iter().flatten() {
            let address = Address::parse(&format!("{platform}:{id}"));
            if let Some(address) = address.filter(|address| !seen.contains(address)) {
                let (name, kind) = (name.clone(), "chat");
                places.push(NamedPlace {
                    address,
                    name,
                    kind,
                });
            }
        }
        Ok(places)
    }

    /// Puts words into the outbox, once for their key.
    async fn put(
        &self,
        key: &str,
        target: &str,
        text: String,
        author: Author,
        is_mirrored: IsMirrored,
    ) -> Result<DeliveryId, DeliverError> {
        if deliver::is_log(target) {
            return Ok(deliver::log(key, &text));
        }
        let named = self.named(target).await?;
        let target = named.as_deref().unwrap_or(target);
        let mut keys = Vec::new();
        for (parts, to) in self.places_of(target)? {
            let channel = parts.channel.as_ref();
            let bodies = match author {
                Author::Owner => reply::bodies(channel, &text, &self.files, None).await,
                Author::Stranger => reply::text_bodies(channel, &text),
            };
            if bodies.is_empty() {
                continue;
            }
            let key = format!("{key}>{to}");
            if is_mirrored.0 {
                let words = match author {
                    Author::Owner => files::without_marks(&text),
                    Author::Stranger => text.clone(),
                };
                let kept = self.mirror(&key, &to, &words).await;
                kept.map_err(|error| not_now(&error))?;
            }
            let entry = NewOutboxEntry {
                key: key.clone(),
                account: Some(parts.channel.facts().account.clone()),
                to,
                replies_to: None,
                buttons: Vec::new(),
                is_silent: false,
                bodies,
                at: self.clock.now(),
            };
            let put = self.outbox.put_outgoing(entry, Answers::none()).await;
            put.map_err(|error| not_now(&error))?;
            parts.delivery.wake();
            keys.push(key);
        }
        Ok(DeliveryId(keys.join(&SEPARATOR.to_string())))
    }

    /// Has the conversation of a chat know of words for it. Where several people have conversations of their own in one
    /// chat, nobody knows whose they belong to.
    async fn mirror(&self, key: &str, to: &Address, words: &str) -> Result<(), StoreError> {
        let chats = self.chats.chats(Some(&to.platform), CHATS_MAX).await?;
        let conversations = chats.iter().filter(|chat| chat.address == *to);
        if conversations.count() > 1 {
            return Ok(());
        }
        mirror::keep(self.records.as_ref(), key, to, words, self.clock.now()).await
    }
}

/// Whose words are sent.
#[derive(Clone, Copy)]
enum Author {
    /// What runs unattended was set up by the owner, and may hand over files.
    Owner,
    /// Anybody: nothing that they wrote is obeyed.
    Stranger,
}

/// Whether words become part of the conversation in their chat.
struct IsMirrored(bool);

/// Who is asked which chats there are, besides us.
#[derive(Clone, Copy)]
enum Asked {
    Nobody,
    Platform,
}

fn called(places: &[NamedPlace], name: &str) -> Vec<String> {
    let name = name.trim_start_matches('#').to_lowercase();
    let is_it = |place: &&NamedPlace| place.name.trim_start_matches('#').to_lowercase() == name;
    let called = places.iter().filter(is_it);
    called.map(|place| place.address.to_string()).collect()
}

/// A chat, and what people call it.
struct NamedPlace {
    address: Address,
    name: String,
    kind: &'static str,
}

fn name_of(address: &Address, chat: &Chat) -> String {
    let thread = chat.thread.as_ref();
    let title = thread.and_then(|thread| thread.title.as_deref());
    let title = title.or(chat.title.as_deref());
    title.unwrap_or(&address.chat).to_owned()
}

impl Deliver for ToChats {
    fn check(&self, target: &str) -> Result<(), DeliverError> {
        if deliver::is_log(target) {
            return Ok(());
        }
        self.places_of(target).map(drop)
    }

    fn deliver<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(self.put(key, target, text, Author::Owner, IsMirrored(true)))
    }

    fn deliver_verbatim<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(self.put(key, target, text, Author::Stranger, IsMirrored(true)))
    }

    fn deliver_result<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        let is_mirrored = IsMirrored(self.settings.now().mirrors_jobs);
        Box::pin(self.put(key, target, text, Author::Owner, is_mirrored))
    }

    fn status<'a>(&'a self, id: &'a DeliveryId) -> BoxFuture<'a, Result<Arrival, DeliverError>> {
        Box::pin(async move {
            if deliver::is_log(&id.0) {
                let message = id.0.clone();
                return Ok(Arrival::Arrived { message });
            }
            let mut messages = Vec::new();
            for key in id.0.split(SEPARATOR).filter(|key| !key.is_empty()) {
                let entry = self.outbox.outgoing_by_key(key).await;
                let entry = entry.map_err(|error| not_now(&error))?;
                match entry {
                    Some(entry) if entry.stage == Stage::Sent => messages.extend(last_id(&entry)),
                    Some(entry) if entry.stage == Stage::Failed => {
                        let error = entry.error.unwrap_or_default();
                        return Ok(Arrival::Failed { error });
                    }
                    Some(_) => return Ok(Arrival::OnItsWay),
                    None => {
                        let why = "it was sent so long ago that nothing is known of it".to_owned();
                        return Ok(Arrival::Unknown { why });
                    }
                }
            }
            let message = messages.join(", ");
            Ok(Arrival::Arrived { message })
        })
    }

    fn places(&self) -> BoxFuture<'_, Result<Vec<Place>, DeliverError>> {
        Box::pin(async move {
            let homes: Vec<Address> = self.homes().map(|(_, home)| home).collect();
            let mut places: Vec<Place> = Vec::new();
            for parts in self.channels.now() {
                for place in self.places_on(&parts, Asked::Platform).await? {
                    places.push(Place {
                        is_home: homes.contains(&place.address),
                        target: place.address.to_string(),
                        name: place.name,
                        kind: place.kind,
                    });
                }
            }
            let is_known = |home: &&Address| {
                let target = home.to_string();
                !places.iter().any(|place| place.target == target)
            };
            let unknown: Vec<Place> = homes.iter().filter(is_known).map(home_place).collect();
            places.extend(unknown);
            Ok(places)
        })
    }
}

/// A home chat that nothing was heard from yet.
fn home_place(home: &Address) -> Place {
    Place {
        target: home.to_string(),
        name: home.chat.clone(),
        kind: "chat",
        is_home: true,
    }
}

fn not_now(error: &StoreError) -> DeliverError {
    DeliverError {
        message: error.to_string(),
        hint: error.hint(),
        is_passing: true,
    }
}

fn last_id(entry: &OutboxEntry) -> Option<String> {
    let last = entry.parts.last()?;
    last.id.as_ref().map(ToString::to_string)
}

fn nowhere(target: &str, why: &str) -> DeliverError {
    DeliverError {
        message: format!("`{target}` cannot be reached: {why}"),
        hint:
            "name a chat (`PLATFORM:CHAT`; `hermes send --list` shows them), or say /sethome in one"
                .to_owned(),
        is_passing: false,
    }
}
