//! Logins at providers, instead of keys: a person confirms a code in a browser, and tokens come back that expire and
//! are renewed.
//!
//! [`DeviceFlow`] logs in, [`Logins`] gives the tokens to requests and renews them, a [`TokenStore`] keeps them where
//! every process finds them. Which providers have a login, and where, is in the table of `providers`.
//!
//! No token is part of an error, a log or `Debug`.

mod device;
mod exchange;
mod logins;
mod server;

pub use device::{DeviceFlow, Pace, Prompt};
pub use exchange::revoke;
pub use logins::{LockedTokens, Logins, TokenStore, TokenStoreError};
pub use server::{DeviceLogin, InsecureServer, LoginServer, RefreshTokenIn};

use std::time::Duration;

/// Why there is no token. Each says what happened; [`LoginError::hint`] what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error("`{host}` cannot be reached: {cause}")]
    Unreachable { host: String, cause: String },
    #[error("`{host}` {what}")]
    Unexpected { host: String, what: String },
    #[error("the login was refused: {reason}")]
    Refused { reason: String },
    #[error("the login was declined in the browser")]
    Declined,
    #[error("nobody confirmed the code within {} min", .after.as_secs().div_ceil(60))]
    Expired { after: Duration },
    #[error("nobody is logged in at {provider}")]
    NotLoggedIn { provider: &'static str },
    #[error("the login at {provider} has ended: {reason}")]
    Ended {
        provider: &'static str,
        reason: String,
    },
    #[error("another process renews the login at {provider} and does not finish")]
    Busy { provider: &'static str },
    #[error(transparent)]
    Store(#[from] TokenStoreError),
}

impl LoginError {
    pub fn hint(&self) -> String {
        match self {
            Self::Unreachable { .. } | Self::Unexpected { .. } => {
                "check the network connection and the proxy, and try again".into()
            }
            Self::Refused { .. } | Self::Declined | Self::Expired { .. } => {
                "nothing was saved; start again whenever you like".into()
            }
            Self::NotLoggedIn { provider } | Self::Ended { provider, .. } => {
                format!("log in with `hermes auth add {provider}`")
            }
            Self::Busy { .. } => "try again; end the other `hermes` if it hangs".into(),
            Self::Store(error) => error.hint.clone(),
        }
    }

    /// Returns whether the same may work in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Unexpected { .. } | Self::Busy { .. }
        )
    }
}
