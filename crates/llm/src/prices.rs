//! What tokens cost, in US dollars per million: public list prices as we knew them in November 2026, not fetched from
//! the providers. They change, so a cost computed from them is an estimate.

use hermes_core::{Cost, Usage};

use crate::settings::Route;

/// Prices of one family of models. `None` is a class of tokens whose price we do not know.
#[derive(Debug, Clone, Copy)]
struct Price {
    /// Part of the lower-case model name; the first match counts.
    model: &'static str,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

const fn price(
    model: &'static str,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
) -> Price {
    Price {
        model,
        input,
        output,
        cache_read,
        cache_write,
    }
}

const PRICES: &[Price] = &[
    price("claude-opus-4", 5.0, 25.0, Some(0.5), Some(6.25)),
    price("claude-sonnet-4", 3.0, 15.0, Some(0.3), Some(3.75)),
    price("claude-haiku-4", 1.0, 5.0, Some(0.1), Some(1.25)),
    price("gpt-5-nano", 0.05, 0.4, Some(0.005), Some(0.05)),
    price("gpt-5-mini", 0.25, 2.0, Some(0.025), Some(0.25)),
    price("gpt-5.1", 1.25, 10.0, Some(0.125), Some(1.25)),
    price("gpt-4.1-mini", 0.4, 1.6, Some(0.1), Some(0.4)),
    price("gpt-4.1", 2.0, 8.0, Some(0.5), Some(2.0)),
    price("gpt-4o-mini", 0.15, 0.6, Some(0.075), Some(0.15)),
    price("gpt-4o", 2.5, 10.0, Some(1.25), Some(2.5)),
    price("gemini-3-pro", 2.0, 12.0, Some(0.2), None),
    price("gemini-2.5-pro", 1.25, 10.0, Some(0.125), None),
    price("gemini-2.5-flash-lite", 0.1, 0.4, Some(0.01), None),
    price("gemini-2.5-flash", 0.3, 2.5, Some(0.03), None),
    price("grok-4-1-fast", 0.2, 0.5, Some(0.05), None),
    price("grok-4.1-fast", 0.2, 0.5, Some(0.05), None),
    price("deepseek-chat", 0.28, 0.42, Some(0.028), None),
    price("deepseek-reasoner", 0.28, 0.42, Some(0.028), None),
    price("kimi-k2.5", 0.6, 3.0, Some(0.1), None),
    price("glm-4.7", 0.6, 2.2, Some(0.11), None),
    price("minimax-m2.1", 0.3, 1.2, Some(0.03), Some(0.375)),
];

/// What a million tokens of a hosted model cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListPrice {
    pub input: f64,
    pub output: f64,
}

/// Returns the price of a hosted model; `None` when it is not known.
pub fn list_price(model: &str) -> Option<ListPrice> {
    let model = model.to_lowercase();
    if is_free(&model) {
        return Some(ListPrice {
            input: 0.0,
            output: 0.0,
        });
    }
    find(&model).map(|price| ListPrice {
        input: price.input,
        output: price.output,
    })
}

/// Estimates what a request cost on a route.
pub(crate) fn cost_of(route: &Route, usage: &Usage) -> Cost {
    let model = route.name.model.to_lowercase();
    if route.local || is_free(&model) {
        return Cost::Included;
    }
    find(&model).map_or(Cost::Unknown, |price| price.of(usage))
}

/// Estimates the most that so many tokens can cost on a route: a prompt that is written into a cache may be dearest.
pub(crate) fn cost_at_most(route: &Route, input: u64, output: u64) -> Cost {
    let prompt = |usage: Usage| cost_of(route, &Usage { output, ..usage });
    let plain = prompt(Usage {
        input,
        ..Usage::default()
    });
    let written = prompt(Usage {
        cache_write: input,
        ..Usage::default()
    });
    match (plain, written) {
        (Cost::Estimated(plain), Cost::Estimated(written)) => Cost::Estimated(plain.max(written)),
        (plain, _) => plain,
    }
}

/// Free variants on aggregators carry the name of the paid one.
fn is_free(model: &str) -> bool {
    model.ends_with(":free")
}

fn find(model: &str) -> Option<&'static Price> {
    PRICES.iter().find(|price| model.contains(price.model))
}

impl Price {
    /// A class of tokens that was used and has no price makes the whole unknown: a partial sum would mislead.
    fn of(&self, usage: &Usage) -> Cost {
        let classes = [
            (usage.input, Some(self.input)),
            (usage.output, Some(self.output)),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let mut micro_usd = 0.0;
        for (tokens, usd_per_million) in classes {
            match usd_per_million {
                _ if tokens == 0 => {}
                // A dollar per million tokens is a millionth of a dollar per token.
                Some(price) => micro_usd += tokens as f64 * price,
                None => return Cost::Unknown,
            }
        }
        Cost::Estimated(micro_usd.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::resolve;
    use crate::settings::{ModelChoice, ModelSettings};
    use hermes_core::Secret;

    fn cost(provider: &str, model: &str, usage: Usage) -> Cost {
        let settings = ModelSettings {
            choice: ModelChoice {
                provider: Some(provider.into()),
                model: Some(model.into()),
                api_key: Some(Secret::new("k")),
                ..ModelChoice::default()
            },
            ..ModelSettings::default()
        };
        cost_of(&resolve(&settings, &|_| None).unwrap().primary, &usage)
    }

    #[test]
    fn every_class_of_tokens_has_its_price() {
        let usage = Usage {
            input: 1000,
            output: 100,
            cache_read: 10_000,
            cache_write: 100,
            reasoning: 50,
        };
        let expected = 1000 * 3 + 100 * 15 + 10_000 * 3 / 10 + 375;
        assert_eq!(
            cost("anthropic", "claude-sonnet-4-6", usage),
            Cost::Estimated(expected)
        );
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let usage = Usage {
            input: 10,
            cache_write: 1,
            ..Usage::default()
        };
        assert_eq!(cost("openrouter", "who/knows", usage), Cost::Unknown);
        assert_eq!(cost("gemini", "gemini-2.5-pro", usage), Cost::Unknown);
        assert_eq!(cost("ollama", "llama3", usage), Cost::Included);
        assert_eq!(cost("openrouter", "x/glm-4.7:free", usage), Cost::Included);
    }

    #[test]
    fn a_price_can_be_told_before_anything_is_asked() {
        let told = |model| list_price(model).map(|price| (price.input, price.output));
        assert_eq!(told("anthropic/Claude-Opus-4.6"), Some((5.0, 25.0)));
        assert_eq!(told("x/glm-4.7:free"), Some((0.0, 0.0)));
        assert_eq!(told("who/knows"), None);
    }
}
