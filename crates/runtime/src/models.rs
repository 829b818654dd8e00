//! Models for every purpose: from the settings to whoever answers.
//!
//! One recipe makes them all, [`Models::get`]: the settings of the main model, and over them what the section of the
//! purpose says. Conversations that want the same model share its client, and with it its connections.

pub mod choice;
pub mod chosen;
pub mod forget;
pub mod found;
mod key_ledger;
pub mod keys;
pub mod known;
mod known_wires;
pub mod mixture;
pub mod settings;
pub(crate) mod small;
pub mod standing;
pub mod stated_windows;
mod token_store;
pub mod try_out;
pub mod ways_in;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{Audience, Cost, Model, Secret};
use hermes_llm::{
    Client, DeadlineSettings, LoginError, Logins, ModelChoice, ModelSettings, ResolveError,
    Resolved, Route,
};

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use key_ledger::AuthLedger;
use known_wires::KnownWires;
use settings::model_settings;
use token_store::AuthTokens;

/// How long answers may take to begin where nobody sits before them: a script would rather fail than wait for a server
/// that says nothing, also for one on this machine.
const UNATTENDED: Duration = Duration::from_secs(120);

/// What a model is for. A purpose that is new is a row here and its section in `section`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Answers conversations.
    Main,
    /// Works for a call of another.
    Subagent,
    /// Judges commands before a person is asked.
    Approval,
    /// Summarises conversations that outgrow their model.
    Compression,
    /// Looks through conversations for what is worth keeping.
    Review,
    /// Summarises what earlier conversations say.
    Recall,
    /// Names conversations.
    Titles,
    /// Derives what is known of the user, and answers questions about them.
    UserModel,
}

impl Purpose {
    /// Where the settings name its model; the main one has more places than a section.
    pub(crate) fn section(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Subagent => Some("delegation"),
            Self::Approval => Some("auxiliary.approval"),
            Self::Compression => Some("auxiliary.compression"),
            Self::Review => Some("auxiliary.background_review"),
            Self::Recall => Some("auxiliary.session_search"),
            Self::Titles => Some("auxiliary.title_generation"),
            Self::UserModel => Some("auxiliary.user_model"),
        }
    }
}

/// A model, and what the user should know about it.
pub struct Found {
    pub model: Arc<dyn Model>,
    pub warnings: Vec<String>,
}

/// The models of a process.
#[derive(Default)]
pub struct Models(Mutex<Vec<Shared>>);

/// A client that somebody uses, and what it was made of.
struct Shared {
    settings: ModelSettings,
    /// Also those that stand in the environment.
    keys: Vec<Secret>,
    client: Weak<Client>,
}

impl Models {
    /// The model of conversations.
    pub async fn main(&self, base: &Base, audience: Audience) -> Result<Found> {
        if let Some(recipe) = mixture::chosen(base)? {
            let (model, warnings) = recipe.model(base, self)?;
            return Ok(Found { model, warnings });
        }
        let mut settings = model_settings(base)?;
        settings.deadlines = settings.deadlines.or(deadlines(audience));
        let environment = |name: &str| base.variable(name);
        let resolved = match hermes_llm::resolve(&settings, &environment) {
            Err(ResolveError::NoProvider) => {
                let (choice, warning) = local_model(base).await.ok_or(ResolveError::NoProvider)?;
                settings.choice = choice;
                settings.stated_windows = stated_windows::read(&base.home);
                let mut resolved = hermes_llm::resolve(&settings, &environment)?;
                resolved.warnings.push(warning);
                resolved
            }
            Err(ResolveError::NoModel { provider }) => {
                settings.choice.model = Some(only_model(base, &settings, provider).await?);
                hermes_llm::resolve(&settings, &environment)?
            }
            resolved => resolved?,
        };
        let warnings = resolved.warnings.clone();
        let model = self.shared(base, &settings, resolved);
        Ok(Found { model, warnings })
    }

    /// The model that the section of a purpose names; `None` when that is the main one.
    pub fn get(&self, base: &Base, purpose: Purpose) -> Result<Option<Arc<dyn Model>>> {
        let Some(section) = purpose.section() else {
            return Ok(None);
        };
        let text = |name: &str| base.settings.optional_string(&format!("{section}.{name}"));
        let choice = ModelChoice {
            provider: text("provider")?.filter(|provider| provider != "auto"),
            model: text("model")?,
            base_url: text("base_url")?,
            api_key: text("api_key")?.map(Secret::new),
            api_mode: None,
        };
        let effort = text("reasoning_effort")?;
        let names = [&choice.provider, &choice.model, &choice.base_url, &effort];
        if names.iter().all(|name| name.is_none()) {
            Ok(None)
        } else {
            self.over_main(base, purpose, choice, effort).map(Some)
        }
    }

    /// A model by its name, or by `provider:name`; otherwise as the settings say.
    pub fn named(&self, base: &Base, name: &str) -> Result<Arc<dyn Model>> {
        let choice = match name.split_once(':') {
            Some((provider, model)) if hermes_llm::providers::find(provider).is_some() => {
                ModelChoice {
                    provider: Some(provider.to_owned()),
                    model: Some(model.to_owned()),
                    ..ModelChoice::default()
                }
            }
            _ => ModelChoice {
                model: Some(name.to_owned()),
                ..ModelChoice::default()
            },
        };
        self.over_main(base, Purpose::Main, choice, None)
    }

    /// The main model with another choice. What is not said is as for the main one.
    fn over_main(
        &self,
        base: &Base,
        purpose: Purpose,
        choice: ModelChoice,
        effort: Option<String>,
    ) -> Result<Arc<dyn Model>> {
        let mut settings = model_settings(base)?;
        // An address and a key belong to the provider they stand beside.
        settings.choice = if choice.provider.is_some() || choice.base_url.is_some() {
            ModelChoice {
                model: match purpose {
                    Purpose::Subagent => choice.model.or(settings.choice.model),
                    // The usual one of that provider.
                    _ => choice.model,
                },
                ..choice
            }
        } else {
            ModelChoice {
                model: choice.model.or(settings.choice.model),
                ..settings.choice
            }
        };
        settings.reasoning_effort = effort.or(settings.reasoning_effort);
        self.of_settings(base, &settings).map(|found| found.model)
    }

    /// The model of these settings.
    pub(crate) fn of_settings(&self, base: &Base, settings: &ModelSettings) -> Result<Found> {
        let resolved = hermes_llm::resolve(settings, &|name: &str| base.variable(name))?;
        let warnings = resolved.warnings.clone();
        let model = self.shared(base, settings, resolved);
        Ok(Found { model, warnings })
    }

    /// The client that somebody has already, or a new one.
    fn shared(&self, base: &Base, settings: &ModelSettings, resolved: Resolved) -> Arc<dyn Model> {
        let routes = std::iter::once(&resolved.primary).chain(&resolved.fallbacks);
        let keys: Vec<Secret> = routes.flat_map(|route| route.keys.clone()).collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.client.strong_count() > 0);
        let is_same = |one: &&Shared| one.settings == *settings && one.keys == keys;
        if let Some(client) = known
            .iter()
            .find(is_same)
            .and_then(|one| one.client.upgrade())
        {
            return client;
        }
        let client = Arc::new(client(base, resolved));
        known.push(Shared {
            settings: settings.clone(),
            keys,
            client: Arc::downgrade(&client),
        });
        client
    }
}

/// Whether it is known what a model costs, whoever of its stand-ins answers.
pub(crate) fn is_priced(model: &dyn Model) -> bool {
    model.cost_at_most(1, 1) != Cost::Unknown
}

fn deadlines(audience: Audience) -> DeadlineSettings {
    let first = (audience != Audience::Person).then_some(UNATTENDED);
    DeadlineSettings {
        first_byte: first,
        first_token: first,
        ..DeadlineSettings::default()
    }
}

/// A client that knows which stored keys rest, writes down which are refused, and renews logins.
fn client(base: &Base, resolved: Resolved) -> Client {
    Client::new(resolved)
        .with_ledger(Arc::new(AuthLedger::of(&base.home)))
        .with_logins(logins(base))
        .with_wire_memory(Arc::new(KnownWires::of(&base.home)))
}

pub fn logins(base: &Base) -> Logins {
    Logins::new(Arc::new(AuthTokens::of(&base.home)), Arc::new(SystemClock))
}

/// A route with a key to ask with: the token of its login, if that is what it has.
pub async fn with_token(base: &Base, mut route: Route) -> Result<Route, LoginError> {
    if let Some(server) = &route.login {
        route.keys = vec![logins(base).token(server).await?];
    }
    Ok(route)
}

/// With nothing configured, a model server that runs on this machine will do.
async fn local_model(base: &Base) -> Option<(ModelChoice, String)> {
    let servers = hermes_llm::discover::local_servers().await;
    for server in &servers {
        stated_windows::remember(&base.home, server.provider.base_url, &server.models);
    }
    let (server, model) = servers
        .iter()
        .find_map(|server| Some((server, server.models.first()?)))?;
    let warning = format!(
        "no provider is configured; using {model} of {provider}, which runs on this machine (`hermes model set` chooses)",
        model = model.model,
        provider = server.provider.label,
    );
    let choice = ModelChoice {
        provider: Some(server.provider.id.to_owned()),
        model: Some(model.model.clone()),
        ..ModelChoice::default()
    };
    Some((choice, warning))
}

/// The model of a server that has only one; whoever has several is asked for a choice.
async fn only_model(base: &Base, settings: &ModelSettings, provider: String) -> Result<String> {
    /// Stands for the model while only its server matters.
    const ANY_MODEL: &str = "any";
    /// Names that fit into a hint.
    const NAMES_CHARS_MAX: usize = 300;
    let mut settings = settings.clone();
    settings.choice.model = Some(ANY_MODEL.to_owned());
    let route = hermes_llm::resolve(&settings, &|name| base.variable(name))?.primary;
    let offered = hermes_llm::discover::list_models(&route)
        .await
        .unwrap_or_default();
    stated_windows::remember(&base.home, &route.base_url, &offered);
    let names: Vec<_> = offered.into_iter().map(|offered| offered.model).collect();
    let failure = Error::from(ResolveError::NoModel { provider });
    match names.as_slice() {
        [] => Err(failure),
        [only] => Ok(only.clone()),
        several => Err(failure.with_hint(format!(
            "choose one with -m: {}",
            shorten(&several.join(", "), NAMES_CHARS_MAX)
        ))),
    }
}
