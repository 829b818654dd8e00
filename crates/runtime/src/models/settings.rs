//! From `config.yaml` to the plain settings the model crate takes.

mod own_providers;

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_config::{Settings, Source, StoredLogin, used_logins};
use hermes_core::Secret;
use hermes_llm::resolve::meant_provider;
use hermes_llm::settings::{DeadlineSettings, Endpoint, ModelChoice, ModelSettings};
use hermes_llm::{ResolveError, Strategy, providers};
use serde_json::Value;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::known_wires;
use crate::models::stated_windows;
use own_providers::OwnProviders;

/// Reads everything about models.
pub fn model_settings(base: &Base) -> Result<ModelSettings> {
    let settings = &base.settings;
    let text = |key: &str| settings.optional_string(key);
    let mut choice = ModelChoice {
        provider: text("model.provider")?,
        model: text("model.default")?,
        base_url: text("model.base_url")?,
        api_key: text("model.api_key")?.map(Secret::new),
        api_mode: text("model.api_mode")?,
    };
    let OwnProviders { endpoints, options } = own_providers::read(settings)?;
    if let Some((endpoint, model)) = endpoint_named(settings, &choice, &endpoints) {
        choice = ModelChoice {
            provider: Some(endpoint),
            model: Some(model),
            ..ModelChoice::default()
        };
    }
    if let Some((provider, model)) = provider_meant(settings, &choice)? {
        choice = ModelChoice {
            provider: Some(provider),
            model: Some(model),
            ..ModelChoice::default()
        };
    }
    if is_chosen_for_this_run(settings) {
        // The address and the key in the file belong to the provider in the file.
        choice = ModelChoice {
            base_url: None,
            api_key: None,
            api_mode: None,
            ..choice
        };
    }
    Ok(ModelSettings {
        choice: choice.clone(),
        context_length: settings.optional_u64("model.context_length")?,
        max_tokens: settings
            .optional_u64("model.max_tokens")?
            .map(|tokens| tokens.min(u64::from(u32::MAX)) as u32),
        reasoning_effort: text("agent.reasoning_effort")?,
        endpoints,
        provider_options: options,
        stated_windows: stated_windows::read(&base.home),
        chat_only: known_wires::chat_only(&base.home),
        fallbacks: fallbacks(base),
        stored_keys: hermes_config::stored_keys(&base.home)?.unwrap_or_default(),
        logins: open_logins(base),
        strategy: strategy(settings, choice.provider.as_deref())?,
        deadlines: deadlines(settings)?,
        attempts_max: Some(settings.u64("agent.api_max_retries")?.clamp(1, 20) as u32),
        retry_max: Some(retry_max(settings)?),
    })
}

/// What is set for every model; what is set for one goes before it.
fn deadlines(settings: &Settings) -> Result<DeadlineSettings> {
    let seconds = settings.optional_u64("agent.first_token_timeout")?;
    let first = seconds.map(|seconds| Duration::from_secs(seconds.max(1)));
    Ok(DeadlineSettings {
        first_byte: first,
        first_token: first,
        ..DeadlineSettings::default()
    })
}

fn retry_max(settings: &Settings) -> Result<Duration> {
    /// A day; more is a schedule.
    const MINUTES_MAX: f64 = 1440.0;
    let minutes = settings.f64("agent.retry_minutes")?;
    Ok(Duration::from_secs_f64(
        minutes.clamp(0.0, MINUTES_MAX) * 60.0,
    ))
}

/// Where somebody is logged in. A file that cannot be read has no logins; `hermes doctor` and `hermes auth` tell why.
fn open_logins(base: &Base) -> Vec<String> {
    let used = used_logins(&base.home).unwrap_or_default().into_iter();
    let open = used.filter(|used| matches!(used.login, StoredLogin::Open(_)));
    open.map(|used| used.provider).collect()
}

/// How the keys of a provider take turns.
pub fn strategy(settings: &Settings, provider: Option<&str>) -> Result<Strategy> {
    let Some(provider) = provider else {
        return Ok(Strategy::default());
    };
    let key = format!("credential_pool_strategies.{provider}");
    let Some(name) = settings.optional_string(&key)? else {
        return Ok(Strategy::default());
    };
    Strategy::parse(&name).ok_or_else(|| {
        Error::failed(format!("`{key}` is `{name}`, which is no strategy"))
            .with_hint("strategies are fill_first, round_robin, least_used and random")
    })
}

/// The endpoint and the model that `-m ENDPOINT:MODEL` means. Providers we know are told apart by whoever reads the flags;
/// which endpoints there are is known only when the files are read.
fn endpoint_named(
    settings: &Settings,
    choice: &ModelChoice,
    endpoints: &BTreeMap<String, Endpoint>,
) -> Option<(String, String)> {
    let (endpoint, model) = choice.model.as_deref()?.split_once(':')?;
    let is_meant = is_passing(settings, "model.default") && !is_passing(settings, "model.provider");
    let is_meant = is_meant && endpoints.contains_key(endpoint);
    is_meant.then(|| (endpoint.to_owned(), model.to_owned()))
}

/// The provider and the model that `-m PROVIDER/MODEL` means where the settings name a provider whose models have no such
/// names.
fn provider_meant(settings: &Settings, choice: &ModelChoice) -> Result<Option<(String, String)>> {
    let is_typed = is_passing(settings, "model.default") && !is_passing(settings, "model.provider");
    let known = choice.provider.as_deref().and_then(providers::find);
    let (Some(provider), Some(model)) = (known.filter(|_| is_typed), &choice.model) else {
        return Ok(None);
    };
    let Some((prefix, rest)) = meant_provider(provider, model) else {
        return Ok(None);
    };
    match providers::find(prefix) {
        Some(found) => Ok(Some((found.id.to_owned(), rest.to_owned()))),
        None => Err(ResolveError::UnknownProvider {
            name: prefix.to_owned(),
            near: Vec::new(),
        }
        .into()),
    }
}

/// Whether the provider comes from the command line or the environment while the address stands in a file, where it belongs
/// to another one.
fn is_chosen_for_this_run(settings: &Settings) -> bool {
    let is_file = |key: &str| {
        settings
            .origin(key)
            .is_some_and(|origin| origin.source.file().is_some())
    };
    is_passing(settings, "model.provider")
        && (is_file("model.base_url") || is_file("model.api_key"))
        && !is_same_as_in_file(settings)
}

/// Whether a setting holds for this run only.
fn is_passing(settings: &Settings, key: &str) -> bool {
    let origin = settings.origin(key);
    origin.is_some_and(|origin| matches!(origin.source, Source::Variable(_) | Source::Flags))
}

/// Whether the files choose the same provider, perhaps by another of its names.
fn is_same_as_in_file(settings: &Settings) -> bool {
    let said = settings.explain("model.provider").map(|told| told.says);
    let said = said.unwrap_or_default();
    let in_file = said.iter().find(|said| said.origin.source.file().is_some());
    let id = |name: &Value| {
        let name = name.as_str()?;
        Some(providers::find(name).map_or(name.to_owned(), |known| known.id.to_owned()))
    };
    let chosen = settings.get("model.provider").and_then(id);
    chosen.is_some() && in_file.and_then(|said| id(&said.value)) == chosen
}

fn fallbacks(base: &Base) -> Vec<ModelChoice> {
    let listed = match base.settings.get("fallback_providers") {
        Some(Value::Array(list)) => list.as_slice(),
        _ => &[],
    };
    let older = base.settings.get("fallback_model");
    let older = older.filter(|entry| entry.is_object());
    let entries = listed.iter().chain(older);
    entries.map(|entry| fallback(base, entry)).collect()
}

fn fallback(base: &Base, entry: &Value) -> ModelChoice {
    let own_key = string(entry, &["api_key"]).map(Secret::new);
    let key_at = || base.variable(&string(entry, &["key_env"])?);
    ModelChoice {
        provider: string(entry, &["provider"]),
        model: string(entry, &["model"]),
        base_url: string(entry, &["base_url"]),
        api_key: own_key.or_else(key_at),
        api_mode: string(entry, &["api_mode"]),
    }
}

/// The first of the names that is set.
fn string(entry: &Value, names: &[&str]) -> Option<String> {
    let texts = names.iter().filter_map(|name| entry.get(*name)?.as_str());
    texts.map(str::to_owned).find(|text| !text.is_empty())
}
