//! How much fits into a model, by its name. The user's setting and what the endpoint says go before this table.

/// For models nobody knows, where a number is needed and none is shown: what most current ones have at least.
pub const WINDOW_DEFAULT: u64 = 256_000;

/// Parts of lower-case names and the tokens that fit, the first match counting: special before general.
const WINDOWS: &[(&str, u64)] = &[
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4.6", 1_000_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-sonnet-4.6", 1_000_000),
    ("claude", 200_000),
    ("gpt-5-chat", 128_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-oss", 131_072),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini", 1_048_576),
    ("gemma-3", 131_072),
    ("grok-4-fast", 2_000_000),
    ("grok-4-1-fast", 2_000_000),
    ("grok-4.1-fast", 2_000_000),
    ("grok-4", 256_000),
    ("grok", 131_072),
    ("kimi", 262_144),
    ("deepseek", 131_072),
    ("glm-4.6", 204_800),
    ("glm-4.7", 204_800),
    ("glm", 131_072),
    ("minimax", 204_800),
    ("mimo", 262_144),
    ("qwen3-max", 262_144),
    ("qwen3-coder", 262_144),
    ("qwen", 131_072),
    ("mistral", 131_072),
    ("llama", 131_072),
    ("hermes-4", 131_072),
    ("nemotron", 131_072),
];

/// Returns the tokens that fit into one request and its answer; none for models nobody knows.
pub fn known_window(model: &str) -> Option<u64> {
    let model = model.to_lowercase();
    let known = WINDOWS.iter().find(|(part, _)| model.contains(part));
    known.map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_by_part_of_the_name() {
        let check = |model, tokens| assert_eq!(known_window(model), tokens, "{model}");
        check("anthropic/claude-haiku-4.5", Some(200_000));
        check("claude-opus-4-6", Some(1_000_000));
        check("openai/gpt-5.1", Some(400_000));
        check("Qwen/Qwen3-32B", Some(131_072));
        check("moonshotai/kimi-k2.5", Some(262_144));
        check("grok-4", Some(256_000));
        check("something-new", None);
    }
}
