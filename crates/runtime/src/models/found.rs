//! What is there already: keys in the environment, logins, and servers on this machine.

use hermes_llm::discover::{LocalServer, local_servers};
use hermes_llm::providers::{PROVIDERS, Provider};
use hermes_llm::{ResolveError, resolve};

use crate::base::Base;
use crate::error::Result;
use crate::models::chosen::key_variables;
use crate::models::settings::model_settings;
use crate::models::stated_windows;

/// Something that could answer without any further question.
pub enum Found {
    Key {
        provider: &'static Provider,
        variable: &'static str,
    },
    Login(&'static Provider),
    Server(LocalServer),
}

impl Found {
    pub fn provider(&self) -> &'static Provider {
        match self {
            Self::Key { provider, .. } | Self::Login(provider) => provider,
            Self::Server(server) => server.provider,
        }
    }

    pub fn model(&self) -> String {
        match self {
            Self::Key { provider, .. } | Self::Login(provider) => provider.default_model.to_owned(),
            Self::Server(server) => server
                .models
                .first()
                .map(|offered| offered.model.clone())
                .unwrap_or_default(),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Self::Key { provider, variable } => {
                format!("{}, with the key in {variable}", provider.label)
            }
            Self::Login(provider) => format!("{}, where you are logged in", provider.label),
            Self::Server(server) => match server.models.as_slice() {
                [] => format!("{}, which runs here without a model", server.provider.label),
                [one] => format!(
                    "{}, which runs here with {}",
                    server.provider.label, one.model
                ),
                [first, more @ ..] => format!(
                    "{}, which runs here with {} and {} more",
                    server.provider.label,
                    first.model,
                    more.len()
                ),
            },
        }
    }
}

/// Looks everywhere; servers come first, since they cost nothing.
pub async fn all(base: &Base) -> Vec<Found> {
    let servers = local_servers().await;
    for server in &servers {
        stated_windows::remember(&base.home, server.provider.base_url, &server.models);
    }
    let servers = servers.into_iter();
    let servers = servers.filter(|server| !server.models.is_empty());
    let keys = PROVIDERS.iter().filter(|provider| !provider.local);
    let keys = keys.filter_map(|provider| {
        let variable = key_variables(base, provider.id).into_iter().next()?;
        Some(Found::Key { provider, variable })
    });
    let logins = model_settings(base).map_or(Vec::new(), |settings| settings.logins);
    let logins = PROVIDERS
        .iter()
        .filter(|provider| logins.iter().any(|id| id == provider.id))
        .filter(|provider| key_variables(base, provider.id).is_empty());
    let servers = servers.map(Found::Server);
    servers
        .chain(keys)
        .chain(logins.map(Found::Login))
        .collect()
}

/// Whether nothing at all could answer: no settings, no key, no server.
pub async fn is_model_missing(base: &Base) -> Result<bool> {
    let settings = model_settings(base)?;
    let resolved = resolve(&settings, &|name| base.variable(name));
    let is_unset = matches!(resolved, Err(ResolveError::NoProvider));
    Ok(is_unset && all(base).await.is_empty())
}
