//! Which stored keys rest, kept in `auth.json`, so that every process spares a key that one of them was refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_config::{AuthError, AuthFile, Home, KeyState, Refusal, StoredKey, used_keys};
use hermes_core::{BoxFuture, Clock as _, ModelErrorKind, Secret};
use hermes_llm::{KeyLedger, KeyRefusal};

use crate::clock::SystemClock;

#[derive(Debug)]
pub(super) struct AuthLedger {
    /// The stored keys, each with the folder it is kept in. Keys of the environment rest in their process only.
    keys: Vec<(PathBuf, StoredKey)>,
}

impl AuthLedger {
    /// A file that cannot be read has nothing to say; whoever needs its keys tells.
    pub(super) fn of(home: &Home) -> Self {
        Self {
            keys: used_keys(home).unwrap_or_default(),
        }
    }

    fn find(&self, provider: &str, secret: &Secret) -> Option<&(PathBuf, StoredKey)> {
        let mut keys = self.keys.iter();
        keys.find(|(_, key)| key.provider == provider && key.secret == *secret)
    }
}

impl KeyLedger for AuthLedger {
    fn rest_left(&self, provider: &str, key: &Secret) -> Option<Duration> {
        let now = SystemClock.now();
        match self.find(provider, key)?.1.state(now) {
            KeyState::Resting { until, .. } => {
                let millis = until.as_millis().saturating_sub(now.as_millis());
                u64::try_from(millis).ok().map(Duration::from_millis)
            }
            _ => None,
        }
    }

    fn refused<'a>(
        &'a self,
        provider: &'a str,
        key: &'a Secret,
        refusal: &'a KeyRefusal,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some((folder, stored)) = self.find(provider, key).cloned() else {
                return;
            };
            let refusal = Refusal {
                at: SystemClock.now(),
                rest: refusal.rest,
                reason: reason(refusal.kind).to_owned(),
                message: refusal.message.clone(),
            };
            // Another process may hold the file for seconds.
            let writing = tokio::task::spawn_blocking(move || write(&folder, &stored, &refusal));
            // It fails only when the runtime ends.
            let _ = writing.await;
        })
    }
}

fn write(folder: &Path, key: &StoredKey, refusal: &Refusal) {
    let written: Result<bool, AuthError> = AuthFile::change(folder, refusal.at, |file| {
        Ok(file.rest(&key.provider, &key.secret, refusal))
    });
    if let Err(error) = written {
        tracing::warn!(%error, label = key.label, "cannot write down that a key was refused");
    }
}

/// The names that `auth.json` has for these.
fn reason(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::Auth => "auth",
        ModelErrorKind::Billing => "billing",
        ModelErrorKind::RateLimit => "rate_limit",
        _ => "unknown",
    }
}
