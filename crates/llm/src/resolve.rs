//! From settings to routes: which provider, which model, which wire, which keys. Pure: the environment is a closure.

use std::time::Duration;

use hermes_core::text::nearest;
use hermes_core::{ModelName, Secret};
use serde_json::json;

use crate::address::{host_of, is_local};
use crate::aliases::{self, Meaning};
use crate::context;
use crate::login::{InsecureServer, LoginServer};
use crate::pool::Strategy;
use crate::providers::{self, CUSTOM, PROVIDERS, Protocol, Provider, Quirks};
use crate::settings::{
    ATTEMPTS_MAX, Effort, Endpoint, ModelChoice, ModelSettings, ProviderOptions, RETRY_MAX, Route,
};
use crate::small::is_small_name;

/// Looks a variable up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<Secret>;

/// The model of the settings and its fallbacks.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub primary: Route,
    pub fallbacks: Vec<Route>,
    pub strategy: Strategy,
    pub attempts_max: u32,
    pub retry_max: Duration,
    /// Fallbacks that cannot be used, and why.
    pub warnings: Vec<String>,
}

/// Why no model can be asked. The message says what is wrong, [`ResolveError::hint`] what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("no model provider is configured")]
    NoProvider,
    #[error("unknown model provider `{name}`")]
    UnknownProvider { name: String, near: Vec<String> },
    #[error("there is no API key for {label}")]
    NoKey {
        label: &'static str,
        variables: &'static [&'static str],
        page: &'static str,
    },
    #[error("nobody is logged in at {label}")]
    NotLoggedIn {
        provider: &'static str,
        label: &'static str,
        /// Those that a key could be in instead.
        variables: &'static [&'static str],
    },
    #[error(transparent)]
    InsecureLogin(#[from] InsecureServer),
    #[error("no model is chosen for provider `{provider}`")]
    NoModel { provider: String },
    #[error("`{provider}` has no model that is called `{alias}` for short")]
    AliasElsewhere {
        alias: String,
        provider: String,
        /// The providers that have it.
        at: Vec<&'static str>,
    },
    #[error("provider `{provider}` has no base URL")]
    NoBaseUrl { provider: String },
    #[error("`{url}` is not an http or https URL")]
    BadBaseUrl { url: String },
    #[error("unknown {setting} `{value}`")]
    UnknownValue {
        setting: &'static str,
        value: String,
        known: &'static str,
    },
}

impl ResolveError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoProvider => {
                "run `hermes setup`, set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a server \
                 such as Ollama; `hermes model list` shows every provider"
                    .into()
            }
            Self::UnknownProvider { near, .. } if near.is_empty() => {
                "`hermes model list` shows the providers, and `providers:` in the settings defines one; a model whose \
                 own name has such a beginning needs --provider beside -m"
                    .into()
            }
            Self::UnknownProvider { near, .. } => {
                format!("did you mean {}?", near.join(" or "))
            }
            Self::NoKey {
                variables, page, ..
            } => format!("set {} (get a key at {page})", variables.join(" or ")),
            Self::NotLoggedIn {
                provider,
                variables,
                ..
            } => match variables {
                [] => format!("log in with `hermes auth add {provider}`"),
                variables => format!(
                    "log in with `hermes auth add {provider}`, or set {}",
                    variables.join(" or ")
                ),
            },
            Self::AliasElsewhere { alias, at, .. } => {
                let named = at.iter().map(|provider| format!("{provider}:{alias}"));
                let named = named.collect::<Vec<_>>().join(" or ");
                format!("say where: -m {named}; or write the model's whole name")
            }
            Self::InsecureLogin(_) => "use an https URL, or one on this machine".into(),
            Self::NoModel { .. } => "run `hermes model`, or set `model.default`".into(),
            Self::NoBaseUrl { .. } => {
                "set `model.base_url`, or CUSTOM_BASE_URL or OPENAI_BASE_URL, to the server's address".into()
            }
            Self::BadBaseUrl { .. } => {
                "write it with its scheme, such as http://127.0.0.1:8080/v1".into()
            }
            Self::UnknownValue { known, .. } => format!("known are {known}"),
        }
    }
}

/// Finds the routes that the settings ask for.
pub fn resolve(settings: &ModelSettings, env: Env<'_>) -> Result<Resolved, ResolveError> {
    let resolver = Resolver { settings, env };
    let mut primary = resolver.route(&settings.choice)?;
    if let Some(tokens) = settings.context_length {
        primary.context_window = Some(tokens);
    }
    let (mut fallbacks, mut warnings) = (Vec::new(), Vec::new());
    for choice in &settings.fallbacks {
        match resolver.route(choice) {
            Ok(route) => fallbacks.push(route),
            Err(error) => {
                warnings.push(format!("a fallback is skipped: {error}; {}", error.hint()));
            }
        }
    }
    Ok(Resolved {
        primary,
        fallbacks,
        strategy: settings.strategy,
        attempts_max: settings.attempts_max.unwrap_or(ATTEMPTS_MAX).max(1),
        retry_max: settings.retry_max.unwrap_or(RETRY_MAX),
        warnings,
    })
}

struct Resolver<'a> {
    settings: &'a ModelSettings,
    env: Env<'a>,
}

/// Who is asked: a row of the table, or an endpoint of the user's.
enum Source<'a> {
    Known(&'static Provider),
    Defined(&'a str, &'a Endpoint),
}

impl<'a> Resolver<'a> {
    fn route(&self, choice: &ModelChoice) -> Result<Route, ResolveError> {
        let (source, model) = self.source(choice)?;
        match source {
            Source::Known(provider) => {
                let model = at_provider(model, provider, choice)?;
                self.known(provider, model, choice)
            }
            Source::Defined(name, endpoint) => self.defined(name, endpoint, model, choice),
        }
    }

    /// Finds the provider, and the model's name without it.
    fn source(&self, choice: &ModelChoice) -> Result<(Source<'a>, Option<String>), ResolveError> {
        let model = choice
            .model
            .clone()
            .filter(|model| !model.trim().is_empty());
        let named = choice
            .provider
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("auto"));
        if let Some(name) = named {
            return Ok((self.find(name)?, model));
        }
        if let Some((prefix, rest)) = model.as_deref().and_then(|model| model.split_once(':'))
            && let Ok(source) = self.find(prefix)
        {
            return Ok((source, Some(rest.to_owned())));
        }
        if let Some(provider) = self.first_with_alias(choice, model.as_deref()) {
            return Ok((Source::Known(provider), model));
        }
        let source = match (&choice.base_url, self.first_with_key()) {
            (Some(url), _) => provider_at(url),
            (None, Ok(provider)) => provider,
            // Somebody who names an address and no key has a server of their own.
            (None, Err(_)) if self.own_server().is_some() => custom(),
            (None, Err(error)) => return Err(error),
        };
        match model
            .as_deref()
            .and_then(|model| meant_provider(source, model))
        {
            Some((prefix, rest)) => Ok((self.find(prefix)?, Some(rest.to_owned()))),
            None => Ok((Source::Known(source), model)),
        }
    }

    /// Endpoints of the user's own go first: they may carry the name of a provider on purpose.
    fn find(&self, name: &str) -> Result<Source<'a>, ResolveError> {
        let own = name.strip_prefix("custom:").unwrap_or(name);
        if let Some((name, endpoint)) = self.settings.endpoints.get_key_value(own) {
            return Ok(Source::Defined(name, endpoint));
        }
        match providers::find(name) {
            Some(provider) => Ok(Source::Known(provider)),
            None => Err(ResolveError::UnknownProvider {
                name: name.to_owned(),
                near: self.near(name),
            }),
        }
    }

    fn near(&self, name: &str) -> Vec<String> {
        let known = PROVIDERS.iter().map(|provider| provider.id);
        let own = self.settings.endpoints.keys().map(String::as_str);
        let near = nearest(name, known.chain(own));
        near.into_iter().map(str::to_owned).collect()
    }

    /// The first provider that can be asked for what a short name means, when nobody said which one.
    fn first_with_alias(
        &self,
        choice: &ModelChoice,
        model: Option<&str>,
    ) -> Option<&'static Provider> {
        let at = aliases::providers_of(model.filter(|_| choice.base_url.is_none())?);
        let has_entry = |provider: &&Provider| {
            let is_logged_in = self.settings.logins.iter().any(|id| id == provider.id);
            is_logged_in || !self.keys(provider).is_empty()
        };
        let mut having = PROVIDERS
            .iter()
            .filter(|provider| at.contains(&provider.id));
        having.find(has_entry)
    }

    fn first_with_key(&self) -> Result<&'static Provider, ResolveError> {
        let mut hosted = PROVIDERS.iter().filter(|provider| !provider.local);
        let with_key = hosted.find(|provider| !self.keys(provider).is_empty());
        let with_login = || {
            let mut logins = self.settings.logins.iter();
            logins.find_map(|id| PROVIDERS.iter().find(|provider| provider.id == *id))
        };
        with_key.or_else(with_login).ok_or(ResolveError::NoProvider)
    }

    fn known(
        &self,
        provider: &'static Provider,
        model: Option<String>,
        choice: &ModelChoice,
    ) -> Result<Route, ResolveError> {
        let own_server = if provider.id == CUSTOM && choice.base_url.is_none() {
            self.own_server()
        } else {
            None
        };
        let from_env = || {
            let named = provider.base_url_env.and_then(|name| (self.env)(name));
            let own = own_server.as_ref().map(|server| server.base_url.clone());
            named.map(|url| url.expose().to_owned()).or(own)
        };
        let own_url = choice.base_url.clone().or_else(from_env);
        let base_url = own_url
            .clone()
            .unwrap_or_else(|| provider.base_url.to_owned());
        let mut keys = match &choice.api_key {
            Some(key) => vec![key.clone()],
            None => self.keys(provider),
        };
        if keys.is_empty() {
            keys.extend(own_server.and_then(|server| server.key));
        }
        let login = if keys.is_empty() {
            self.login(provider, choice)?
        } else {
            None
        };
        // A server at an address of the user's own may well need no key.
        let is_elsewhere = host_of(&base_url) != host_of(provider.base_url);
        let is_own = choice.base_url.is_some() || (is_elsewhere && provider.login.is_none());
        if keys.is_empty() && login.is_none() && !provider.local && !is_own {
            return Err(no_entry(provider));
        }
        let stated = mode(choice.api_mode.as_deref())?;
        let protocol = match stated {
            Some(protocol) => protocol,
            None if own_url.is_some() => protocol_at(&base_url, provider.protocol),
            None => provider.protocol,
        };
        let default_model = Some(provider.default_model.to_owned());
        let model = model.or(default_model.filter(|model| !model.is_empty()));
        self.finish(Draft {
            provider: provider.id,
            model,
            base_url,
            protocol,
            is_wire_guessed: stated.is_none() && is_elsewhere,
            quirks: provider.quirks,
            keys,
            local: provider.local,
            key_hint: match provider.key_envs {
                _ if login.is_some() => {
                    format!("log in again with `hermes auth add {}`", provider.id)
                }
                [] => format!("check the key of `{}`", provider.id),
                variables => format!(
                    "check {} (keys: {})",
                    variables.join(" or "),
                    provider.key_page
                ),
            },
            login,
        })
    }

    /// The login that stands for a key, if somebody is logged in. Its token goes to its provider only: to an address
    /// that the settings name only if that is the provider's.
    fn login(
        &self,
        provider: &'static Provider,
        choice: &ModelChoice,
    ) -> Result<Option<LoginServer>, ResolveError> {
        let is_open = self.settings.logins.iter().any(|id| id == provider.id);
        let is_at_home = |url: &String| {
            url.starts_with("https://") && host_of(url) == host_of(provider.base_url)
        };
        match provider.login {
            Some(login) if is_open && choice.base_url.as_ref().is_none_or(is_at_home) => {
                Ok(Some(LoginServer::of(provider.id, login, self.env)?))
            }
            _ => Ok(None),
        }
    }

    fn defined(
        &self,
        name: &str,
        endpoint: &Endpoint,
        model: Option<String>,
        choice: &ModelChoice,
    ) -> Result<Route, ResolveError> {
        let base_url = choice
            .base_url
            .clone()
            .unwrap_or_else(|| endpoint.base_url.clone());
        let from_env = || {
            endpoint
                .key_env
                .as_deref()
                .and_then(|name| (self.env)(name))
        };
        let key = choice
            .api_key
            .clone()
            .or_else(|| endpoint.api_key.clone())
            .or_else(from_env);
        let mut keys: Vec<Secret> = key.into_iter().filter(|key| !key.is_empty()).collect();
        keys.extend(self.stored(name));
        let api_mode = choice.api_mode.as_deref().or(endpoint.api_mode.as_deref());
        let stated = mode(api_mode)?;
        let protocol = stated.unwrap_or_else(|| protocol_at(&base_url, Protocol::OpenAiChat));
        let local = is_local(&base_url);
        self.finish(Draft {
            provider: name,
            model: model.or_else(|| endpoint.default_model.clone()),
            base_url,
            protocol,
            is_wire_guessed: stated.is_none(),
            quirks: Quirks::default(),
            keys,
            local,
            key_hint: format!("check the key of `{name}` under `providers:`"),
            login: None,
        })
    }

    fn finish(&self, draft: Draft<'_>) -> Result<Route, ResolveError> {
        let draft = self.over_chat(draft);
        let provider = draft.provider.to_owned();
        if draft.base_url.is_empty() {
            return Err(ResolveError::NoBaseUrl { provider });
        }
        let has_scheme = ["http://", "https://"]
            .iter()
            .any(|scheme| draft.base_url.starts_with(scheme));
        if !has_scheme {
            return Err(ResolveError::BadBaseUrl {
                url: draft.base_url,
            });
        }
        let Some(model) = draft.model else {
            return Err(ResolveError::NoModel { provider });
        };
        let base_url = draft.base_url.trim_end_matches('/').to_owned();
        let options = self.options(&provider, &base_url);
        let of_model = options.models.get(&model).copied().unwrap_or_default();
        let context_window = of_model
            .context_length
            .or(options.context_length)
            .or_else(|| self.window(&base_url, &model));
        let deadlines = of_model.deadlines.or(options.deadlines);
        let mut extra_body = options.extra_body;
        if is_small_name(&model) && draft.protocol == Protocol::OpenAiChat {
            // Chance makes small models take the wrong tool, or none. Whoever set a temperature keeps it.
            extra_body.entry("temperature").or_insert(json!(0));
        }
        Ok(Route {
            name: ModelName { provider, model },
            base_url,
            protocol: draft.protocol,
            is_wire_guessed: draft.is_wire_guessed,
            quirks: draft.quirks,
            keys: draft.keys,
            login: draft.login,
            local: draft.local,
            context_window,
            max_tokens: self.settings.max_tokens,
            effort: self.effort()?,
            headers: options.headers,
            extra_body,
            deadlines: deadlines.or(self.settings.deadlines).resolve(draft.local),
            key_hint: draft.key_hint,
        })
    }

    /// A draft for a server that turned out to have chat completions only.
    fn over_chat<'d>(&self, draft: Draft<'d>) -> Draft<'d> {
        let base_url = draft.base_url.trim_end_matches('/');
        let is_known = self.settings.chat_only.contains(base_url);
        let is_meant = draft.is_wire_guessed && draft.protocol == Protocol::OpenAiResponses;
        if !is_known || !is_meant {
            return draft;
        }
        Draft {
            protocol: Protocol::OpenAiChat,
            quirks: Quirks::default(),
            ..draft
        }
    }

    /// The server that the environment names, with the key that stands beside its address.
    fn own_server(&self) -> Option<OwnServer> {
        OWN_SERVER_VARIABLES.iter().find_map(|(address, key)| {
            let base_url = (self.env)(address)?.expose().to_owned();
            let key = (self.env)(key).filter(|key| !key.is_empty());
            Some(OwnServer { base_url, key })
        })
    }

    /// What fits into a model, as its server stated it. How a server nearby was started nobody can tell from the names of
    /// its models.
    fn window(&self, base_url: &str, model: &str) -> Option<u64> {
        let stated = self.settings.stated_windows.get(base_url);
        let stated = stated.and_then(|models| models.get(model)).copied();
        stated.or_else(|| {
            if is_local(base_url) {
                None
            } else {
                context::known_window(model)
            }
        })
    }

    /// What the user set for a provider. One that is known by its address alone may be defined under a name as well.
    fn options(&self, provider: &str, base_url: &str) -> ProviderOptions {
        let is_there = |endpoint: &Endpoint| endpoint.base_url.trim_end_matches('/') == base_url;
        let named_there = || {
            let mut endpoints = self.settings.endpoints.iter();
            let (name, _) = endpoints.find(|(_, endpoint)| is_there(endpoint))?;
            Some(name).filter(|_| provider == CUSTOM)
        };
        let all = &self.settings.provider_options;
        let found = all.get(provider).or_else(|| all.get(named_there()?));
        found.cloned().unwrap_or_default()
    }

    /// Every key there is for a provider: those in the environment, then those that were stored.
    fn keys(&self, provider: &Provider) -> Vec<Secret> {
        let from_env = provider.key_envs.iter().filter_map(|name| (self.env)(name));
        let mut keys: Vec<Secret> = Vec::new();
        for key in from_env.chain(self.stored(provider.id)) {
            if !key.is_empty() && !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn stored(&self, provider: &str) -> impl Iterator<Item = Secret> {
        let stored = self.settings.stored_keys.get(provider);
        stored.into_iter().flatten().cloned()
    }

    fn effort(&self) -> Result<Option<Effort>, ResolveError> {
        let Some(name) = &self.settings.reasoning_effort else {
            return Ok(None);
        };
        match Effort::parse(name) {
            Some(effort) => Ok(Some(effort)),
            None => Err(ResolveError::UnknownValue {
                setting: "reasoning effort",
                value: name.clone(),
                known: "none, minimal, low, medium, high, xhigh and max",
            }),
        }
    }
}

/// A server that only the environment knows of.
struct OwnServer {
    base_url: String,
    key: Option<Secret>,
}

/// The variables of a server of one's own: its address and its key. A key goes nowhere but to the address beside it.
const OWN_SERVER_VARIABLES: &[(&str, &str)] = &[
    ("CUSTOM_BASE_URL", "CUSTOM_API_KEY"),
    ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
];

/// A route before it was checked.
struct Draft<'a> {
    provider: &'a str,
    model: Option<String>,
    base_url: String,
    protocol: Protocol,
    is_wire_guessed: bool,
    quirks: Quirks,
    keys: Vec<Secret>,
    local: bool,
    key_hint: String,
    login: Option<LoginServer>,
}

/// What a provider calls the model that a name means. Whoever gives an address knows what is there.
fn at_provider(
    model: Option<String>,
    provider: &Provider,
    choice: &ModelChoice,
) -> Result<Option<String>, ResolveError> {
    let Some(name) = model else {
        return Ok(None);
    };
    match aliases::meaning(&name, provider) {
        Meaning::Model(model) if choice.base_url.is_none() => Ok(Some(model.to_owned())),
        Meaning::Elsewhere if choice.base_url.is_none() => Err(ResolveError::AliasElsewhere {
            at: aliases::providers_of(&name),
            alias: name,
            provider: provider.id.to_owned(),
        }),
        _ => Ok(Some(name)),
    }
}

/// Splits off what can only be meant as a provider: a word before a colon, where the models of the provider that would be
/// asked have none, or before a slash, where they have no makers in their names.
pub fn meant_provider<'m>(provider: &Provider, model: &'m str) -> Option<(&'m str, &'m str)> {
    /// How names of models begin at some providers, fine-tuned ones at most.
    const OF_NAMES: &[&str] = &["ft", "models", "tunedModels", "accounts", "publishers"];
    let is_word = |text: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_word =
            text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_part);
        is_word && !OF_NAMES.contains(&text)
    };
    // On a machine of one's own, `qwen3:8b` is a model and `org/model` a file.
    if provider.local {
        return None;
    }
    let has_makers = provider.default_model.contains('/') || provider.id == "nous";
    let by_colon = model.split_once(':');
    let by_slash = model.split_once('/').filter(|_| !has_makers);
    let found = [by_colon, by_slash].into_iter().flatten();
    let mut found = found.filter(|(prefix, rest)| is_word(prefix) && !rest.is_empty());
    found.next()
}

/// Says how to get in at a provider that nobody has a key of.
fn no_entry(provider: &'static Provider) -> ResolveError {
    match provider.login {
        Some(_) => ResolveError::NotLoggedIn {
            provider: provider.id,
            label: provider.label,
            variables: provider.key_envs,
        },
        None => ResolveError::NoKey {
            label: provider.label,
            variables: provider.key_envs,
            page: provider.key_page,
        },
    }
}

fn mode(name: Option<&str>) -> Result<Option<Protocol>, ResolveError> {
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(match name {
        "chat_completions" | "openai_chat" => Protocol::OpenAiChat,
        "responses" | "codex_responses" => Protocol::OpenAiResponses,
        "anthropic_messages" => Protocol::Anthropic,
        "gemini" => Protocol::Gemini,
        "auto" => return Ok(None),
        other => {
            return Err(ResolveError::UnknownValue {
                setting: "API mode",
                value: other.to_owned(),
                known: "chat_completions, responses, anthropic_messages and gemini",
            });
        }
    }))
}

/// Finds who lives at a base URL, by its host; `custom` when nobody we know does.
fn provider_at(base_url: &str) -> &'static Provider {
    let host = host_of(base_url);
    let at_home = |provider: &&Provider| !provider.local && host_of(provider.base_url) == host;
    PROVIDERS.iter().find(at_home).unwrap_or_else(custom)
}

/// The provider whose address only the user knows.
fn custom() -> &'static Provider {
    let custom = PROVIDERS.iter().find(|provider| provider.id == CUSTOM);
    custom.unwrap_or(&PROVIDERS[0])
}

/// Some addresses speak one wire only, whoever the provider is said to be.
fn protocol_at(base_url: &str, otherwise: Protocol) -> Protocol {
    match host_of(base_url) {
        "api.openai.com" | "api.x.ai" if otherwise == Protocol::OpenAiChat => {
            Protocol::OpenAiResponses
        }
        "api.anthropic.com" => Protocol::Anthropic,
        _ if base_url.trim_end_matches('/').ends_with("/anthropic") => Protocol::Anthropic,
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests;
