//! The token of a request, and the one to try after the server refused it.

use hermes_core::Secret;
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use reqwest::{RequestBuilder, Response};

use super::{HttpClient, HttpFailure};

impl HttpClient {
    /// Sends a request, with a token if the server wants one; once more, with another, if it was refused for it.
    ///
    /// A request that was refused for its token was not executed, so it may be sent again.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        session_sent: bool,
    ) -> Result<Response, HttpFailure> {
        let Some(keeper) = &self.tokens else {
            return Ok(request.send().await?);
        };
        let token = keeper.token().await.map_err(HttpFailure)?;
        let again = request.try_clone();
        let response = request.bearer_auth(token.expose()).send().await?;
        match again {
            Some(again) if self.is_about_token(&response, &token, session_sent) => {
                let another = keeper.another(token).await.map_err(HttpFailure)?;
                Ok(again.bearer_auth(another.expose()).send().await?)
            }
            _ => Ok(response),
        }
    }

    /// Returns whether the server refused the token, and not something else.
    fn is_about_token(&self, response: &Response, token: &Secret, session_sent: bool) -> bool {
        if response.status() != StatusCode::UNAUTHORIZED {
            return false;
        }
        // Without a challenge it may be the session that is gone: a new one is tried before a new token.
        let has_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
        let trusts = |keeper: &crate::auth::Keeper| keeper.trusts(token, self.reporter.epoch());
        has_challenge || !session_sent || !self.tokens.as_deref().is_some_and(trusts)
    }
}
