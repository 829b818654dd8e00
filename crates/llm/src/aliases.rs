//! Short names of models, such as `sonnet`: what the provider that is asked calls the model that is meant. Pure.

use crate::providers::Provider;

/// A short name, and the newest model of its family that we know.
struct Alias {
    name: &'static str,
    /// With its maker, as aggregators call it.
    with_maker: &'static str,
    /// The providers that have it under a name of their own.
    at: &'static [&'static str],
    own: &'static str,
}

const fn alias(
    name: &'static str,
    with_maker: &'static str,
    at: &'static [&'static str],
    own: &'static str,
) -> Alias {
    Alias {
        name,
        with_maker,
        at,
        own,
    }
}

/// They name models of every maker.
const AGGREGATORS: &[&str] = &["openrouter", "nous"];

const OPENAI: &[&str] = &["openai-api", "openai-chat"];
const XAI: &[&str] = &["xai", "xai-oauth"];
const KIMI: &[&str] = &["kimi-coding", "kimi-coding-cn"];
const MINIMAX: &[&str] = &["minimax", "minimax-cn"];

#[rustfmt::skip]
const ALIASES: &[Alias] = &[
    alias("sonnet", "anthropic/claude-sonnet-4.6", &["anthropic"], "claude-sonnet-4-6"),
    alias("claude", "anthropic/claude-sonnet-4.6", &["anthropic"], "claude-sonnet-4-6"),
    alias("opus", "anthropic/claude-opus-4.6", &["anthropic"], "claude-opus-4-6"),
    alias("haiku", "anthropic/claude-haiku-4.5", &["anthropic"], "claude-haiku-4-5"),
    alias("gpt", "openai/gpt-5.1", OPENAI, "gpt-5.1"),
    alias("gpt5", "openai/gpt-5.1", OPENAI, "gpt-5.1"),
    alias("codex", "openai/gpt-5.1-codex", OPENAI, "gpt-5.1-codex"),
    alias("o3", "openai/o3", OPENAI, "o3"),
    alias("o4", "openai/o4-mini", OPENAI, "o4-mini"),
    alias("gemini", "google/gemini-3-pro-preview", &["gemini"], "gemini-3-pro-preview"),
    alias("deepseek", "deepseek/deepseek-chat", &["deepseek"], "deepseek-chat"),
    alias("grok", "x-ai/grok-4.1-fast", XAI, "grok-4-1-fast"),
    alias("qwen", "qwen/qwen3-max", &["alibaba"], "qwen3-max"),
    alias("minimax", "minimax/minimax-m2.1", MINIMAX, "MiniMax-M2.1"),
    alias("nemotron", "nvidia/nemotron-3-nano-30b-a3b", &["nvidia"], "nvidia/nemotron-3-nano-30b-a3b"),
    alias("kimi", "moonshotai/kimi-k2.5", KIMI, "kimi-k2.5"),
    alias("glm", "z-ai/glm-4.7", &["zai"], "glm-4.7"),
    alias("mimo", "xiaomi/mimo-v2-flash", &["xiaomi"], "mimo-v2-flash"),
    alias("llama", "meta-llama/llama-4-maverick", &[], ""),
];

/// What a name means at a provider.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// No short name, or one that means nothing in particular there.
    Itself,
    Model(&'static str),
    /// A short name of a model that this provider has not.
    Elsewhere,
}

/// Reads a name as it is meant at a provider. A server of one's own calls its models as it likes.
pub(crate) fn meaning(name: &str, provider: &Provider) -> Meaning {
    let Some(alias) = find(name).filter(|_| !provider.local) else {
        return Meaning::Itself;
    };
    match alias.at_provider(provider) {
        Some(model) => Meaning::Model(model),
        None => Meaning::Elsewhere,
    }
}

/// The ids of the providers that have what a short name means.
pub(crate) fn providers_of(name: &str) -> Vec<&'static str> {
    let found = find(name).into_iter();
    found
        .flat_map(|alias| alias.at.iter().chain(AGGREGATORS))
        .copied()
        .collect()
}

fn find(name: &str) -> Option<&'static Alias> {
    ALIASES
        .iter()
        .find(|alias| alias.name.eq_ignore_ascii_case(name.trim()))
}

impl Alias {
    fn at_provider(&self, provider: &Provider) -> Option<&'static str> {
        if AGGREGATORS.contains(&provider.id) {
            return Some(self.with_maker);
        }
        self.at.contains(&provider.id).then_some(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers;

    #[test]
    fn a_short_name_is_what_the_provider_calls_it() {
        let check = |name, provider, expected| {
            let provider = providers::find(provider).unwrap();
            assert_eq!(meaning(name, provider), expected, "{name}");
        };
        check("sonnet", "anthropic", Meaning::Model("claude-sonnet-4-6"));
        check(
            "Sonnet",
            "openrouter",
            Meaning::Model("anthropic/claude-sonnet-4.6"),
        );
        check("sonnet", "openai", Meaning::Elsewhere);
        check("gpt", "openai", Meaning::Model("gpt-5.1"));
        check("qwen", "ollama", Meaning::Itself);
        check("claude-sonnet-4-5", "anthropic", Meaning::Itself);
    }

    #[test]
    fn every_provider_of_the_table_exists() {
        for alias in ALIASES {
            for id in alias.at.iter().chain(AGGREGATORS) {
                assert_eq!(providers::find(id).map(|found| found.id), Some(*id));
            }
        }
    }
}
