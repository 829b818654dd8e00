//! The way in: who may ask is decided here, once, before anything is kept; what is kept is acknowledged afterwards.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::{
    Accepted, Address, Answers, BoxFuture, Channel, Chat, ChatKind, Identity, Incoming, Inlet,
    InletError, Mentions, NewOutboxEntry, NewUpdate, NewUpdates, Sender, StoreError, Update,
    Updates,
};

use super::access::{Access, PlatformAccess};
use super::lanes::Lanes;
use super::observed::Observed;
use super::pairing::Invitation;
use super::ports::ChatPorts;
use super::supervisor::Supervisor;
use super::words;

/// What one channel hears comes in here.
pub(super) struct ChannelInlet {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) access: Arc<PlatformAccess>,
    pub(super) observed: Arc<Observed>,
    pub(super) ports: Arc<ChatPorts>,
    pub(super) lanes: Arc<Lanes>,
    /// As it was last accepted.
    pub(super) cursor: Mutex<Option<String>>,
    pub(super) home: Option<Address>,
    /// Chats that moved, of which it was said which settings name them as before.
    pub(super) told_moves: Mutex<BTreeSet<String>>,
}

impl Inlet for ChannelInlet {
    fn accept(&self, updates: Updates) -> BoxFuture<'_, Result<(), InletError>> {
        Box::pin(async move {
            self.supervisor.heard();
            let accepted = self.take(updates).await;
            accepted.map_err(|error| InletError(format!("{error}; {}", error.hint())))
        })
    }

    fn cursor(&self) -> Option<String> {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        cursor.clone()
    }

    fn connected(&self, identity: Identity) {
        self.supervisor.connected(identity);
    }

    fn heard(&self) {
        self.supervisor.heard();
    }

    fn passed_over(&self, what: &str) {
        self.supervisor.passed_over(what);
    }
}

impl ChannelInlet {
    async fn take(&self, updates: Updates) -> Result<(), StoreError> {
        let facts = self.channel.facts();
        let mut kept = Vec::new();
        for update in updates.updates {
            if let Some(update) = self.admit(update).await? {
                kept.push(update);
            }
        }
        if kept.is_empty() && updates.cursor.is_none() {
            return Ok(());
        }
        let lanes: Vec<String> = kept.iter().map(|update| update.lane.clone()).collect();
        let batch = NewUpdates {
            platform: facts.platform.to_owned(),
            account: facts.account.clone(),
            received: self.ports.clock.now(),
            updates: kept,
            cursor: updates.cursor.clone(),
        };
        let accepted = self.ports.inbox.accept_updates(batch).await?;
        if let Some(cursor) = updates.cursor {
            *self.cursor.lock().unwrap_or_else(PoisonError::into_inner) = Some(cursor);
        }
        for (lane, accepted) in lanes.into_iter().zip(accepted) {
            if matches!(accepted, Accepted::New(_)) {
                self.lanes.wake(lane);
            }
        }
        Ok(())
    }

    /// The conversation that words of somebody in a chat belong to.
    async fn lane(&self, chat: &Chat, sender: &Sender) -> Result<String, StoreError> {
        let settings = self.ports.settings.now();
        let (platform, keys) = (self.channel.facts().platform, &settings.keys);
        if keys.joins_private_chats && chat.kind == ChatKind::Dm {
            let account = format!("{platform}:{}", sender.id);
            if let Some(person) = self.ports.people.linked_person(&account).await? {
                return Ok(keys.joined_key(&person));
            }
        }
        Ok(keys.key(platform, chat, sender))
    }

    /// What is for us, and from somebody who may ask. Strangers who write to us alone are shown how to be let in.
    async fn admit(&self, mut update: Update) -> Result<Option<NewUpdate>, StoreError> {
        let incoming = &update.incoming;
        let (chat, sender) = (incoming.chat(), incoming.sender());
        self.tell_move(chat);
        if !self.is_for_us(incoming) {
            if let Incoming::Message(message) | Incoming::Edited(message) = incoming
                && self.access.observes(&message.chat)
            {
                let place = Address::of(self.channel.facts().platform, &message.chat);
                self.observed.hear(place, message);
            }
            return Ok(None);
        }
        if !self.may_ask(incoming).await? {
            if let Incoming::Message(_) = incoming
                && chat.kind == ChatKind::Dm
                && !sender.is_bot
                && !sender.id.is_empty()
                && self.access.invites(&self.ports.settings.now().access)
            {
                self.invite(incoming).await?;
            } else {
                self.channel.turn_away(incoming).await;
            }
            return Ok(None);
        }
        if let Incoming::Message(message) | Incoming::Edited(message) = &mut update.incoming
            && let Some(place) = self.channel.place_for(message).await
        {
            message.chat = place;
        }
        let (chat, sender) = (update.incoming.chat(), update.incoming.sender());
        let lane = self.lane(chat, sender).await?;
        let address = Address::of(self.channel.facts().platform, chat);
        self.lanes
            .heard_from(&address, self.channel.facts())
            .await?;
        Ok(Some(NewUpdate {
            update: update.id,
            lane,
            sent: update.sent,
            raw: update.raw,
            incoming: update.incoming,
        }))
    }

    /// Says which settings name a chat that moved as it was called before: they count, as long as it is known that it moved.
    fn tell_move(&self, chat: &Chat) {
        let Some(former) = &chat.former else {
            return;
        };
        let mut told = self
            .told_moves
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !told.insert(chat.id.clone()) {
            return;
        }
        let mut settings = self.access.outdated_for(chat);
        let is_home = |home: &&Address| home.chat == *former;
        settings.extend(self.home.iter().find(is_home).map(|_| "home_channel"));
        if !settings.is_empty() {
            let (platform, settings) = (self.channel.facts().platform, settings.join(", "));
            tracing::warn!(
                "the chat {former} of {platform} is {} now: write that in its place in the settings ({settings})",
                chat.id
            );
        }
    }

    fn is_for_us(&self, incoming: &Incoming) -> bool {
        match incoming {
            Incoming::Message(message) | Incoming::Edited(message) => {
                let replies_to_us = message
                    .replies_to
                    .as_ref()
                    .is_some_and(|reply| reply.is_ours);
                // A command in a group counts as calling us unless it names another.
                let is_command = message.text.trim_start().starts_with('/');
                let mut mentions = message.mentions;
                mentions.us |= is_command && !mentions.other_bots;
                self.access
                    .is_for_us(&message.chat, &message.text, mentions, replies_to_us)
            }
            Incoming::Press(_) => true,
        }
    }

    async fn may_ask(&self, incoming: &Incoming) -> Result<bool, StoreError> {
        let mentions = match incoming {
            Incoming::Message(message) | Incoming::Edited(message) => message.mentions,
            Incoming::Press(_) => Mentions::default(),
        };
        let (chat, sender) = (incoming.chat(), incoming.sender());
        let settings = self.ports.settings.now();
        let gateway = &settings.access;
        match Access::of(&self.access, gateway, chat, sender, mentions) {
            Access::Granted => Ok(true),
            Access::Denied => Ok(false),
            Access::IfPaired => {
                let platform = self.channel.facts().platform;
                self.ports.pairings.is_paired(platform, &sender.id).await
            }
        }
    }

    async fn invite(&self, incoming: &Incoming) -> Result<(), StoreError> {
        let facts = self.channel.facts();
        let (chat, sender) = (incoming.chat(), incoming.sender());
        let invitation = self.ports.pairing.invite(facts.platform, sender).await?;
        let text = match &invitation {
            Invitation::Code(code) => words::pairing_code(facts.platform, code),
            Invitation::Full => words::PAIRING_FULL.to_owned(),
            Invitation::TooSoon | Invitation::Locked => return Ok(()),
        };
        let now = self.ports.clock.now();
        let key = format!(
            "pairing/{}/{}/{}",
            facts.platform,
            sender.id,
            now.as_millis()
        );
        let entry = NewOutboxEntry {
            key,
            to: Address::of(facts.platform, chat),
            account: Some(facts.account.clone()),
            replies_to: None,
            buttons: Vec::new(),
            is_silent: false,
            bodies: vec![words::body(text)],
            at: now,
        };
        self.ports
            .outbox
            .put_outgoing(entry, Answers::none())
            .await?;
        self.lanes.wake_delivery(facts.platform, &facts.account);
        Ok(())
    }
}
