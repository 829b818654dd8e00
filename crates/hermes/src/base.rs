//! What every command stands on: the home, the environment, the settings, the folder we are in.

use std::path::{Path, PathBuf};

use hermes_config::{Environment, Home, Key, Settings, Sources, UserConfig, load_environment};
use hermes_core::Secret;
use serde_json::{Value, json};

use crate::args::RunFlags;
use crate::failure::{Failure, Outcome};

pub struct Base {
    pub environment: Environment,
    pub home: Home,
    pub settings: Settings,
    pub cwd: PathBuf,
}

impl Base {
    /// Finds the home, creating it at the first start, and reads the settings.
    pub fn load(profile: Option<&str>, flags: &RunFlags) -> Outcome<Self> {
        let process = Environment::of_process();
        let home = Home::resolve(&process, profile)?;
        home.create()?;
        let environment = load_environment(process, &home)?;
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(format!("cannot tell the current folder: {error}"))
                .hint("the folder may have been deleted; change to another one")
        })?;
        let settings = Self::load_settings(&home, &environment, &cwd, flags)?;
        Ok(Self {
            environment,
            home,
            settings,
            cwd,
        })
    }

    /// The same place with other flags, and the files read again.
    pub fn with_flags(&self, flags: &RunFlags) -> Outcome<Self> {
        let environment = load_environment(Environment::of_process(), &self.home)?;
        let settings = Self::load_settings(&self.home, &environment, &self.cwd, flags)?;
        Ok(Self {
            environment,
            home: self.home.clone(),
            settings,
            cwd: self.cwd.clone(),
        })
    }

    /// The same home in another folder, with the settings that count there.
    pub fn in_folder(&self, cwd: PathBuf, flags: &RunFlags) -> Outcome<Self> {
        let environment = load_environment(Environment::of_process(), &self.home)?;
        let settings = Self::load_settings(&self.home, &environment, &cwd, flags)?;
        Ok(Self {
            environment,
            home: self.home.clone(),
            settings,
            cwd,
        })
    }

    /// The same place as if these settings were made, with nothing saved: for trying them.
    pub fn supposing(&self, environment: Environment, settings: &[(&str, Value)]) -> Outcome<Self> {
        let value = |(key, value): &(&str, Value)| Ok((key.parse::<Key>()?, value.clone()));
        let settings = Settings::load(&Sources {
            home: &self.home,
            environment: &environment,
            working_directory: Some(&self.cwd),
            flags: settings.iter().map(value).collect::<Outcome<_>>()?,
            user_config: UserConfig::Read,
        })?;
        Ok(Self {
            environment,
            home: self.home.clone(),
            settings,
            cwd: self.cwd.clone(),
        })
    }

    fn load_settings(
        home: &Home,
        environment: &Environment,
        cwd: &Path,
        flags: &RunFlags,
    ) -> Outcome<Settings> {
        let user_config = if flags.ignores_user_config() {
            UserConfig::Ignore
        } else {
            UserConfig::Read
        };
        Ok(Settings::load(&Sources {
            home,
            environment,
            working_directory: Some(cwd),
            flags: flag_settings(flags)?,
            user_config,
        })?)
    }

    pub fn variable(&self, name: &str) -> Option<Secret> {
        self.environment.secret(name)
    }
}

/// What the command line says, as settings. `-m provider:model` names both.
fn flag_settings(flags: &RunFlags) -> Outcome<Vec<(Key, Value)>> {
    let mut values: Vec<(&str, Value)> = Vec::new();
    let (provider, model) = split_model(flags);
    values.extend(provider.map(|provider| ("model.provider", json!(provider))));
    values.extend(model.map(|model| ("model.default", json!(model))));
    values.extend(
        flags
            .effort
            .as_ref()
            .map(|effort| ("agent.reasoning_effort", json!(effort))),
    );
    values.extend(
        flags
            .max_turns
            .map(|turns| ("agent.max_turns", json!(turns))),
    );
    values.extend(
        flags
            .checkpoints
            .then(|| ("checkpoints.enabled", json!(true))),
    );
    values.extend(flags.yolo.then(|| ("approvals.mode", json!("off"))));
    values
        .into_iter()
        .map(|(key, value)| Ok((key.parse::<Key>()?, value)))
        .collect()
}

fn split_model(flags: &RunFlags) -> (Option<&str>, Option<&str>) {
    match (flags.provider.as_deref(), flags.model.as_deref()) {
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
            let flags = RunFlags {
                provider: provider.map(str::to_owned),
                model: Some(model.to_owned()),
                ..RunFlags::default()
            };
            let (provider, model) = split_model(&flags);
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
