//! What a call may do to the world, and so what may be repeated after a crash.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Doing it twice leaves the world as doing it once.
    Idempotent,
    /// Anything else. Never repeated blindly.
    Effect,
}

impl Effect {
    /// Returns whether a call whose outcome was lost may simply be run again.
    pub fn may_repeat(self) -> bool {
        matches!(self, Self::Read | Self::Idempotent)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Effect => "effect",
        }
    }
}
