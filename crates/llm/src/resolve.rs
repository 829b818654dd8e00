//! From settings to routes: which provider, which model, which wire, which keys. Pure: the environment is a closure.

use hermes_core::text::nearest;
use hermes_core::{ModelName, Secret};

use crate::address::{host_of, is_local};
use crate::context;
use crate::login::{InsecureServer, LoginServer};
use crate::pool::Strategy;
use crate::providers::{self, CUSTOM, PROVIDERS, Protocol, Provider, Quirks};
use crate::settings::{
    ATTEMPTS_MAX, Effort, Endpoint, ModelChoice, ModelSettings, ProviderOptions, Route,
};

/// Looks a variable up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<Secret>;

/// The model of the settings and its fallbacks.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub primary: Route,
    pub fallbacks: Vec<Route>,
    pub strategy: Strategy,
    pub attempts_max: u32,
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
                "run `hermes model` to see the providers, or define it under `providers:`".into()
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
            Self::InsecureLogin(_) => "use an https URL, or one on this machine".into(),
            Self::NoModel { .. } => "run `hermes model`, or set `model.default`".into(),
            Self::NoBaseUrl { .. } => "set `model.base_url` to the server's address".into(),
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
            Source::Known(provider) => self.known(provider, model, choice),
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
        let source = if let Some(url) = &choice.base_url {
            Source::Known(provider_at(url))
        } else {
            Source::Known(self.first_with_key()?)
        };
        Ok((source, model))
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
        let from_env = || {
            provider
                .base_url_env
                .and_then(|name| (self.env)(name))
                .map(|url| url.expose().to_owned())
        };
        let base_url = choice
            .base_url
            .clone()
            .or_else(from_env)
            .unwrap_or_else(|| provider.base_url.to_owned());
        let keys = match &choice.api_key {
            Some(key) => vec![key.clone()],
            None => self.keys(provider),
        };
        let login = match keys.is_empty() {
            true => self.login(provider, choice)?,
            false => None,
        };
        // A server at an address of the user's own may well need no key.
        if keys.is_empty() && login.is_none() && !provider.local && choice.base_url.is_none() {
            return Err(no_entry(provider));
        }
        let protocol = match mode(choice.api_mode.as_deref())? {
            Some(protocol) => protocol,
            None if choice.base_url.is_some() => protocol_at(&base_url, provider.protocol),
            None => provider.protocol,
        };
        let default_model = Some(provider.default_model.to_owned());
        let model = model.or(default_model.filter(|model| !model.is_empty()));
        self.finish(Draft {
            provider: provider.id,
            model,
            base_url,
            protocol,
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
        let protocol = match mode(api_mode)? {
            Some(protocol) => protocol,
            None => protocol_at(&base_url, Protocol::OpenAiChat),
        };
        let local = is_local(&base_url);
        self.finish(Draft {
            provider: name,
            model: model.or_else(|| endpoint.default_model.clone()),
            base_url,
            protocol,
            quirks: Quirks::default(),
            keys,
            local,
            key_hint: format!("check the key of `{name}` under `providers:`"),
            login: None,
        })
    }

    fn finish(&self, draft: Draft<'_>) -> Result<Route, ResolveError> {
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
        Ok(Route {
            name: ModelName { provider, model },
            base_url,
            protocol: draft.protocol,
            quirks: draft.quirks,
            keys: draft.keys,
            login: draft.login,
            local: draft.local,
            context_window,
            max_tokens: self.settings.max_tokens,
            effort: self.effort()?,
            headers: options.headers,
            extra_body: options.extra_body,
            deadlines: deadlines.or(self.settings.deadlines).resolve(draft.local),
            key_hint: draft.key_hint,
        })
    }

    /// What fits into a model, as its server stated it. How a server nearby was started nobody can tell from the names of
    /// its models.
    fn window(&self, base_url: &str, model: &str) -> Option<u64> {
        let stated = self.settings.stated_windows.get(base_url);
        let stated = stated.and_then(|models| models.get(model)).copied();
        stated.or_else(|| match is_local(base_url) {
            true => None,
            false => context::known_window(model),
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

/// A route before it was checked.
struct Draft<'a> {
    provider: &'a str,
    model: Option<String>,
    base_url: String,
    protocol: Protocol,
    quirks: Quirks,
    keys: Vec<Secret>,
    local: bool,
    key_hint: String,
    login: Option<LoginServer>,
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
    let custom = |provider: &&Provider| provider.id == CUSTOM;
    let mut table = PROVIDERS.iter();
    table
        .find(at_home)
        .or_else(|| PROVIDERS.iter().find(custom))
        .unwrap_or(&PROVIDERS[0])
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
mod tests {
    use super::*;
    use crate::settings::{DeadlineSettings, ModelOptions};
    use std::time::Duration;

    fn resolve_with(
        settings: &ModelSettings,
        env: &[(&str, &str)],
    ) -> Result<Resolved, ResolveError> {
        resolve(settings, &|name| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| Secret::new(*value))
        })
    }

    fn choosing(provider: &str, model: &str) -> ModelSettings {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ModelSettings {
            choice: ModelChoice {
                provider: some(provider),
                model: some(model),
                ..ModelChoice::default()
            },
            ..ModelSettings::default()
        }
    }

    fn route(settings: &ModelSettings, env: &[(&str, &str)]) -> Route {
        resolve_with(settings, env).unwrap().primary
    }

    #[test]
    fn a_key_in_the_environment_selects_its_provider() {
        let check = |env: &[(&str, &str)], provider| {
            assert_eq!(
                route(&ModelSettings::default(), env).name.provider,
                provider
            );
        };
        check(&[("OPENAI_API_KEY", "k")], "openai-api");
        check(&[("GROQ_API_KEY", "k")], "groq");
        check(
            &[("OPENAI_API_KEY", "k"), ("OPENROUTER_API_KEY", "k")],
            "openrouter",
        );
        check(&[("GEMINI_API_KEY", "k"), ("LM_API_KEY", "k")], "gemini");
    }

    #[test]
    fn nothing_configured_says_what_to_do() {
        let error = resolve_with(&ModelSettings::default(), &[]).unwrap_err();
        assert_eq!(error, ResolveError::NoProvider);
        let hint = error.hint();
        assert!(hint.contains("OPENROUTER_API_KEY") && hint.contains("hermes model list"));
        assert!(hint.len() < 160, "{hint}");
        // An empty variable is not a key.
        assert!(resolve_with(&ModelSettings::default(), &[("OPENAI_API_KEY", "")]).is_err());
    }

    #[test]
    fn a_missing_key_names_its_variable_and_a_typo_its_neighbour() {
        let error = resolve_with(&choosing("deepseek", ""), &[]).unwrap_err();
        assert_eq!(error.to_string(), "there is no API key for DeepSeek");
        assert!(error.hint().contains("DEEPSEEK_API_KEY"));
        let error = resolve_with(&choosing("antropic", ""), &[]).unwrap_err();
        assert_eq!(error.hint(), "did you mean anthropic?");
    }

    #[test]
    fn a_colon_names_the_provider_only_when_it_is_one() {
        let env = [("OPENROUTER_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
        let name = |model: &str| route(&choosing("", model), &env).name.to_string();
        assert_eq!(
            name("anthropic:claude-opus-4-6"),
            "anthropic:claude-opus-4-6"
        );
        assert_eq!(
            name("deepseek/deepseek-r1:free"),
            "openrouter:deepseek/deepseek-r1:free"
        );
        // With a provider named, the colon belongs to the model.
        let named = route(&choosing("openrouter", "anthropic:x"), &env);
        assert_eq!(named.name.model, "anthropic:x");
    }

    #[test]
    fn wires_follow_the_mode_then_the_address_then_the_table() {
        let protocol = |provider: &str, url: Option<&str>, api_mode: Option<&str>| {
            let mut settings = choosing(provider, "m");
            settings.choice.base_url = url.map(str::to_owned);
            settings.choice.api_mode = api_mode.map(str::to_owned);
            settings.choice.api_key = Some(Secret::new("k"));
            route(&settings, &[]).protocol
        };
        assert_eq!(protocol("openai", None, None), Protocol::OpenAiResponses);
        assert_eq!(
            protocol("openai", None, Some("chat_completions")),
            Protocol::OpenAiChat
        );
        assert_eq!(protocol("openai-chat", None, None), Protocol::OpenAiChat);
        assert_eq!(
            protocol("custom", Some("https://api.openai.com/v1"), None),
            Protocol::OpenAiResponses
        );
        assert_eq!(
            protocol("custom", Some("https://x.example/anthropic/"), None),
            Protocol::Anthropic
        );
        assert_eq!(
            protocol("", Some("http://127.0.0.1:9/v1"), None),
            Protocol::OpenAiChat
        );
    }

    #[test]
    fn a_base_url_alone_finds_who_lives_there() {
        let mut settings = choosing("", "m");
        settings.choice.base_url = Some("https://api.groq.com/openai/v1".into());
        assert_eq!(
            route(&settings, &[("GROQ_API_KEY", "k")]).name.provider,
            "groq"
        );
        settings.choice.base_url = Some("http://192.168.1.5:8080/v1/".into());
        let route = route(&settings, &[("OPENROUTER_API_KEY", "k")]);
        assert_eq!(
            (route.name.provider.as_str(), route.keys.len()),
            ("custom", 0)
        );
        assert_eq!(route.base_url, "http://192.168.1.5:8080/v1");
    }

    #[test]
    fn endpoints_of_the_users_own_are_found_by_name() {
        let mut settings = choosing("custom:lab", "");
        let endpoint = Endpoint {
            base_url: "http://10.0.0.7:8000/v1".into(),
            key_env: Some("LAB_KEY".into()),
            default_model: Some("qwen3".into()),
            ..Endpoint::default()
        };
        settings.endpoints.insert("lab".into(), endpoint);
        let options = ProviderOptions {
            context_length: Some(32_768),
            ..ProviderOptions::default()
        };
        settings.provider_options.insert("lab".into(), options);
        let route = route(&settings, &[("LAB_KEY", "k")]);
        assert_eq!(route.name.to_string(), "lab:qwen3");
        assert_eq!(
            (route.context_window, route.local, route.keys.len()),
            (Some(32_768), true, 1)
        );
        assert_eq!(route.deadlines.idle, Duration::from_secs(900));
    }

    #[test]
    fn options_are_those_of_the_model_then_of_the_provider_by_name_or_address() {
        let seconds = |total| DeadlineSettings {
            total: Some(Duration::from_secs(total)),
            ..DeadlineSettings::default()
        };
        let small = ModelOptions {
            context_length: Some(4_096),
            deadlines: seconds(5),
        };
        let options = ProviderOptions {
            context_length: Some(32_768),
            deadlines: seconds(60),
            models: [("small".to_owned(), small)].into(),
            ..ProviderOptions::default()
        };
        let endpoint = Endpoint {
            base_url: "http://10.0.0.7:8000/v1/".into(),
            ..Endpoint::default()
        };
        let found = |provider: &str, model: &str, url: Option<&str>| {
            let mut settings = choosing(provider, model);
            settings.choice.base_url = url.map(str::to_owned);
            settings.endpoints.insert("lab".into(), endpoint.clone());
            settings
                .provider_options
                .insert("lab".into(), options.clone());
            let route = route(&settings, &[]);
            (
                route.context_window.unwrap_or_default(),
                route.deadlines.total.as_secs(),
            )
        };
        assert_eq!(found("lab", "small", None), (4_096, 5));
        assert_eq!(found("lab", "big", None), (32_768, 60));
        let address = Some("http://10.0.0.7:8000/v1");
        assert_eq!(found("custom", "small", address), (4_096, 5));
        let elsewhere = Some("http://10.0.0.8:8000/v1");
        assert_eq!(found("custom", "small", elsewhere).1, 1_800);
    }

    #[test]
    fn a_window_is_what_is_set_or_stated_or_known_and_never_a_guess() {
        let window = |url: &str, model: &str, stated: Option<u64>| {
            let mut settings = choosing("custom", model);
            settings.choice.base_url = Some(format!("{url}/"));
            let models = stated.map(|tokens| (model.to_owned(), tokens));
            let models = models.into_iter().collect();
            settings.stated_windows.insert(url.to_owned(), models);
            route(&settings, &[]).context_window
        };
        let (near, far) = ("http://127.0.0.1:8080/v1", "https://models.example/v1");
        assert_eq!(window(near, "qwen3:8b", None), None);
        assert_eq!(window(near, "qwen3:8b", Some(4_096)), Some(4_096));
        assert_eq!(window(far, "claude-haiku-4.5", None), Some(200_000));
        assert_eq!(
            window(far, "claude-haiku-4.5", Some(100_000)),
            Some(100_000)
        );
        assert_eq!(window(far, "who-knows", None), None);
    }

    #[test]
    fn every_key_of_a_provider_joins_its_pool_once() {
        let mut settings = choosing("zai", "");
        settings
            .stored_keys
            .insert("zai".into(), vec![Secret::new("b"), Secret::new("c")]);
        let route = route(&settings, &[("GLM_API_KEY", "a"), ("ZAI_API_KEY", "b")]);
        let keys: Vec<_> = route.keys.iter().map(Secret::expose).collect();
        assert_eq!(keys, ["a", "b", "c"]);
    }

    #[test]
    fn a_login_stands_for_a_key_and_goes_to_its_provider_only() {
        let login = |settings: &ModelSettings, env: &[(&str, &str)]| {
            let route = route(settings, env);
            (route.name.provider, route.login.is_some())
        };
        let mut settings = choosing("", "");
        settings.logins = vec!["nous".into()];
        assert_eq!(login(&settings, &[]), ("nous".into(), true));
        // Who has a key wants it used.
        assert_eq!(login(&settings, &[("GROQ_API_KEY", "k")]).0, "groq");
        let with_key = [("NOUS_API_KEY", "k")];
        assert_eq!(login(&settings, &with_key), ("nous".into(), false));
        let mut at = |url: &str| {
            settings.choice.provider = Some("nous".into());
            settings.choice.base_url = Some(url.into());
            login(&settings, &[]).1
        };
        assert!(at("https://inference-api.nousresearch.com/v1/"));
        for url in [
            "http://inference-api.nousresearch.com/v1",
            "https://nousresearch.example/v1",
            "http://127.0.0.1:9/v1",
        ] {
            assert!(!at(url), "{url}");
        }
    }

    #[test]
    fn who_is_not_logged_in_is_told_how_to() {
        let error = resolve_with(&choosing("xai-oauth", ""), &[("XAI_API_KEY", "k")]).unwrap_err();
        assert_eq!(error.hint(), "log in with `hermes auth add xai-oauth`");
        let error = resolve_with(&choosing("nous", ""), &[]).unwrap_err();
        assert!(error.hint().ends_with("or set NOUS_API_KEY"), "{error}");
    }

    #[test]
    fn a_fallback_without_a_key_is_a_warning() {
        let mut settings = choosing("openrouter", "m");
        let fallback = |provider: &str| ModelChoice {
            provider: Some(provider.into()),
            ..ModelChoice::default()
        };
        settings.fallbacks = vec![fallback("groq"), fallback("anthropic")];
        let env = [("OPENROUTER_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
        let resolved = resolve_with(&settings, &env).unwrap();
        assert_eq!(resolved.fallbacks.len(), 1);
        assert!(resolved.warnings[0].contains("GROQ_API_KEY"));
    }

    #[test]
    fn nonsense_is_refused_with_what_is_known() {
        let mut settings = choosing("ollama", "m");
        settings.reasoning_effort = Some("extreme".into());
        let error = resolve_with(&settings, &[]).unwrap_err();
        assert_eq!(error.to_string(), "unknown reasoning effort `extreme`");
        settings.reasoning_effort = None;
        settings.choice.base_url = Some("127.0.0.1:11434".into());
        let error = resolve_with(&settings, &[]).unwrap_err();
        assert!(error.hint().contains("http://"));
        assert!(matches!(
            resolve_with(&choosing("ollama", ""), &[]),
            Err(ResolveError::NoModel { .. })
        ));
        assert!(matches!(
            resolve_with(&choosing("custom", "m"), &[]),
            Err(ResolveError::NoBaseUrl { .. })
        ));
    }
}
