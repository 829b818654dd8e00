//! Logins with a code (RFC 8628): who asked, what the person does, and how the server answers meanwhile.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// What the server says to a client that asks whether the code was confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeAnswer {
    Pending,
    SlowDown,
    Denied,
    Expired,
}

impl CodeAnswer {
    pub(super) fn error(self) -> &'static str {
        match self {
            Self::Pending => "authorization_pending",
            Self::SlowDown => "slow_down",
            Self::Denied => "access_denied",
            Self::Expired => "expired_token",
        }
    }
}

pub(super) struct Codes {
    /// Said first, in this order.
    pub(super) answers: VecDeque<CodeAnswer>,
    pub(super) is_confirmed: bool,
    pub(super) interval_seconds: f64,
    pub(super) lifetime_seconds: f64,
    /// How often somebody asked.
    pub(super) asked: usize,
    /// Of the last request for a code.
    scope: String,
    given: usize,
}

impl Default for Codes {
    fn default() -> Self {
        Self {
            answers: VecDeque::new(),
            is_confirmed: false,
            interval_seconds: 1.0,
            lifetime_seconds: 600.0,
            asked: 0,
            scope: String::new(),
            given: 0,
        }
    }
}

impl Codes {
    /// Gives out a code to be confirmed at a page.
    pub(super) fn give(&mut self, page: &str, scope: &str) -> Value {
        self.given += 1;
        self.scope = scope.to_owned();
        json!({
            "device_code": format!("secret-device-{}", self.given),
            "user_code": "WDJB-MJHT",
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code=WDJB-MJHT"),
            "expires_in": self.lifetime_seconds,
            "interval": self.interval_seconds,
        })
    }

    /// Returns the scope that was granted, or what is to be said instead.
    pub(super) fn ask(&mut self, device_code: &str) -> Result<String, CodeAnswer> {
        self.asked += 1;
        if device_code != format!("secret-device-{}", self.given) {
            return Err(CodeAnswer::Expired);
        }
        match self.answers.pop_front() {
            Some(answer) => Err(answer),
            None if self.is_confirmed => Ok(self.scope.clone()),
            None => Err(CodeAnswer::Pending),
        }
    }
}
