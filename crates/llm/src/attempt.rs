//! One request to one route, from the first byte sent to the last one read.
//!
//! The client library sends the request and cuts the answer into frames; we decode the frames ourselves (see
//! `docs/decisions/0002`). Dropping an attempt closes its connection.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::Stream as _;
use genai::chat::{ChatFrameSink, ChatStream, FrameCtx, RawFrameRef};
use hermes_core::{
    Delta, FinishReason, ModelDeadlines, ModelErrorKind, ModelRequest, Secret, Usage,
};
use tokio::time::{Instant, timeout_at};

use crate::classify::{self, Failure, Refusal, Remedy};
use crate::decode::{Decoder, Trouble};
use crate::http::Http;
use crate::request::{Outgoing, Signatures, outgoing};
use crate::settings::Route;

/// After the reason to stop, token counts follow at once or not at all; some servers never close the stream.
const CLOSING: Duration = Duration::from_secs(5);

pub(crate) struct Attempt {
    stream: ChatStream,
    tap: Arc<Tap>,
    /// Decoded and not yet given out.
    deltas: VecDeque<Delta>,
    /// How it ended, to be told after the last delta.
    outcome: Option<Step>,
    deadlines: ModelDeadlines,
    ends_by: Instant,
}

pub(crate) enum Step {
    Delta(Delta),
    Finished { reason: FinishReason, usage: Usage },
    Failed { failure: Failure, usage: Usage },
}

/// What came of waiting for the network.
enum Arrival {
    News,
    End,
    Failed(genai::Error),
    Late,
}

impl Attempt {
    /// Prepares a request; the first [`Attempt::next`] sends it.
    pub(crate) async fn open(
        http: &Http,
        route: &Route,
        key: Option<&Secret>,
        request: &ModelRequest<'_>,
        signatures: Signatures,
    ) -> Result<Self, Failure> {
        let refused =
            |message: String| Failure::new(ModelErrorKind::BadRequest, Remedy::OtherModel, message);
        let client = http
            .client(&route.base_url)
            .map_err(|error| refused(format!("cannot set up TLS: {}", root_cause(&error))))?;
        let client = genai::Client::builder()
            .with_reqwest(client)
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let Outgoing {
            target,
            chat,
            options,
        } = outgoing(route, key, request, signatures);
        let tap = Arc::new(Tap::new(Decoder::new(route.protocol, &route.name.provider)));
        let options = options.with_raw_frame_sink_arc(tap.clone());
        // Only builds the request, so there is nothing to wait for.
        let response = client.exec_chat_stream(target, chat, Some(&options)).await;
        let response = response.map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            stream: response.stream,
            tap,
            deltas: VecDeque::new(),
            outcome: None,
            deadlines: route.deadlines,
            ends_by: Instant::now() + route.deadlines.total,
        })
    }

    /// Returns the next delta, or how the attempt ended. Not to be called after that.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            if let Some(delta) = self.deltas.pop_front() {
                return Step::Delta(delta);
            }
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            let arrival = self.arrival().await;
            self.take_in(arrival);
        }
    }

    async fn arrival(&mut self) -> Arrival {
        let patience = self.patience();
        let deadline = (Instant::now() + patience).min(self.ends_by);
        let Self { stream, tap, .. } = self;
        let arrival = std::future::poll_fn(|cx| match Pin::new(&mut *stream).poll_next(cx) {
            Poll::Ready(Some(Ok(_))) => Poll::Ready(Arrival::News),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Arrival::Failed(error)),
            Poll::Ready(None) => Poll::Ready(Arrival::End),
            // The library tells nothing of frames that it has no event for.
            Poll::Pending if std::mem::take(&mut tap.lock().fresh) => Poll::Ready(Arrival::News),
            Poll::Pending => Poll::Pending,
        });
        timeout_at(deadline, arrival).await.unwrap_or(Arrival::Late)
    }

    fn patience(&self) -> Duration {
        let state = self.tap.lock();
        if !state.heard {
            self.deadlines.first_byte
        } else if state.decoder.decoded.finish.is_some() {
            self.deadlines.idle.min(CLOSING)
        } else {
            self.deadlines.idle
        }
    }

    fn take_in(&mut self, arrival: Arrival) {
        let tap = self.tap.clone();
        let mut state = tap.lock();
        state.fresh = false;
        let decoder = &mut state.decoder;
        let is_over = decoder.decoded.ended || matches!(arrival, Arrival::End);
        if is_over {
            decoder.finish();
        }
        std::mem::swap(&mut self.deltas, &mut decoder.decoded.deltas);
        let failure = match (&decoder.decoded.trouble, arrival) {
            (Some(trouble), _) => Some(failure_of(trouble)),
            _ if is_over => None,
            (None, Arrival::Failed(error)) => transport_failure(&error, state.heard),
            (None, Arrival::Late) => Some(self.late(state.heard)),
            (None, Arrival::News | Arrival::End) => None,
        };
        let decoded = &state.decoder.decoded;
        let reason = decoded.finish_reason();
        self.outcome = match (reason, failure) {
            // Whatever goes wrong after the model said why it stopped is nobody's loss.
            (Some(reason), Some(_)) => Some(finished(reason, decoded.usage)),
            (None, Some(failure)) => Some(failed(failure, decoded.usage)),
            (Some(reason), None) if is_over => Some(finished(reason, decoded.usage)),
            (None, None) if decoded.ended => Some(finished(FinishReason::Stop, decoded.usage)),
            (None, None) if is_over => Some(failed(broken_off(state.heard), decoded.usage)),
            (_, None) => None,
        };
    }

    fn late(&self, heard: bool) -> Failure {
        let ModelDeadlines {
            first_byte,
            idle,
            total,
            ..
        } = self.deadlines;
        let (kind, message) = if Instant::now() >= self.ends_by {
            let message = format!("the answer was not complete after {}", seconds(total));
            (ModelErrorKind::Silent, message)
        } else if heard {
            let message = format!("the stream was silent for {}", seconds(idle));
            (ModelErrorKind::Silent, message)
        } else {
            let message = format!("no answer began within {}", seconds(first_byte));
            (ModelErrorKind::Network, message)
        };
        Failure::new(kind, Remedy::Again, message)
    }
}

/// Hears every frame before the library reads it.
struct Tap(Mutex<TapState>);

struct TapState {
    decoder: Decoder,
    /// Any frame came, a comment included: the peer is alive.
    heard: bool,
    /// A frame came that was not taken in yet.
    fresh: bool,
}

impl Tap {
    fn new(decoder: Decoder) -> Self {
        Self(Mutex::new(TapState {
            decoder,
            heard: false,
            fresh: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, TapState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Tap {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut state = self.lock();
        state.heard = true;
        state.fresh = true;
        state.decoder.frame(frame.data);
    }
}

fn finished(reason: FinishReason, usage: Usage) -> Step {
    Step::Finished { reason, usage }
}

fn failed(failure: Failure, usage: Usage) -> Step {
    Step::Failed { failure, usage }
}

fn failure_of(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Reported(body) => classify::reported(body),
        Trouble::Unreadable(what) => {
            Failure::new(ModelErrorKind::Broken, Remedy::Again, what.as_str())
        }
    }
}

fn broken_off(heard: bool) -> Failure {
    let message = match heard {
        true => "the stream ended before the answer was complete",
        false => "the response was not a stream of events",
    };
    Failure::new(ModelErrorKind::Broken, Remedy::Again, message)
}

/// Reads an error of the library's. Its complaints about a frame are not ours: we read every frame ourselves.
fn transport_failure(error: &genai::Error, heard: bool) -> Option<Failure> {
    let genai::Error::WebStream { error, .. } = error else {
        return None;
    };
    if let Some(genai::Error::HttpError {
        status,
        body,
        headers,
        ..
    }) = error.downcast_ref()
    {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        return Some(classify::refusal(Refusal {
            status: status.as_u16(),
            body,
            retry_after: header("retry-after"),
            retry_after_ms: header("retry-after-ms"),
            date: header("date"),
        }));
    }
    let cause = root_cause(&**error);
    let (kind, message) = if heard {
        let message = format!("the connection broke: {cause}");
        (ModelErrorKind::Broken, message)
    } else {
        let message = format!("no answer came: {cause}");
        (ModelErrorKind::Network, message)
    };
    Some(Failure::new(kind, Remedy::Again, message))
}

/// Returns the innermost cause: the outer layers only say that something failed, and name the URL.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
