//! Logging in: an address for a person to visit, and a token for what they bring back.
//!
//! Knows no terminal and no browser, so that any surface can do it: [`Login::begin`] gives the address, [`Login::finish`]
//! takes the address the browser was sent back to, or the bare code in it. Between them may lie another process's
//! screen and ten minutes.

use std::sync::Arc;

use hermes_core::Clock;
use hermes_core::redact::redact;
use hermes_core::text::shorten;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig, OAuthTokenResponse,
};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::answer::AuthorizationResponse;
use super::challenge::challenge;
use super::client::{Client, Metadata};
use super::http::{LibraryHttp, Web};
use super::registration::Registrar;
use super::server_token::blocking;
use super::store::Store;
use super::token::{Token, TokenFile};
use crate::client::McpPorts;
use crate::failure::Failure;
use crate::settings::{OAuthSettings, ServerSettings, TransportSettings};

/// Of what a server says, this much is shown.
const REASON_CHARS_MAX: usize = 400;

/// A login that was begun and waits for a person.
pub struct Login {
    manager: AuthorizationManager,
    http: Arc<LibraryHttp>,
    store: Store,
    clock: Arc<dyn Clock>,
    url: String,
    state: String,
    client: Client,
    is_registered: bool,
    metadata: Metadata,
}

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("MCP server `{server}` does not log in with OAuth: its settings lack `auth: oauth`")]
    NotOAuth { server: String },
    #[error("cannot find out how to log in: {reason}")]
    Undiscovered { reason: String },
    #[error("the server does not let us register as a client: {reason}")]
    Unregistered { reason: String },
    #[error("the server refused the login: {reason}")]
    Refused { reason: String },
    #[error(
        "this is not the answer to this login; paste the whole address the browser was sent to"
    )]
    NotTheAnswer,
    #[error("the login could not be completed: {reason}")]
    NotExchanged { reason: String },
    #[error("{reason}")]
    Files { reason: String },
}

impl LoginError {
    /// Returns whether the same login can still be finished with another answer.
    pub fn may_try_again(&self) -> bool {
        matches!(self, Self::NotTheAnswer)
    }
}

impl Login {
    /// Finds the authorisation server, registers with it if need be, and returns what to visit.
    ///
    /// The browser will be sent to `redirect_uri`. `scopes` are asked for beside those that were granted before.
    pub async fn begin(
        server: &ServerSettings,
        ports: &McpPorts,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        let Resource { url, settings, web } = Resource::of(server, ports)?;
        let store = Store::new(&ports.token_folder, &server.name);
        let (mut manager, http) = manager(url, web).await?;
        let found = resolve(url, &mut manager, &http).await?;
        let scopes = wanted_scopes(&manager, &found, settings, &store, scopes).await?;
        let registrar = Registrar {
            settings,
            store: &store,
            found: &found,
            redirect_uri,
            scopes: &scopes,
        };
        let (client, is_registered) = registrar.client(&mut manager, &http).await?;
        let mut config = OAuthClientConfig::new(&client.id, redirect_uri);
        if let Some(secret) = &client.secret {
            config = config.with_client_secret(secret.expose());
        }
        manager.configure_client(config).map_err(undiscovered)?;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let url = manager.get_authorization_url(&scopes).await;
        let url = url.map_err(undiscovered)?;
        let metadata = Metadata {
            resource: parameter(&url, "resource"),
            ..as_metadata(&found)?
        };
        Ok(Self {
            state: parameter(&url, "state").unwrap_or_default(),
            manager,
            http,
            store,
            clock: Arc::clone(&ports.clock),
            url,
            client,
            is_registered,
            metadata,
        })
    }

    /// The address for the person's browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes what the browser came back with, gets a token for it and keeps it.
    ///
    /// `answer` is the whole address, or only the code. After [`LoginError::NotTheAnswer`] another may be tried.
    pub async fn finish(&self, answer: &str) -> Result<(), LoginError> {
        let answer = AuthorizationResponse::read(answer, &self.state)?;
        let exchange = self.manager.exchange_code_for_token_with_issuer(
            answer.code.expose(),
            &self.state,
            answer.issuer.as_deref(),
        );
        // The library writes the code and the answer into its log.
        let exchanged = exchange.with_subscriber(NoSubscriber::default()).await;
        let response = exchanged.map_err(|error| LoginError::NotExchanged {
            reason: explain(&error, &self.http),
        })?;
        let token = token_of(&response, self.clock.as_ref())?;
        self.keep(token).await.map_err(files)
    }

    async fn keep(&self, token: Token) -> Result<(), Failure> {
        let _alone = self.store.lock().await?;
        let (store, metadata) = (self.store.clone(), self.metadata.clone());
        let client = self.is_registered.then(|| self.client.clone());
        blocking(move || {
            if let Some(client) = client {
                store.save_client(&client)?;
            }
            store.save_metadata(&metadata)?;
            // Last: whoever waits for a token finds the rest already there.
            store.save_token(&token)
        })
        .await
    }
}

/// Forgets the token of a server, and our registration with it.
pub async fn forget_login(server: &ServerSettings, ports: &McpPorts) -> Result<(), LoginError> {
    Resource::of(server, ports)?;
    let store = Store::new(&ports.token_folder, &server.name);
    let _alone = store.lock().await.map_err(files)?;
    blocking({
        let store = store.clone();
        move || store.forget()
    })
    .await
    .map_err(files)
}

/// Finds out where tokens for a resource are renewed.
pub(super) async fn discover(url: &str, web: Web) -> Result<Metadata, LoginError> {
    let (mut manager, http) = manager(url, web).await?;
    let found = resolve(url, &mut manager, &http).await?;
    as_metadata(&found)
}

async fn manager(
    url: &str,
    web: Web,
) -> Result<(AuthorizationManager, Arc<LibraryHttp>), LoginError> {
    let http = Arc::new(LibraryHttp::new(web));
    let manager =
        AuthorizationManager::new_with_oauth_http_client(url, Arc::clone(&http) as _).await;
    Ok((manager.map_err(undiscovered)?, http))
}

async fn resolve(
    url: &str,
    manager: &mut AuthorizationManager,
    http: &LibraryHttp,
) -> Result<AuthorizationMetadata, LoginError> {
    let challenge = challenge(url, &http.web).await;
    let resolved = manager
        .resolve_metadata_from_challenge(challenge.as_deref())
        .await;
    let resolved = resolved.map_err(|error| LoginError::Undiscovered {
        reason: explain(&error, http),
    })?;
    if !resolved.source.is_discovered() {
        tracing::debug!("the server publishes nothing about OAuth; the usual addresses are tried");
    }
    manager.set_metadata(resolved.metadata.clone());
    Ok(resolved.metadata)
}

/// Chooses the scopes: those of the settings, or what the server says it needs; and with a step up, all that was
/// granted before.
async fn wanted_scopes(
    manager: &AuthorizationManager,
    found: &AuthorizationMetadata,
    settings: &OAuthSettings,
    store: &Store,
    more: &[String],
) -> Result<Vec<String>, LoginError> {
    let mut scopes = if settings.scopes.is_empty() {
        manager.select_initial_scopes(&[]).await
    } else {
        settings.scopes.clone()
    };
    if !more.is_empty() {
        let granted = store.token().map_err(files)?.and_then(|token| token.scope);
        let granted = granted.unwrap_or_default();
        scopes.extend(granted.split_whitespace().map(str::to_owned));
        scopes.extend_from_slice(more);
    }
    let supported = found.scopes_supported.as_deref().unwrap_or_default();
    if !scopes.is_empty() && supported.iter().any(|scope| scope == OFFLINE_ACCESS) {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    Ok(scopes)
}

/// What some servers want to be asked for before they give out refresh tokens.
const OFFLINE_ACCESS: &str = "offline_access";

/// A server that wants tokens, and how to reach whoever gives them out.
pub(super) struct Resource<'a> {
    pub(super) url: &'a str,
    pub(super) settings: &'a OAuthSettings,
    pub(super) web: Web,
}

impl<'a> Resource<'a> {
    pub(super) fn of(server: &'a ServerSettings, ports: &McpPorts) -> Result<Self, LoginError> {
        match (&server.transport, &server.oauth) {
            (TransportSettings::Http { url, tls, .. }, Some(settings)) => Ok(Self {
                url,
                settings,
                web: Web::new(tls, ports),
            }),
            _ => Err(LoginError::NotOAuth {
                server: server.name.clone(),
            }),
        }
    }
}

/// The library's answer has the shape of our file.
fn token_of(response: &OAuthTokenResponse, clock: &dyn Clock) -> Result<Token, LoginError> {
    let file = serde_json::to_value(response).and_then(serde_json::from_value::<TokenFile>);
    let file = file.map_err(|_| LoginError::NotExchanged {
        reason: "the token has the wrong shape".to_owned(),
    })?;
    Ok(file.into_token(clock.now()))
}

fn as_metadata(found: &AuthorizationMetadata) -> Result<Metadata, LoginError> {
    let value = serde_json::to_value(found).and_then(serde_json::from_value);
    value.map_err(|error| LoginError::Undiscovered {
        reason: format!("its metadata make no sense: {error}"),
    })
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn undiscovered(error: AuthError) -> LoginError {
    LoginError::Undiscovered {
        reason: clean(&error.to_string()),
    }
}

pub(super) fn files(failure: Failure) -> LoginError {
    LoginError::Files {
        reason: failure.to_string(),
    }
}

/// Says what went wrong, with the cause that the library leaves out.
pub(super) fn explain(error: &AuthError, http: &LibraryHttp) -> String {
    let text = clean(&error.to_string());
    match http.last_failure() {
        Some(cause) if !text.contains(&cause) => format!("{text} ({cause})"),
        _ => text,
    }
}

pub(super) fn clean(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    redact(&shorten(&one_line, REASON_CHARS_MAX))
}
