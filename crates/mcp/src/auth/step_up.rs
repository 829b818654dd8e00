//! Asks the person behind a call to log in, or for a right that their login lacks, while the call waits.
//!
//! Meets the rest of the crate where every login does: in the token files.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{ElicitationRequest, Response, Wanted};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::callback::{Callback, CallbackError};
use super::login::{Login, LoginError};
use super::server_token::ServerToken;
use crate::client::McpPorts;
use crate::in_flight::Call;
use crate::settings::{OAuthSettings, ServerSettings};

/// How often we look for a login that somebody makes elsewhere.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct StepUp {
    settings: Arc<ServerSettings>,
    oauth: OAuthSettings,
    ports: McpPorts,
    server_token: Arc<ServerToken>,
    /// Calls that lack the same right need one login; a person does one at a time in any case.
    asking: Mutex<()>,
}

impl StepUp {
    /// Makes the one of a server with logins, where there are persons to ask.
    pub(crate) fn of(
        settings: &Arc<ServerSettings>,
        ports: &McpPorts,
        server_token: Option<&Arc<ServerToken>>,
    ) -> Option<Self> {
        let server_token = server_token.filter(|_| ports.is_attended)?;
        Some(Self {
            settings: Arc::clone(settings),
            oauth: settings.oauth.clone()?,
            ports: ports.clone(),
            server_token: Arc::clone(server_token),
            asking: Mutex::default(),
        })
    }

    /// Has the person log in for `scopes` beside those they have granted. `Err` says why they have not.
    pub(crate) async fn grant(&self, scopes: &[String], call: &Call) -> Result<(), String> {
        let _alone = self.asking.lock().await;
        if self.server_token.allows(scopes).await {
            return Ok(());
        }
        let message = format!(
            "your login does not allow what this call does; log in again to grant `{}`",
            scopes.join(" ")
        );
        self.log_in(scopes, message, call).await
    }

    /// Has the person log in, if it `is_needed` still when it is their turn. `Err` says why they have not.
    pub(crate) async fn let_in(
        &self,
        is_needed: impl Fn() -> bool,
        call: &Call,
    ) -> Result<(), String> {
        let _alone = self.asking.lock().await;
        if !is_needed() {
            return Ok(());
        }
        let message = "it lets nobody in without a login, or yours has ended; log in to go on";
        self.log_in(&[], message.to_owned(), call).await
    }

    /// Waits until a login that was made elsewhere allows all of this.
    pub(crate) async fn granted_elsewhere(&self, scopes: &[String]) {
        loop {
            sleep(LOOK).await;
            if self.server_token.allows(scopes).await {
                return;
            }
        }
    }

    async fn log_in(&self, scopes: &[String], message: String, call: &Call) -> Result<(), String> {
        // However long a person takes, the server is not to blame.
        let _waiting = call.is_asked();
        let callback = Callback::open(&self.settings, &self.ports).await;
        let callback = callback.map_err(|error: CallbackError| error.to_string())?;
        let login = Login::begin(&self.settings, &self.ports, callback.redirect_uri(), scopes);
        let login = login.await.map_err(|error| error.to_string())?;
        let ask = self.question(&login, message);
        let returned = finished(&login, callback);
        tokio::pin!(returned);
        // Whoever shows the question keeps the time too, but a call must end where nobody does.
        let asked = timeout(self.oauth.login_timeout, call.elicit(ask));
        let logged_in = tokio::select! {
            logged_in = &mut returned => Some(logged_in),
            response = asked => match response.unwrap_or(Response::Cancelled) {
                Response::Accepted { .. } => timeout(self.oauth.login_timeout, returned).await.ok(),
                Response::Declined { reason } => {
                    return Err(reason.unwrap_or_else(|| "the person declined".to_owned()));
                }
                Response::Cancelled => None,
            },
        };
        match logged_in {
            Some(Ok(())) => {
                // From now on requests carry the new token.
                self.server_token.allows(scopes).await;
                Ok(())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("nobody logged in in time".to_owned()),
        }
    }

    fn question(&self, login: &Login, message: String) -> ElicitationRequest {
        ElicitationRequest {
            asker: format!("MCP server `{}`", self.settings.name),
            message,
            wanted: Wanted::Visit {
                url: login.url().to_owned(),
            },
            timeout: self.oauth.login_timeout,
        }
    }
}

/// Waits for the browser to come back with an answer to this login.
async fn finished(login: &Login, mut callback: Callback) -> Result<(), LoginError> {
    loop {
        let returned = callback.returned().await;
        let finished = login.finish(&returned.answer).await;
        returned.show(&finished).await;
        match finished {
            Err(error) if error.may_try_again() => {}
            finished => return finished,
        }
    }
}

impl fmt::Debug for StepUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StepUp").field(&self.settings.name).finish()
    }
}
