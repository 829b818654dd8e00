//! What every command stands on: the home, the environment, the settings, the folder we are in.

use std::path::{Path, PathBuf};

use hermes_config::{Environment, Home, Key, Settings, Sources, UserConfig, load_environment};
use hermes_core::{ConsentOption, Secret, SessionOptions};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::guests::GuestPlaces;
use crate::tools::toolsets::TERMINAL;

pub struct Base {
    /// As the process was given it.
    process: Environment,
    /// With the variables of `.env` files.
    pub environment: Environment,
    pub home: Home,
    pub settings: Settings,
    pub cwd: PathBuf,
    /// Whose conversation it is for: the owner's of the home when nobody is named.
    pub person: Option<String>,
    /// Where it is held, as settings for one surface name it: `cli`, a platform.
    pub surface: String,
}

impl Base {
    /// Finds the home, creating it at the first start, and reads the settings.
    pub fn load(profile: Option<&str>, options: &SessionOptions) -> Result<Self> {
        Self::in_environment(Environment::of_process(), profile, options)
    }

    /// The same in another environment than that of the process.
    pub fn in_environment(
        process: Environment,
        profile: Option<&str>,
        options: &SessionOptions,
    ) -> Result<Self> {
        let home = Home::resolve(&process, profile)?;
        home.create()?;
        let environment = load_environment(process.clone(), &home)?;
        let cwd = match &options.cwd {
            Some(folder) => folder.clone(),
            None => std::env::current_dir().map_err(|error| {
                Error::failed(format!("cannot tell the current folder: {error}"))
                    .with_hint("the folder may have been deleted; change to another one")
            })?,
        };
        let settings = Self::load_settings(&home, &environment, &cwd, options)?;
        Ok(Self {
            process,
            environment,
            home,
            settings,
            cwd,
            person: options.person.clone(),
            surface: surface(options),
        })
    }

    /// What was read already.
    pub fn of(environment: Environment, home: Home, settings: Settings, cwd: PathBuf) -> Self {
        Self {
            process: environment.clone(),
            environment,
            home,
            settings,
            cwd,
            person: None,
            surface: TERMINAL.to_owned(),
        }
    }

    /// The same home with other options, in their folder if they name one. The files are read again.
    pub fn with_options(&self, options: &SessionOptions) -> Result<Self> {
        let environment = load_environment(self.process.clone(), &self.home)?;
        let cwd = options.cwd.clone().unwrap_or_else(|| self.cwd.clone());
        let settings = Self::load_settings(&self.home, &environment, &cwd, options)?;
        // The settings are the owner's, the folder is not.
        let cwd = match &options.person {
            Some(person) => GuestPlaces::named(&self.home, person).work(),
            None => cwd,
        };
        Ok(Self {
            process: self.process.clone(),
            environment,
            home: self.home.clone(),
            settings,
            cwd,
            person: options.person.clone(),
            surface: surface(options),
        })
    }

    /// The same place as if these settings were made, with nothing saved: for trying them.
    pub fn supposing(&self, environment: Environment, settings: &[(&str, Value)]) -> Result<Self> {
        let value = |(key, value): &(&str, Value)| Ok((key.parse::<Key>()?, value.clone()));
        let settings = Settings::load(&Sources {
            home: &self.home,
            environment: &environment,
            working_directory: Some(&self.cwd),
            flags: settings.iter().map(value).collect::<Result<_>>()?,
            user_config: UserConfig::Read,
        })?;
        Ok(Self {
            process: self.process.clone(),
            environment,
            home: self.home.clone(),
            settings,
            cwd: self.cwd.clone(),
            person: self.person.clone(),
            surface: self.surface.clone(),
        })
    }

    fn load_settings(
        home: &Home,
        environment: &Environment,
        cwd: &Path,
        options: &SessionOptions,
    ) -> Result<Settings> {
        let user_config = if options.leaves_out.user_config {
            UserConfig::Ignore
        } else {
            UserConfig::Read
        };
        Ok(Settings::load(&Sources {
            home,
            environment,
            working_directory: Some(cwd),
            flags: option_settings(options)?,
            user_config,
        })?)
    }

    /// Where results go that are too long for a prompt.
    pub fn results(&self) -> PathBuf {
        GuestPlaces::of(self).map_or_else(|| self.home.results(), |guest| guest.results())
    }

    /// Where web pages go that are too long for a prompt.
    pub fn web_pages(&self) -> PathBuf {
        GuestPlaces::of(self).map_or_else(|| self.home.web_pages(), |guest| guest.web_pages())
    }

    pub fn variable(&self, name: &str) -> Option<Secret> {
        self.environment.secret(name)
    }
}

/// Where a conversation is held: on the surface that the options name, or else where it comes from.
fn surface(options: &SessionOptions) -> String {
    match (&options.surface, options.source.as_str()) {
        (Some(surface), _) => surface.clone(),
        (None, "") => TERMINAL.to_owned(),
        (None, source) => source.to_owned(),
    }
}

/// What the options say, as settings. `-m provider:model` names both.
fn option_settings(options: &SessionOptions) -> Result<Vec<(Key, Value)>> {
    let mut values: Vec<(&str, Value)> = Vec::new();
    let (provider, model) = split_model(options);
    values.extend(provider.map(|provider| ("model.provider", json!(provider))));
    values.extend(model.map(|model| ("model.default", json!(model))));
    values.extend(
        options
            .reasoning_effort
            .as_ref()
            .map(|effort| ("agent.reasoning_effort", json!(effort))),
    );
    values.extend(
        options
            .steps_max
            .map(|turns| ("agent.max_turns", json!(turns))),
    );
    values.extend(
        options
            .checkpoints
            .then(|| ("checkpoints.enabled", json!(true))),
    );
    if options.consent == ConsentOption::Allow {
        values.push(("approvals.mode", json!("off")));
    }
    values
        .into_iter()
        .map(|(key, value)| Ok((key.parse::<Key>()?, value)))
        .collect()
}

fn split_model(options: &SessionOptions) -> (Option<&str>, Option<&str>) {
    match (options.provider.as_deref(), options.model.as_deref()) {
        (None, Some(model)) => match model.split_once(':') {
            Some((prefix, rest))
                if prefix == hermes_llm::MOA || hermes_llm::providers::find(prefix).is_some() =>
            {
                (Some(prefix), Some(rest))
            }
            _ => (None, Some(model)),
        },
        given => given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_prefix_is_split_off_and_other_colons_are_not() {
        let split = |provider: Option<&str>, model: &str| {
            let options = SessionOptions {
                provider: provider.map(str::to_owned),
                model: Some(model.to_owned()),
                ..SessionOptions::default()
            };
            let (provider, model) = split_model(&options);
            (provider.map(str::to_owned), model.map(str::to_owned))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            split(None, "anthropic:claude"),
            (some("anthropic"), some("claude"))
        );
        assert_eq!(split(None, "qwen3:8b"), (None, some("qwen3:8b")));
        assert_eq!(
            split(Some("ollama"), "qwen3:8b"),
            (some("ollama"), some("qwen3:8b"))
        );
    }
}
