//! `hermes model list`: the providers, which of them can be asked, and the models of one.

use std::io;

use hermes_llm::discover::{LocalServer, Offered, local_servers};
use hermes_llm::providers::CUSTOM;
use hermes_llm::settings::{ModelSettings, Route};
use hermes_llm::{PROVIDERS, Provider};
use hermes_runtime::models::choice::{models, route};
use serde_json::{Value, json};

use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{OnTerminal as _, Table, count, one_line, print_json};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::models::chosen::key_variables;
use hermes_runtime::models::settings::model_settings;

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
