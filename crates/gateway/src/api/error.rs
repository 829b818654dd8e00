//! Why a request is refused, in the shape that OpenAI's clients read.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hermes_core::{OpenError, StoreError};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    code: Option<&'static str>,
    param: Option<String>,
    /// In how many seconds it is worth trying again.
    retry_after: Option<u64>,
}

const TURN_OVER: &str = "turn_over";
const AGENT_INCOMPLETE: &str = "agent_incomplete";
/// What OpenAI's clients go by before they look at the status.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            code: None,
            param: None,
            retry_after: None,
        }
    }

    /// The client can mend it.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        error.code("not_found")
    }

    pub(crate) fn unauthorised() -> Self {
        let message = "a key is needed: send it as `Authorization: Bearer KEY`";
        let error = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        error.code("invalid_api_key")
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        let error = Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            message,
        );
        error.code("request_too_large")
    }

    pub(crate) fn too_slow() -> Self {
        let message = "the request did not arrive in time";
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            message,
        )
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        error.code("rate_limit_exceeded").retry_after(1)
    }

    pub(crate) fn draining() -> Self {
        let message = "the gateway is about to stop and takes nothing new; try again in a moment";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        error.code("gateway_draining").retry_after(1)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// The agent gave no answer. Clients must not ask again by themselves: what it did on the way is done.
    pub(crate) fn incomplete(message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_GATEWAY, "server_error", message);
        error.code(AGENT_INCOMPLETE)
    }

    /// A turn that was to go on has come to its end meanwhile: what it came to is in the log.
    pub(crate) fn turn_over() -> Self {
        let error = Self::conflict("the turn that was cut short is over; ask again");
        error.code(TURN_OVER).retry_after(1)
    }

    pub(crate) fn is_turn_over(&self) -> bool {
        self.code == Some(TURN_OVER)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(crate) fn code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Says more plainly what is wrong.
    pub(crate) fn because(self, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..self
        }
    }

    /// Names the field that is wrong.
    pub(crate) fn param(self, param: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    pub(crate) fn body(&self) -> Value {
        json!({"error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Some(AGENT_INCOMPLETE) {
            response
                .headers_mut()
                .insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = format!("{error}; {}", error.hint());
        match error {
            StoreError::NotFound { name } => {
                Self::not_found(format!("there is no conversation `{name}`"))
                    .code("session_not_found")
            }
            StoreError::NoApproval { .. } | StoreError::Ambiguous { .. } => {
                Self::not_found(message)
            }
            StoreError::Busy { .. } => Self::conflict(message).code("session_busy"),
            StoreError::NotOffered { .. } | StoreError::TitleTaken { .. } => Self::invalid(message),
            _ => {
                tracing::error!(%error, "the store refused a request of the API");
                Self::internal(message)
            }
        }
    }
}

impl From<OpenError> for ApiError {
    fn from(error: OpenError) -> Self {
        let hint = error.hint.map(|hint| format!("; {hint}"));
        let message = format!("{}{}", error.message, hint.unwrap_or_default());
        tracing::warn!("a conversation could not be opened: {message}");
        Self::internal(message).code("session_unavailable")
    }
}
