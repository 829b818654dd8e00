//! One request to a login server, and what its answer means.

use std::time::Duration;

use form_urlencoded::Serializer;
use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{LoginTokens, Secret, Timestamp};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::time::timeout;

use super::{LoginError, LoginServer, RefreshTokenIn};
use crate::address::host_of;
use crate::http::Http;
use crate::transport;

/// For one request, from the first packet to the last. Somebody waits for it, or a lock is held for it.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Tokens are small.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Of what a server says about a refusal, this much is shown.
const REASON_CHARS_MAX: usize = 200;
/// A login lives no longer than this without being renewed, whatever the server says.
const LIFETIME_MAX: Duration = Duration::from_secs(365 * 86_400);

/// An answer that could be read.
pub(super) enum TokenResponse<T> {
    Good(T),
    Refused(Refusal),
}

/// What OAuth servers say instead of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    error_description: Option<String>,
}

impl Refusal {
    /// The server's words, fit to be shown: without what it was sent, which it may repeat.
    pub(super) fn reason(&self, sent: &[&Secret]) -> String {
        let description = self.error_description.as_deref().unwrap_or_default().trim();
        let reason = match description {
            "" => self.error.clone(),
            text => format!("{text} ({})", self.error),
        };
        let reason = sent.iter().fold(reason, |reason, secret| {
            reason.replace(secret.expose(), "***")
        });
        let reason: String = reason
            .chars()
            .map(|mark| if mark.is_control() { ' ' } else { mark })
            .collect();
        shorten(&redact(&reason), REASON_CHARS_MAX)
    }

    /// Returns whether no later request with the same token will be answered otherwise.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self.error.as_str(),
            "invalid_grant" | "invalid_token" | "refresh_token_reused"
        )
    }
}

/// A grant of tokens. Has no `Debug`: its texts are secrets.
#[derive(Deserialize)]
pub(super) struct Grant {
    #[serde(deserialize_with = "not_empty")]
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    scope: Option<String>,
}

impl Grant {
    /// The tokens, with what stays as it was before when the server does not name it anew.
    pub(super) fn into_tokens(self, before: Option<&LoginTokens>, now: Timestamp) -> LoginTokens {
        let refresh = self.refresh_token.filter(|token| !token.is_empty());
        let lifetime = self.expires_in.as_ref().and_then(seconds);
        LoginTokens {
            access: Secret::new(self.access_token),
            refresh: refresh
                .map(Secret::new)
                .or_else(|| before.and_then(|before| before.refresh.clone())),
            expires_at: lifetime.map(|lifetime| now.plus(lifetime.min(LIFETIME_MAX))),
            scope: self
                .scope
                .or_else(|| before.map(|before| before.scope.clone()))
                .unwrap_or_default(),
        }
    }
}

/// An empty token is no token: it would be saved, and every request refused.
fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        Err(D::Error::custom("empty"))
    } else {
        Ok(text)
    }
}

/// Reads a number of seconds; some servers write it as a text.
pub(super) fn seconds(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::String(text) => text.parse().ok()?,
        value => value.as_f64()?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Exchanges a refresh token for new tokens. The old one may be void from the moment this is polled.
pub(super) async fn renew(
    server: &LoginServer,
    refresh: &Secret,
) -> Result<TokenResponse<Grant>, LoginError> {
    let mut form = vec![
        ("grant_type", "refresh_token"),
        ("client_id", server.login.client_id),
    ];
    let header = match server.login.refresh_token_in {
        RefreshTokenIn::Header(name) => Some((name, refresh)),
        RefreshTokenIn::Form => {
            form.push(("refresh_token", refresh.expose()));
            None
        }
    };
    post(&server.token_url(), &form, header).await
}

/// Ends a login at the provider. Returns false when the provider has no way to do that.
pub async fn revoke(server: &LoginServer, refresh: &Secret) -> Result<bool, LoginError> {
    let Some(url) = server.revoke_url() else {
        return Ok(false);
    };
    let form = [
        ("token", refresh.expose()),
        ("token_type_hint", "refresh_token"),
        ("client_id", server.login.client_id),
    ];
    let (status, body) = send(&url, &form, None).await?;
    if (200..300).contains(&status) {
        return Ok(true);
    }
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(refusal) => Err(LoginError::Refused {
            reason: refusal.reason(&[refresh]),
        }),
        Err(_) => Err(unexpected(&url, status)),
    }
}

/// Sends a form and reads the answer. Fails when that is neither what was asked for nor a refusal.
pub(super) async fn post<T: DeserializeOwned>(
    url: &str,
    form: &[(&str, &str)],
    header: Option<(&str, &Secret)>,
) -> Result<TokenResponse<T>, LoginError> {
    let (status, body) = send(url, form, header).await?;
    if let Ok(refusal) = serde_json::from_slice(&body) {
        return Ok(TokenResponse::Refused(refusal));
    }
    match serde_json::from_slice(&body) {
        Ok(good) if (200..300).contains(&status) => Ok(TokenResponse::Good(good)),
        _ => Err(unexpected(url, status)),
    }
}

fn unexpected(url: &str, status: u16) -> LoginError {
    LoginError::Unexpected {
        host: host_of(url).to_owned(),
        what: format!("answered with HTTP status {status}, and nothing a login server would say"),
    }
}

async fn send(
    url: &str,
    form: &[(&str, &str)],
    header: Option<(&str, &Secret)>,
) -> Result<(u16, Vec<u8>), LoginError> {
    let unreachable = |cause: String| LoginError::Unreachable {
        host: host_of(url).to_owned(),
        cause,
    };
    let client = Http::new(REQUEST_TIMEOUT).client(url);
    let client = client.map_err(|error| unreachable(transport::no_client(&error)))?;
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let mut request = client
        .post(url)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body);
    if let Some((name, value)) = header {
        request = request.header(name, value.expose());
    }
    let broken = |error: reqwest::Error| unreachable(transport::root_cause(&error));
    let exchanged = timeout(REQUEST_TIMEOUT, async {
        let mut response = request.send().await.map_err(broken)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_BYTES_MAX {
                return Err(unreachable("its answer is too long for a token".into()));
            }
        }
        Ok((response.status().as_u16(), body))
    });
    match exchanged.await {
        Ok(answer) => answer,
        Err(_) => Err(unreachable(format!(
            "no answer came within {} s",
            REQUEST_TIMEOUT.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_token_is_not_a_grant() {
        let read = serde_json::from_str::<Grant>;
        assert!(read(r#"{"access_token":"t","expires_in":"3600"}"#).is_ok());
        assert!(read(r#"{"access_token":""}"#).is_err());
    }
}
