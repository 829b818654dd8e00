//! Asks a model one small question, the only proof that address, key and name are right together, and saves the one that
//! answered.

use std::fmt;
use std::time::{Duration, Instant};

use crate::models::choice::ANY_MODEL;
use futures_util::StreamExt as _;
use hermes_config::{set, unset};
use hermes_core::{
    Delta, Message, Model as _, ModelError, ModelErrorKind, ModelRequest, Secret, SessionId, TurnId,
};
use hermes_llm::discover::{DiscoverError, list_models};
use hermes_llm::settings::{ModelChoice, ModelSettings};
use hermes_llm::{Client, providers, resolve};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::logins;
use crate::models::settings::model_settings;
use crate::models::stated_windows;

/// Where the key of a server is kept that is known by its address only.
const KEY_OF_ADDRESS: &str = "model.api_key";

/// Who is to be asked.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    pub provider: String,
    pub model: String,
    pub base_url: Option<String>,
    pub api_mode: Option<String>,
    /// A key that is not saved yet.
    pub key: Option<Secret>,
}

/// Returns how long the first word took.
pub async fn try_out(base: &Base, candidate: &Candidate) -> Result<Duration> {
    let resolved = resolve(&settings_of(base, candidate)?, &|name| base.variable(name))?;
    let client = Client::new(resolved).with_logins(logins(base));
    let started = Instant::now();
    match first_word(&client).await {
        Ok(()) => Ok(started.elapsed()),
        Err(error) => Err(explained(candidate, &error)),
    }
}

/// Why a server's models are not known.
#[derive(Debug)]
pub enum Unlisted {
    /// Nobody is there to be asked.
    Unaskable(Error),
    Discover(DiscoverError),
}

impl Unlisted {
    /// Whether a server is there, whatever it said.
    pub fn is_an_answer(&self) -> bool {
        let Self::Discover(error) = self else {
            return false;
        };
        matches!(
            error,
            DiscoverError::Refused { .. } | DiscoverError::NotAList { .. }
        )
    }
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaskable(error) => write!(f, "{error}"),
            Self::Discover(error) => write!(f, "{error}"),
        }
    }
}

/// The models that the candidate's server lists.
pub async fn listed(base: &Base, candidate: &Candidate) -> Result<Vec<String>, Unlisted> {
    let any = Candidate {
        model: ANY_MODEL.to_owned(),
        ..candidate.clone()
    };
    let settings = settings_of(base, &any).map_err(Unlisted::Unaskable)?;
    let resolved = resolve(&settings, &|name| base.variable(name))
        .map_err(|error| Unlisted::Unaskable(error.into()))?;
    let offered = list_models(&resolved.primary).await;
    let offered = offered.map_err(Unlisted::Discover)?;
    stated_windows::remember(&base.home, &resolved.primary.base_url, &offered);
    Ok(offered.into_iter().map(|offered| offered.model).collect())
}

fn settings_of(base: &Base, candidate: &Candidate) -> Result<ModelSettings> {
    Ok(ModelSettings {
        choice: ModelChoice {
            provider: Some(candidate.provider.clone()),
            model: Some(candidate.model.clone()),
            base_url: candidate.base_url.clone(),
            api_key: candidate.key.clone(),
            api_mode: candidate.api_mode.clone(),
        },
        fallbacks: Vec::new(),
        // Somebody waits and can try again.
        attempts_max: Some(1),
        ..model_settings(base)?
    })
}

async fn first_word(client: &Client) -> Result<(), ModelError> {
    let (session, turn) = (SessionId::from("setup"), TurnId::from("setup"));
    let messages = [Message::user("Answer with the single word: ready")];
    let mut answer = client.stream(ModelRequest {
        session: &session,
        turn: &turn,
        system: "You are being tried out.",
        tools: &[],
        messages: &messages,
        output_tokens_max: None,
    });
    while let Some(delta) = answer.next().await {
        match delta? {
            Delta::Text(_) | Delta::Reasoning(_) | Delta::Finished(_) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

fn explained(candidate: &Candidate, error: &ModelError) -> Error {
    let hint = match error.kind {
        ModelErrorKind::Auth if candidate.key.is_some() => {
            "check that the whole key was copied, and that it is still valid".to_owned()
        }
        ModelErrorKind::UnknownModel => format!("`{}` is not one of its models", candidate.model),
        ModelErrorKind::Network => "check the network, the proxy and the address".to_owned(),
        _ => error.hint.clone(),
    };
    Error::failed(error.to_string()).with_hint(hint)
}

/// Saves what was tried, and nothing beside it. The key comes first: settings that name a provider without one would
/// only fail. Returns what to tell of what was removed.
pub fn save(base: &Base, candidate: &Candidate) -> Result<Vec<String>> {
    let put = |key: &str, value: &str| set(&base.home, &base.settings, key, value).map(drop);
    let removed = leave_former(base, candidate)?;
    if let Some(key) = &candidate.key {
        put(&key_name(&candidate.provider), key.expose())?;
    }
    if let Some(url) = &candidate.base_url {
        put("model.base_url", url)?;
    }
    put("model.provider", &candidate.provider)?;
    put("model.default", &candidate.model)?;
    Ok(removed)
}

/// Takes out what belonged to the model so far: its address must not get the next one's requests, and nobody but it may
/// get its key.
fn leave_former(base: &Base, candidate: &Candidate) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let has_key = candidate.key.is_some() && key_name(&candidate.provider) == KEY_OF_ADDRESS;
    for (key, is_kept) in [
        ("model.base_url", candidate.base_url.is_some()),
        ("model.api_mode", candidate.api_mode.is_some()),
        (KEY_OF_ADDRESS, has_key),
    ] {
        if !is_kept && unset(&base.home, &base.settings, key)?.is_some() {
            removed.push(format!("removed {key}: it belonged to the model you had"));
        }
    }
    Ok(removed)
}

/// The variable a provider's key is kept in; one of an address belongs to the address.
fn key_name(provider: &str) -> String {
    let variables = providers::find(provider).map_or(&[][..], |provider| provider.key_envs);
    let usual = variables.iter().find(|name| name.ends_with("_API_KEY"));
    match usual.or(variables.first()) {
        Some(variable) => (*variable).to_owned(),
        None => KEY_OF_ADDRESS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_where_its_provider_looks_for_it() {
        assert_eq!(key_name("anthropic"), "ANTHROPIC_API_KEY");
        assert_eq!(key_name("openrouter"), "OPENROUTER_API_KEY");
        assert_eq!(key_name(providers::CUSTOM), "model.api_key");
    }
}
