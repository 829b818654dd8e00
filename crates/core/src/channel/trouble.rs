//! What goes wrong between platforms and us.

use std::time::Duration;

/// What went wrong between a platform and us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChannelError {
    pub trouble: Trouble,
    /// What happened, with the platform's own words.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ChannelError {
    pub fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self {
            trouble,
            message: message.into(),
            hint: None,
        }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// What kind of thing went wrong, and so what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The network, or the platform, for now: it was not done, and may be tried again.
    Passing,
    /// It may have been done, or not.
    Ambiguous,
    /// Too much at once; again after this long.
    Throttled {
        wait: Duration,
    },
    /// We may not write there: the chat was left, or we were blocked.
    Forbidden,
    /// There is no such chat or message.
    NotFound,
    TooLong,
    /// The platform does not like how it is written; plain text may do.
    BadFormat,
    /// The account is not accepted: nothing will do until a person changes a setting.
    NotAuthorised,
    /// Somebody else receives with the same account.
    Conflict,
    /// The platform cannot do this at all.
    Unsupported,
    /// It was refused, for good.
    Refused,
}
