//! The models that can be chosen now: those that the settings name, those that answered lately, and those that providers
//! say they have. What cannot be found out is not among them; whoever chooses it all the same is told why it does not work.

use std::collections::HashSet;

use futures_util::future::join_all;
use hermes_core::ModelName;
use hermes_llm::context::known_window;
use hermes_llm::discover::Offered;
use hermes_llm::{MOA, ModelChoice, ModelSettings, PROVIDERS, Route, list_price};
use hermes_tui::Item;
use serde_json::Value;

use crate::base::Base;
use crate::commands::model::{models, route};
use crate::failure::Outcome;
use crate::model_settings::model_settings;

/// More than any provider has, and few enough to be searched with every key.
const MODELS_MAX: usize = 2_000;

/// A model that a provider says it has.
#[derive(Debug, Clone)]
pub struct OfferedModel {
    name: ModelName,
    context_length: Option<u64>,
}

/// Everybody who can be asked: with a key, with a login, or on this machine.
pub struct Askable {
    base: Base,
    settings: ModelSettings,
    routes: Vec<Route>,
}

impl Askable {
    pub fn of(base: Base) -> Outcome<Self> {
        let settings = model_settings(&base)?;
        let own = settings.endpoints.keys().map(String::as_str);
        let others = PROVIDERS.iter().map(|provider| provider.id);
        let others = others.filter(|id| !settings.endpoints.contains_key(*id));
        let names = own.chain(others);
        let routes = names
            .filter_map(|name| route(&base, &settings, name).ok())
            .collect();
        Ok(Self {
            base,
            settings,
            routes,
        })
    }

    /// Asks all of them which models they have.
    pub async fn offered(self) -> Vec<OfferedModel> {
        let base = &self.base;
        let lists = self.routes.iter().map(|route| async move {
            let offered = models(base, route).await.unwrap_or_default();
            let name = |offered: Offered| OfferedModel {
                name: model_name(&route.name.provider, &offered.model),
                context_length: offered.context_length,
            };
            offered.into_iter().map(name).collect::<Vec<_>>()
        });
        join_all(lists).await.concat()
    }

    /// The models as suggestions: the one in use, those of `used`, those that the settings name, then all `offered`.
    pub fn items(
        &self,
        current: &ModelName,
        used: Vec<ModelName>,
        offered: &[OfferedModel],
    ) -> Vec<Item> {
        let used = used.into_iter().filter(|name| self.can_ask(name));
        let named = [current.clone()].into_iter().chain(used);
        let named = named.chain(self.named()).map(|name| OfferedModel {
            name,
            context_length: None,
        });
        let mut seen = HashSet::new();
        let all = named.chain(offered.iter().cloned());
        all.filter(|one| seen.insert(one.name.clone()))
            .take(MODELS_MAX)
            .map(|one| self.item(&one, one.name == *current))
            .collect()
    }

    /// What the settings name, and the usual model of everybody.
    fn named(&self) -> Vec<ModelName> {
        let settings = &self.settings;
        let fallbacks = settings.fallbacks.iter().filter_map(of_choice);
        let own = settings.endpoints.iter();
        let own = own.filter_map(|(id, one)| Some(model_name(id, one.default_model.as_ref()?)));
        let listed = settings.provider_options.iter();
        let listed = listed.flat_map(|(id, options)| {
            let models = options.models.keys();
            models.map(|model| model_name(id, model))
        });
        let usual = PROVIDERS
            .iter()
            .filter(|known| !known.default_model.is_empty());
        let usual = usual.map(|known| model_name(known.id, known.default_model));
        let named = fallbacks.chain(own).chain(listed).chain(usual);
        let named = named.filter(|name| self.can_ask(name));
        named.chain(self.mixtures()).collect()
    }

    fn mixtures(&self) -> Vec<ModelName> {
        let Some(Value::Object(presets)) = self.base.settings.get("moa.presets") else {
            return Vec::new();
        };
        let is_on = |preset: &Value| preset.get("enabled") != Some(&Value::Bool(false));
        let on = presets.iter().filter(|(_, preset)| is_on(preset));
        on.map(|(name, _)| model_name(MOA, name)).collect()
    }

    fn can_ask(&self, name: &ModelName) -> bool {
        self.route_to(name).is_some()
    }

    fn route_to(&self, name: &ModelName) -> Option<&Route> {
        let mut routes = self.routes.iter();
        routes.find(|route| route.name.provider == name.provider)
    }

    fn item(&self, model: &OfferedModel, is_current: bool) -> Item {
        let name = model.name.to_string();
        let mut details: Vec<String> = Vec::new();
        details.extend(is_current.then(|| "in use".to_owned()));
        details.push(self.whose(&model.name));
        details.extend(
            self.context(model)
                .map(|tokens| format!("{} context", tokens_text(tokens))),
        );
        let is_local = self.route_to(&model.name).is_some_and(|route| route.local);
        details.extend(price(&model.name.model).filter(|_| !is_local));
        Item {
            value: name.clone(),
            label: name,
            detail: details.join(" · "),
        }
    }

    /// Tokens that fit into a model: what it is said to hold now, what its server said before, what is known of its name.
    fn context(&self, model: &OfferedModel) -> Option<u64> {
        let route = self.route_to(&model.name);
        let before = route.and_then(|route| {
            let models = self.settings.stated_windows.get(&route.base_url)?;
            models.get(&model.name.model).copied()
        });
        let is_local = route.is_some_and(|route| route.local);
        let known = || known_window(&model.name.model).filter(|_| !is_local);
        model.context_length.or(before).or_else(known)
    }

    fn whose(&self, name: &ModelName) -> String {
        let known = PROVIDERS.iter().find(|known| known.id == name.provider);
        match (known, self.settings.endpoints.get(&name.provider)) {
            (_, Some(own)) => own.base_url.clone(),
            _ if name.provider == MOA => "a mixture".to_owned(),
            (Some(known), None) => known.label.to_owned(),
            (None, None) => name.provider.clone(),
        }
    }
}

fn model_name(provider: &str, model: &str) -> ModelName {
    ModelName {
        provider: provider.to_owned(),
        model: model.to_owned(),
    }
}

fn of_choice(choice: &ModelChoice) -> Option<ModelName> {
    let provider = choice.provider.as_deref()?;
    let id = hermes_llm::providers::find(provider).map_or(provider, |known| known.id);
    Some(model_name(id, choice.model.as_deref()?))
}

/// `200k`, `1M`.
fn tokens_text(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        // One digit behind the point, and none when it is 0.
        _ => format!("{}M", (tokens / 100_000) as f64 / 10.0),
    }
}

fn price(model: &str) -> Option<String> {
    let price = list_price(model)?;
    Some(if price.input + price.output > 0.0 {
        format!(
            "{} in, {} out per M",
            dollars(price.input),
            dollars(price.output)
        )
    } else {
        "free".to_owned()
    })
}

/// `$3`, `$2.20`.
fn dollars(amount: f64) -> String {
    if amount.fract() == 0.0 {
        format!("${amount}")
    } else {
        format!("${amount:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_and_what_it_costs_is_told_in_few_words() {
        let told = [512, 131_072, 1_048_576, 2_000_000, 1_500_000].map(tokens_text);
        assert_eq!(told, ["512", "131k", "1M", "2M", "1.5M"]);
        let price = |model| price(model).unwrap_or_default();
        assert_eq!(price("claude-haiku-4-5"), "$1 in, $5 out per M");
        assert_eq!(price("gpt-5-mini"), "$0.25 in, $2 out per M");
        assert_eq!(price("z-ai/glm-4.7"), "$0.60 in, $2.20 out per M");
        assert_eq!(price("x/y:free"), "free");
        assert_eq!(price("who-knows"), "");
    }
}
