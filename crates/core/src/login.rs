//! The tokens that a login at a provider leaves behind.

use std::time::Duration;

use crate::{Secret, Timestamp};

/// What asks in somebody's name, and what gets the next of these. `Debug` prints neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginTokens {
    pub access: Secret,
    /// Without it, the login ends when the access token does.
    pub refresh: Option<Secret>,
    /// Unknown when the provider did not say.
    pub expires_at: Option<Timestamp>,
    /// What the token is good for, separated by spaces. Empty when the provider did not say.
    pub scope: String,
}

impl LoginTokens {
    /// Returns whether the access token ends within this time.
    pub fn ends_within(&self, time: Duration, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now.plus(time))
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.ends_within(Duration::ZERO, now)
    }

    /// Returns whether a scope was granted, as far as that is known.
    pub fn allows(&self, scope: &str) -> bool {
        self.scope.is_empty() || self.scope.split([' ', ',']).any(|granted| granted == scope)
    }
}
