//! The token of a request, and the one to try after the server refused it.

use hermes_core::Secret;
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use reqwest::Response;

use super::{HttpClient, HttpFailure};

impl HttpClient {
    /// Returns the token to send, for servers that want one.
    pub(super) async fn token(&self) -> Result<Option<Secret>, HttpFailure> {
        match &self.tokens {
            Some(keeper) => keeper.token().await.map(Some).map_err(HttpFailure),
            None => Ok(None),
        }
    }

    /// Returns another token if the server refused the one it was sent, and not something else.
    ///
    /// A refused request was not executed, so it may be sent again.
    pub(super) async fn token_after(
        &self,
        response: &Response,
        sent: Option<Secret>,
        session_sent: bool,
    ) -> Result<Option<Secret>, HttpFailure> {
        let (Some(keeper), Some(sent)) = (&self.tokens, sent) else {
            return Ok(None);
        };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        // Without a challenge it may be the session that is gone: a new one is tried before a new token.
        let has_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
        if !has_challenge && session_sent && keeper.trusts(&sent, self.reporter.epoch()) {
            return Ok(None);
        }
        keeper.another(sent).await.map(Some).map_err(HttpFailure)
    }
}
