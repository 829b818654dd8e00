//! Every key and login there is, masked: where it comes from and whether it is used.

use std::path::Path;

use hermes_config::{DotEnv, KeyState, StoredKey, used_keys, used_logins};
use hermes_core::{Secret, Timestamp};
use hermes_llm::providers::{self, PROVIDERS};
use hermes_llm::settings::ModelSettings;
use serde_json::{Value, json};

use super::choice::known;
use super::chosen::key_variables;
use super::settings::model_settings;
use super::standing::Standing;
use crate::base::Base;
use crate::error::Result;
use crate::layout::{duration, one_line, seconds_between};

/// Of a key this long, its end tells it from others and gives nothing away.
const SHOWN_KEY_CHARS_MIN: usize = 20;
const SHOWN_END_CHARS: usize = 4;

/// A key or a login, as it may be shown.
pub struct HeldKey {
    provider: String,
    /// What `remove` takes; only stored keys have it.
    stored: Option<Stored>,
    key: String,
    from: String,
    state: State,
}

struct Stored {
    number: usize,
    id: String,
    label: String,
}

enum State {
    Known(KeyState),
    Login(Standing),
    /// Nobody asks with it, for this reason.
    Unused(&'static str),
}

/// Every key and login, those of one provider in the order in which they are used.
pub fn all(base: &Base, provider: Option<&str>, now: Timestamp) -> Result<Vec<HeldKey>> {
    let settings = model_settings(base)?;
    let mut rows = from_variables(base);
    rows.extend(from_settings(base, &settings));
    let logins = from_logins(base, now)?;
    rows.extend(from_store(base, &settings, &logins, now)?);
    rows.extend(logins);
    rows.retain(|row| provider.is_none_or(|name| row.provider == *name));
    // Stable: the keys of a provider stay in their order.
    rows.sort_by(|left, right| left.provider.cmp(&right.provider));
    Ok(rows)
}

fn from_variables(base: &Base) -> Vec<HeldKey> {
    let file = DotEnv::open(&base.home.dot_env()).ok();
    let is_in_file = |name: &str| {
        let mut pairs = file.iter().flat_map(DotEnv::pairs);
        pairs.any(|(known, _)| known == name)
    };
    let row = |provider: &str, name: &str| {
        let key = base.variable(name)?;
        let from = if is_in_file(name) {
            format!("{name} in .env")
        } else {
            name.to_owned()
        };
        Some(plain(provider, &key, from))
    };
    let variables = PROVIDERS.iter().flat_map(|provider| {
        let names = key_variables(base, provider.id).into_iter();
        names.map(|name| (provider.id, name))
    });
    variables
        .filter_map(|(provider, name)| row(provider, name))
        .collect()
}

fn from_settings(base: &Base, settings: &ModelSettings) -> Vec<HeldKey> {
    let mut rows = Vec::new();
    if let (Some(key), Some(provider)) = (&settings.choice.api_key, &settings.choice.provider) {
        let id = providers::find(provider).map_or(provider.as_str(), |known| known.id);
        let place = base.settings.origin("model.api_key");
        let place = place.map_or_else(|| "model.api_key".to_owned(), |place| place.to_string());
        rows.push(plain(id, key, place));
    }
    for (name, endpoint) in &settings.endpoints {
        if let Some(key) = &endpoint.api_key {
            rows.push(plain(name, key, format!("providers.{name}.api_key")));
        }
        if let Some(variable) = &endpoint.key_env
            && let Some(key) = base.variable(variable)
        {
            rows.push(plain(name, &key, variable.clone()));
        }
    }
    rows
}

fn plain(provider: &str, key: &Secret, from: String) -> HeldKey {
    HeldKey {
        provider: provider.to_owned(),
        stored: None,
        key: masked(key),
        from,
        state: State::Known(KeyState::Good),
    }
}

fn from_logins(base: &Base, now: Timestamp) -> Result<Vec<HeldKey>> {
    let rows = used_logins(&base.home)?.into_iter().map(|used| HeldKey {
        key: "login".to_owned(),
        from: kept_in(base, &used.folder).to_owned(),
        state: State::Login(Standing::of(&used.provider, &used.login, now)),
        stored: None,
        provider: used.provider,
    });
    Ok(rows.collect())
}

/// The file in a folder, as people know it.
pub(super) fn kept_in(base: &Base, folder: &Path) -> &'static str {
    if folder == base.home.directory() {
        "auth.json"
    } else {
        "auth.json of the default profile"
    }
}

fn from_store(
    base: &Base,
    settings: &ModelSettings,
    logins: &[HeldKey],
    now: Timestamp,
) -> Result<Vec<HeldKey>> {
    let used = used_keys(&base.home)?;
    let mut rows: Vec<HeldKey> = Vec::new();
    for (folder, key) in used {
        let of_provider = rows.iter().filter(|row| row.provider == key.provider);
        let number = of_provider.count() + 1;
        let file = kept_in(base, &folder);
        let has_login = logins.iter().any(|row| row.provider == key.provider);
        let from = match key.source.as_str() {
            "" | "manual" => file.to_owned(),
            source => format!("{file} ({})", one_line(source)),
        };
        rows.push(HeldKey {
            key: masked(&key.secret),
            from,
            state: state(&key, settings, has_login, now),
            stored: Some(Stored {
                number,
                id: one_line(&key.id),
                label: one_line(&key.label),
            }),
            provider: key.provider,
        });
    }
    Ok(rows)
}

fn state(key: &StoredKey, settings: &ModelSettings, has_login: bool, now: Timestamp) -> State {
    let is_known = providers::find(&key.provider).is_some_and(|known| known.id == key.provider)
        || settings.endpoints.contains_key(&key.provider);
    if !key.is_api_key && has_login {
        State::Unused("a copy of the login")
    } else if !key.is_api_key {
        State::Unused("a login, which this version cannot renew")
    } else if !is_known {
        State::Unused("no such provider")
    } else {
        State::Known(key.state(now))
    }
}

impl HeldKey {
    pub fn cells(&self, now: Timestamp) -> [String; 7] {
        let stored = self.stored.as_ref();
        let text = |part: fn(&Stored) -> String| stored.map(part).unwrap_or_default();
        [
            one_line(&self.provider),
            text(|stored| stored.number.to_string()),
            text(|stored| stored.label.clone()),
            text(|stored| stored.id.clone()),
            self.key.clone(),
            self.from.clone(),
            self.state.shown(now),
        ]
    }

    pub fn to_json(&self, now: Timestamp) -> Value {
        let stored = self.stored.as_ref();
        let (state, until, reason) = match &self.state {
            State::Known(KeyState::Good) => ("ok", None, None),
            State::Known(KeyState::Resting { until, reason }) => {
                ("resting", Some(*until), Some(reason.as_str()))
            }
            State::Known(KeyState::Dead { reason }) => ("dead", None, Some(reason.as_str())),
            State::Login(standing) => (standing.name(), None, None),
            State::Unused(why) => ("unused", None, Some(*why)),
        };
        json!({
            "provider": self.provider,
            "id": stored.map(|stored| &stored.id),
            "label": stored.map(|stored| &stored.label),
            "key": self.key,
            "from": self.from,
            "state": state,
            "rests_seconds": until.map(|until| seconds_between(now, until)),
            "reason": reason,
        })
    }
}

impl State {
    fn shown(&self, now: Timestamp) -> String {
        let because = |reason: &str| match one_line(reason).as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        match self {
            Self::Known(KeyState::Good) => "good".to_owned(),
            Self::Known(KeyState::Resting { until, reason }) => {
                let left = duration(seconds_between(now, *until));
                format!("rests for {left}{}", because(reason))
            }
            Self::Known(KeyState::Dead { reason }) => {
                format!("refused for good{}", because(reason))
            }
            Self::Login(standing) => standing.text(now),
            Self::Unused(why) => format!("not used: {why}"),
        }
    }
}

/// The name a provider's keys and login are stored under. Other programs may have stored some for one we do not know.
pub fn provider_of(base: &Base, name: &str) -> Result<String> {
    let keys = used_keys(&base.home)?;
    let logins = used_logins(&base.home)?;
    let is_stored = keys.iter().any(|(_, key)| key.provider == name)
        || logins.iter().any(|login| login.provider == name);
    if is_stored {
        return Ok(name.to_owned());
    }
    Ok(known(&model_settings(base)?, name)?)
}

/// A key as people know it.
pub fn named(key: &StoredKey) -> String {
    let masked = masked(&key.secret);
    match one_line(&key.label).as_str() {
        "" => format!("the key {masked}"),
        label => format!("the key `{label}` ({masked})"),
    }
}

/// The end of a long key, and nothing of a short one.
pub fn masked(key: &Secret) -> String {
    let chars = key.expose().chars().count();
    if chars < SHOWN_KEY_CHARS_MIN {
        return "***".to_owned();
    }
    let end = key.expose().chars().skip(chars - SHOWN_END_CHARS);
    format!("…{}", one_line(&end.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_the_end_of_a_long_key_and_nothing_of_a_short_one() {
        assert_eq!(masked(&Secret::new("sk-0123456789abcdefwxyz")), "…wxyz");
        assert_eq!(masked(&Secret::new("0123456789abcdefghi")), "***");
        assert_eq!(masked(&Secret::new("")), "***");
    }
}
