//! One request to one route, from the first byte sent to the last one read.
//!
//! Dropping an attempt closes its connection.

use std::time::Duration;

use hermes_core::{Delta, FinishReason, ModelErrorKind, ModelRequest, Secret, Usage};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use tokio::time::{Instant, timeout_at};

use crate::classify::{self, Failure, Refusal, Remedy};
use crate::decode::{Decoder, Trouble};
use crate::encode::{self, LeftOut};
use crate::frames::FrameSplitter;
use crate::http::Http;
use crate::opening::Opening;
use crate::patience::Patience;
use crate::settings::Route;
use crate::{request, transport};

/// Bytes read of a refusal. The longest worth reading, with a supplier's error quoted in it, has a few thousand.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// What a refusal says is not worth a longer wait: its status is known.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Attempt {
    response: Response,
    frames: FrameSplitter,
    decoder: Decoder,
    /// What came before the first frame.
    opening: Opening,
    patience: Patience,
    /// Something of the answer came, a comment perhaps: the peer is alive.
    heard: bool,
    /// When the last frame of the answer came. Comments and pings are none: whoever sends only these is alive and says
    /// nothing.
    answered: Option<Instant>,
    /// How it ended, to be told after the last delta.
    outcome: Option<Step>,
}

pub(crate) enum Step {
    Delta(Delta),
    Finished { reason: FinishReason, usage: Usage },
    Failed { failure: Failure, usage: Usage },
}

impl Attempt {
    /// Sends a request and waits until it is accepted or refused.
    pub(crate) async fn open(
        http: &Http,
        route: &Route,
        key: Option<&Secret>,
        request: &ModelRequest<'_>,
        left_out: LeftOut,
    ) -> Result<Self, Failure> {
        let unsent =
            |message: String| Failure::new(ModelErrorKind::BadRequest, Remedy::OtherModel, message);
        let client = http
            .client(&route.base_url)
            .map_err(|error| unsent(transport::no_client(&error)))?;
        let headers = request::headers(route, key).map_err(|error| unsent(error.to_string()))?;
        let sending = client
            .post(request::url(route))
            .headers(headers)
            .body(encode::body(route, request, left_out))
            .send();
        let patience = Patience::new(route.deadlines);
        let response = match timeout_at(patience.first_token_by(false), sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(transport::unanswered(&error)),
            Err(_) => return Err(patience.exhausted(false, false)),
        };
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        Ok(Self {
            opening: Opening::new(header(&response, CONTENT_TYPE.as_str()).unwrap_or_default()),
            response,
            frames: FrameSplitter::default(),
            decoder: Decoder::new(route.protocol, &route.name.provider),
            patience,
            heard: false,
            answered: None,
            outcome: None,
        })
    }

    /// Returns the next delta, or how the attempt ended. Not to be called after that.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            if let Some(delta) = self.decoder.decoded.deltas.pop_front() {
                return Step::Delta(delta);
            }
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            let deadline = self.deadline();
            self.outcome = match timeout_at(deadline, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.read(&chunk),
                Ok(Ok(None)) => Some(self.closed()),
                Ok(Err(error)) if self.heard => Some(self.failed(transport::broken_off(&error))),
                Ok(Err(error)) => Some(self.failed(transport::unanswered(&error))),
                Err(_) => {
                    Some(self.failed(self.patience.exhausted(self.heard, self.answered.is_some())))
                }
            };
        }
    }

    fn deadline(&self) -> Instant {
        match self.answered {
            None => self.patience.first_token_by(self.heard),
            Some(_) if self.decoder.decoded.finish.is_some() => self.patience.closing_by(),
            Some(last) => self.patience.next_by(last),
        }
    }

    /// Reads what came and returns how the attempt ended, if it did.
    fn read(&mut self, chunk: &[u8]) -> Option<Step> {
        self.heard |= !chunk.is_empty();
        let Self {
            frames,
            decoder,
            opening,
            answered,
            ..
        } = self;
        let pushed = frames.push(chunk, |data| {
            opening.pass();
            if !is_ping(data) {
                *answered = Some(Instant::now());
            }
            decoder.frame(data);
        });
        if decoder.decoded.ended {
            return Some(self.closed());
        }
        let trouble = decoder.decoded.trouble.as_ref().map(failure_of);
        let too_long = || pushed.err().map(|error| broken(error.to_string()));
        let failure = trouble.or_else(too_long).or_else(|| opening.read(chunk))?;
        Some(self.failed(failure))
    }

    /// Nothing follows: the connection was closed, or the provider said so.
    fn closed(&mut self) -> Step {
        let Self {
            frames,
            decoder,
            opening,
            ..
        } = self;
        frames.finish(|data| {
            opening.pass();
            decoder.frame(data);
        });
        decoder.finish();
        let trouble = decoder.decoded.trouble.as_ref().map(failure_of);
        let failure = trouble
            .or_else(|| opening.not_a_stream())
            .unwrap_or_else(|| broken("the stream ended before the answer was complete".into()));
        self.failed(failure)
    }

    /// Ends with a failure, unless the model said why it stopped: what goes wrong after that is nobody's loss.
    fn failed(&mut self, failure: Failure) -> Step {
        let is_ended = self.decoder.decoded.ended;
        let stopped = is_ended.then_some(FinishReason::Stop);
        let reason = self.decoder.decoded.finish_reason().or(stopped);
        if reason.is_some() {
            self.decoder.finish();
        }
        let usage = self.decoder.decoded.usage;
        match reason {
            Some(reason) => Step::Finished { reason, usage },
            None => Step::Failed { failure, usage },
        }
    }
}

/// A frame that says only that the connection is open.
fn is_ping(data: &str) -> bool {
    /// Longer ones say something.
    const PING_BYTES_MAX: usize = 64;
    let is_short = data.len() <= PING_BYTES_MAX;
    is_short
        && (data.contains("\"ping\"") || data.contains("\"keepalive\"") || data.trim().is_empty())
}

fn failure_of(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Reported(body) => classify::reported(body),
        Trouble::Unreadable(what) => broken(what.clone()),
    }
}

fn broken(message: String) -> Failure {
    Failure::new(ModelErrorKind::Broken, Remedy::Again, message)
}

/// Reads why a request was refused, as far as that comes in time.
async fn refusal(mut response: Response) -> Failure {
    let mut body = Vec::new();
    let deadline = Instant::now() + REFUSAL_DEADLINE;
    while body.len() < REFUSAL_BYTES_MAX {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    body.truncate(REFUSAL_BYTES_MAX);
    classify::refusal(Refusal {
        status: response.status().as_u16(),
        body: &String::from_utf8_lossy(&body),
        retry_after: header(&response, RETRY_AFTER.as_str()),
        retry_after_ms: header(&response, "retry-after-ms"),
        date: header(&response, DATE.as_str()),
        now: now(),
    })
}

/// The time since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a date is compared with it that a server means, not with anything of ours"
)]
fn now() -> Option<Duration> {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).ok()
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
