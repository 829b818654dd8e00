//! What a response begins with, kept until the first frame shows that it is a stream: a server that answers with
//! something else says in it what is wrong.

use hermes_core::ModelErrorKind;
use serde_json::Value;

use crate::classify::{self, Failure, Remedy};

/// Enough for any error and for the head of a web page.
const OPENING_BYTES_MAX: usize = 64 << 10;

const STREAM: &str = "text/event-stream";

#[derive(Debug)]
pub(crate) struct Opening {
    content_type: String,
    bytes: Vec<u8>,
    /// A frame came.
    passed: bool,
}

impl Opening {
    pub(crate) fn new(content_type: &str) -> Self {
        Self {
            content_type: content_type.to_ascii_lowercase(),
            bytes: Vec::new(),
            passed: false,
        }
    }

    pub(crate) fn pass(&mut self) {
        if !self.passed {
            self.passed = true;
            self.bytes = Vec::new();
        }
    }

    /// Takes in what came without a frame. Fails when that is too much for something that was not called a stream;
    /// what is called one may have any number of comments.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<Failure> {
        if self.passed {
            return None;
        }
        let room = OPENING_BYTES_MAX - self.bytes.len();
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        let is_full = self.bytes.len() == OPENING_BYTES_MAX;
        if is_full && !self.claims_to_be_a_stream() {
            self.not_a_stream()
        } else {
            None
        }
    }

    /// Says what came instead of a stream, if it was none.
    pub(crate) fn not_a_stream(&self) -> Option<Failure> {
        if self.passed {
            return None;
        }
        let body = String::from_utf8_lossy(&self.bytes);
        Some(error_in(&body).unwrap_or_else(|| self.something_else(&body)))
    }

    fn something_else(&self, body: &str) -> Failure {
        if self.claims_to_be_a_stream() {
            let message = "the response was not a stream of events";
            return Failure::new(ModelErrorKind::Broken, Remedy::Again, message);
        }
        let mut message = format!(
            "the server answered with `{}` instead of a stream of events",
            self.content_type
        );
        let said = classify::message_of(body);
        if !said.is_empty() {
            message.push_str(": ");
            message.push_str(&said);
        }
        // The address is that of something else; asked again, it will say the same.
        Failure::new(ModelErrorKind::BadRequest, Remedy::OtherModel, message)
    }

    /// A server that gives no type may still mean a stream.
    fn claims_to_be_a_stream(&self) -> bool {
        self.content_type.is_empty() || self.content_type.starts_with(STREAM)
    }
}

/// Reads an error that came as plain JSON although the status was a success.
fn error_in(body: &str) -> Option<Failure> {
    let value: Value = serde_json::from_str(body).ok()?;
    let value = match &value {
        Value::Array(list) => list.first()?,
        value => value,
    };
    let error = value.get("error").filter(|error| !error.is_null())?;
    let error = if error.is_object() { error } else { value };
    Some(classify::reported(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(content_type: &str, body: &str) -> (ModelErrorKind, String) {
        let mut opening = Opening::new(content_type);
        assert_eq!(opening.read(body.as_bytes()), None);
        let failure = opening.not_a_stream().unwrap();
        (failure.kind, failure.message)
    }

    #[test]
    fn what_came_instead_of_a_stream_is_told() {
        let (kind, message) = failure("text/html; charset=utf-8", "<h1>Sign in</h1>");
        assert_eq!(kind, ModelErrorKind::BadRequest);
        assert!(message.contains("`text/html; charset=utf-8`"), "{message}");
        assert!(message.contains("Sign in"), "{message}");
        let (kind, _) = failure(STREAM, "hello");
        assert_eq!(kind, ModelErrorKind::Broken);
    }

    #[test]
    fn an_error_with_a_successful_status_is_an_error() {
        let body = r#"{"error": {"code": 429, "message": "slow down"}}"#;
        for content_type in ["application/json", STREAM, ""] {
            let expected = (ModelErrorKind::RateLimit, "slow down".to_owned());
            assert_eq!(failure(content_type, body), expected);
        }
    }

    #[test]
    fn a_flood_that_is_no_stream_is_cut_off_and_comments_are_not() {
        let flood = vec![b'x'; OPENING_BYTES_MAX / 2];
        let cut = |content_type| {
            let mut opening = Opening::new(content_type);
            (0..8).any(|_| opening.read(&flood).is_some())
        };
        assert!(cut("text/html"));
        assert!(!cut(STREAM));
    }
}
