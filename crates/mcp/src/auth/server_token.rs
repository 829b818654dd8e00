//! Keeps the token of one server: gives it to requests, renews it once for all who need it.
//!
//! That it happens once, among the tasks of this process and among all processes, is the work of [`Renewals`]. What is
//! added here: the file is looked at only when it has changed, and a failure is remembered for those who come just after.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{Clock, Secret};
use hermes_os::FileLock;
use hermes_os::renewal::{Renewable, Renewals};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::client::{Client, Metadata};
use super::disk::Stamp;
use super::http::Web;
use super::login::{Resource, discover};
use super::renewal::{NotRenewed, renew};
use super::store::Store;
use super::token::Token;
use crate::client::McpPorts;
use crate::failure::Failure;
use crate::settings::{OAuthSettings, ServerSettings};

/// Requests look for a changed file this often.
const LOOK: Duration = Duration::from_secs(1);
/// How often we look for a login while there is no usable token.
const WAIT_LOOK: Duration = Duration::from_secs(1);
/// After a failed renewal, others who wait for it fail with it instead of trying themselves.
const FAILED_TOGETHER: Duration = Duration::from_secs(2);
/// A bare refusal on the next connection within this time is about the token; the first was perhaps about the session.
const SUSPICION: Duration = Duration::from_secs(30);

/// The OAuth token of one server, shared by its connections.
pub(crate) struct ServerToken {
    url: String,
    settings: OAuthSettings,
    web: Web,
    store: Store,
    clock: Arc<dyn Clock>,
    renewals: Renewals,
    state: std::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// Of the file that `token` came from, or was written to.
    stamp: Option<Stamp>,
    looked_at: Option<Instant>,
    /// The refresh token that could not be used, when, and why.
    trouble: Option<(Secret, Instant, Failure)>,
    suspect: Option<Suspect>,
}

/// A token that was refused without a word about why.
struct Suspect {
    token: Secret,
    connection: u64,
    since: Instant,
}

impl ServerToken {
    /// Returns nothing for a server that takes no OAuth tokens.
    pub(crate) fn of(
        server: &ServerSettings,
        ports: &McpPorts,
        renewals: &TaskTracker,
    ) -> Option<Self> {
        let resource = Resource::of(server, ports).ok()?;
        Some(Self {
            url: resource.url.to_owned(),
            settings: resource.settings.clone(),
            web: resource.web,
            store: Store::new(&ports.token_folder, &server.name),
            clock: Arc::clone(&ports.clock),
            renewals: Renewals::new(renewals.clone()),
            state: std::sync::Mutex::default(),
        })
    }

    /// Returns the token to send now; a new one if the old one is about to expire.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Secret, Failure> {
        let token = self.look(LOOK).await?;
        if !token.is_due(self.clock.now()) {
            return Ok(token.access);
        }
        match self.another(token.access.clone()).await {
            // It was early; there will be another chance.
            Err(failure) if !token.is_expired(self.clock.now()) => {
                tracing::debug!(%failure, "a token could not be renewed before it expires");
                Ok(token.access)
            }
            result => result,
        }
    }

    /// Returns a token that is not `refused`, from whoever was first to renew it.
    pub(crate) async fn another(self: &Arc<Self>, refused: Secret) -> Result<Secret, Failure> {
        self.renewals.renewed(Arc::clone(self), refused).await
    }

    /// Returns whether a refusal that says nothing about the token is not to be blamed on it.
    ///
    /// It is when the token has expired, or when a new connection did not help.
    pub(crate) fn trusts(&self, refused: &Secret, connection: u64) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let is_expired = state
            .token
            .as_ref()
            .is_some_and(|token| token.is_expired(self.clock.now()));
        match &state.suspect {
            Some(suspect) if suspect.token == *refused && now - suspect.since < SUSPICION => {
                suspect.connection == connection && !is_expired
            }
            _ => {
                state.suspect = Some(Suspect {
                    token: refused.clone(),
                    connection,
                    since: now,
                });
                !is_expired
            }
        }
    }

    /// Reads the file again, and returns whether its token is known to allow all of this.
    pub(crate) async fn allows(&self, scopes: &[String]) -> bool {
        let granted = match self.look(Duration::ZERO).await {
            Ok(token) => token.scope.unwrap_or_default(),
            Err(_) => return false,
        };
        let granted: Vec<&str> = granted.split_whitespace().collect();
        scopes.iter().all(|scope| granted.contains(&scope.as_str()))
    }

    /// Waits until the token file is another than the one that was of no use.
    pub(crate) async fn changed(&self) {
        loop {
            let stamp = self.store.stamp();
            if stamp.is_some() && stamp != self.state().stamp {
                return;
            }
            sleep(WAIT_LOOK).await;
        }
    }

    /// Returns the token as it is known, or as the file has it if that has changed.
    async fn look(&self, every: Duration) -> Result<Token, Failure> {
        let now = Instant::now();
        let (known, stamp) = {
            let state = self.state();
            let is_fresh = state.looked_at.is_some_and(|at| now - at < every);
            match &state.token {
                Some(token) if is_fresh => return Ok(token.clone()),
                token => (token.clone(), state.stamp),
            }
        };
        let (store, url) = (self.store.clone(), self.url.clone());
        let (token, stamp) = blocking(move || {
            let found = store.stamp();
            let token = match known {
                // Also when it could not be written: what we have is newer than what the file has.
                Some(token) if found == stamp => Some(token),
                _ => store.token_for(&url)?,
            };
            Ok((token, found))
        })
        .await?;
        let mut state = self.state();
        state.looked_at = Some(now);
        state.stamp = stamp;
        state.token.clone_from(&token);
        token.ok_or_else(|| needs_login("nobody has logged in yet"))
    }

    /// Fails if this refresh token was rejected for good, or could not be used a moment ago.
    fn known_trouble(&self, refresh: &Secret) -> Result<(), Failure> {
        match &self.state().trouble {
            Some((token, at, failure)) if token == refresh => {
                let is_final = matches!(failure, Failure::NeedsLogin { .. });
                if is_final || at.elapsed() < FAILED_TOGETHER {
                    Err(failure.clone())
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    async fn ask_for_another(&self, refresh: &Secret) -> Result<Token, Failure> {
        let (metadata, client) = self.counterpart().await?;
        let resource = metadata.resource.as_deref().unwrap_or(&self.url);
        let clock = self.clock.as_ref();
        let renewed = renew(&self.web, &metadata, &client, refresh, resource, clock).await;
        renewed.map_err(|error| match error {
            NotRenewed::Rejected { reason } => needs_login(&format!(
                "the authorisation server no longer renews its token ({reason})"
            )),
            NotRenewed::UnknownClient { reason } => {
                if self.settings.client_id.is_none() {
                    self.store.set_client_aside();
                }
                needs_login(&format!(
                    "the authorisation server does not know us any more ({reason})"
                ))
            }
            NotRenewed::Failed(failure) => Failure::Unreachable {
                cause: format!("its token could not be renewed: {failure}"),
            },
        })
    }

    /// Returns where to renew the token, and as whom.
    async fn counterpart(&self) -> Result<(Metadata, Client), Failure> {
        let store = self.store.clone();
        let (metadata, registered) =
            blocking(move || Ok((store.metadata()?, store.client()?))).await?;
        let client = Client::configured(&self.settings).or(registered);
        let client = client.ok_or_else(|| needs_login("our registration with it is lost"))?;
        let metadata = match metadata {
            Some(metadata) => metadata,
            None => self.discovered().await?,
        };
        Ok((metadata, client))
    }

    async fn discovered(&self) -> Result<Metadata, Failure> {
        let metadata = discover(&self.url, self.web.clone())
            .await
            .map_err(|error| Failure::Unreachable {
                cause: format!("its token could not be renewed: {error}"),
            })?;
        let (store, saved) = (self.store.clone(), metadata.clone());
        blocking(move || store.save_metadata(&saved)).await?;
        Ok(metadata)
    }

    /// Writes a token down, and uses it from now on in any case.
    async fn keep(&self, token: Token) {
        let (store, saved) = (self.store.clone(), token.clone());
        let written = blocking(move || {
            let written = store.save_token(&saved);
            Ok((written, store.stamp()))
        });
        let stamp = match written.await {
            Ok((Ok(()), stamp)) => stamp,
            Ok((Err(failure), stamp)) => {
                tracing::warn!(%failure, "a renewed token could not be kept; log in again after the next start");
                stamp
            }
            Err(_) => None,
        };
        let mut state = self.state();
        state.token = Some(token);
        state.stamp = stamp;
        state.looked_at = Some(Instant::now());
        state.trouble = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Renewable for ServerToken {
    type Token = Secret;
    type Error = Failure;
    type Lock = FileLock;

    async fn newer_than(&self, refused: &Secret) -> Result<Option<Secret>, Failure> {
        let token = self.look(Duration::ZERO).await?;
        let is_good = token.access != *refused && !token.is_expired(self.clock.now());
        Ok(is_good.then_some(token.access))
    }

    async fn lock(&self) -> Result<FileLock, Failure> {
        self.store.lock().await
    }

    async fn renew(&self, _lock: &mut FileLock) -> Result<Secret, Failure> {
        let token = self.look(Duration::ZERO).await?;
        let Some(refresh) = &token.refresh else {
            return Err(needs_login("its token has expired, and cannot be renewed"));
        };
        self.known_trouble(refresh)?;
        match self.ask_for_another(refresh).await {
            Ok(renewed) => {
                let renewed = Token {
                    scope: renewed.scope.clone().or(token.scope),
                    ..renewed
                };
                self.keep(renewed.clone()).await;
                Ok(renewed.access)
            }
            Err(failure) => {
                let trouble = (refresh.clone(), Instant::now(), failure.clone());
                self.state().trouble = Some(trouble);
                Err(failure)
            }
        }
    }

    fn broken_off(&self, reason: String) -> Failure {
        Failure::Unreachable {
            cause: format!("renewing the token was broken off: {reason}"),
        }
    }
}

fn needs_login(reason: &str) -> Failure {
    Failure::NeedsLogin {
        reason: reason.to_owned(),
    }
}

/// Runs file work where it does not hold up other tasks.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(Failure::Unreachable {
            cause: format!("the token files could not be used: {error}"),
        })
    })
}
