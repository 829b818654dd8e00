//! `hermes config`: reading and changing settings. Secrets are masked in everything printed.
//!
//! Works before the settings are loaded, so that `edit`, `check` and `path` help when they cannot be.

mod browse;
mod check;
mod edit;
mod migrate;

use std::io::{self, IsTerminal as _};

use hermes_config::{Changed, Environment, Home, Key, Settings, mask, set, to_yaml, unset};
use hermes_core::text::nearest;
use serde_json::Value;

use super::interview::Interview;
use super::layout::print_json;
use crate::args::{ConfigArgs, ConfigCommand, JsonFlag, RunFlags};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, print, println};

pub(crate) fn run(profile: Option<&str>, flags: &RunFlags, args: ConfigArgs) -> Outcome<()> {
    let process = Environment::of_process();
    let home = Home::resolve(&process, profile)?;
    if args.command.is_none()
        && io::stdout().is_terminal()
        && let Some(interview) = Interview::begin(&process, "hermes config")
    {
        return browse::run(profile, flags, interview);
    }
    match args.command.unwrap_or(ConfigCommand::Show) {
        ConfigCommand::Path => println(&home.config_yaml().display().to_string()),
        ConfigCommand::EnvPath => println(&home.dot_env().display().to_string()),
        ConfigCommand::Edit => edit::run(&home, &process),
        ConfigCommand::Check => check::run(&home, &process),
        ConfigCommand::Migrate => migrate::run(&home, &process),
        command => with_settings(&Base::load(profile, &flags.options())?, command),
    }
}

fn with_settings(base: &Base, command: ConfigCommand) -> Outcome<()> {
    match command {
        ConfigCommand::Get { key, json } => get(base, &key, &json),
        ConfigCommand::Set { key, value, .. } => {
            let changed = set(&base.home, &base.settings, &key, &value)?;
            told("set", &changed)
        }
        ConfigCommand::Unset { key } => match unset(&base.home, &base.settings, &key)? {
            Some(changed) => told("removed", &changed),
            None => Err(Failure::new(format!("`{key}` is not in your settings"))
                .hint("`hermes config explain` shows where a value comes from")),
        },
        ConfigCommand::Explain { key } => explain(&base.settings, &key),
        _ => show(&base.settings),
    }
}

fn show(settings: &Settings) -> Outcome<()> {
    for problem in settings.problems() {
        note(&format!("warning: {problem}"));
    }
    print(&settings.to_yaml())
}

fn get(base: &Base, name: &str, json: &JsonFlag) -> Outcome<()> {
    name.parse::<Key>()?;
    let Some(value) = base.settings.get(name) else {
        return if is_saved_key(base, name) {
            println("***")
        } else {
            Err(unknown(&base.settings, name))
        };
    };
    let value = mask(name, value);
    match value {
        value if json.json => print_json(&value),
        Value::String(text) => println(&text),
        value => println(to_yaml(&value).trim_end()),
    }
}

/// Tells whether `name` is a service's key, which `config set` keeps in `.env`.
fn is_saved_key(base: &Base, name: &str) -> bool {
    let variable = name.to_ascii_uppercase();
    let is_key = variable.ends_with("_API_KEY") || variable.ends_with("_TOKEN");
    is_key && base.variable(&variable).is_some()
}

fn explain(settings: &Settings, name: &str) -> Outcome<()> {
    let explanation = settings.explain(name)?;
    match explanation.value {
        Some(_) => print(&explanation.to_string()),
        None => Err(unknown(settings, name)),
    }
}

fn unknown(settings: &Settings, name: &str) -> Failure {
    let names = settings.names();
    let near = nearest(name, names.iter().map(String::as_str));
    let failure = Failure::new(format!("`{name}` is not set"));
    if near.is_empty() {
        return failure.hint("`hermes config show` lists all settings");
    }
    failure.hint(format!("did you mean `{}`?", near.join("` or `")))
}

fn told(verb: &str, changed: &Changed) -> Outcome<()> {
    if let Some(warning) = &changed.warning {
        note(&format!("warning: {warning}"));
    }
    println(&format!(
        "{verb} {} in `{}`",
        changed.name,
        changed.file.display()
    ))
}
