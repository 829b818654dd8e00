//! How long one attempt may take, and what is said when it took longer.

use std::time::Duration;

use hermes_core::{ModelDeadlines, ModelErrorKind};
use tokio::time::Instant;

use crate::classify::{Failure, Remedy};

/// After the reason to stop, token counts follow at once or not at all; some servers never close the stream.
const CLOSING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    deadlines: ModelDeadlines,
    first_byte_by: Instant,
    ends_by: Instant,
}

impl Patience {
    /// Begins now.
    pub(crate) fn new(deadlines: ModelDeadlines) -> Self {
        let now = Instant::now();
        Self {
            deadlines,
            first_byte_by: now + deadlines.first_byte.min(deadlines.total),
            ends_by: now + deadlines.total,
        }
    }

    pub(crate) fn first_byte_by(&self) -> Instant {
        self.first_byte_by
    }

    /// When the next chunk must be here.
    pub(crate) fn next_by(&self) -> Instant {
        self.ends_by.min(Instant::now() + self.deadlines.idle)
    }

    /// As [`Patience::next_by`], once the model said why it stopped.
    pub(crate) fn closing_by(&self) -> Instant {
        self.next_by().min(Instant::now() + CLOSING)
    }

    /// Says which deadline has passed.
    pub(crate) fn exhausted(&self, heard: bool) -> Failure {
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

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
