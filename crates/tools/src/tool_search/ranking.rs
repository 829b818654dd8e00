//! Which tools fit a query best: BM25 over their names, descriptions and the names of their arguments.

use std::collections::HashMap;

use hermes_core::ToolSpec;

/// How soon a word that occurs often counts no more.
const SATURATION: f64 = 1.5;
/// How much a long description is held against a tool.
const LENGTH_WEIGHT: f64 = 0.75;

/// Returns the tools that share words with the query, best first; without any, those whose name contains it.
pub(super) fn best<'a>(query: &str, specs: &[&'a ToolSpec], limit: usize) -> Vec<&'a ToolSpec> {
    let documents: Vec<Vec<String>> = specs.iter().map(|spec| words_of(spec)).collect();
    let scores = scores(&words(query), &documents);
    let mut ranked: Vec<(f64, &ToolSpec)> = scores.into_iter().zip(specs.iter().copied()).collect();
    ranked.retain(|(score, _)| *score > 0.0);
    // Stable: equal ones stay in their order.
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    if ranked.is_empty() {
        return named_like(query, specs, limit);
    }
    ranked
        .into_iter()
        .map(|(_, spec)| spec)
        .take(limit)
        .collect()
}

fn named_like<'a>(query: &str, specs: &[&'a ToolSpec], limit: usize) -> Vec<&'a ToolSpec> {
    let part = query.trim().to_lowercase();
    let matching = specs
        .iter()
        .filter(|spec| !part.is_empty() && spec.name.to_lowercase().contains(&part));
    matching.copied().take(limit).collect()
}

fn scores(query: &[String], documents: &[Vec<String>]) -> Vec<f64> {
    let count = documents.len() as f64;
    let length_mean = documents.iter().map(Vec::len).sum::<usize>() as f64 / count.max(1.0);
    let frequencies: Vec<HashMap<&str, f64>> =
        documents.iter().map(|words| frequencies(words)).collect();
    let rarity = |word: &str| {
        let with_it = frequencies
            .iter()
            .filter(|counts| counts.contains_key(word))
            .count() as f64;
        ((count - with_it + 0.5) / (with_it + 0.5) + 1.0).ln()
    };
    let rarities: Vec<f64> = query.iter().map(|word| rarity(word)).collect();
    let of_one = |(counts, words): (&HashMap<&str, f64>, &Vec<String>)| {
        let length =
            1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * words.len() as f64 / length_mean.max(1.0);
        let of_word = |(word, rarity): (&String, &f64)| {
            let times = counts.get(word.as_str()).copied().unwrap_or(0.0);
            rarity * times * (SATURATION + 1.0) / (times + SATURATION * length)
        };
        query.iter().zip(&rarities).map(of_word).sum()
    };
    frequencies.iter().zip(documents).map(of_one).collect()
}

fn frequencies(words: &[String]) -> HashMap<&str, f64> {
    let mut counts = HashMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_default() += 1.0;
    }
    counts
}

fn words_of(spec: &ToolSpec) -> Vec<String> {
    let mut all = words(&spec.name);
    all.extend(words(&spec.description));
    let properties = spec.parameters.get("properties");
    for name in properties
        .and_then(|properties| properties.as_object())
        .into_iter()
        .flat_map(|map| map.keys())
    {
        all.extend(words(name));
    }
    all
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(name: &str, description: &str, argument: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object", "properties": {argument: {"type": "string"}}}),
        }
    }

    fn found(query: &str) -> Vec<String> {
        let specs = [
            spec(
                "mcp__hub__create_issue",
                "Open an issue in a repository",
                "title",
            ),
            spec(
                "mcp__hub__list_issues",
                "List the issues of a repository",
                "state",
            ),
            spec("mcp__mail__send", "Send a message to somebody", "recipient"),
            spec(
                "mcp__wetter__vorhersage",
                "Das Wetter von übermorgen",
                "ort",
            ),
        ];
        let specs: Vec<&ToolSpec> = specs.iter().collect();
        let best = best(query, &specs, 2);
        best.iter().map(|spec| spec.name.clone()).collect()
    }

    #[test]
    fn rare_words_count_more_than_common_ones() {
        assert_eq!(found("create an issue")[0], "mcp__hub__create_issue");
        assert_eq!(found("repository issues")[0], "mcp__hub__list_issues");
    }

    #[test]
    fn the_names_of_arguments_count_and_so_do_other_alphabets() {
        assert_eq!(found("recipient"), ["mcp__mail__send"]);
        assert_eq!(found("Übermorgen"), ["mcp__wetter__vorhersage"]);
    }

    #[test]
    fn without_a_word_in_common_a_part_of_the_name_will_do() {
        assert_eq!(found("vorher"), ["mcp__wetter__vorhersage"]);
        assert!(found("nothing like it").is_empty());
        assert!(found("  ").is_empty());
    }

    #[test]
    fn no_more_are_returned_than_asked_for() {
        assert_eq!(found("a the of mcp").len(), 2);
    }
}
