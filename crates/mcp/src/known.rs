//! What servers offered last, kept between runs, so that a conversation has the same tools however slow they are today.
//!
//! A server is recognised by its name and by where it is reached. Its secrets are no part of that: a renewed key leads to
//! the same server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::{CancellationToken, Clock, KnownOffer, KnownOffers};
use tokio::sync::watch;

use crate::settings::{ServerSettings, TransportSettings};
use crate::view::{Offer, View};

/// Larger lists are not kept: reading them at every start would cost more than waiting for the server.
const OFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

type Key = (String, String);

/// What was remembered of all servers when it was read, and what was found since.
pub struct Remembered {
    offers: Mutex<HashMap<Key, Arc<Offer>>>,
    store: Arc<dyn KnownOffers>,
    clock: Arc<dyn Clock>,
}

impl Remembered {
    /// Reads what is known. A store that cannot be read knows nothing.
    pub async fn read(store: Arc<dyn KnownOffers>, clock: Arc<dyn Clock>) -> Self {
        let known = store.known_offers().await.unwrap_or_else(|error| {
            tracing::warn!("cannot read what MCP servers offered last: {error}");
            Vec::new()
        });
        let understood = |known: KnownOffer| {
            let offer = serde_json::from_str(&known.offer).ok()?;
            Some(((known.server, known.settings), Arc::new(offer)))
        };
        let offers = known.into_iter().filter_map(understood).collect();
        Self {
            offers: Mutex::new(offers),
            store,
            clock,
        }
    }

    pub(crate) fn of(&self, settings: &ServerSettings) -> Option<Arc<Offer>> {
        self.offers().get(&key(settings)).cloned()
    }

    /// Keeps whatever a server lists from now on, until it is stopped.
    pub(crate) async fn follow(
        self: Arc<Self>,
        settings: Arc<ServerSettings>,
        mut views: watch::Receiver<View>,
        stop: CancellationToken,
    ) {
        loop {
            let listed = views.borrow_and_update().offer.clone();
            if let Some(offer) = listed {
                self.keep(&settings, offer).await;
            }
            let changed = stop.run_until_cancelled(views.changed()).await;
            if !matches!(changed, Some(Ok(()))) {
                return;
            }
        }
    }

    async fn keep(&self, settings: &ServerSettings, offer: Arc<Offer>) {
        let key = key(settings);
        if self.offers().get(&key).is_some_and(|known| *known == offer) {
            return;
        }
        let text = serde_json::to_string(&*offer).unwrap_or_default();
        if text.is_empty() || text.len() > OFFER_BYTES_MAX {
            return;
        }
        self.offers().insert(key.clone(), offer);
        let known = KnownOffer {
            server: key.0,
            settings: key.1,
            offer: text,
        };
        if let Err(error) = self.store.remember_offer(known, self.clock.now()).await {
            tracing::warn!(
                server = settings.name,
                "cannot keep what it offers for the next time: {error}"
            );
        }
    }

    fn offers(&self) -> MutexGuard<'_, HashMap<Key, Arc<Offer>>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(settings: &ServerSettings) -> Key {
    let mut text = String::new();
    let mut add = |part: &str| {
        text.push_str(part);
        text.push('\0');
    };
    match &settings.transport {
        TransportSettings::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            add(command);
            args.iter().for_each(|argument| add(argument));
            env.keys().for_each(|name| add(name));
            add(&cwd
                .as_ref()
                .map_or_else(String::new, |cwd| cwd.display().to_string()));
        }
        TransportSettings::Http { url, headers, .. } => {
            add(url);
            headers.keys().for_each(|name| add(name));
        }
    }
    (settings.name.clone(), format!("{:016x}", hash(&text)))
}

/// FNV-1a: the same on every machine and in every release.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key_of(section: serde_json::Value) -> Key {
        key(&ServerSettings::parse("s", &section).unwrap())
    }

    #[test]
    fn a_server_is_known_by_where_it_is_and_not_by_its_secrets() {
        let first = key_of(json!({ "url": "http://a/mcp", "headers": { "X-Key": "1" } }));
        let renewed = json!({ "url": "http://a/mcp", "headers": { "X-Key": "2" }, "timeout": 7 });
        assert_eq!(first, key_of(renewed));
        assert_ne!(
            first,
            key_of(json!({ "url": "http://b/mcp", "headers": { "X-Key": "1" } }))
        );
        let program = key_of(json!({ "command": "run", "args": ["a", "b"] }));
        assert_ne!(program, key_of(json!({ "command": "run", "args": ["ab"] })));
    }
}
