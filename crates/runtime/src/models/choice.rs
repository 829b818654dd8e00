//! Choosing a model: who can be asked, which models they have, and saving a choice for all future conversations.

use std::fmt;
use std::time::Duration;

use hermes_config::{set, unset};
use hermes_core::text::nearest;
use hermes_llm::discover::{Offered, list_models};
use hermes_llm::settings::{ModelChoice, ModelSettings, Route};
use hermes_llm::{MOA, ResolveError, providers};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::mixture;
use crate::models::settings::model_settings;
use crate::models::stated_windows;
use crate::models::with_token;

/// Stands for the model while only its provider matters.
pub const ANY_MODEL: &str = "any";
/// Somebody waits at the prompt.
const LIST_DEADLINE: Duration = Duration::from_secs(5);

/// Finds the way to a provider by its name alone.
pub fn route(base: &Base, settings: &ModelSettings, name: &str) -> Result<Route> {
    let provider = known(settings, name)?;
    let choice = if is_same(settings, &provider) {
        settings.choice.clone()
    } else {
        ModelChoice::default()
    };
    let settings = ModelSettings {
        choice: ModelChoice {
            provider: Some(provider),
            model: Some(ANY_MODEL.to_owned()),
            ..choice
        },
        ..settings.clone()
    };
    Ok(hermes_llm::resolve(&settings, &|name| base.variable(name))?.primary)
}

/// Asks a provider which models it has; says why when it does not tell.
pub async fn models(base: &Base, route: &Route) -> Result<Vec<Offered>, String> {
    let route = with_token(base, route.clone()).await;
    let route = route.map_err(|error| error.to_string())?;
    match tokio::time::timeout(LIST_DEADLINE, list_models(&route)).await {
        Ok(Ok(models)) => {
            stated_windows::remember(&base.home, &route.base_url, &models);
            Ok(models)
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("`{}` did not answer in time", route.base_url)),
    }
}

/// A choice that was saved, and what the user should know about it.
pub struct Saved {
    pub what: String,
    pub notes: Vec<String>,
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

/// Chooses the model of all future sessions.
pub fn choose(base: &Base, text: &str, provider: Option<&str>) -> Result<Saved> {
    let settings = model_settings(base)?;
    let (provider, model) = split(&settings, provider, text);
    if model.trim().is_empty() {
        return Err(
            Error::asked("the model's name is empty").with_hint("write MODEL or PROVIDER:MODEL")
        );
    }
    let provider = provider.map(|name| known(&settings, name)).transpose()?;
    if provider.as_deref() == Some(MOA) {
        mixture::recipe(base, &settings, model)?;
    }
    let mut notes = Vec::new();
    if provider.is_none() {
        notes.extend(suggest_provider(model));
    }
    let leaves_provider = provider
        .as_deref()
        .is_some_and(|name| !is_same(&settings, name));
    if leaves_provider {
        notes.extend(leave_provider(base, &settings)?);
    }
    if let Some(provider) = &provider {
        notes.extend(save(base, "model.provider", provider)?);
    }
    notes.extend(save(base, "model.default", model)?);
    let name = provider
        .as_deref()
        .map_or(model.to_owned(), |provider| format!("{provider}:{model}"));
    let file = base.home.config_yaml();
    notes.extend(warn_without_key(
        base,
        settings,
        provider,
        model,
        leaves_provider,
    ));
    Ok(Saved {
        what: format!("{name} is now the model, in `{}`", file.display()),
        notes,
    })
}

fn save(base: &Base, key: &str, value: &str) -> Result<Option<String>> {
    let changed = set(&base.home, &base.settings, key, value)?;
    let warning = changed.warning;
    Ok(warning.map(|warning| format!("warning: {warning}")))
}

/// Takes a provider's name off the model's. Other colons belong to the model: `qwen3:8b`.
fn split<'a>(
    settings: &ModelSettings,
    provider: Option<&'a str>,
    text: &'a str,
) -> (Option<&'a str>, &'a str) {
    match (provider, text.split_once(':')) {
        (None, Some((prefix, rest))) if known(settings, prefix).is_ok() => (Some(prefix), rest),
        _ => (provider, text),
    }
}

/// A mistyped provider becomes part of the model's name; only the user knows which it is.
fn suggest_provider(model: &str) -> Option<String> {
    let ids = providers::PROVIDERS.iter().map(|provider| provider.id);
    let (prefix, _) = model.split_once(':')?;
    let near = *nearest(prefix, ids).first()?;
    Some(format!(
        "note: `{model}` is taken as the model's whole name; did you mean the provider `{near}`?"
    ))
}

/// Returns the name a provider is kept under.
pub fn known(settings: &ModelSettings, name: &str) -> Result<String, ResolveError> {
    if name == MOA {
        return Ok(MOA.to_owned());
    }
    let own = name.strip_prefix("custom:").unwrap_or(name);
    if settings.endpoints.contains_key(own) {
        return Ok(own.to_owned());
    }
    match providers::find(name) {
        Some(provider) => Ok(provider.id.to_owned()),
        None => Err(unknown(settings, name)),
    }
}

fn unknown(settings: &ModelSettings, name: &str) -> ResolveError {
    let ids = providers::PROVIDERS
        .iter()
        .flat_map(|provider| std::iter::once(provider.id).chain(provider.aliases.iter().copied()));
    let own = settings.endpoints.keys().map(String::as_str);
    let near = nearest(name, ids.chain(own));
    ResolveError::UnknownProvider {
        name: name.to_owned(),
        near: near.into_iter().map(str::to_owned).collect(),
    }
}

/// Whether a provider is the one that the settings choose.
pub fn is_same(settings: &ModelSettings, provider: &str) -> bool {
    let current = settings.choice.provider.as_deref().unwrap_or("auto");
    known(settings, current).is_ok_and(|current| current == provider)
}

/// Takes out what belongs to the provider that is left: its address must not get the next one's requests, and nobody
/// but it may get its key.
fn leave_provider(base: &Base, settings: &ModelSettings) -> Result<Vec<String>> {
    if settings.choice.api_key.is_some() {
        let place = base.settings.origin("model.api_key");
        return Err(Error::failed("`model.api_key` belongs to the provider you have now, and would be sent to the new one")
            .at(place.map_or_else(String::new, |place| place.to_string()))
            .with_hint("keep it in .env, or remove it with `hermes config unset model.api_key`, and try again"));
    }
    let mut notes = Vec::new();
    for key in ["model.base_url", "model.api_mode"] {
        if let Some(value) = base.settings.optional_string(key)?
            && unset(&base.home, &base.settings, key)?.is_some()
        {
            notes.push(format!(
                "removed {key} (`{value}`): it belonged to the provider you had"
            ));
        }
    }
    Ok(notes)
}

/// Says at once what would otherwise be found out at the next question.
fn warn_without_key(
    base: &Base,
    mut settings: ModelSettings,
    provider: Option<String>,
    model: &str,
    leaves_provider: bool,
) -> Option<String> {
    let choice = if leaves_provider {
        ModelChoice::default()
    } else {
        settings.choice.clone()
    };
    settings.choice = ModelChoice {
        provider: provider.or(settings.choice.provider),
        model: Some(model.to_owned()),
        ..choice
    };
    if settings.choice.provider.as_deref() == Some(MOA) {
        settings = mixture::recipe(base, &settings, model).ok()?.aggregator;
    }
    let resolved = hermes_llm::resolve(&settings, &|name| base.variable(name));
    let error = resolved.err()?;
    Some(format!("warning: {error}; {}", error.hint()))
}
