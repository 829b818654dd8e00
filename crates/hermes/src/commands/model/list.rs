//! `hermes model list`: the providers, which of them can be asked, and the models of one.

use std::io;
use std::time::Duration;

use hermes_llm::discover::{LocalServer, Offered, list_models, local_servers};
use hermes_llm::providers::CUSTOM;
use hermes_llm::settings::{ModelChoice, ModelSettings, Route};
use hermes_llm::{PROVIDERS, Provider};
use serde_json::{Value, json};

use super::is_same;
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::chosen_model::key_variables;
use crate::commands::layout::{Table, count, one_line, print_json};
use crate::commands::try_out::ANY_MODEL;
use crate::failure::Outcome;
use crate::model_settings::model_settings;
use crate::output::println;
use crate::stated_windows;
use crate::style::Style;
use crate::wiring::with_token;

/// Somebody waits at the prompt.
const LIST_DEADLINE: Duration = Duration::from_secs(5);

pub(super) async fn run(base: &Base, name: Option<&str>, json: &JsonFlag) -> Outcome<()> {
    let settings = model_settings(base)?;
    let route = match name {
        Some(name) => Some(route(base, &settings, name)?),
        None => hermes_llm::resolve(&settings, &|name| base.variable(name))
            .ok()
            .map(|resolved| resolved.primary),
    };
    let providers = rows(base, &settings, &local_servers().await, route.as_ref());
    let models = match &route {
        Some(route) => Some(models(base, route).await),
        None => None,
    };
    if json.json {
        return print_json(&to_json(&providers, route.as_ref(), models.as_ref()));
    }
    print_providers(&providers, Style::of(&io::stdout(), &base.environment))?;
    match (&route, &models) {
        (Some(route), Some(models)) => print_models(route, models),
        _ => Ok(()),
    }
}

/// Finds the way to a provider by its name alone.
pub(crate) fn route(base: &Base, settings: &ModelSettings, name: &str) -> Outcome<Route> {
    let provider = super::known(settings, name)?;
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
pub(crate) async fn models(base: &Base, route: &Route) -> Result<Vec<Offered>, String> {
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

struct Row {
    id: String,
    label: String,
    state: String,
    is_current: bool,
}

fn rows(
    base: &Base,
    settings: &ModelSettings,
    servers: &[LocalServer],
    current: Option<&Route>,
) -> Vec<Row> {
    let is_current = |id: &str| current.is_some_and(|route| route.name.provider == id);
    let own = settings.endpoints.iter().map(|(name, endpoint)| Row {
        id: name.clone(),
        label: endpoint.base_url.clone(),
        state: "yours".to_owned(),
        is_current: is_current(name),
    });
    let known = PROVIDERS.iter().map(|provider| Row {
        id: provider.id.to_owned(),
        label: provider.label.to_owned(),
        state: state(base, settings, provider, servers),
        is_current: is_current(provider.id),
    });
    own.chain(known).collect()
}

fn state(
    base: &Base,
    settings: &ModelSettings,
    provider: &Provider,
    servers: &[LocalServer],
) -> String {
    let running = servers
        .iter()
        .find(|server| server.provider.id == provider.id);
    match running {
        Some(server) => return format!("running, {}", count(server.models.len() as u64, "model")),
        None if provider.id == CUSTOM => return "set model.base_url to its address".to_owned(),
        None if provider.local => return "not running".to_owned(),
        None => {}
    }
    match (
        key_variables(base, provider.id).as_slice(),
        provider.key_envs,
    ) {
        ([], _) if settings.stored_keys.contains_key(provider.id) => "key in auth.json".to_owned(),
        ([], _) if settings.logins.iter().any(|id| id == provider.id) => "logged in".to_owned(),
        ([], _) if provider.login.is_some() => {
            format!("not logged in (hermes auth add {})", provider.id)
        }
        ([], [.., variable]) => format!("no key (set {variable})"),
        ([], []) => "no key".to_owned(),
        (found, _) => format!("key in {}", found.join(", ")),
    }
}

fn print_providers(rows: &[Row], style: Style) -> Outcome<()> {
    let mut table = Table::new(["", "PROVIDER", "NAME", "STATE"]);
    for row in rows {
        let mark = if row.is_current { "*" } else { "" };
        table.row([
            mark.to_owned(),
            row.id.clone(),
            row.label.clone(),
            row.state.clone(),
        ]);
    }
    table.print(style)
}

fn print_models(route: &Route, models: &Result<Vec<Offered>, String>) -> Outcome<()> {
    let provider = &route.name.provider;
    println("")?;
    match models {
        Ok(models) if models.is_empty() => println(&format!("{provider} lists no models")),
        Ok(models) => {
            println(&format!(
                "{} of {provider}:",
                count(models.len() as u64, "model")
            ))?;
            models
                .iter()
                .try_for_each(|offered| println(&format!("  {}", shown(offered))))
        }
        Err(reason) => {
            println(&format!(
                "the models of {provider} cannot be listed: {}",
                one_line(reason)
            ))?;
            match hermes_llm::providers::find(provider).map(|known| known.default_model) {
                Some(model) if !model.is_empty() => {
                    println(&format!("  {model} is its usual model"))
                }
                _ => Ok(()),
            }
        }
    }
}

fn shown(offered: &Offered) -> String {
    let model = one_line(&offered.model);
    match offered.context_length {
        Some(tokens) => format!("{model} ({tokens} tokens)"),
        None => model,
    }
}

fn to_json(
    rows: &[Row],
    route: Option<&Route>,
    models: Option<&Result<Vec<Offered>, String>>,
) -> Value {
    let provider = |row: &Row| json!({"id": row.id, "label": row.label, "state": row.state, "current": row.is_current});
    let offered = |offered: &Offered| json!({"model": offered.model, "context_length": offered.context_length});
    let list = models.map(|models| {
        let models = models
            .as_ref()
            .map(|models| models.iter().map(offered).collect::<Vec<_>>());
        models.unwrap_or_default()
    });
    json!({
        "providers": rows.iter().map(provider).collect::<Vec<_>>(),
        "provider": route.map(|route| &route.name.provider),
        "models": list,
        "error": models.and_then(|models| models.as_ref().err()),
    })
}
