//! Asks a model one small question: the only proof that address, key and name are right together.

use std::fmt;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use hermes_core::{
    Delta, Message, Model as _, ModelError, ModelErrorKind, ModelRequest, Secret, SessionId, TurnId,
};
use hermes_llm::discover::{DiscoverError, list_models};
use hermes_llm::settings::{ModelChoice, ModelSettings};
use hermes_llm::{Client, resolve};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::model_settings::model_settings;
use crate::{stated_windows, wiring};

/// Stands for the model while only its provider matters.
pub(super) const ANY_MODEL: &str = "any";

/// Who is to be asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) base_url: Option<String>,
    pub(super) api_mode: Option<String>,
    /// A key that is not saved yet.
    pub(super) key: Option<Secret>,
}

/// Returns how long the first word took.
pub(super) async fn try_out(base: &Base, candidate: &Candidate) -> Outcome<Duration> {
    let resolved = resolve(&settings_of(base, candidate)?, &|name| base.variable(name))?;
    let client = Client::new(resolved).with_logins(wiring::logins(base));
    let started = Instant::now();
    match first_word(&client).await {
        Ok(()) => Ok(started.elapsed()),
        Err(error) => Err(explained(candidate, &error)),
    }
}

/// Why a server's models are not known.
#[derive(Debug)]
pub(super) enum Unlisted {
    /// Nobody is there to be asked.
    Unaskable(Failure),
    Discover(DiscoverError),
}

impl Unlisted {
    /// Whether a server is there, whatever it said.
    pub(super) fn is_an_answer(&self) -> bool {
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
            Self::Unaskable(failure) => f.write_str(&failure.message),
            Self::Discover(error) => write!(f, "{error}"),
        }
    }
}

/// The models that the candidate's server lists.
pub(super) async fn listed(base: &Base, candidate: &Candidate) -> Result<Vec<String>, Unlisted> {
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

fn settings_of(base: &Base, candidate: &Candidate) -> Outcome<ModelSettings> {
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

fn explained(candidate: &Candidate, error: &ModelError) -> Failure {
    let hint = match error.kind {
        ModelErrorKind::Auth if candidate.key.is_some() => {
            "check that the whole key was copied, and that it is still valid".to_owned()
        }
        ModelErrorKind::UnknownModel => format!("`{}` is not one of its models", candidate.model),
        ModelErrorKind::Network => "check the network, the proxy and the address".to_owned(),
        _ => error.hint.clone(),
    };
    Failure::new(error.to_string()).hint(hint)
}
