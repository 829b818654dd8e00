//! The model the settings choose, and where its key comes from; never the key itself.

use std::fmt;

use hermes_config::Origin;
use hermes_llm::settings::ModelSettings;
use hermes_llm::{MOA, Route, providers};

use crate::base::Base;
use crate::error::Result;
use crate::models::mixture;
use crate::models::settings::model_settings;

pub struct ChosenModel {
    pub route: Route,
    pub key: KeySource,
    /// Where the model is named; `None` when it is the provider's own default.
    pub origin: Option<Origin>,
    /// The mixture whose aggregator the route leads to.
    pub mixture: Option<Advised>,
}

/// A mixture, and who advises in it.
pub struct Advised {
    pub name: String,
    pub references: Vec<Route>,
}

/// Where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Variables(Vec<&'static str>),
    /// In the settings, at this place.
    Settings(String),
    /// Among the keys of `hermes auth`.
    Stored,
    /// No key, but a login.
    Login,
    NotNeeded,
    Missing,
}

impl ChosenModel {
    pub fn of(base: &Base) -> Result<Self> {
        let route = |settings: &ModelSettings| -> Result<Route> {
            Ok(hermes_llm::resolve(settings, &|name| base.variable(name))?.primary)
        };
        let (settings, mixture) = match mixture::chosen(base)? {
            None => (model_settings(base)?, None),
            Some(recipe) => {
                let references = recipe.references.iter().map(route).collect::<Result<_>>()?;
                let name = format!("{MOA}:{}", recipe.name);
                (recipe.aggregator, Some(Advised { name, references }))
            }
        };
        let route = route(&settings)?;
        let is_named = settings.choice.model.is_some();
        Ok(Self {
            key: key_source(base, &settings, &route),
            origin: base.settings.origin("model.default").filter(|_| is_named),
            route,
            mixture,
        })
    }
}

fn key_source(base: &Base, settings: &ModelSettings, route: &Route) -> KeySource {
    let place = |key: &str| {
        let origin = base.settings.origin(key);
        KeySource::Settings(origin.map_or_else(|| key.to_owned(), |origin| origin.to_string()))
    };
    if route.keys.is_empty() {
        return if route.login.is_some() {
            KeySource::Login
        } else if route.local {
            KeySource::NotNeeded
        } else {
            KeySource::Missing
        };
    }
    if settings.choice.api_key.is_some() {
        return place("model.api_key");
    }
    if settings.endpoints.contains_key(&route.name.provider) {
        return place(&format!("providers.{}", route.name.provider));
    }
    match key_variables(base, &route.name.provider) {
        variables if variables.is_empty() => KeySource::Stored,
        variables => KeySource::Variables(variables),
    }
}

/// The variables of a provider that hold a key.
pub fn key_variables(base: &Base, provider: &str) -> Vec<&'static str> {
    let known = providers::find(provider).map_or(&[][..], |provider| provider.key_envs);
    let is_set = |name: &&str| base.variable(name).is_some();
    known.iter().copied().filter(is_set).collect()
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advisers = self.references.iter().map(|route| route.name.to_string());
        let advisers = advisers.collect::<Vec<_>>().join(", ");
        write!(f, "{}, advised by {advisers}", self.name)
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variables(names) => write!(f, "found in {}", names.join(", ")),
            Self::Settings(place) => write!(f, "found in {place}"),
            Self::Stored => f.write_str("found in auth.json (`hermes auth`)"),
            Self::Login => f.write_str("a login (`hermes auth status`)"),
            Self::NotNeeded => f.write_str("none needed"),
            Self::Missing => f.write_str("none"),
        }
    }
}
