//! Why a request has no answer, for the model and for people.

use std::fmt;
use std::sync::Arc;

use hermes_core::redact::redact;

/// For sessions that are lost as soon as they are made.
pub(crate) const AFFINITY_HINT: &str = "new sessions are lost at once: if several replicas answer at this address, it needs \
     sticky sessions, or a server that keeps none";

/// Names the server, the operation, the phase it failed in, the cause and what happens next. Never empty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallError {
    pub(crate) server: String,
    pub(crate) operation: Arc<str>,
    pub(crate) fate: Fate,
    pub(crate) cause: String,
    pub(crate) next: String,
}

/// What is known about the request itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It did not run.
    NotRun,
    /// It may have run.
    Unknown,
    /// Its answer is lost; it only reads, so nothing can have happened.
    Unread,
    /// The server dealt with it, and said no.
    Answered,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server, operation, ..
        } = self;
        let cause = redact(&self.cause);
        match self.fate {
            Fate::Answered => write!(f, "MCP server `{server}`, {operation}: {cause}")?,
            Fate::NotRun => write!(
                f,
                "MCP server `{server}`, {operation}: it did not run: {cause}"
            )?,
            Fate::Unread => write!(f, "MCP server `{server}`, {operation}: no answer: {cause}")?,
            Fate::Unknown => write!(
                f,
                "MCP server `{server}`, {operation}: outcome unknown: the request was sent and its answer was lost \
                 ({cause}). It may have taken effect; check before doing it again"
            )?,
        }
        match self.next.as_str() {
            "" => Ok(()),
            next => write!(f, ". Next: {next}"),
        }
    }
}
