//! Asks a model one small question: the only proof that address, key and name are right together.

use std::fmt;
use std::time::{Duration, Instant};

use crate::models::choice::ANY_MODEL;
use futures_util::StreamExt as _;
use hermes_core::{
    Delta, Message, Model as _, ModelError, ModelErrorKind, ModelRequest, Secret, SessionId, TurnId,
};
use hermes_llm::discover::{DiscoverError, list_models};
use hermes_llm::settings::{ModelChoice, ModelSettings};
use hermes_llm::{Client, resolve};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::logins;
use crate::models::settings::model_settings;
use crate::models::stated_windows;

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
