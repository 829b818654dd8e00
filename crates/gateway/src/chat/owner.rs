//! Who the owner of the home is where the settings name nobody: the first who was let in, for good.
//!
//! It is decided once and written down: letting somebody out makes nobody else the owner. `hermes pairing owner` says otherwise.

use std::time::Duration;

use hermes_core::{Claimed, Clock, Pairings, Record, RecordKey, Records, StoreError};

/// For as long as anybody keeps a home.
const KEPT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

fn key() -> RecordKey {
    RecordKey::new("gateway.owner", "")
}

fn record(clock: &dyn Clock, account: &str) -> Record {
    let now = clock.now();
    Record {
        fingerprint: String::new(),
        value: Some(account.to_owned()),
        created: now,
        expires: now.plus(KEPT),
    }
}

/// The account of the owner as `PLATFORM:ID`; none as long as nobody was let in.
pub async fn owner(
    records: &dyn Records,
    pairings: &dyn Pairings,
    clock: &dyn Clock,
) -> Result<Option<String>, StoreError> {
    if let Some(known) = records.record_at(key(), clock.now()).await? {
        return Ok(known.value);
    }
    let paired = pairings.paired_people(None).await?;
    let Some(first) = paired.first() else {
        return Ok(None);
    };
    let first = format!("{}:{}", first.platform, first.user);
    match records.claim_record(key(), record(clock, &first)).await? {
        Claimed::New => Ok(Some(first)),
        Claimed::Held(held) => Ok(held.value),
    }
}

/// Makes an account the owner's.
pub async fn set_owner(
    records: &dyn Records,
    clock: &dyn Clock,
    account: &str,
) -> Result<(), StoreError> {
    records.put_record(key(), record(clock, account)).await
}
