//! Which events came before: each is known by the names of its delivery, for a while.
//!
//! The conversation that an event is to begin is written down with that, before anything is done. One that was never taken,
//! because the process died meanwhile, begins the same one when it comes again, so that nothing is done or sent twice; one
//! that comes when nobody remembers it begins another.

use std::time::Duration;

use hermes_core::{Claimed, Record, RecordKey, SessionId, StoreError};
use serde::{Deserialize, Serialize};

use super::Webhooks;
use super::event::BODY;
use super::route::Route;
use crate::api::ids::{hex, sha256};

/// How long a delivery is known.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// What is known by its body alone may well be said again later.
const BODY_KEPT: Duration = Duration::from_secs(5 * 60);

/// What stands in the store.
#[derive(Serialize, Deserialize)]
struct Claim {
    session: SessionId,
    is_taken: bool,
}

/// Where the names of a delivery are found.
pub(super) fn keys(route: &str, ids: &[String]) -> Vec<RecordKey> {
    let scope = format!("webhook.{route}");
    let keys = ids.iter().map(|id| RecordKey::new(scope.clone(), id));
    keys.collect()
}

/// The conversation that an event is to begin; none when the event came before. From now on it did.
pub(super) async fn claim(
    webhooks: &Webhooks,
    route: &Route,
    keys: &[RecordKey],
) -> Result<Option<SessionId>, StoreError> {
    let new = Claim {
        session: new_session(webhooks, route, &keys[0].key),
        is_taken: false,
    };
    let (mut is_known, mut meant) = (false, None);
    for key in keys {
        let record = record(webhooks, key, &new);
        let claimed = webhooks.parts.records.claim_record(key.clone(), record);
        let Claimed::Held(held) = claimed.await? else {
            continue;
        };
        is_known = true;
        // Older versions wrote nothing before an event was taken, and one word then.
        let Some(value) = held.value else {
            continue;
        };
        match serde_json::from_str::<Claim>(&value) {
            Ok(before) if !before.is_taken && !has_begun(webhooks, &before.session).await? => {
                meant.get_or_insert(before);
            }
            _ => return Ok(None),
        }
    }
    let claim = meant.unwrap_or(new);
    if is_known {
        put(webhooks, keys, &claim).await?;
    }
    Ok(Some(claim.session))
}

async fn has_begun(webhooks: &Webhooks, session: &SessionId) -> Result<bool, StoreError> {
    match webhooks.parts.archive.record(session).await {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound { .. }) => Ok(webhooks.parts.sessions.get(session).is_some()),
        Err(error) => Err(error),
    }
}

/// From now on it is a duplicate when it comes again.
pub(super) async fn note_taken(
    webhooks: &Webhooks,
    keys: &[RecordKey],
    session: &SessionId,
) -> Result<(), StoreError> {
    let claim = Claim {
        session: session.clone(),
        is_taken: true,
    };
    put(webhooks, keys, &claim).await
}

/// It may come again as if it had never come.
pub(super) async fn give_up(webhooks: &Webhooks, keys: &[RecordKey]) -> Result<(), StoreError> {
    for key in keys {
        webhooks.parts.records.remove_record(key.clone()).await?;
    }
    Ok(())
}

async fn put(webhooks: &Webhooks, keys: &[RecordKey], claim: &Claim) -> Result<(), StoreError> {
    for key in keys {
        let record = record(webhooks, key, claim);
        webhooks
            .parts
            .records
            .put_record(key.clone(), record)
            .await?;
    }
    Ok(())
}

fn record(webhooks: &Webhooks, key: &RecordKey, claim: &Claim) -> Record {
    let created = webhooks.parts.clock.now();
    let kept = if key.key.starts_with(BODY) {
        BODY_KEPT
    } else {
        KEPT
    };
    Record {
        fingerprint: String::new(),
        value: serde_json::to_string(claim).ok(),
        created,
        expires: created.plus(kept),
    }
}

/// Deliveries have the same name again when they are forgotten; conversations have not.
fn new_session(webhooks: &Webhooks, route: &Route, delivery: &str) -> SessionId {
    let delivery = hex(sha256(&[delivery]).as_ref(), 8);
    let own = webhooks.parts.random.next_u64() & 0xffff_ffff_ffff;
    SessionId::from(format!("webhook-{}-{delivery}-{own:012x}", route.name))
}
