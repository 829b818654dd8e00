//! What is kept of runs in the store, so that their names mean something after a restart: that they began, and how they ended.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Record, RecordKey, Role, SessionId, StoreError, Timestamp, TranscriptLine, TurnId,
};
use serde::{Deserialize, Serialize};

use crate::api::Api;
use crate::api::error::{ApiError, ApiResult};
use crate::api::outcome::Outcome;
use crate::api::run::{AtEnd, Run};

const SCOPE: &str = "api.run";
/// How long the end of a run can be looked at.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// A run that has not ended by then was forgotten.
const RUNNING_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Runs that were under way when a process died. No more turns run at a time.
const UNDER_WAY_MAX: usize = 10_000;

/// A run in the store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptRun {
    /// The name under which the client knows the conversation.
    pub(super) name: String,
    session: SessionId,
    /// The turn that it is, while it is not over.
    turn: Option<TurnId>,
    pub(super) began: Timestamp,
    /// What it came to, once it is over.
    pub(super) outcome: Option<Box<Outcome>>,
}

impl KeptRun {
    pub(crate) fn is_in(&self, session: &SessionId) -> bool {
        self.session == *session
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn began(&self) -> Timestamp {
        self.began
    }
}

fn key(id: &str) -> RecordKey {
    RecordKey::new(SCOPE, id)
}

fn record(kept: &KeptRun, now: Timestamp) -> Record {
    let time = if kept.outcome.is_some() {
        KEPT
    } else {
        RUNNING_KEPT
    };
    Record {
        fingerprint: String::new(),
        value: serde_json::to_string(kept).ok(),
        created: now,
        expires: now.plus(time),
    }
}

/// Notes that a run has begun, before anybody is told its name. It may be over already.
pub(super) async fn note_begun(api: &Api, id: &str, name: &str, run: &Run) -> ApiResult<()> {
    let kept = KeptRun {
        name: name.to_owned(),
        session: run.session.clone(),
        turn: Some(run.turn.clone()),
        began: run.began,
        outcome: None,
    };
    let record = record(&kept, api.parts.clock.now());
    api.parts.records.claim_record(key(id), record).await?;
    Ok(())
}

/// The request of a run is answered anew: what it came to before counts no more.
pub(super) async fn forget(api: &Api, id: &str) -> ApiResult<()> {
    api.parts.records.remove_record(key(id)).await?;
    Ok(())
}

/// Keeps what a run comes to. `name` is what the client knows its conversation by, if it named one.
pub(crate) fn keeping(api: &Arc<Api>, id: &str, name: Option<&str>, began: Timestamp) -> AtEnd {
    let (api, id, name) = (Arc::clone(api), id.to_owned(), name.map(str::to_owned));
    Box::new(move |outcome| {
        Box::pin(async move {
            let name = name.unwrap_or_else(|| outcome.session.to_string());
            let kept = over(name, began, Outcome::clone(&outcome));
            if let Err(error) = put(&api, &id, &kept).await {
                tracing::error!("what a run came to was not kept: {error}");
            }
        })
    })
}

fn over(name: String, began: Timestamp, outcome: Outcome) -> KeptRun {
    KeptRun {
        name,
        session: outcome.session.clone(),
        turn: None,
        began,
        outcome: Some(Box::new(outcome)),
    }
}

async fn put(api: &Api, id: &str, kept: &KeptRun) -> Result<(), StoreError> {
    let record = record(kept, api.parts.clock.now());
    api.parts.records.put_record(key(id), record).await
}

/// Keeps an answer that is known from elsewhere, under the name of its run.
pub(super) async fn keep_answer(
    api: &Api,
    id: &str,
    name: Option<&str>,
    outcome: Outcome,
) -> ApiResult<KeptRun> {
    if let Some(kept) = read(api, id).await?.filter(|kept| kept.outcome.is_some()) {
        return Ok(kept);
    }
    let name = name.map_or_else(|| outcome.session.to_string(), str::to_owned);
    let kept = over(name, api.parts.clock.now(), outcome);
    put(api, id, &kept).await?;
    Ok(kept)
}

/// A run of which this process knows nothing. One that was under way when another died has come to its end since, or will.
pub(super) async fn find(api: &Api, id: &str) -> ApiResult<Option<KeptRun>> {
    let Some(mut kept) = read(api, id).await? else {
        return Ok(None);
    };
    if kept.outcome.is_none()
        && let Some(outcome) = ended(api, &kept).await?
    {
        kept = over(kept.name, kept.began, outcome);
        put(api, id, &kept).await?;
    }
    Ok(Some(kept))
}

async fn read(api: &Api, id: &str) -> ApiResult<Option<KeptRun>> {
    let now = api.parts.clock.now();
    let record = api.parts.records.record_at(key(id), now).await?;
    let Some(value) = record.and_then(|record| record.value) else {
        return Ok(None);
    };
    let unreadable = |error| ApiError::internal(format!("what was kept cannot be read: {error}"));
    serde_json::from_str(&value).map(Some).map_err(unreadable)
}

/// What the turn of a run came to, from the log; `None` while it goes on.
async fn ended(api: &Api, kept: &KeptRun) -> ApiResult<Option<Outcome>> {
    let record = api.parts.archive.record(&kept.session).await?;
    let lines = api.parts.archive.transcript(&kept.session).await?;
    let is_last = lines.last().is_some_and(|line| line.turn == kept.turn);
    if record.has_open_turn && is_last {
        return Ok(None);
    }
    let is_answer =
        |line: &&TranscriptLine| line.turn == kept.turn && line.message.role == Role::Assistant;
    let answer = lines.iter().rev().find(is_answer);
    let text = answer.map(|line| line.message.text()).unwrap_or_default();
    let outcome = Outcome::of_answer(kept.session.clone(), record.model, text);
    Ok(Some(outcome))
}

/// The runs that were under way when an earlier process died.
pub(crate) async fn under_way(api: &Api) -> Vec<(String, KeptRun)> {
    let now = api.parts.clock.now();
    let kept = api.parts.records.records_in(SCOPE, now, UNDER_WAY_MAX);
    let kept = kept.await.unwrap_or_else(|error| {
        tracing::error!("what runs were under way is not known: {error}");
        Vec::new()
    });
    let read = |(id, record): (String, Record)| {
        let kept: KeptRun = serde_json::from_str(record.value.as_deref()?).ok()?;
        kept.outcome.is_none().then_some((id, kept))
    };
    kept.into_iter().filter_map(read).collect()
}
