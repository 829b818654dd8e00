//! Following conversations. A cursor is a place in the store, so it outlives this process and loses nothing.

use std::time::Duration;

use hermes_core::{Archive, CancellationToken, SessionId, Spoken, SpokenFrom, SpokenQuery};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::{CallOutcome, Refused};
use super::arguments::Arguments;
use super::catalogue::{ITEMS_MAX, WAIT_MS_MAX};
use super::conversations::message;

const POLLED: u64 = 20;
const WAIT_MS: u64 = 30_000;
/// How often a wait looks: soon enough for a person, and a look costs a fraction of a millisecond.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

pub(super) async fn poll(archive: &dyn Archive, arguments: &Arguments) -> CallOutcome {
    let limit = arguments.number("limit", 1..=ITEMS_MAX)?.unwrap_or(POLLED) as usize;
    let follower = Follower::new(archive, arguments).await?;
    let spoken = follower.look(limit).await?;
    let events: Vec<Value> = spoken.iter().map(event).collect();
    Ok(CallToolResult::structured(json!({
        "count": events.len(),
        "events": events,
        "next_cursor": spoken.last().map_or(follower.cursor, |last| last.place),
    })))
}

pub(super) async fn wait(
    archive: &dyn Archive,
    arguments: &Arguments,
    stop: &CancellationToken,
) -> CallOutcome {
    let wait = arguments
        .number("timeout_ms", 0..=WAIT_MS_MAX)?
        .unwrap_or(WAIT_MS);
    let deadline = Instant::now() + Duration::from_millis(wait);
    let follower = Follower::new(archive, arguments).await?;
    let first = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(Refused("the wait was called off".to_owned())),
        first = timeout_at(deadline, follower.first()) => first,
    };
    Ok(CallToolResult::structured(match first {
        Ok(spoken) => {
            let spoken = spoken?;
            json!({ "event": event(&spoken), "next_cursor": spoken.place })
        }
        Err(_) => json!({ "event": null, "reason": "timeout", "next_cursor": follower.cursor }),
    }))
}

/// Somebody who has seen everything up to a cursor.
struct Follower<'a> {
    archive: &'a dyn Archive,
    session: Option<SessionId>,
    cursor: u64,
}

impl<'a> Follower<'a> {
    async fn new(archive: &'a dyn Archive, arguments: &Arguments) -> Result<Self, Refused> {
        let session = match arguments.optional_text("session_key")? {
            Some(key) => Some(archive.find(&key).await?),
            None => None,
        };
        let cursor = match arguments.number("after_cursor", 0..=u64::MAX)? {
            Some(cursor) => cursor,
            None => end(archive).await?,
        };
        Ok(Self {
            archive,
            session,
            cursor,
        })
    }

    async fn look(&self, limit: usize) -> Result<Vec<Spoken>, Refused> {
        let query = SpokenQuery {
            session: self.session.clone(),
            from: SpokenFrom::After(self.cursor),
            with_results: false,
            limit,
        };
        Ok(self.archive.spoken(query).await?)
    }

    /// Waits for the next message, for ever.
    async fn first(&self) -> Result<Spoken, Refused> {
        loop {
            if let Some(spoken) = self.look(1).await?.pop() {
                return Ok(spoken);
            }
            sleep(LOOK_INTERVAL).await;
        }
    }
}

/// Returns the place of the last message there is.
async fn end(archive: &dyn Archive) -> Result<u64, Refused> {
    let query = SpokenQuery {
        session: None,
        from: SpokenFrom::End,
        with_results: false,
        limit: 1,
    };
    let last = archive.spoken(query).await?.pop();
    Ok(last.map_or(0, |last| last.place))
}

fn event(spoken: &Spoken) -> Value {
    json!({
        "cursor": spoken.place,
        "type": "message",
        "session_key": spoken.session,
        "message": message(spoken),
    })
}
