//! How long one attempt may take, and what is said when it took longer.

use std::time::Duration;

use hermes_core::{ModelDeadlines, ModelErrorKind};
use tokio::time::Instant;

use crate::classify::{Failure, Remedy};

/// After the reason to stop, token counts follow at once or not at all; some servers never close the stream.
const CLOSING: Duration = Duration::from_secs(5);

/// How many times as long a stream of comments alone may go on as silence.
const KEPT_ALIVE_TIMES: u32 = 3;
const SILENT_HINT: &str = "the server took the request and said nothing: look at it, or ask another model with -m; if the \
                           model needs longer to begin, raise `agent.first_token_timeout`";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    deadlines: ModelDeadlines,
    begun: Instant,
    first_byte_by: Instant,
    first_token_by: Instant,
    ends_by: Instant,
}

impl Patience {
    /// Begins now.
    pub(crate) fn new(deadlines: ModelDeadlines) -> Self {
        let now = Instant::now();
        Self {
            deadlines,
            begun: now,
            first_byte_by: now + deadlines.first_byte.min(deadlines.total),
            first_token_by: now + deadlines.first_token.min(deadlines.total),
            ends_by: now + deadlines.total,
        }
    }

    /// When the answer must have begun. A peer that was heard is waited for longer, and not for ever.
    pub(crate) fn first_token_by(&self, heard: bool) -> Instant {
        if heard {
            self.first_token_by.max(self.first_byte_by)
        } else {
            self.first_byte_by
        }
    }

    /// When something must follow the frame that came last. A comment in between gives more time, and not for ever.
    pub(crate) fn next_by(&self, last: Instant) -> Instant {
        let idle = self.deadlines.idle;
        let kept_alive = last + idle * KEPT_ALIVE_TIMES;
        self.ends_by.min(kept_alive).min(Instant::now() + idle)
    }

    /// As [`Patience::next_by`], once the model said why it stopped.
    pub(crate) fn closing_by(&self) -> Instant {
        self.ends_by.min(Instant::now() + CLOSING)
    }

    /// Says which deadline has passed. Who took a request and did not begin to answer it in all that time is not asked the
    /// same again: a fallback may do better, and a person would rather know.
    pub(crate) fn exhausted(&self, heard: bool, has_begun: bool) -> Failure {
        let ModelDeadlines { idle, total, .. } = self.deadlines;
        let (kind, message) = if Instant::now() >= self.ends_by {
            let message = format!("the answer was not complete after {}", seconds(total));
            (ModelErrorKind::Silent, message)
        } else if has_begun {
            let message = format!("the stream was silent for {}", seconds(idle));
            (ModelErrorKind::Silent, message)
        } else {
            let waited = Instant::now().saturating_duration_since(self.begun);
            let message = format!("no answer began within {}", seconds(waited));
            let kind = if heard {
                ModelErrorKind::Silent
            } else {
                ModelErrorKind::Network
            };
            return Failure::new(kind, Remedy::OtherModel, message).with_hint(SILENT_HINT);
        };
        Failure::new(kind, Remedy::Again, message)
    }
}

fn seconds(duration: Duration) -> String {
    // Tenths are for tests; a person reads whole seconds.
    format!("{} s", (duration.as_secs_f64() * 10.0).round() / 10.0)
}
