//! Logging in with a code that a person confirms in a browser, on this machine or any other (RFC 8628).

use std::time::Duration;

use hermes_core::{Clock, LoginTokens, Secret};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::exchange::{Grant, TokenResponse, post, seconds};
use super::server::is_safe;
use super::{LoginError, LoginServer};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Between two questions, when the server does not say; from the RFC.
const INTERVAL: Duration = Duration::from_secs(5);
/// Nobody waits longer than this for a person to see that they are done.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// A code lives this long at most, whatever the server says.
const CODE_LIFETIME_MAX: Duration = Duration::from_secs(30 * 60);

/// How often the server is asked whether the person has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Not more often than this, even if the server allows it.
    pub interval_min: Duration,
    /// So much slower each time the server asks for it, or does not answer.
    pub slow_down: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            interval_min: Duration::from_secs(1),
            slow_down: Duration::from_secs(5),
        }
    }
}

/// What the person needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The page to open; it has the code in it already, where the server can do that.
    pub url: String,
    pub code: String,
}

/// A login that waits for its person. Dropping it leaves nothing behind: the code expires.
#[derive(Debug)]
pub struct DeviceFlow {
    server: LoginServer,
    device_code: Secret,
    prompt: Prompt,
    pace: Pace,
    interval: Duration,
    lifetime: Duration,
    begun: Instant,
}

/// Has no `Debug`: the device code is a secret.
#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Value,
    interval: Option<Value>,
}

impl DeviceFlow {
    /// Asks the server for a code.
    pub async fn begin(server: LoginServer, pace: Pace) -> Result<Self, LoginError> {
        let url = server.device_url();
        let form = [
            ("client_id", server.login.client_id),
            ("scope", server.login.scope),
        ];
        let authorization: Authorization = match post(&url, &form, None).await? {
            TokenResponse::Good(authorization) => authorization,
            TokenResponse::Refused(refusal) => {
                return Err(LoginError::Refused {
                    reason: refusal.reason(&[]),
                });
            }
        };
        let lifetime = seconds(&authorization.expires_in).unwrap_or(CODE_LIFETIME_MAX);
        let interval = authorization.interval.as_ref().and_then(seconds);
        Ok(Self {
            prompt: prompt(&authorization)?,
            device_code: Secret::new(authorization.device_code),
            server,
            pace,
            interval: interval
                .map_or(INTERVAL, |interval| interval.min(INTERVAL_MAX))
                .max(pace.interval_min),
            lifetime: lifetime.min(CODE_LIFETIME_MAX),
            begun: Instant::now(),
        })
    }

    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Waits until the person has confirmed the code or declined it, or the code has expired. `told` hears of trouble
    /// on the way that does not end the wait.
    pub async fn wait(
        mut self,
        clock: &dyn Clock,
        mut told: impl FnMut(&LoginError),
    ) -> Result<LoginTokens, LoginError> {
        while self.begun.elapsed() + self.interval < self.lifetime {
            sleep(self.interval).await;
            match self.ask().await {
                Ok(TokenResponse::Good(grant)) => return Ok(grant.into_tokens(None, clock.now())),
                Ok(TokenResponse::Refused(refusal)) => match refusal.error.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => self.slow_down(),
                    "access_denied" => return Err(LoginError::Declined),
                    "expired_token" => break,
                    _ => {
                        return Err(LoginError::Refused {
                            reason: refusal.reason(&[&self.device_code]),
                        });
                    }
                },
                Err(error) => {
                    told(&error);
                    self.slow_down();
                }
            }
        }
        Err(LoginError::Expired {
            after: self.lifetime,
        })
    }

    async fn ask(&self) -> Result<TokenResponse<Grant>, LoginError> {
        let form = [
            ("grant_type", GRANT),
            ("client_id", self.server.login.client_id),
            ("device_code", self.device_code.expose()),
        ];
        post(&self.server.token_url(), &form, None).await
    }

    fn slow_down(&mut self) {
        self.interval = (self.interval + self.pace.slow_down).min(INTERVAL_MAX);
    }
}

/// What the server wants shown. It goes to a terminal and to a browser, so it has to be what it says it is.
fn prompt(authorization: &Authorization) -> Result<Prompt, LoginError> {
    let complete = authorization.verification_uri_complete.as_ref();
    let url = complete.unwrap_or(&authorization.verification_uri);
    let code = &authorization.user_code;
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().all(|mark| mark.is_ascii_graphic());
    if is_plain(url) && is_safe(url) && is_plain(code) {
        Ok(Prompt {
            url: url.clone(),
            code: code.clone(),
        })
    } else {
        Err(LoginError::Refused {
            reason: "the server sent no address or code that can be shown".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(url: &str, code: &str) -> Option<Prompt> {
        let authorization = json!({
            "device_code": "d", "user_code": code, "verification_uri": url, "expires_in": 600,
        });
        prompt(&serde_json::from_value(authorization).unwrap()).ok()
    }

    #[test]
    fn only_what_is_safe_to_show_and_to_open_is_shown() {
        assert!(shown("https://portal.example/device", "ABCD-EFGH").is_some());
        assert!(shown("http://127.0.0.1:9/device", "ABCD").is_some());
        for (url, code) in [
            ("http://portal.example/device", "ABCD"),
            ("file:///etc/passwd", "ABCD"),
            ("https://portal.example/\u{1b}[2J", "ABCD"),
            ("https://portal.example/device", "AB\u{1b}[0m"),
            ("https://portal.example/device", ""),
        ] {
            assert_eq!(shown(url, code), None, "{url:?} {code:?}");
        }
    }
}
