//! Reads what a failed request means: whose fault it is, and what may be tried next. Pure. The words by which providers say
//! it are in `words`, how long they want us to wait is read in `wait`.

mod wait;
mod words;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hermes_core::ModelErrorKind;
use serde_json::Value;

use crate::encode::Unseen;
use wait::{in_words, retry_after};
use words::{
    BAD_KEY, BAD_ORDER, BAD_PICTURE, BAD_SIGNATURE, CANNOT_SEE, CREDIT, MODERATED, NO_MODEL,
    RESETS, TOO_LONG,
};

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ModelErrorKind,
    /// What the provider or the network said; not redacted yet.
    pub(crate) message: String,
    pub(crate) remedy: Remedy,
    /// How long the provider asked us to wait.
    pub(crate) retry_after: Option<Duration>,
    /// The HTTP status, where it was one that refused.
    pub(crate) status: Option<u16>,
    /// What a person can do, where that is more than what the kind suggests.
    pub(crate) hint: Option<&'static str>,
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The same request again, after a wait.
    Again,
    /// Another credential; the same one once more if only the rate is the matter.
    OtherKey,
    /// Another model: this one will refuse again.
    OtherModel,
    /// The same request without the signatures of earlier replies.
    Unsigned,
    /// The same request without its pictures.
    Unseen(Unseen),
    /// Only the caller can help, by sending less.
    SendLess,
}

impl Failure {
    pub(crate) fn new(kind: ModelErrorKind, remedy: Remedy, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            remedy,
            retry_after: None,
            status: None,
            hint: None,
        }
    }

    /// Says in front, because the end of a long message is cut, how long the provider wants us to wait.
    pub(crate) fn saying_wait(mut self) -> Self {
        if let Some(wait) = self.retry_after {
            self.message = format!("asks to wait {}: {}", in_words(wait), self.message);
        }
        self
    }

    /// Returns whether the provider itself said that it is only a matter of time.
    pub(crate) fn is_wait_stated(&self) -> bool {
        let passes = matches!(
            self.kind,
            ModelErrorKind::RateLimit | ModelErrorKind::Overloaded
        );
        passes && self.retry_after.is_some()
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

/// An HTTP response that is not a success, as far as it matters here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    pub(crate) retry_after: Option<&'a str>,
    pub(crate) retry_after_ms: Option<&'a str>,
    /// The server's own `Date`, against which a `Retry-After` date is measured.
    pub(crate) date: Option<&'a str>,
    /// Our own clock, since 1970, for servers that do not tell theirs.
    pub(crate) now: Option<Duration>,
}

/// Reads an HTTP refusal.
pub(crate) fn refusal(refusal: Refusal<'_>) -> Failure {
    let message = message_of(refusal.body);
    let (kind, remedy) = judge(refusal.status, &refusal.body.to_lowercase());
    let message = if message.is_empty() {
        format!("HTTP status {} with an empty body", refusal.status)
    } else {
        format!("{message} (HTTP status {})", refusal.status)
    };
    Failure {
        kind,
        message,
        remedy,
        retry_after: retry_after(refusal),
        status: Some(refusal.status),
        hint: None,
    }
}

/// Reads an error that came inside a stream: JSON text with a code or type instead of a status.
pub(crate) fn reported(body: &str) -> Failure {
    let text = body.to_lowercase();
    let status = status_of(body, &text);
    let (kind, remedy) = judge(status, &text);
    let message = match message_of(body) {
        message if message.is_empty() => "the provider broke the stream off with an error".into(),
        message => message,
    };
    Failure::new(kind, remedy, message)
}

/// Finds the HTTP status an error in a stream would have had.
fn status_of(body: &str, text: &str) -> u16 {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    if let Some(code) = value["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        && (400..600).contains(&code)
    {
        return code;
    }
    const NAMES: &[(&str, u16)] = &[
        ("overloaded", 529),
        ("rate_limit", 429),
        ("resource_exhausted", 429),
        ("authentication", 401),
        ("invalid_api_key", 401),
        ("permission", 403),
        ("billing", 402),
        ("insufficient_quota", 429),
        ("not_found", 404),
        ("invalid_request", 400),
        ("invalid_argument", 400),
        ("context_length_exceeded", 400),
    ];
    let known = NAMES.iter().find(|(name, _)| text.contains(name));
    known.map_or(500, |(_, status)| *status)
}

/// Decides by status and by the lower-case text of the body.
fn judge(status: u16, text: &str) -> (ModelErrorKind, Remedy) {
    use ModelErrorKind as Kind;
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if status == 413 || says(TOO_LONG) {
        return (Kind::ContextTooLong, Remedy::SendLess);
    }
    // Servers that run a model themselves call this an error of their own.
    let is_about_content = matches!(status, 400 | 404 | 415 | 422 | 500 | 501);
    if is_about_content && says(CANNOT_SEE) {
        return (Kind::BadRequest, Remedy::Unseen(Unseen::CannotSee));
    }
    if is_about_content && (says(BAD_PICTURE) || says(BAD_ORDER)) {
        return (Kind::BadRequest, Remedy::Unseen(Unseen::Refused));
    }
    match status {
        401 => (Kind::Auth, Remedy::OtherKey),
        402 if says(RESETS) => (Kind::RateLimit, Remedy::OtherKey),
        402 => (Kind::Billing, Remedy::OtherKey),
        403 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        403 if says(MODERATED) => (Kind::ContentFilter, Remedy::OtherModel),
        403 => (Kind::Auth, Remedy::OtherKey),
        429 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        429 if says(&["overloaded", "engine is busy", "server is busy"]) => {
            (Kind::Overloaded, Remedy::Again)
        }
        // The aggregator's own supplier is busy: another of our keys meets the same supplier.
        429 if says(&["upstream"]) => (Kind::RateLimit, Remedy::Again),
        429 => (Kind::RateLimit, Remedy::OtherKey),
        408 => (Kind::Network, Remedy::Again),
        400..=499 if says(BAD_SIGNATURE) => (Kind::BadRequest, Remedy::Unsigned),
        400..=499 if says(BAD_KEY) => (Kind::Auth, Remedy::OtherKey),
        400..=499 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        400..=499 if says(NO_MODEL) => (Kind::UnknownModel, Remedy::OtherModel),
        400..=499 if says(MODERATED) => (Kind::ContentFilter, Remedy::OtherModel),
        // A redirect is not followed: it would take the key along.
        300..=499 => (Kind::BadRequest, Remedy::OtherModel),
        _ => (Kind::Overloaded, Remedy::Again),
    }
}

/// Takes the human part out of an error body: `error.message`, or whatever else there is to read.
pub(crate) fn message_of(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return body.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let value = match &value {
        Value::Array(list) => list.first().unwrap_or(&value),
        _ => &value,
    };
    let spots = [
        // OpenRouter hides its supplier's words here.
        "/error/metadata/raw",
        "/metadata/raw",
        "/error/message",
        "/message",
        "/error",
        "/detail",
    ];
    let found = spots.iter().find_map(|spot| value.pointer(spot)?.as_str());
    found.map_or_else(|| body.trim().to_owned(), str::to_owned)
}
