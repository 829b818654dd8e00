//! Logins: what is kept of each under `providers`, and how it is written down.
//!
//! Other programs use the same file, and not every login looks the same in it: that of Nous has its tokens beside
//! everything else, all others have them under `tokens` and tell when they came instead of when they end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{LoginTokens, Secret, Timestamp};
use serde_json::{Map, Value, json};

use super::{AuthError, AuthFile, LOGINS};
use crate::home::Home;

const TOKENS: &str = "tokens";
/// The login that is used when no provider is chosen.
const PREFERRED: &str = "active_provider";
/// The login whose tokens are not under [`TOKENS`].
const FLAT: &str = "nous";
/// Why a login ended; the name that other programs know it by.
const ENDED: &str = "last_auth_error";

/// What became of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredLogin {
    Open(LoginTokens),
    /// The provider takes it no more; somebody has to log in again.
    Ended {
        reason: String,
    },
}

impl AuthFile {
    /// Returns the login at a provider; `None` when nobody logged in.
    pub fn login(&self, provider: &str) -> Option<StoredLogin> {
        let state = self.root.get(LOGINS)?.get(provider)?;
        if let Some(tokens) = read(state) {
            return Some(StoredLogin::Open(tokens));
        }
        let reason = state.get(ENDED)?.get("message").and_then(Value::as_str);
        Some(StoredLogin::Ended {
            reason: reason.unwrap_or_default().to_owned(),
        })
    }

    /// Returns the providers that logins are kept of, ended ones too; the preferred one first.
    pub fn logins(&self) -> Vec<String> {
        let logins = self.root.get(LOGINS).and_then(Value::as_object);
        let providers = logins.into_iter().flat_map(Map::keys);
        let mut providers: Vec<String> = providers
            .filter(|provider| self.login(provider).is_some())
            .cloned()
            .collect();
        let preferred = self.root.get(PREFERRED).and_then(Value::as_str);
        providers.sort_by_key(|provider| Some(provider.as_str()) != preferred);
        providers
    }

    /// Keeps the tokens of a login, and whatever else stands beside them.
    pub fn keep_login(&mut self, provider: &str, tokens: &LoginTokens, now: Timestamp) {
        let state = self.state(provider);
        state.shift_remove(ENDED);
        let lifetime = tokens.expires_at.map(|end| {
            let millis = end.as_millis().saturating_sub(now.as_millis());
            millis / 1000
        });
        if provider == FLAT {
            put_tokens(state, tokens, lifetime);
            state.insert("scope".into(), tokens.scope.clone().into());
            state.insert("obtained_at".into(), now.to_iso().into());
            let expires_at = tokens.expires_at.map(Timestamp::to_iso);
            state.insert("expires_at".into(), json!(expires_at));
            return;
        }
        let nested = state.entry(TOKENS).or_insert_with(|| json!({}));
        if !nested.is_object() {
            *nested = json!({});
        }
        if let Some(nested) = nested.as_object_mut() {
            put_tokens(nested, tokens, lifetime);
        }
        state.insert("last_refresh".into(), now.to_iso().into());
        state
            .entry("auth_mode")
            .or_insert_with(|| "oauth_device_code".into());
    }

    /// Names the login that is used when no provider is chosen.
    pub fn prefer_login(&mut self, provider: &str) {
        self.root.insert(PREFERRED.into(), provider.into());
    }

    /// Takes the tokens away and writes down why, so that nobody asks with them again.
    pub fn end_login(&mut self, provider: &str, reason: &str, now: Timestamp) {
        let state = self.state(provider);
        for name in ["access_token", "refresh_token"] {
            state.shift_remove(name);
            if let Some(tokens) = state.get_mut(TOKENS).and_then(Value::as_object_mut) {
                tokens.shift_remove(name);
            }
        }
        let ended = json!({
            "provider": provider, "message": reason, "relogin_required": true, "at": now.to_iso(),
        });
        state.insert(ENDED.into(), ended);
    }

    /// Forgets that a login was refused, so that what is left of it is tried again. Returns whether it was.
    pub fn forget_end(&mut self, provider: &str) -> bool {
        let logins = self.root.get_mut(LOGINS);
        let state = logins.and_then(|logins| logins.get_mut(provider)?.as_object_mut());
        state.is_some_and(|state| state.shift_remove(ENDED).is_some())
    }

    /// Forgets a login and the copies of it among the keys. Returns what there was.
    pub fn remove_login(&mut self, provider: &str) -> Option<StoredLogin> {
        let login = self.login(provider)?;
        if let Some(logins) = self.root.get_mut(LOGINS).and_then(Value::as_object_mut) {
            logins.shift_remove(provider);
        }
        if self.root.get(PREFERRED).and_then(Value::as_str) == Some(provider) {
            self.root.insert(PREFERRED.into(), Value::Null);
        }
        while let Some(copy) = self.copy_of_login(provider) {
            self.remove(&copy);
        }
        Some(login)
    }

    fn copy_of_login(&self, provider: &str) -> Option<super::StoredKey> {
        let mut keys = self.keys_of(provider);
        keys.find(|key| !key.is_api_key && key.source.ends_with("device_code"))
    }

    /// What is kept of a login, made when there is nothing. `open` saw to it that nothing else is in its place.
    fn state(&mut self, provider: &str) -> &mut Map<String, Value> {
        let state = &mut self.root.entry(LOGINS).or_insert_with(|| json!({}))[provider];
        if !state.is_object() {
            *state = json!({});
        }
        match state {
            Value::Object(state) => state,
            _ => unreachable!("an object was just put here"),
        }
    }
}

fn read(state: &Value) -> Option<LoginTokens> {
    let tokens = match state.get(TOKENS) {
        Some(tokens) if tokens.is_object() => tokens,
        _ => state,
    };
    let text = |name: &str| {
        let text = tokens.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let lifetime = || {
        let seconds = tokens.get("expires_in")?.as_u64()?;
        let since = Timestamp::from_iso(state.get("last_refresh")?.as_str()?)?;
        Some(since.plus(Duration::from_secs(seconds)))
    };
    Some(LoginTokens {
        access: Secret::new(text("access_token")?),
        refresh: text("refresh_token").map(Secret::new),
        expires_at: text("expires_at")
            .and_then(Timestamp::from_iso)
            .or_else(lifetime),
        scope: text("scope").unwrap_or_default().to_owned(),
    })
}

fn put_tokens(place: &mut Map<String, Value>, tokens: &LoginTokens, lifetime: Option<i64>) {
    place.insert("access_token".into(), tokens.access.expose().into());
    let refresh = tokens.refresh.as_ref().map(Secret::expose);
    place.insert("refresh_token".into(), json!(refresh));
    place.entry("token_type").or_insert_with(|| "Bearer".into());
    place.insert("expires_in".into(), json!(lifetime));
}

/// A login that a home uses, and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedLogin {
    pub folder: PathBuf,
    pub provider: String,
    pub login: StoredLogin,
}

/// Returns the logins that a home uses: its own and, where a profile has none, the root's.
pub fn used_logins(home: &Home) -> Result<Vec<UsedLogin>, AuthError> {
    let mut used = logins_in(home.directory())?;
    if home.root() != home.directory() {
        let mut roots = logins_in(home.root())?;
        roots.retain(|root| used.iter().all(|own| own.provider != root.provider));
        used.extend(roots);
    }
    Ok(used)
}

fn logins_in(folder: &Path) -> Result<Vec<UsedLogin>, AuthError> {
    let file = AuthFile::open(folder)?;
    let used = file.logins().into_iter().filter_map(|provider| {
        Some(UsedLogin {
            folder: folder.to_path_buf(),
            login: file.login(&provider)?,
            provider,
        })
    });
    Ok(used.collect())
}
