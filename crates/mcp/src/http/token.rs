//! The token of a request, and the one to try after the server refused it.

use std::time::Duration;

use hermes_core::Secret;
use http::StatusCode;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response};
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::time::timeout;

use super::streamable::{Headers, JSON, new_session};
use super::{HttpClient, HttpFailure};

/// For an answer that only says whether credentials are good.
const CREDENTIALS_WAIT: Duration = Duration::from_secs(5);

impl HttpClient {
    /// Sends a request, with a token if the server wants one; once more, with another, if it was refused for it.
    ///
    /// A request that was refused for its token was not executed, so it may be sent again.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        session_sent: bool,
    ) -> Result<Response, HttpFailure> {
        let Some(server_token) = &self.tokens else {
            return Ok(request.send().await?);
        };
        let token = server_token.token().await.map_err(HttpFailure)?;
        let again = request.try_clone();
        let response = request.bearer_auth(token.expose()).send().await?;
        match again {
            Some(again) if self.is_about_token(&response, &token, session_sent).await => {
                let another = server_token.another(token).await.map_err(HttpFailure)?;
                Ok(again.bearer_auth(another.expose()).send().await?)
            }
            _ => Ok(response),
        }
    }

    /// Returns whether the server refused the token, and not something else.
    async fn is_about_token(
        &self,
        response: &Response,
        token: &Secret,
        session_sent: bool,
    ) -> bool {
        if response.status() != StatusCode::UNAUTHORIZED {
            return false;
        }
        // Without a challenge it may be the session that is gone: a new one is tried before a new token, if the token
        // is good without a session.
        let has_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
        let trusts = |server_token: &crate::auth::ServerToken| {
            server_token.trusts(token, self.reporter.epoch())
        };
        has_challenge
            || !session_sent
            || !self.tokens.as_deref().is_some_and(trusts)
            || !self.accepts(response.url().as_str(), Some(token)).await
    }

    /// Asks a server for something harmless without a session, and returns whether it takes our credentials.
    pub(super) async fn accepts_credentials(&self, url: &str) -> bool {
        match &self.tokens {
            None => self.accepts(url, None).await,
            // A token that was refused has been looked at already, and perhaps renewed.
            Some(_) => true,
        }
    }

    /// A beginning is what every server takes without a session: one that refuses it refuses the credentials.
    async fn accepts(&self, url: &str, token: Option<&Secret>) -> bool {
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE,
            "capabilities": {},
            "clientInfo": { "name": "hermes", "version": env!("CARGO_PKG_VERSION") },
        } });
        let with_token = |request: RequestBuilder| match token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        };
        let request = self.dressed(self.client.post(url), None, Headers::new());
        let request = request
            .header(CONTENT_TYPE, JSON)
            .body(initialize.to_string());
        // One that cannot be asked has not refused them.
        let Ok(Ok(response)) = timeout(CREDENTIALS_WAIT, with_token(request).send()).await else {
            return true;
        };
        if let Some(session) = new_session(&response) {
            // Nobody needs it. A server that keeps it all the same forgets it in time.
            let end = self.dressed(self.client.delete(url), Some(&session), Headers::new());
            let _ = timeout(CREDENTIALS_WAIT, with_token(end).send()).await;
        }
        response.status() != StatusCode::UNAUTHORIZED
    }
}
