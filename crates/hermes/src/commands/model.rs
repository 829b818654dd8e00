//! `hermes model`: which model answers, who else could, and choosing another.

mod list;

use std::fmt;
use std::io::{self, IsTerminal as _};

use hermes_config::{set, unset};
use hermes_core::text::nearest;
use hermes_llm::settings::{ModelChoice, ModelSettings};
use hermes_llm::{MOA, ResolveError, providers};

use super::chosen_model::ChosenModel;
use super::layout::Table;
use super::setup;
use crate::args::{ModelArgs, ModelCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mixture;
use crate::model_settings::model_settings;
use crate::output::{note, println};
use crate::style::Style;

pub(crate) use list::{models, route};

pub(crate) async fn run(base: &Base, args: ModelArgs) -> Outcome<()> {
    match args.command {
        None => {
            show(base)?;
            if io::stdout().is_terminal() {
                setup::choose_model(base).await
            } else {
                Ok(())
            }
        }
        Some(ModelCommand::List { provider, json }) => {
            list::run(base, provider.as_deref(), &json).await
        }
        Some(ModelCommand::Set { model, provider }) => {
            let saved = choose(base, &model, provider.as_deref())?;
            saved.notes.iter().for_each(|text| note(text));
            println(&saved.what)
        }
    }
}

fn show(base: &Base) -> Outcome<()> {
    match ChosenModel::of(base) {
        Ok(chosen) => print_chosen(&chosen)?,
        Err(failure) => {
            println(&format!("no model can be asked: {}", failure.message))?;
            if let Some(hint) = failure.hint {
                println(&format!(" hint: {hint}"))?;
            }
        }
    }
    println("")?;
    println("hermes model list                   shows providers and models")?;
    println("hermes model set PROVIDER:MODEL     chooses one")?;
    println("hermes config set NAME_API_KEY KEY  saves a key in .env")
}

fn print_chosen(chosen: &ChosenModel) -> Outcome<()> {
    let route = &chosen.route;
    let origin = chosen
        .origin
        .as_ref()
        .map_or("the provider's default".to_owned(), ToString::to_string);
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    if let Some(mixture) = &chosen.mixture {
        row("mixture", mixture.to_string());
    }
    row("model", route.name.model.clone());
    row("provider", route.name.provider.clone());
    row("endpoint", route.base_url.clone());
    row("set in", origin);
    row("key", chosen.key.to_string());
    if let Some(tokens) = route.context_window {
        row("context", format!("{tokens} tokens"));
    }
    table.print(Style::PLAIN)
}

/// A choice that was saved, and what the user should know about it.
pub(crate) struct Saved {
    what: String,
    notes: Vec<String>,
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

/// Chooses the model of all future sessions.
pub(crate) fn choose(base: &Base, text: &str, provider: Option<&str>) -> Outcome<Saved> {
    let settings = model_settings(base)?;
    let (provider, model) = split(&settings, provider, text);
    if model.trim().is_empty() {
        return Err(
            Failure::usage("the model's name is empty").hint("write MODEL or PROVIDER:MODEL")
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

fn save(base: &Base, key: &str, value: &str) -> Outcome<Option<String>> {
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
pub(crate) fn known(settings: &ModelSettings, name: &str) -> Result<String, ResolveError> {
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

fn is_same(settings: &ModelSettings, provider: &str) -> bool {
    let current = settings.choice.provider.as_deref().unwrap_or("auto");
    known(settings, current).is_ok_and(|current| current == provider)
}

/// Takes out what belongs to the provider that is left: its address must not get the next one's requests, and nobody
/// but it may get its key.
fn leave_provider(base: &Base, settings: &ModelSettings) -> Outcome<Vec<String>> {
    if settings.choice.api_key.is_some() {
        let place = base.settings.origin("model.api_key");
        return Err(Failure::new("`model.api_key` belongs to the provider you have now, and would be sent to the new one")
            .at(place.map_or_else(String::new, |place| place.to_string()))
            .hint("keep it in .env, or remove it with `hermes config unset model.api_key`, and try again"));
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
