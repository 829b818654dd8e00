//! What a failure means: may the request be sent again, and is the connection still good?
//!
//! Pure. The rule behind every line: a request that may have run is never called "not run".

mod words;

use std::time::Duration;

use crate::failure::{Credentials, Failure, HttpAnswer};
use words::{is_reported_loss, says_session_lost};

/// What a failed request means for whoever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The server forgot our session and refused the request.
    SessionLost,
    /// It says so, but a tool may have said it: true only if the session does not answer a ping.
    SessionDoubted,
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

/// The code of an error that names a session nobody knows.
const SESSION_NOT_FOUND: i32 = -32001;

/// For a rate limit that does not say how long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn classify(failure: &Failure, session: SessionUse) -> Class {
    match failure {
        Failure::Cancelled => Class::Cancelled,
        Failure::Unreachable { .. } | Failure::Misconfigured { .. } => Class::NotExecuted,
        Failure::NeedsLogin { .. } => Class::Auth,
        Failure::Http(answer) => classify_http(answer),
        Failure::Rpc { message: text, .. } | Failure::Reported { text } => match session {
            SessionUse::Session if says_session_lost(text) => Class::SessionDoubted,
            SessionUse::Sessionless if is_reported_loss(text) => Class::SessionLost,
            _ => Class::Answered,
        },
        Failure::VisitWanted { .. } => Class::Answered,
        Failure::NotMcp { .. }
        | Failure::Cut { .. }
        | Failure::Unreadable { .. }
        | Failure::Timeout { .. } => Class::OutcomeUnknown,
    }
}

/// Returns what a failure means when it is known not to be about our session.
pub(crate) fn classify_beside_session(failure: &Failure) -> Class {
    match failure {
        Failure::Rpc { .. } | Failure::Reported { .. } => Class::Answered,
        Failure::Http(answer) => classify_status(answer),
        failure => classify(failure, SessionUse::Sessionless),
    }
}

/// Returns what the failure says about the connection.
pub(crate) fn health(failure: &Failure, class: Class) -> Health {
    match (class, failure) {
        (Class::SessionLost, _) => Health::Lost,
        (Class::SessionDoubted, _) => Health::Doubtful,
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
    if let Some(class) = session_refusal(answer) {
        return class;
    }
    classify_status(answer)
}

fn classify_status(answer: &HttpAnswer) -> Class {
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

/// Returns what a refusal says about our session, if it may be about that at all.
fn session_refusal(answer: &HttpAnswer) -> Option<Class> {
    let rpc = answer.rpc.as_ref().map(|(_, message)| message.as_str());
    if !answer.session_sent {
        let says = rpc.is_some_and(is_reported_loss) || is_reported_loss(&answer.body);
        let is_refusal = matches!(answer.status, 400 | 404 | 409 | 410);
        return (is_refusal && says).then_some(Class::SessionLost);
    }
    let mentions_session = || {
        contains_ignoring_case(rpc.unwrap_or_default(), "session")
            || contains_ignoring_case(&answer.body, "session")
    };
    match answer.status {
        401 if answer.credentials == Credentials::Refused => None,
        401 => Some(Class::SessionLost),
        // The status that the protocol has for this. An error of another kind may be the tool's own.
        404 | 410 => match &answer.rpc {
            Some((code, message)) if *code != SESSION_NOT_FOUND && !says_session_lost(message) => {
                Some(Class::SessionDoubted)
            }
            _ => Some(Class::SessionLost),
        },
        400 | 409 | 503 => mentions_session().then_some(Class::SessionDoubted),
        _ => rpc
            .is_some_and(says_session_lost)
            .then_some(Class::SessionDoubted),
    }
}

fn contains_ignoring_case(text: &str, phrase: &str) -> bool {
    text.to_lowercase().contains(phrase)
}

#[cfg(test)]
mod tests;
