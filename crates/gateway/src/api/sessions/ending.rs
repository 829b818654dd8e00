//! Sessions that a client says are over. Nothing is lost by that: whoever says something in one goes on with it.

use std::time::Duration;

use hermes_core::{Record, RecordKey, SessionId, SessionRecord};
use serde_json::Value;

use super::described;
use crate::api::Api;
use crate::api::error::{ApiError, ApiResult};

const SCOPE: &str = "api.session.ended";
/// By then nobody asks any more why it was over.
const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// A reason is a word or two.
const REASON_CHARS_MAX: usize = 200;

fn key(session: &SessionId) -> RecordKey {
    RecordKey::new(SCOPE, session.as_str())
}

/// Lets go of a session, once nothing is said in it, and notes why.
pub(super) async fn end(api: &Api, session: &SessionId, reason: &str) -> ApiResult<()> {
    if reason.chars().count() > REASON_CHARS_MAX {
        let message = format!("`end_reason` may have {REASON_CHARS_MAX} characters");
        return Err(ApiError::invalid(message).param("end_reason"));
    }
    api.parts.archive.record(session).await?;
    drop(api.pool.close_for_good(session).await);
    let now = api.parts.clock.now();
    let record = Record {
        fingerprint: String::new(),
        value: Some(reason.to_owned()),
        created: now,
        expires: now.plus(KEPT),
    };
    api.parts.records.put_record(key(session), record).await?;
    Ok(())
}

/// A session, with why it is over if nothing was said in it since.
pub(super) async fn told(api: &Api, record: &SessionRecord) -> ApiResult<Value> {
    let mut told = described(record);
    let now = api.parts.clock.now();
    let ended = api.parts.records.record_at(key(&record.id), now).await?;
    let ended = ended.filter(|ended| ended.created >= record.updated);
    told["ended_at"] = ended
        .as_ref()
        .map(|ended| ended.created.as_millis() / 1000)
        .into();
    told["end_reason"] = ended.and_then(|ended| ended.value).into();
    Ok(told)
}
