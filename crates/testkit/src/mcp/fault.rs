//! The ways in which the HTTP server fails, as plain data. `reply` turns each into bytes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id of no request: clients count from 0 or 1.
pub(super) const FOREIGN_ID: u32 = 999_999;

/// What goes wrong with one request.
///
/// Unless its rule says otherwise, the request is not executed. Those under "answers, but oddly"
/// always execute it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    // Refusals.
    /// Forgets the session of the request, and answers it, and whatever else names a forgotten
    /// session from now on, in this way. Never executes.
    SessionLost(SessionLoss),
    /// 401 with the challenge of an expired token.
    Unauthorized,
    /// 403 that asks for the scope `write`.
    InsufficientScope,
    /// This status, with plain text.
    Status {
        status: u16,
        /// As it is sent: seconds, or an HTTP date.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// This status, with a JSON-RPC error that has the request's id.
    Refusal {
        status: u16,
        code: i64,
        message: String,
    },
    /// A JSON-RPC error with an id that is not the request's.
    ErrorWithId {
        status: u16,
        id: WrongId,
    },
    /// 307 to the same server's `/mcp/`.
    RedirectSameOrigin,
    /// 307 to the same server by its other name, which is another origin.
    RedirectCrossOrigin,
    /// Opens an event stream whose `endpoint` is the same server by its other name, which is another
    /// origin. For the older transport's GET.
    ForeignEndpoint,
    /// The page of a captive portal: 200 `text/html`.
    Html,
    /// The other kind of captive portal: 302 to its page, on another host.
    CaptivePortal,

    // Silence and broken connections.
    Reset,
    /// Never answers, with the connection open.
    Hang,
    /// Sends the head of the answer, and nothing more.
    HangAfterHeaders,
    /// Closes the connection in the middle of the body.
    Truncated,
    /// Opens an event stream and ends it without an event.
    SseEmpty,
    /// Opens an event stream and says nothing.
    SseSilent,
    /// Sends a body that never ends, as fast as the client takes it.
    Endless(Endless),
    /// Sends less than a megabyte, compressed, that unpacks to a hundred.
    DecompressionBomb,

    // Answers, but oddly.
    /// Ends an event stream after an event with an id. The answer can be had with `Last-Event-ID`.
    SseResumable,
    /// Answers after this time.
    DelayMs(u64),
    /// Answers with this many megabytes more than needed.
    HugeBodyMb(usize),
    /// Answers twice in one event stream.
    DuplicateResponse,
    /// Answers in an event stream, after an answer to a request that nobody made.
    StrayResponse,
    /// Answers with an id that is not quite the request's.
    AnswerWithId(OddId),
    /// Sends the right JSON as `text/plain`.
    WrongContentType,
    /// Answers with this as the result.
    Result(Value),
}

/// What a body that never ends is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endless {
    /// A JSON text.
    Json,
    /// One event.
    Event,
    /// Comments in an event stream, which mean nothing.
    Comments,
}

/// How a server says that it does not know a session; each was seen in the wild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionLoss {
    /// 404, −32001, id null.
    NotFound,
    /// 404 without a body.
    NotFoundEmpty,
    /// 404, −32600, id null.
    NotFoundInvalidRequest,
    /// 404, −32600, id `"server-error"`.
    NotFoundServerError,
    /// 400, −32000, id null.
    BadRequest,
    /// 400, −32000, without an id member.
    BadRequestNoId,
    /// 400 as plain text.
    BadRequestText,
    /// 401 without a challenge.
    Unauthorized,
    /// 409, −32000.
    Conflict,
    /// 410 as plain text.
    Gone,
    /// 503 as plain text.
    Unavailable,
    /// 200, −32602, with the request's id.
    InvalidParams,
    /// 200, −32603, with the request's id.
    InternalError,
    /// 200 with a tool result that is an error; −32603 for what is not a tool call.
    ToolError,
}

/// An id that does not belong to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongId {
    Null,
    /// The id of no request.
    Foreign,
    /// No id member at all.
    Missing,
}

/// An id of a result that is not quite that of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OddId {
    /// `"7"` for 7.
    Text,
    /// `7.0` for 7.
    Fraction,
    /// The id of no request.
    Foreign,
}

impl OddId {
    /// Gives an answer this id.
    pub(super) fn put_into(self, mut answer: Value) -> Value {
        answer["id"] = match self {
            Self::Text => answer["id"].to_string().into(),
            Self::Fraction => answer["id"].as_f64().into(),
            Self::Foreign => FOREIGN_ID.into(),
        };
        answer
    }
}

impl Fault {
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            retry_after: None,
        }
    }

    /// Returns a refusal with a `Retry-After` of seconds or an HTTP date.
    pub fn retry_after(status: u16, retry_after: impl Into<String>) -> Self {
        Self::Status {
            status,
            retry_after: Some(retry_after.into()),
        }
    }

    /// Tells whether the fault lies in the answer, so that there has to be one.
    pub(super) fn needs_answer(&self) -> bool {
        matches!(
            self,
            Self::SseResumable
                | Self::DelayMs(_)
                | Self::HugeBodyMb(_)
                | Self::DuplicateResponse
                | Self::StrayResponse
                | Self::AnswerWithId(_)
                | Self::WrongContentType
                | Self::Result(_)
        )
    }
}

impl SessionLoss {
    /// Every shape, for tests that try them all.
    pub const ALL: [Self; 14] = [
        Self::NotFound,
        Self::NotFoundEmpty,
        Self::NotFoundInvalidRequest,
        Self::NotFoundServerError,
        Self::BadRequest,
        Self::BadRequestNoId,
        Self::BadRequestText,
        Self::Unauthorized,
        Self::Conflict,
        Self::Gone,
        Self::Unavailable,
        Self::InvalidParams,
        Self::InternalError,
        Self::ToolError,
    ];
}
