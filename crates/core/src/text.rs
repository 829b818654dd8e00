//! Small rules about text that several crates share.

/// Cuts text to at most `chars_max` characters, marking the cut.
pub fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let end = text
                .char_indices()
                .nth(chars_max.saturating_sub(1))
                .map_or(0, |(at, _)| at);
            format!("{}…", &text[..end])
        }
    }
}

/// Returns the longest prefix of at most `bytes_max` bytes that ends on a character boundary.
pub fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max.min(text.len()))]
}

/// Returns the longest suffix of at most `bytes_max` bytes that starts on a character boundary.
pub fn tail(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

/// Returns the candidates closest to `word`, best first: for "did you mean".
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const SHOWN_MAX: usize = 3;
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(&word, &candidate.to_lowercase());
            let longer = word.chars().count().max(candidate.chars().count());
            // A third of the letters may differ; a name inside the other counts as close.
            let is_close = distance * 3 <= longer
                || (word.len() >= 3 && candidate.to_lowercase().contains(&word));
            is_close.then_some((distance, candidate))
        })
        .collect();
    scored.sort_by_key(|(distance, candidate)| (*distance, *candidate));
    scored
        .into_iter()
        .take(SHOWN_MAX)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Counts the insertions, deletions and substitutions between two words.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_counts_characters_not_bytes() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo", 3), "hé…");
        assert_eq!(shorten("", 0), "");
    }

    #[test]
    fn head_and_tail_never_split_a_character() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(tail("éa", 2), "a");
        assert_eq!((head("ab", 9), tail("ab", 9)), ("ab", "ab"));
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["read_file", "write_file", "terminal", "todo"];
        assert_eq!(nearest("readfile", names), ["read_file"]);
        assert_eq!(nearest("Terminl", names), ["terminal"]);
        assert_eq!(nearest("file", names), ["read_file", "write_file"]);
        assert!(nearest("browser", names).is_empty());
    }
}
