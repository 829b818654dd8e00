//! What can go wrong with a request, in our own words.
//!
//! Everything the protocol library reports is turned into a [`Failure`] here, so that the decisions in
//! [`crate::classify`] and the messages to people know no foreign type.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use hermes_core::redact::redact;
use hermes_core::text::shorten;
use rmcp::ServiceError;
use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::auth::missing_scope;
use crate::http::HttpFailure;
use crate::respond::Visit;

/// Of a foreign text, this much is shown: enough to recognise it.
const CAUSE_CHARS_MAX: usize = 400;

/// The code of an error that asks for a visit to an address.
const VISIT_WANTED: i32 = -32042;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Nothing was sent: no address, no connection, no process.
    Unreachable {
        cause: String,
    },
    /// It cannot work before somebody changes something: no such program, an untrusted certificate.
    Misconfigured {
        cause: String,
    },
    /// There is no token that could be sent; a person has to log in.
    NeedsLogin {
        reason: String,
    },
    /// An HTTP answer that is not a success.
    Http(HttpAnswer),
    /// A success that does not speak MCP: a login page, a captive portal.
    NotMcp {
        content_type: String,
    },
    /// A JSON-RPC error.
    Rpc {
        code: i32,
        message: String,
    },
    /// The person has to open these addresses first (error −32042).
    VisitWanted {
        message: String,
        visits: Vec<Visit>,
    },
    /// A tool result marked as an error.
    Reported {
        text: String,
    },
    /// The connection ended after the request was sent and before its answer came.
    Cut {
        cause: String,
    },
    /// An answer came and cannot be read: too large, or of the wrong shape.
    Unreadable {
        cause: String,
    },
    Timeout {
        after: Duration,
    },
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// Whether the request carried a session id.
    pub(crate) session_sent: bool,
    pub(crate) credentials: Credentials,
    /// `WWW-Authenticate`.
    pub(crate) challenge: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    /// The beginning of the body.
    pub(crate) body: String,
    /// The JSON-RPC error in the body, whatever its id was.
    pub(crate) rpc: Option<(i32, String)>,
}

/// What is known of the credentials that a refused request carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Credentials {
    /// Nothing, or that the server takes them when there is no session.
    #[default]
    Unsuspected,
    /// The server refuses them also when there is no session.
    Refused,
}

impl Failure {
    pub(crate) fn from_service(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(data) => data.into(),
            ServiceError::TransportSend(error) => Self::from_transport(&error),
            ServiceError::TransportClosed => Self::Cut {
                cause: "the connection closed before the answer came".to_owned(),
            },
            ServiceError::Timeout { timeout } => Self::Timeout { after: timeout },
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::UnexpectedResponse => Self::Unreadable {
                cause: "the answer has the wrong shape for this request".to_owned(),
            },
            other => Self::Unreadable {
                cause: other.to_string(),
            },
        }
    }

    pub(crate) fn from_handshake(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::from_transport(&error),
            ClientInitializeError::JsonRpcError(data) => data.into(),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                Self::from_handshake(*fallback)
            }
            ClientInitializeError::Cancelled => Self::Cancelled,
            ClientInitializeError::ConnectionClosed(_) => Self::Cut {
                cause: "the connection closed during the handshake".to_owned(),
            },
            ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConflictInitResponseId(..) => Self::Unreadable {
                cause: "it answered the handshake with something else".to_owned(),
            },
            other => Self::Unreadable {
                cause: other.to_string(),
            },
        }
    }

    fn from_transport(error: &DynamicTransportError) -> Self {
        type HttpError = StreamableHttpError<HttpFailure>;
        let error = error.error.as_ref();
        if let Some(StreamableHttpError::Client(failure)) = error.downcast_ref::<HttpError>() {
            return failure.0.clone();
        }
        if let Some(failure) = error.downcast_ref::<HttpFailure>() {
            return failure.0.clone();
        }
        // Over a pipe, a request is complete with its last byte: one that could not be written did not arrive.
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && matches!(io.kind(), ErrorKind::NotConnected | ErrorKind::BrokenPipe)
        {
            return Self::Unreachable {
                cause: "its process has ended".to_owned(),
            };
        }
        Self::Cut {
            cause: with_sources(error),
        }
    }
}

impl Failure {
    /// Returns whether the credentials are good, but not for this.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Http(HttpAnswer { status: 403, .. }))
    }

    /// Returns the scope that the server asks for, if it refused a request for the lack of one.
    pub(crate) fn missing_scope(&self) -> Option<String> {
        match self {
            Self::Http(answer) => missing_scope(answer.challenge.as_deref()?),
            _ => None,
        }
    }
}

impl From<ErrorData> for Failure {
    fn from(data: ErrorData) -> Self {
        if data.code.0 == VISIT_WANTED
            && let Some(visits) = data.data.as_ref().and_then(Visit::read_all)
        {
            let message = data.message.into_owned();
            return Self::VisitWanted { message, visits };
        }
        Self::Rpc {
            code: data.code.0,
            message: data.message.into_owned(),
        }
    }
}

/// Never empty, never with a secret, never long.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Unreachable { cause }
            | Self::Misconfigured { cause }
            | Self::Cut { cause }
            | Self::Unreadable { cause } => cause.clone(),
            Self::NeedsLogin { reason } => reason.clone(),
            Self::Http(answer) => answer.to_string(),
            Self::NotMcp { content_type } => {
                format!("it answered with `{content_type}` instead of an MCP message")
            }
            Self::Rpc { code, message } if message.trim().is_empty() => {
                format!("it answered with error {code} and no message")
            }
            Self::Rpc { code, message } => format!("it answered with error {code}: {message}"),
            Self::VisitWanted { message, visits } => {
                let addresses: Vec<&str> = visits.iter().map(|visit| visit.url.as_str()).collect();
                format!(
                    "a person has to open {} first: {message}",
                    addresses.join(", ")
                )
            }
            Self::Reported { text } => text.clone(),
            Self::Timeout { after } => format!("no answer within {} s", after.as_secs_f32()),
            Self::Cancelled => "the request was cancelled".to_owned(),
        };
        let text = redact(&shorten(text.trim(), CAUSE_CHARS_MAX));
        f.write_str(if text.is_empty() {
            "it failed without saying why"
        } else {
            &text
        })
    }
}

impl fmt::Display for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it answered with HTTP {}", self.status)?;
        if let Some(challenge) = &self.challenge {
            write!(f, " ({challenge})")?;
        }
        match (&self.rpc, self.body.trim()) {
            (Some((code, message)), _) => write!(f, ", error {code}: {message}"),
            (None, "") => Ok(()),
            (None, body) => write!(f, ": {body}"),
        }
    }
}

/// Joins an error and its sources; the outermost text alone often says only that a request failed.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failure_is_shown_as_an_empty_text() {
        let failures = [
            Failure::Unreachable {
                cause: String::new(),
            },
            Failure::Cut { cause: "  ".into() },
            Failure::Reported {
                text: String::new(),
            },
            Failure::Rpc {
                code: -32000,
                message: String::new(),
            },
            Failure::Http(HttpAnswer::default()),
            Failure::Cancelled,
        ];
        for failure in failures {
            assert!(failure.to_string().len() > 10, "{failure:?}");
        }
    }

    #[test]
    fn a_secret_in_an_answer_is_not_shown() {
        let failure = Failure::Http(HttpAnswer {
            status: 403,
            body: "bad token: Bearer abcdef0123456789".into(),
            ..HttpAnswer::default()
        });
        assert!(!failure.to_string().contains("abcdef0123456789"));
    }
}
