//! What is known of channels: messages name only their numbers. Filled by what the gateway tells, and by asking.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Chat, ChatKind};
use serde_json::Value;

/// Beyond this, what is forgotten is asked for again.
const PLACES_COUNT_MAX: usize = 5000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    name: Option<String>,
    parent: Option<String>,
    guild: Option<String>,
    /// A thread that we talk in.
    pub(super) is_joined: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    Channel,
    Thread,
    /// Has threads, and no messages of its own.
    Forum,
}

impl Place {
    /// Reads a channel as Discord tells it, also one that is told in part.
    pub(super) fn read(channel: &Value, guild: Option<&str>) -> Self {
        let text = |name: &str| channel[name].as_str().map(ToOwned::to_owned);
        let kind = match channel["type"].as_u64() {
            Some(1 | 3) => Kind::Direct,
            Some(10..=12) => Kind::Thread,
            Some(15 | 16) => Kind::Forum,
            _ => Kind::Channel,
        };
        Self {
            kind,
            name: text("name"),
            // Of other channels it is the category.
            parent: text("parent_id").filter(|_| kind == Kind::Thread),
            guild: text("guild_id").or_else(|| guild.map(ToOwned::to_owned)),
            is_joined: channel["member"].is_object(),
        }
    }

    pub(super) fn chat(&self, id: &str) -> Chat {
        Chat {
            kind: match self.kind {
                Kind::Direct => ChatKind::Dm,
                Kind::Thread => ChatKind::Thread,
                Kind::Channel | Kind::Forum => ChatKind::Group,
            },
            title: self.name.clone(),
            parent: self.parent.clone(),
            scope: self.guild.clone(),
            ..Chat::direct(id)
        }
    }

    pub(super) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }
}

#[derive(Default)]
pub(super) struct Places(Mutex<BTreeMap<String, Place>>);

impl Places {
    pub(super) fn get(&self, id: &str) -> Option<Place> {
        self.lock().get(id).cloned()
    }

    pub(super) fn put(&self, id: &str, place: Place) {
        let mut places = self.lock();
        if places.len() >= PLACES_COUNT_MAX && !places.contains_key(id) {
            places.pop_first();
        }
        places.insert(id.to_owned(), place);
    }

    /// Learns a channel that the gateway told of. What it leaves out stays: that we talk there.
    pub(super) fn learn(&self, channel: &Value, guild: Option<&str>) {
        let Some(id) = channel["id"].as_str() else {
            return;
        };
        let mut place = Place::read(channel, guild);
        place.is_joined |= self.get(id).is_some_and(|known| known.is_joined);
        self.put(id, place);
    }

    pub(super) fn forget(&self, channel: &Value) {
        if let Some(id) = channel["id"].as_str() {
            self.lock().remove(id);
        }
    }

    /// We talk there from now on.
    pub(super) fn join(&self, id: &str) {
        if let Some(place) = self.lock().get_mut(id) {
            place.is_joined = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
