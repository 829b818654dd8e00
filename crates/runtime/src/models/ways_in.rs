//! Where one can ask, and with what.

use hermes_config::used_logins;
use hermes_core::Timestamp;
use hermes_llm::providers::PROVIDERS;
use hermes_llm::settings::ModelSettings;
use serde_json::{Value, json};

use super::chosen::key_variables;
use super::keys::kept_in;
use super::settings::model_settings;
use super::standing::Standing;
use crate::base::Base;
use crate::error::Result;
use crate::layout::{count, one_line};

/// One way in at a provider.
pub struct Way {
    provider: String,
    kind: &'static str,
    from: String,
    state: State,
}

enum State {
    Key,
    Login(Standing),
    NotLoggedIn,
}

/// The ways in at one provider, or at all where somebody got in.
pub fn all(base: &Base, provider: Option<&str>, now: Timestamp) -> Result<Vec<Way>> {
    let mut ways = logins(base, now)?;
    ways.extend(keys(base, &model_settings(base)?));
    match provider {
        Some(provider) => ways.retain(|way| way.provider == *provider),
        // Where nobody logged in is only interesting to those who ask.
        None => ways.retain(|way| !matches!(way.state, State::NotLoggedIn)),
    }
    ways.sort_by(|left, right| left.provider.cmp(&right.provider));
    Ok(ways)
}

fn logins(base: &Base, now: Timestamp) -> Result<Vec<Way>> {
    let used = used_logins(&base.home)?;
    let way = |provider: &str, from: String, state| Way {
        provider: provider.to_owned(),
        kind: "login",
        from,
        state,
    };
    let mut ways = Vec::new();
    for used in &used {
        let from = kept_in(base, &used.folder);
        let standing = Standing::of(&used.provider, &used.login, now);
        ways.push(way(&used.provider, from.to_owned(), State::Login(standing)));
    }
    let is_missing = |id: &str| used.iter().all(|used| used.provider != id);
    let offered = PROVIDERS.iter().filter(|known| known.login.is_some());
    let missing = offered.filter(|known| is_missing(known.id));
    ways.extend(missing.map(|known| {
        let hint = format!("`hermes auth add {}`", known.id);
        way(known.id, hint, State::NotLoggedIn)
    }));
    Ok(ways)
}

fn keys(base: &Base, settings: &ModelSettings) -> Vec<Way> {
    let way = |provider: &str, from: String| Way {
        provider: provider.to_owned(),
        kind: "key",
        from,
        state: State::Key,
    };
    let variables = PROVIDERS.iter().flat_map(|known| {
        let variables = key_variables(base, known.id).into_iter();
        variables.map(|name| way(known.id, name.to_owned()))
    });
    let stored = settings.stored_keys.iter().map(|(provider, keys)| {
        let keys = count(keys.len() as u64, "key");
        way(provider, format!("auth.json ({keys})"))
    });
    variables.chain(stored).collect()
}

impl Way {
    /// Whether one can ask with it.
    pub fn is_good(&self) -> bool {
        match &self.state {
            State::Key => true,
            State::Login(standing) => standing.is_good(),
            State::NotLoggedIn => false,
        }
    }

    pub fn cells(&self, now: Timestamp) -> [String; 4] {
        let state = match &self.state {
            State::Key => "there".to_owned(),
            State::Login(standing @ Standing::Over { .. }) => format!(
                "{}; log in with `hermes auth add {}`",
                standing.text(now),
                one_line(&self.provider)
            ),
            State::Login(standing) => standing.text(now),
            State::NotLoggedIn => "not logged in".to_owned(),
        };
        [
            one_line(&self.provider),
            self.kind.to_owned(),
            self.from.clone(),
            state,
        ]
    }

    pub fn to_json(&self, now: Timestamp) -> Value {
        let (state, until) = match &self.state {
            State::Key => ("there", None),
            State::Login(standing) => (standing.name(), standing.until()),
            State::NotLoggedIn => ("not_logged_in", None),
        };
        let reason = match &self.state {
            State::Login(standing) if !standing.is_good() => Some(standing.text(now)),
            _ => None,
        };
        json!({
            "provider": self.provider,
            "with": self.kind,
            "from": self.from,
            "state": state,
            "token_until": until.map(Timestamp::to_iso),
            "reason": reason,
        })
    }
}
