//! Asks an authorisation server for the next token. One request; what its failure means is told apart.

use std::time::Duration;

use form_urlencoded::{Serializer, byte_serialize};
use hermes_core::text::shorten;
use hermes_core::{Clock, Secret};
use http::header::{ACCEPT, CONTENT_TYPE};
use reqwest::RequestBuilder;
use serde::Deserialize;

use super::client::{Client, Metadata};
use super::http::{Web, exchange};
use super::token::Token;
use crate::failure::{Failure, with_sources};

/// Of what a server says about its refusal, this much is shown.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Why there is no new token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NotRenewed {
    /// The server will never again take this refresh token.
    Rejected { reason: String },
    /// The server does not know us any more.
    UnknownClient { reason: String },
    /// Nothing is lost: it may work the next time.
    Failed(Failure),
}

/// Exchanges a refresh token for a new token. The old one may be void from the moment this is polled.
pub(super) async fn renew(
    web: &Web,
    metadata: &Metadata,
    client: &Client,
    refresh: &Secret,
    resource: &str,
    clock: &dyn Clock,
) -> Result<Token, NotRenewed> {
    let http = web.client(&metadata.token_endpoint).await;
    let http = http.map_err(NotRenewed::Failed)?;
    let request = request(&http, metadata, client, refresh, resource);
    let answer = match request.build() {
        Ok(request) => exchange(&http, request).await.map_err(NotRenewed::Failed)?,
        Err(error) => return Err(failed(with_sources(&error.without_url()))),
    };
    let answered: Option<TokenResponse> = serde_json::from_slice(answer.body()).ok();
    match answered {
        Some(TokenResponse {
            error: Some(error),
            error_description,
            ..
        }) => Err(refusal(&error, error_description.as_deref())),
        Some(TokenResponse {
            access_token: Some(access),
            refresh_token,
            expires_in,
            scope,
            ..
        }) if answer.status().is_success() => {
            let lifetime = expires_in.as_ref().and_then(lifetime);
            // A server that names no new refresh token lets us keep the old one.
            let refresh = refresh_token.map_or_else(|| refresh.clone(), Secret::new);
            Ok(Token::granted(
                Secret::new(access),
                Some(refresh),
                lifetime,
                scope,
                clock.now(),
            ))
        }
        _ => Err(failed(format!(
            "the token endpoint answered with HTTP {} and no token",
            answer.status().as_u16()
        ))),
    }
}

fn request(
    http: &reqwest::Client,
    metadata: &Metadata,
    client: &Client,
    refresh: &Secret,
    resource: &str,
) -> RequestBuilder {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token")
        .append_pair("refresh_token", refresh.expose())
        .append_pair("resource", resource);
    let mut request = http.post(&metadata.token_endpoint);
    match &client.secret {
        Some(secret) if !metadata.wants_secret_in_body() => {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(&client.id), Some(encoded(secret.expose())));
        }
        Some(secret) => {
            form.append_pair("client_id", &client.id)
                .append_pair("client_secret", secret.expose());
        }
        None => {
            form.append_pair("client_id", &client.id);
        }
    }
    request
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form.finish())
}

fn failed(cause: String) -> NotRenewed {
    NotRenewed::Failed(Failure::Unreachable { cause })
}

fn refusal(error: &str, description: Option<&str>) -> NotRenewed {
    let reason = match description.map(str::trim) {
        None | Some("") => error.to_owned(),
        Some(text) => format!("{error}: {}", shorten(text, DESCRIPTION_CHARS_MAX)),
    };
    match error {
        // The second is what one large provider says instead.
        "invalid_grant" | "bad_refresh_token" => NotRenewed::Rejected { reason },
        "invalid_client" | "unauthorized_client" => NotRenewed::UnknownClient { reason },
        _ => failed(format!(
            "the token endpoint refused to renew the token ({reason})"
        )),
    }
}

/// Some servers write the number as a text.
fn lifetime(value: &serde_json::Value) -> Option<Duration> {
    let seconds = match value {
        serde_json::Value::String(text) => text.parse().ok()?,
        value => value.as_f64()?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Has no `Debug`: its texts are secrets.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<serde_json::Value>,
    scope: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}
