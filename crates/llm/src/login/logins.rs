//! Gives the tokens of logins to requests, and renews them once for all who need them.
//!
//! A refresh token is good for one use. That it is used once, among the tasks of this process and among all processes, is
//! the work of [`Renewals`]; here is what is asked of a provider, and what is saved.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{Clock, LoginTokens, Secret};
use hermes_os::renewal::{Renewable, Renewals};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::exchange::{REQUEST_TIMEOUT, TokenResponse, renew};
use super::{LoginError, LoginServer};

/// Between two looks at the lock of another process.
const LOCK_PAUSE: Duration = Duration::from_millis(25);
/// Whoever has the lock makes one request at most.
const LOCK_WAIT: Duration = Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs());

/// Keeps the tokens of logins where every process finds them.
///
/// Called between requests; must be quick. Nothing is remembered here: what another process saved is used at once.
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// Returns the tokens of a provider.
    fn read(&self, provider: &'static str) -> Result<LoginTokens, LoginError>;

    /// Takes the tokens for oneself; `None` while another process has them.
    fn try_lock(&self, provider: &'static str)
    -> Result<Option<Box<dyn LockedTokens>>, LoginError>;
}

/// Tokens that nobody else can change. They are free again when this is dropped, also by a crash.
pub trait LockedTokens: Send {
    /// Returns the tokens as they are now.
    fn read(&self) -> Result<LoginTokens, LoginError>;

    fn save(&mut self, tokens: &LoginTokens) -> Result<(), LoginError>;

    /// Takes the tokens away for good: the provider does not renew them.
    fn end(&mut self, reason: &str) -> Result<(), LoginError>;
}

/// Why tokens cannot be read or saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TokenStoreError {
    pub message: String,
    pub hint: String,
}

/// The logins of all providers.
#[derive(Clone)]
pub struct Logins {
    store: Arc<dyn TokenStore>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    renewals: Arc<Mutex<HashMap<&'static str, Renewals>>>,
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Logins {
    pub fn new(store: Arc<dyn TokenStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            tasks: TaskTracker::new(),
            renewals: Arc::default(),
        }
    }

    /// Returns the token to ask with now; a new one if the old one is about to expire.
    pub async fn token(&self, server: &LoginServer) -> Result<Secret, LoginError> {
        let tokens = self.store.read(server.provider)?;
        check_scope(server, &tokens)?;
        if !tokens.ends_within(server.login.renew_before, self.clock.now()) {
            return Ok(tokens.access);
        }
        match self.renewed(server, &tokens.access).await {
            // It was early; there will be another chance.
            Err(error) if error.is_passing() && !tokens.is_expired(self.clock.now()) => {
                Ok(tokens.access)
            }
            renewed => renewed,
        }
    }

    /// Returns a token that is not `refused`, from whoever is first to renew it.
    pub async fn renewed(
        &self,
        server: &LoginServer,
        refused: &Secret,
    ) -> Result<Secret, LoginError> {
        let login = Login {
            logins: self.clone(),
            server: server.clone(),
        };
        let renewals = self.renewals_of(server.provider);
        renewals.renewed(Arc::new(login), refused.clone()).await
    }

    /// One provider does not wait for another.
    fn renewals_of(&self, provider: &'static str) -> Renewals {
        let mut renewals = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Renewals::new(self.tasks.clone());
        renewals.entry(provider).or_insert_with(new).clone()
    }
}

/// The login of one provider.
struct Login {
    logins: Logins,
    server: LoginServer,
}

impl Renewable for Login {
    type Token = Secret;
    type Error = LoginError;
    type Lock = Box<dyn LockedTokens>;

    async fn newer_than(&self, refused: &Secret) -> Result<Option<Secret>, LoginError> {
        let tokens = self.logins.store.read(self.server.provider)?;
        Ok((tokens.access != *refused).then_some(tokens.access))
    }

    async fn lock(&self) -> Result<Self::Lock, LoginError> {
        let provider = self.server.provider;
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match self.logins.store.try_lock(provider)? {
                Some(locked) => return Ok(locked),
                None if Instant::now() > deadline => return Err(LoginError::Busy { provider }),
                None => sleep(LOCK_PAUSE).await,
            }
        }
    }

    async fn renew(&self, locked: &mut Self::Lock) -> Result<Secret, LoginError> {
        let (server, provider) = (&self.server, self.server.provider);
        let tokens = locked.read()?;
        let Some(refresh) = &tokens.refresh else {
            let reason = "it has expired, and cannot be renewed".to_owned();
            return Err(LoginError::Ended { provider, reason });
        };
        match renew(server, refresh).await? {
            TokenResponse::Good(grant) => {
                let renewed = grant.into_tokens(Some(&tokens), self.logins.clock.now());
                locked.save(&renewed)?;
                Ok(renewed.access)
            }
            TokenResponse::Refused(refusal) => {
                let reason = refusal.reason(&[refresh, &tokens.access]);
                if !refusal.is_final() {
                    return Err(not_now(server, &reason));
                }
                locked.end(&reason)?;
                Err(LoginError::Ended { provider, reason })
            }
        }
    }

    fn broken_off(&self, _reason: String) -> LoginError {
        LoginError::Busy {
            provider: self.server.provider,
        }
    }
}

fn not_now(server: &LoginServer, reason: &str) -> LoginError {
    LoginError::Unexpected {
        host: server.host().to_owned(),
        what: format!("did not renew the login: {reason}"),
    }
}

/// A login from before the provider's rules changed is refused with words nobody understands.
fn check_scope(server: &LoginServer, tokens: &LoginTokens) -> Result<(), LoginError> {
    if tokens.allows(server.login.needed_scope) {
        Ok(())
    } else {
        Err(LoginError::Ended {
            provider: server.provider,
            reason: format!("it does not allow `{}`", server.login.needed_scope),
        })
    }
}
