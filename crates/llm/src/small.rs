//! Which models are small, told by their names.

/// Parameters, in billions, up to which a model counts as small.
const BILLIONS_MAX: f64 = 9.9;
/// Fewer millions than this are no number of parameters but a version or a window.
const MILLIONS_MIN: f64 = 30.0;
/// Families that are small whatever else their names say.
const FAMILIES: &[&str] = &[
    "smollm",
    "tinyllama",
    "phi-3-mini",
    "phi3:mini",
    "phi-4-mini",
    "phi4-mini",
];

/// Returns whether the name of a model says that it is small.
pub fn is_small_name(name: &str) -> bool {
    let name = name.to_lowercase();
    if FAMILIES.iter().any(|family| name.contains(family)) {
        return true;
    }
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let billions: Vec<f64> = words().filter_map(billions).collect();
    match billions.as_slice() {
        [] => words().any(is_millions),
        // `30b-a3b` has thirty of which three work at a time: it knows as much as thirty.
        sizes => sizes.iter().all(|size| *size <= BILLIONS_MAX),
    }
}

/// Reads `7b`, `1.5b`, and `e4b` of models that work like four; those of `8x7b` are many.
fn billions(word: &str) -> Option<f64> {
    let number = word.strip_suffix('b')?;
    if let Some((experts, each)) = number.split_once('x') {
        return Some(experts.parse::<f64>().ok()? * each.parse::<f64>().ok()?);
    }
    number.strip_prefix('e').unwrap_or(number).parse().ok()
}

fn is_millions(word: &str) -> bool {
    let number = word
        .strip_suffix('m')
        .and_then(|number| number.parse::<f64>().ok());
    number.is_some_and(|millions| millions >= MILLIONS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_are_told_by_their_names() {
        for name in [
            "Qwen2.5-Coder-1.5B-Instruct",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            "llama3.2:3b",
            "gemma-3-4b-it",
            "gemma-3n-e4b",
            "meta-llama/llama-3.1-8b-instruct",
            "smollm2:135m",
            "SmolLM2-1.7B",
            "qwen3:0.6b",
            "phi4-mini",
        ] {
            assert!(is_small_name(name), "{name}");
        }
        for name in [
            "gpt-4o-mini",
            "claude-haiku-4-5",
            "qwen3-30b-a3b",
            "mixtral-8x7b-instruct",
            "gpt-oss-20b",
            "llama-3.3-70b",
            "gemini-2.5-flash",
            "qwen2.5-7b-instruct-1m-and-70b",
            "o3",
            "test-model",
            "gemma-3-12b",
        ] {
            assert!(!is_small_name(name), "{name}");
        }
    }
}
