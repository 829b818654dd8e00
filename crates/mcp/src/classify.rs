//! What a failure means: may the request be sent again, and is the connection still good?
//!
//! Pure. The rule behind every line: a request that may have run is never called "not run".

use std::time::Duration;

use crate::failure::{Failure, HttpAnswer};

/// What a failed request means for whoever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The server forgot our session and refused the request.
    SessionLost,
    /// The server does not accept our credentials.
    Auth,
    /// The server asked us to come back later.
    RateLimited { after: Duration },
    /// It certainly did not run.
    NotExecuted,
    /// It may have run.
    OutcomeUnknown,
    /// The server dealt with it and said no. Sending it again would give the same answer.
    Answered,
    /// We called it off ourselves.
    Cancelled,
}

/// What a failed request means for the connection it was sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Sound,
    /// Wants a probe.
    Doubtful,
    /// Wants a new connection.
    Lost,
}

/// Whether the connection has a session that a server could forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionUse {
    Session,
    Sessionless,
}

/// What servers say when they have forgotten a session. Deliberately short: a tool may speak of sessions of its own.
const SESSION_LOST_PHRASES: &[&str] = &[
    "invalid or expired session",
    "session expired",
    "expired session",
    "session not found",
    "unknown session",
    "session terminated",
];

/// A longer text that contains a phrase is about something else.
const PHRASE_TEXT_CHARS_MAX: usize = 200;

/// For a rate limit that does not say how long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn classify(failure: &Failure, session: SessionUse) -> Class {
    match failure {
        Failure::Cancelled => Class::Cancelled,
        Failure::Unreachable { .. } | Failure::Misconfigured { .. } => Class::NotExecuted,
        Failure::Http(answer) => classify_http(answer),
        Failure::Rpc { message: text, .. } | Failure::Reported { text } => {
            match session == SessionUse::Session && says_session_lost(text) {
                true => Class::SessionLost,
                false => Class::Answered,
            }
        }
        Failure::VisitWanted { .. } => Class::Answered,
        Failure::NotMcp { .. }
        | Failure::Cut { .. }
        | Failure::Unreadable { .. }
        | Failure::Timeout { .. } => Class::OutcomeUnknown,
    }
}

/// Returns what the failure says about the connection.
pub(crate) fn health(failure: &Failure, class: Class) -> Health {
    match (class, failure) {
        (Class::SessionLost, _) => Health::Lost,
        (Class::NotExecuted, Failure::Http(_)) => Health::Doubtful,
        (Class::NotExecuted, _) => Health::Lost,
        (Class::OutcomeUnknown, Failure::Unreadable { .. }) => Health::Sound,
        (Class::OutcomeUnknown, _) => Health::Doubtful,
        (Class::Auth | Class::RateLimited { .. } | Class::Answered | Class::Cancelled, _) => {
            Health::Sound
        }
    }
}

fn classify_http(answer: &HttpAnswer) -> Class {
    // A challenge is about credentials, whatever else the answer says; a refusal without one, to a request that
    // carried a session, is how some servers say that the session is gone.
    if let (401 | 403, Some(_)) = (answer.status, &answer.challenge) {
        return Class::Auth;
    }
    if answer.session_sent && is_session_refusal(answer) {
        return Class::SessionLost;
    }
    match answer.status {
        401 | 403 => Class::Auth,
        429 => Class::RateLimited {
            after: answer.retry_after.unwrap_or(RETRY_AFTER),
        },
        503 => match answer.retry_after {
            Some(after) => Class::RateLimited { after },
            None => Class::OutcomeUnknown,
        },
        408 | 500..=599 => Class::OutcomeUnknown,
        _ if answer.rpc.is_some() => Class::Answered,
        // Nobody there knows the address: a redirect to somewhere else, or a proxy without its server.
        300..=399 | 404 => Class::NotExecuted,
        _ => Class::Answered,
    }
}

fn is_session_refusal(answer: &HttpAnswer) -> bool {
    let mentions_session = || {
        let rpc = answer.rpc.as_ref().map_or("", |(_, message)| message);
        contains_ignoring_case(rpc, "session") || contains_ignoring_case(&answer.body, "session")
    };
    match answer.status {
        401 | 404 | 410 => true,
        400 | 409 | 503 => mentions_session(),
        _ => answer
            .rpc
            .as_ref()
            .is_some_and(|(_, message)| says_session_lost(message)),
    }
}

/// Returns whether a short text is one of the known ways to say that a session is gone.
fn says_session_lost(text: &str) -> bool {
    let text = text.trim();
    text.chars().count() <= PHRASE_TEXT_CHARS_MAX
        && SESSION_LOST_PHRASES
            .iter()
            .any(|phrase| contains_ignoring_case(text, phrase))
}

fn contains_ignoring_case(text: &str, phrase: &str) -> bool {
    text.to_lowercase().contains(phrase)
}

#[cfg(test)]
mod tests;
