//! Answers that come in pieces: server-sent events, with a sign of life when nothing happens for a while.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use hermes_core::{Event, Events, Followed};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::convert::Infallible;

use super::outcome::Outcome;
use super::run::Client;

/// Pieces that came close together go out together, up to here.
const PIECE_BYTES_MAX: usize = 16 * 1024;
const KEEPALIVE: &str = ": keepalive\n\n";
/// Proxies must not collect what is meant to be seen at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How a kind of stream words what happens.
pub(crate) trait Wording: Send + 'static {
    /// Says what comes before everything else.
    fn begin(&mut self, out: &mut String);
    fn event(&mut self, event: &Event, out: &mut String);
    /// The client was so slow that a part of the answer is gone.
    fn missed(&mut self, events: u64, out: &mut String);
    /// Says what the turn came to, and that nothing follows.
    fn end(&mut self, outcome: &Outcome, out: &mut String);
}

/// Writes an event, with a name if it has one.
pub(crate) fn write(out: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        let _ = writeln!(out, "event: {name}");
    }
    let _ = write!(out, "data: {data}\n\n");
}

/// Streams a run to a client.
pub(crate) fn live(
    client: Client,
    events: Events,
    mut wording: impl Wording,
    keepalive: Duration,
) -> Response {
    let mut first = String::new();
    wording.begin(&mut first);
    let live = Live {
        client,
        events,
        wording,
        keepalive,
        is_over: false,
    };
    let first = stream::once(async { Ok::<_, Infallible>(Bytes::from(first)) });
    let rest = stream::unfold(live, |mut live| async move {
        let piece = live.next().await?;
        Some((Ok(Bytes::from(piece)), live))
    });
    response(Body::from_stream(first.chain(rest)))
}

/// Tells a stream again that is over.
pub(crate) fn again(outcome: &Outcome, mut wording: impl Wording) -> Response {
    let mut out = String::new();
    wording.begin(&mut out);
    let text = outcome.shown();
    if !text.is_empty() {
        wording.event(&Event::Text { text }, &mut out);
    }
    wording.end(outcome, &mut out);
    response(Body::from(out))
}

fn response(body: Body) -> Response {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// A stream under way. Dropped before its end, its client has gone.
struct Live<W> {
    client: Client,
    events: Events,
    wording: W,
    keepalive: Duration,
    is_over: bool,
}

impl<W: Wording> Live<W> {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let mut out = String::new();
        while out.is_empty() && !self.is_over {
            let next = tokio::time::timeout(self.keepalive, self.events.next()).await;
            match next {
                Err(_) => out.push_str(KEEPALIVE),
                Ok(followed) => self.take(followed, &mut out).await,
            }
        }
        // What is there already goes along.
        while !self.is_over && out.len() < PIECE_BYTES_MAX {
            match self.events.next().now_or_never() {
                Some(followed) => self.take(followed, &mut out).await,
                None => break,
            }
        }
        Some(out)
    }

    async fn take(&mut self, followed: Option<Followed>, out: &mut String) {
        match followed {
            Some(Followed::Event(numbered)) => match numbered.event {
                Event::TurnEnded { .. } => self.end(out).await,
                event => self.wording.event(&event, out),
            },
            Some(Followed::Missed { events }) => self.wording.missed(events, out),
            None => self.end(out).await,
        }
    }

    /// What is kept of it is kept before the client hears of the end.
    async fn end(&mut self, out: &mut String) {
        let run = Arc::clone(self.client.run());
        let outcome = run.outcome().await;
        self.wording.end(&outcome, out);
        self.is_over = true;
    }
}
