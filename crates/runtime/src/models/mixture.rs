//! From `moa.presets` to a model made of models: provider `moa`, whose models are the names of presets.

use std::sync::Arc;

use hermes_core::Model;
use hermes_llm::{Fanout, MOA, Mixture, ModelChoice, ModelSettings, REFERENCES_MAX};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::Models;
use crate::models::settings::{model_settings, strategy};

/// A reference is dispensable: it is tried twice, and not waited for as an answer is.
const REFERENCE_ATTEMPTS_MAX: u32 = 2;
const HINT: &str = "a preset has `reference_models`, a list of `provider` and `model`, and an `aggregator` of the same form";

/// A preset as it is written.
#[derive(Deserialize)]
struct Preset {
    reference_models: Vec<Member>,
    aggregator: Member,
    #[serde(default)]
    fanout: FanoutName,
    max_tokens: Option<u32>,
    reference_max_tokens: Option<u32>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Member {
    provider: String,
    model: String,
    reasoning_effort: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FanoutName {
    #[default]
    PerIteration,
    UserTurn,
}

fn yes() -> bool {
    true
}

/// A preset with the settings of each of its models.
pub struct Recipe {
    pub name: String,
    pub aggregator: ModelSettings,
    pub references: Vec<ModelSettings>,
    fanout: Fanout,
    warnings: Vec<String>,
}

impl Recipe {
    /// Makes the mixture, and says what the user should know about it.
    pub fn model(self, base: &Base, models: &Models) -> Result<(Arc<dyn Model>, Vec<String>)> {
        let mut warnings = self.warnings;
        let mut client = |settings: &ModelSettings| -> Result<Arc<dyn Model>> {
            let found = models.of_settings(base, settings)?;
            warnings.extend(found.warnings);
            Ok(found.model)
        };
        let references = self.references.iter().map(&mut client);
        let references = references.collect::<Result<Vec<_>>>()?;
        let aggregator = client(&self.aggregator)?;
        let mixture = Mixture::new(&self.name, references, aggregator, self.fanout);
        Ok((Arc::new(mixture), warnings))
    }
}

/// Returns the recipe of the mixture that the settings choose; none when they choose another provider.
pub fn chosen(base: &Base) -> Result<Option<Recipe>> {
    let settings = model_settings(base)?;
    if settings.choice.provider.as_deref() != Some(MOA) {
        return Ok(None);
    }
    let name = match settings.choice.model.clone() {
        Some(name) => Some(name),
        None => base.settings.optional_string("moa.default_preset")?,
    };
    let Some(name) = name else {
        return Err(Error::asked("no preset of `moa` is chosen")
            .with_hint("`hermes model set moa:NAME` chooses one of those under `moa.presets`"));
    };
    recipe(base, &settings, &name).map(Some)
}

/// Reads a preset, which need not be the chosen one.
pub fn recipe(base: &Base, settings: &ModelSettings, name: &str) -> Result<Recipe> {
    let key = format!("moa.presets.{name}");
    let preset = preset(base, &key)?;
    let member = |member: &Member| member_settings(base, settings, &key, member);
    let reference = |reference: &Member| {
        Ok(ModelSettings {
            // An adviser that is replaced by the aggregator's stand-in advises nobody.
            fallbacks: Vec::new(),
            attempts_max: Some(REFERENCE_ATTEMPTS_MAX),
            context_length: None,
            max_tokens: preset.reference_max_tokens,
            ..member(reference)?
        })
    };
    let references: Vec<_> = preset
        .reference_models
        .iter()
        .map(reference)
        .collect::<Result<_>>()?;
    let aggregator = ModelSettings {
        max_tokens: preset.max_tokens.or(settings.max_tokens),
        ..member(&preset.aggregator)?
    };
    let unused = preset.rest.keys();
    Ok(Recipe {
        name: name.to_owned(),
        aggregator,
        references,
        fanout: match preset.fanout {
            FanoutName::PerIteration => Fanout::PerStep,
            FanoutName::UserTurn => Fanout::PerTurn,
        },
        warnings: unused
            .map(|unused| format!("`{key}.{unused}` has no effect"))
            .collect(),
    })
}

fn preset(base: &Base, key: &str) -> Result<Preset> {
    let Some(value) = base.settings.get(key) else {
        return Err(Error::asked(format!("there is no preset `{key}`")).with_hint(HINT));
    };
    let preset: Preset = serde_json::from_value(value.clone())
        .map_err(|error| Error::failed(format!("`{key}` is no preset: {error}")).with_hint(HINT))?;
    if !preset.enabled {
        let hint = format!("`hermes config set {key}.enabled true` switches it on");
        return Err(Error::asked(format!("`{key}` is switched off")).with_hint(hint));
    }
    match preset.reference_models.len() {
        1..=REFERENCES_MAX => Ok(preset),
        count => Err(Error::failed(format!(
            "`{key}.reference_models` names {count} models; 1 to {REFERENCES_MAX} can advise"
        ))
        .with_hint(HINT)),
    }
}

fn member_settings(
    base: &Base,
    settings: &ModelSettings,
    key: &str,
    member: &Member,
) -> Result<ModelSettings> {
    if member.provider == MOA {
        return Err(Error::failed(format!("`{key}` has a mixture in it"))
            .with_hint("a mixture is made of models of other providers"));
    }
    Ok(ModelSettings {
        choice: ModelChoice {
            provider: Some(member.provider.clone()),
            model: Some(member.model.clone()),
            ..ModelChoice::default()
        },
        reasoning_effort: member
            .reasoning_effort
            .clone()
            .or_else(|| settings.reasoning_effort.clone()),
        strategy: strategy(&base.settings, Some(&member.provider))?,
        ..settings.clone()
    })
}
