//! How a login stands, in words. Never a token.

use hermes_config::StoredLogin;
use hermes_core::Timestamp;
use hermes_llm::providers;

use crate::layout::{duration, one_line, seconds_between};

/// Whether a login can be asked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Its token is renewed when it ends, if that is known.
    Renewed { until: Option<Timestamp> },
    /// It ends then, and somebody has to log in again.
    Passing { until: Option<Timestamp> },
    /// Somebody has to log in again, for this reason.
    Over { reason: String },
    /// It belongs to a provider whose logins we cannot use.
    Foreign,
}

impl Standing {
    pub fn of(provider: &str, login: &StoredLogin, now: Timestamp) -> Self {
        let known = providers::PROVIDERS
            .iter()
            .find(|known| known.id == provider);
        let Some(known) = known.and_then(|known| known.login) else {
            return Self::Foreign;
        };
        let over = |reason: &str| Self::Over {
            reason: reason.to_owned(),
        };
        match login {
            StoredLogin::Ended { reason } => over(reason),
            StoredLogin::Open(tokens) if !tokens.allows(known.needed_scope) => {
                over(&format!("it does not allow `{}`", known.needed_scope))
            }
            StoredLogin::Open(tokens) if tokens.refresh.is_some() => Self::Renewed {
                until: tokens.expires_at,
            },
            StoredLogin::Open(tokens) if tokens.is_expired(now) => over("it has expired"),
            StoredLogin::Open(tokens) => Self::Passing {
                until: tokens.expires_at,
            },
        }
    }

    pub fn is_good(&self) -> bool {
        matches!(self, Self::Renewed { .. } | Self::Passing { .. })
    }

    /// One word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Renewed { .. } | Self::Passing { .. } => "logged_in",
            Self::Over { .. } => "ended",
            Self::Foreign => "unused",
        }
    }

    /// When the token ends, if that is known.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Renewed { until } | Self::Passing { until } => *until,
            Self::Over { .. } | Self::Foreign => None,
        }
    }

    pub fn text(&self, now: Timestamp) -> String {
        let left = |until: &Timestamp| seconds_between(now, *until);
        match self {
            Self::Renewed { until } => match until.as_ref().map(left) {
                Some(0) => "logged in; the token is renewed at the next request".to_owned(),
                Some(seconds) => {
                    format!("logged in; the token is renewed in {}", duration(seconds))
                }
                None => "logged in; the token is renewed when it ends".to_owned(),
            },
            Self::Passing { until } => match until.as_ref().map(left) {
                Some(seconds) => format!("logged in for {}", duration(seconds)),
                None => "logged in".to_owned(),
            },
            Self::Over { reason } => match one_line(reason).as_str() {
                "" => "ended".to_owned(),
                reason => format!("ended: {reason}"),
            },
            Self::Foreign => "not used: a login that this version cannot renew".to_owned(),
        }
    }
}
