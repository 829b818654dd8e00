//! What stands under `providers:` (by name) and `custom_providers:` (as a list): endpoints of the user's own, and what
//! differs in requests to one provider, own or known.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_config::{Key, Settings};
use hermes_core::Secret;
use hermes_llm::providers;
use hermes_llm::settings::{DeadlineSettings, Endpoint, ModelOptions, ProviderOptions};
use serde_json::{Map, Value};

use super::string;
use crate::failure::{Failure, Outcome};

#[derive(Default)]
pub(super) struct OwnProviders {
    pub(super) endpoints: BTreeMap<String, Endpoint>,
    pub(super) options: BTreeMap<String, ProviderOptions>,
}

/// Reads both forms; the names of `providers:` go before those of the list.
pub(super) fn read(settings: &Settings) -> Outcome<OwnProviders> {
    let mut own = OwnProviders::default();
    if let Some(Value::Array(list)) = settings.get("custom_providers") {
        for (index, entry) in list.iter().enumerate() {
            if let Some(name) = string(entry, &["name"]) {
                let path = ["custom_providers".to_owned(), index.to_string()];
                own.add(&name, &ProviderEntry::new(settings, path, entry))?;
            }
        }
    }
    if let Some(Value::Object(named)) = settings.get("providers") {
        for (name, entry) in named {
            let path = ["providers".to_owned(), name.clone()];
            own.add(name, &ProviderEntry::new(settings, path, entry))?;
        }
    }
    Ok(own)
}

impl OwnProviders {
    fn add(&mut self, name: &str, place: &ProviderEntry<'_>) -> Outcome<()> {
        if place.entry.get("enabled") == Some(&Value::Bool(false)) {
            return Ok(());
        }
        let options = options(place)?;
        let name = match endpoint(place.entry) {
            Some(endpoint) => {
                self.endpoints.insert(name.to_owned(), endpoint);
                name
            }
            // Without an address of its own it is about a provider that is known, by any of its names.
            None => providers::find(name).map_or(name, |known| known.id),
        };
        self.options.insert(name.to_owned(), options);
        Ok(())
    }
}

fn endpoint(entry: &Value) -> Option<Endpoint> {
    Some(Endpoint {
        base_url: string(entry, &["base_url", "api", "url"])?,
        api_key: string(entry, &["api_key"]).map(Secret::new),
        key_env: string(entry, &["key_env"]),
        api_mode: string(entry, &["api_mode", "transport"]),
        default_model: string(entry, &["default_model", "model"]),
    })
}

fn options(place: &ProviderEntry<'_>) -> Outcome<ProviderOptions> {
    Ok(ProviderOptions {
        headers: headers(place)?,
        extra_body: place.section("extra_body")?.cloned().unwrap_or_default(),
        context_length: place.tokens("context_length")?,
        deadlines: deadlines(place, "request_timeout_seconds")?,
        models: models(place)?,
    })
}

fn headers(place: &ProviderEntry<'_>) -> Outcome<Vec<(String, Secret)>> {
    let headers = place.section("extra_headers")?.into_iter().flatten();
    let text = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Ok((name.clone(), Secret::new(text))),
        Value::Number(_) | Value::Bool(_) => Ok((name.clone(), Secret::new(value.to_string()))),
        // Its value may be a secret and is not part of the message.
        _ => Err(place.misfit(&["extra_headers", name], "text")),
    };
    headers.map(text).collect()
}

/// The models that are named: a list of names, or a section with settings for each.
fn models(place: &ProviderEntry<'_>) -> Outcome<BTreeMap<String, ModelOptions>> {
    let usual = |name: &Value| Some((name.as_str()?.to_owned(), ModelOptions::default()));
    match place.entry.get("models") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Array(names)) => Ok(names.iter().filter_map(usual).collect()),
        Some(Value::Object(named)) => {
            let read = |(name, entry): (&String, &Value)| {
                let place = place.within(&["models", name], entry);
                let options = ModelOptions {
                    context_length: place.tokens("context_length")?,
                    deadlines: deadlines(&place, "timeout_seconds")?,
                };
                Ok((name.clone(), options))
            };
            named.iter().map(read).collect()
        }
        Some(_) => Err(place.misfit(&["models"], "a list of names, or a section")),
    }
}

/// A request may take as long as is said, and as long to begin; a stream may be silent as long as is said.
fn deadlines(place: &ProviderEntry<'_>, request: &str) -> Outcome<DeadlineSettings> {
    let request = place.seconds(request)?;
    let silence = place.seconds("stale_timeout_seconds")?;
    Ok(DeadlineSettings {
        connect: None,
        first_byte: silence.or(request),
        first_token: None,
        idle: silence,
        total: request,
    })
}

/// An entry, and where it stands, for reading what is in it.
struct ProviderEntry<'a> {
    settings: &'a Settings,
    path: Vec<String>,
    entry: &'a Value,
}

impl<'a> ProviderEntry<'a> {
    fn new(settings: &'a Settings, path: [String; 2], entry: &'a Value) -> Self {
        Self {
            settings,
            path: path.into(),
            entry,
        }
    }

    fn within(&self, names: &[&str], entry: &'a Value) -> Self {
        Self {
            settings: self.settings,
            path: self.path_to(names),
            entry,
        }
    }

    fn path_to(&self, names: &[&str]) -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned());
        self.path.iter().cloned().chain(names).collect()
    }

    fn key(&self, names: &[&str]) -> String {
        let key = Key::from_segments(self.path_to(names));
        key.map_or_else(String::new, |key| key.to_string())
    }

    fn section(&self, name: &str) -> Outcome<Option<&'a Map<String, Value>>> {
        match self.entry.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(section)) => Ok(Some(section)),
            Some(_) => Err(self.misfit(&[name], "a section of names and values")),
        }
    }

    /// A number of tokens; none when it is 0, which would let nothing in.
    fn tokens(&self, name: &str) -> Outcome<Option<u64>> {
        let tokens = self.settings.optional_u64(&self.key(&[name]))?;
        Ok(tokens.filter(|tokens| *tokens > 0))
    }

    /// A length of time; none when it is 0, which would let no request through.
    fn seconds(&self, name: &str) -> Outcome<Option<Duration>> {
        match self.entry.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => {
                let time = self.settings.seconds(&self.key(&[name]))?;
                Ok(Some(time).filter(|time| !time.is_zero()))
            }
        }
    }

    fn misfit(&self, names: &[&str], expected: &str) -> Failure {
        let key = self.key(names);
        let failure = Failure::new(format!("`{key}` must be {expected}"));
        let failure = failure.hint("`hermes config edit` opens the settings");
        match self.settings.origin(&key) {
            Some(origin) => failure.at(origin),
            None => failure,
        }
    }
}
