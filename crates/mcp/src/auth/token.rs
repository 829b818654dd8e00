//! A token, and the shape of the file it is kept in.

use std::time::Duration;

use hermes_core::{Secret, Timestamp};
use serde::{Deserialize, Serialize};

/// A token is renewed this long before it expires, so that none expires on its way.
const EARLY: Duration = Duration::from_secs(60);
/// Of a short life, only this part is given up.
const EARLY_PART: u32 = 5;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// `None`: the server did not say.
    pub(super) expires_at: Option<Timestamp>,
    /// How long it was valid when it was given out.
    pub(super) lifetime: Option<Duration>,
    /// What it allows, as the server wrote it.
    pub(super) scope: Option<String>,
}

impl Token {
    /// Makes a token that was given out now.
    pub(super) fn granted(
        access: Secret,
        refresh: Option<Secret>,
        lifetime: Option<Duration>,
        scope: Option<String>,
        now: Timestamp,
    ) -> Self {
        Self {
            access,
            refresh,
            expires_at: lifetime.map(|lifetime| later(now, lifetime)),
            lifetime,
            scope,
        }
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Returns whether it is time to renew the token, also while it is still good.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let early = self
            .lifetime
            .map_or(EARLY, |lifetime| EARLY.min(lifetime / EARLY_PART));
        self.expires_at.is_some_and(|at| at <= later(now, early))
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_add(by))
}

/// `<server>.json`. Has no `Debug`: its texts are the secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct TokenFile {
    access_token: String,
    #[serde(default = "bearer")]
    token_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<f64>,
}

fn bearer() -> String {
    "Bearer".to_owned()
}

impl TokenFile {
    pub(super) fn of(token: &Token) -> Self {
        let seconds = |at: Timestamp| at.as_millis() as f64 / 1e3;
        Self {
            access_token: token.access.expose().to_owned(),
            token_type: bearer(),
            expires_in: token
                .lifetime
                .map(|lifetime| lifetime.as_secs_f64().round()),
            scope: token.scope.clone(),
            refresh_token: token
                .refresh
                .as_ref()
                .map(|secret| secret.expose().to_owned()),
            expires_at: token.expires_at.map(seconds),
        }
    }

    /// `written_at` stands in for the expiry that old files lack.
    pub(super) fn into_token(self, written_at: Timestamp) -> Token {
        let lifetime = self
            .expires_in
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let noted = self
            .expires_at
            .map(|seconds| Timestamp::from_millis((seconds * 1e3) as i64));
        Token {
            access: Secret::new(self.access_token),
            refresh: self.refresh_token.map(Secret::new),
            expires_at: noted.or_else(|| lifetime.map(|lifetime| later(written_at, lifetime))),
            lifetime,
            scope: self.scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn living(seconds: u64) -> Token {
        let lifetime = Some(Duration::from_secs(seconds));
        Token::granted(Secret::new("a"), None, lifetime, None, NOW)
    }

    #[test]
    fn a_token_is_renewed_a_minute_early_and_a_short_one_at_four_fifths() {
        let is_due = |token: &Token, after| token.is_due(later(NOW, Duration::from_secs(after)));
        let hour = living(3600);
        assert!(!is_due(&hour, 3539) && is_due(&hour, 3540));
        let short = living(50);
        assert!(!is_due(&short, 39) && is_due(&short, 40));
        assert!(!short.is_expired(later(NOW, Duration::from_secs(49))));
        assert!(short.is_expired(later(NOW, Duration::from_secs(50))));
    }

    #[test]
    fn a_token_without_an_expiry_is_never_due() {
        let token = Token::granted(Secret::new("a"), None, None, None, NOW);
        assert!(!token.is_due(later(NOW, Duration::from_secs(1 << 40))));
    }

    #[test]
    fn a_file_without_an_absolute_expiry_counts_from_when_it_was_written() {
        let file: TokenFile =
            serde_json::from_str(r#"{"access_token":"a","expires_in":60}"#).unwrap();
        let token = file.into_token(NOW);
        assert_eq!(token.expires_at, Some(later(NOW, Duration::from_secs(60))));
    }
}
