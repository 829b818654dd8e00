//! Requests that come again under the same `Idempotency-Key` are answered once: with what the first was answered, while it
//! is under way, after its end, and after a crash.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hermes_core::{
    Claimed, Origin, Record, RecordKey, Records, Role, SessionId, StoreError, Timestamp,
    TranscriptLine, UserMessage,
};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::Api;
use super::error::{ApiError, ApiResult};
use super::ids::{self, IDEMPOTENCY_KEY, hex, sha256, sha256_of};
use super::outcome::Outcome;
use super::pool::Which;
use super::run::{AtEnd, Run, Say};

const SCOPE: &str = "api.idempotency";
/// A client that tries again does so within a day.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a turn may end in the very moment that somebody wants to join it.
const LOOKS_MAX: usize = 4;

/// What is known of a request.
enum Seen {
    /// It is new, or has no key.
    Not(Option<Reservation>),
    /// It is being answered.
    UnderWay(Arc<Run>),
    /// It was answered so.
    Answered(Box<Outcome>),
    /// It was being answered in this conversation when the process died.
    CutShort(Reservation, SessionId),
}

/// The right to answer the requests with a key. Others with the same key wait as long as it is held.
pub(crate) struct Reservation {
    slot: Slot,
    turn: OwnedMutexGuard<()>,
}

/// Where the answer is kept.
#[derive(Clone)]
struct Slot {
    key: String,
    fingerprint: String,
    created: Timestamp,
}

/// What stands in the store.
#[derive(Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Kept {
    Running { session: SessionId },
    Done { outcome: Box<Outcome> },
}

/// The requests with keys that this process is answering.
#[derive(Default)]
pub(crate) struct Flights {
    runs: Mutex<HashMap<String, Weak<Run>>>,
    turns: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Flights {
    fn run(&self, key: &str) -> Option<Arc<Run>> {
        lock(&self.runs).get(key)?.upgrade()
    }

    /// Waits until nobody else is about to answer requests with this key.
    async fn turn(&self, key: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = lock(&self.turns);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(key).and_then(Weak::upgrade);
            let turn: Arc<tokio::sync::Mutex<()>> = known.unwrap_or_default();
            turns.insert(key.to_owned(), Arc::downgrade(&turn));
            turn
        };
        turn.lock_owned().await
    }
}

/// A name for the answer to a request: the same whenever it comes again under its key.
pub(crate) fn name_of_answer(
    api: &Api,
    headers: &HeaderMap,
    prefix: &str,
    digits: usize,
    body: &[u8],
) -> ApiResult<String> {
    let Some(key) = ids::header(headers, &IDEMPOTENCY_KEY)? else {
        return Ok(ids::new(prefix, digits, &api.parts.random));
    };
    // A key that was forgotten may name another request.
    let body = hex(sha256_of(body).as_ref(), 32);
    let digest = hex(sha256(&[prefix, "\n", &key, "\n", &body]).as_ref(), 32);
    Ok(format!("{prefix}{}", &digest[..digits]))
}

/// Looks whether a request was seen before, which would be answered in this conversation. The same key with another
/// request is refused.
async fn look_up(
    api: &Api,
    headers: &HeaderMap,
    route: &str,
    body: &[u8],
    session: &SessionId,
) -> ApiResult<Seen> {
    let Some(key) = ids::header(headers, &IDEMPOTENCY_KEY)? else {
        return Ok(Seen::Not(None));
    };
    let named = ids::header(headers, &ids::SESSION_ID)?.unwrap_or_default();
    let body = hex(sha256_of(body).as_ref(), 32);
    let slot = Slot {
        fingerprint: hex(sha256(&[route, "\n", &named, "\n", &body]).as_ref(), 32),
        created: api.parts.clock.now(),
        key,
    };
    let turn = api.flights.turn(&slot.key).await;
    let running = Kept::Running {
        session: session.clone(),
    };
    let claim = api
        .parts
        .records
        .claim_record(slot.key(), slot.record(&running));
    let held = match claim.await? {
        Claimed::New => return Ok(Seen::Not(Some(Reservation { slot, turn }))),
        Claimed::Held(held) => held,
    };
    if held.fingerprint != slot.fingerprint {
        let message = "this Idempotency-Key was used for another request";
        return Err(ApiError::conflict(message).code("idempotency_key_reused"));
    }
    if let Some(run) = api.flights.run(&slot.key) {
        return Ok(Seen::UnderWay(run));
    }
    let value = held.value.as_deref().unwrap_or_default();
    Ok(match serde_json::from_str(value) {
        Ok(Kept::Done { outcome }) => Seen::Answered(outcome),
        Ok(Kept::Running { session }) => Seen::CutShort(Reservation { slot, turn }, session),
        Err(error) => {
            return Err(ApiError::internal(format!(
                "what was kept cannot be read: {error}"
            )));
        }
    })
}

/// What there is to do for a request.
pub(crate) enum Found {
    /// It is being answered. With the name of the request, which is the same whenever it comes.
    UnderWay(String, Arc<Run>),
    Answered(String, Box<Outcome>),
    /// This is to be said here.
    New {
        /// The name of a request that may come again.
        key: Option<String>,
        reservation: Option<Reservation>,
        which: Which,
        say: Box<Say>,
    },
}

/// Finds what a request was answered with, or what is to be said for it and where.
pub(crate) async fn find(
    api: &Api,
    headers: &HeaderMap,
    route: &str,
    body: &[u8],
    which: Which,
    message: UserMessage,
) -> ApiResult<Found> {
    let named = ids::header(headers, &IDEMPOTENCY_KEY)?;
    let name = named.unwrap_or_default();
    let (reservation, which, say) = match look_up(api, headers, route, body, &which.id().clone())
        .await?
    {
        Seen::UnderWay(run) => return Ok(Found::UnderWay(name, run)),
        Seen::Answered(outcome) => return Ok(Found::Answered(name, outcome)),
        Seen::Not(reservation) => (reservation, which, Say::Message(message)),
        Seen::CutShort(reservation, before) => match rest_of(api, &before, &reservation).await? {
            Rest::Answered(outcome) => return Ok(Found::Answered(name, outcome)),
            Rest::OpenTurn => (Some(reservation), Which::UnderWay(before), Say::Resume),
            Rest::Nothing => (Some(reservation), which, Say::Message(message)),
        },
    };
    Ok(Found::New {
        key: reservation.is_some().then_some(name),
        reservation,
        which,
        say: Box::new(say),
    })
}

/// Answers a request anew when the turn that was to go on for it has just come to its end.
pub(crate) async fn until_settled<T, F>(answer: impl Fn() -> F) -> ApiResult<T>
where
    F: Future<Output = ApiResult<T>>,
{
    for _ in 0..LOOKS_MAX {
        match answer().await {
            Err(error) if error.is_turn_over() => {}
            answered => return answered,
        }
    }
    Err(ApiError::turn_over())
}

impl Slot {
    fn key(&self) -> RecordKey {
        RecordKey::new(SCOPE, self.key.clone())
    }

    fn record(&self, value: &Kept) -> Record {
        Record {
            fingerprint: self.fingerprint.clone(),
            value: serde_json::to_string(value).ok(),
            created: self.created,
            expires: self.created.plus(KEPT),
        }
    }

    async fn keep(&self, records: &dyn Records, outcome: Arc<Outcome>) -> Result<(), StoreError> {
        // Nothing was done and nothing was said: whoever tries again is answered anew.
        if outcome.is_failure() && outcome.calls() == 0 {
            return records.remove_record(self.key()).await.map(|_| ());
        }
        let outcome = Box::new(Outcome::clone(&outcome));
        let record = self.record(&Kept::Done { outcome });
        records.put_record(self.key(), record).await
    }
}

impl Reservation {
    /// The request as the log names it: by that its turn is found again.
    pub(crate) fn request(&self) -> String {
        let digest = sha256(&[&self.slot.key, "\n", &self.slot.fingerprint]);
        format!("{}{}", Origin::REQUEST, hex(digest.as_ref(), 16))
    }

    /// Lets requests with the same key join a run.
    pub(crate) fn share(self, api: &Api, run: &Arc<Run>) {
        let mut runs = lock(&api.flights.runs);
        runs.retain(|_, run| run.strong_count() > 0);
        runs.insert(self.slot.key, Arc::downgrade(run));
        drop(self.turn);
    }

    /// Nothing was begun: whoever tries again is answered anew.
    pub(crate) async fn give_up(self, api: &Api) {
        if let Err(error) = api.parts.records.remove_record(self.slot.key()).await {
            tracing::warn!("an idempotency key was not given back: {error}");
        }
    }

    /// Keeps what it was answered with, before anybody is told.
    pub(crate) fn keeping(&self, api: &Arc<Api>) -> AtEnd {
        let (slot, api) = (self.slot.clone(), Arc::clone(api));
        Box::new(move |outcome| {
            Box::pin(async move {
                if let Err(error) = slot.keep(api.parts.records.as_ref(), outcome).await {
                    tracing::error!("an answer was not kept under its idempotency key: {error}");
                }
            })
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is of an answer that a crash interrupted.
enum Rest {
    /// The turn has to go on.
    OpenTurn,
    Answered(Box<Outcome>),
    /// It was not even asked.
    Nothing,
}

/// Looks how far a request came before the process died. Others may have been answered in the conversation since.
async fn rest_of(api: &Api, session: &SessionId, reservation: &Reservation) -> ApiResult<Rest> {
    // Somebody may be finishing it.
    drop(api.pool.lane(session).await);
    let lines = match api.parts.archive.transcript(session).await {
        Ok(lines) => lines,
        Err(StoreError::NotFound { .. }) => return Ok(Rest::Nothing),
        Err(error) => return Err(error.into()),
    };
    let request = reservation.request();
    let is_it = |line: &&TranscriptLine| {
        let origin = line.message.origin.as_ref();
        origin.is_some_and(|origin| origin.is_of_request(&request))
    };
    let Some(turn) = lines.iter().find(is_it).map(|line| &line.turn) else {
        return Ok(Rest::Nothing);
    };
    let record = api.parts.archive.record(session).await?;
    let is_last = lines.last().is_some_and(|line| line.turn == *turn);
    if record.has_open_turn && is_last {
        return Ok(Rest::OpenTurn);
    }
    let answers = lines.iter().rev().filter(|line| line.turn == *turn);
    let mut answers = answers.filter(|line| line.message.role == Role::Assistant);
    let text = answers.next().map(|line| line.message.text());
    let text = text.unwrap_or_default();
    Ok(Rest::Answered(Box::new(Outcome {
        turn: turn.clone(),
        ..Outcome::of_answer(session.clone(), record.model, text)
    })))
}
