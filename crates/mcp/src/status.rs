//! What people are told about a server.

use std::fmt;
use std::time::Duration;

/// The state of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Switched off in the settings.
    Disabled,
    /// The first attempt is under way.
    Connecting,
    /// Connected, and it has answered.
    Ready,
    /// Connected, but something failed; a probe is under way.
    Degraded,
    /// Not connected. Attempts go on for ever.
    Reconnecting { attempt: u32 },
    /// The server does not accept our credentials.
    NeedsAuth { reason: String },
    /// It cannot work before somebody changes the settings or the machine.
    Misconfigured { reason: String },
    /// Its program was ended because nobody needed it; the next call starts it again.
    Resting,
    /// We ended it.
    Stopped,
}

impl ServerState {
    /// Returns whether it was switched off, by the settings or by us.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Self::Disabled | Self::Stopped)
    }

    /// Returns whether waiting is of no use: somebody has to do something first.
    pub(crate) fn is_hopeless(&self) -> bool {
        matches!(
            self,
            Self::Disabled | Self::Stopped | Self::NeedsAuth { .. } | Self::Misconfigured { .. }
        )
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("disabled"),
            Self::Connecting => f.write_str("connecting"),
            Self::Ready => f.write_str("ready"),
            Self::Degraded => f.write_str("degraded"),
            Self::Reconnecting { attempt } => write!(f, "reconnecting (attempt {attempt})"),
            Self::NeedsAuth { reason } => write!(f, "needs credentials: {reason}"),
            Self::Misconfigured { reason } => write!(f, "misconfigured: {reason}"),
            Self::Resting => f.write_str("resting until it is needed"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// A server's state changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    pub server: String,
    pub state: ServerState,
}

/// Everything that is known about a server now. Times are counted from now.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// How long ago the server last answered anything.
    pub last_success: Option<Duration>,
    /// How long its last answer to a probe took.
    pub round_trip: Option<Duration>,
    /// How often a lost connection was made anew.
    pub reconnects: u64,
    pub breaker: BreakerStatus,
    /// How long until the next attempt, when there is no connection.
    pub next_attempt: Option<Duration>,
    /// How many tools it offers.
    pub tools: usize,
    /// Why the last connection was lost, or not made, or what it offers was not listed.
    pub last_error: Option<String>,
    /// What is odd about what it offers.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerStatus {
    Closed,
    /// Calls are refused at once; a probe follows after this time.
    Open {
        probe_in: Duration,
    },
    /// The probe is under way.
    HalfOpen,
}
