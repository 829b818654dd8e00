//! Finds what a few letters may mean.

/// How well letters fit a text in which they occur, those of a word in order; smaller is better.
fn score(letters: &str, text: &str) -> Option<usize> {
    if letters.is_empty() {
        return Some(0);
    }
    let text = text.to_lowercase();
    let letters = letters.to_lowercase();
    if let Some(at) = text.find(&letters) {
        // As a whole: the earlier the better, best at the start of a word.
        let starts_word = at == 0 || !text.as_bytes()[at - 1].is_ascii_alphanumeric();
        return Some(at.min(50) + if starts_word { 0 } else { 50 } + text.len().min(50));
    }
    if letters.contains(char::is_whitespace) {
        // Words in any order, each of them somewhere.
        let scores = letters.split_whitespace().map(|word| score(word, &text));
        return scores.sum();
    }
    let mut rest = text.as_str();
    let mut gaps = 0;
    for letter in letters.chars() {
        let at = rest.find(letter)?;
        gaps += at;
        rest = &rest[at + letter.len_utf8()..];
    }
    Some(1_000 + gaps)
}

/// The indices of the texts that fit, best first.
pub(crate) fn matching<'a>(letters: &str, texts: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let scored = texts
        .into_iter()
        .enumerate()
        .filter_map(|(index, text)| Some((score(letters, text)?, index)));
    let mut scored: Vec<_> = scored.collect();
    scored.sort_unstable();
    scored.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_come_before_scattered_letters() {
        let texts = ["src/theme_main.rs", "main.rs", "my_admin_runs", "other"];
        assert_eq!(matching("main", texts), [1, 0, 2]);
        assert_eq!(matching("", ["b", "a"]), [0, 1]);
        assert!(matching("zz", texts).is_empty());
    }

    #[test]
    fn several_words_fit_in_any_order() {
        let texts = ["fix the login page", "login", "page the fixer"];
        assert_eq!(matching("login fix", texts), [0]);
        assert_eq!(matching("the page", texts), [2, 0]);
        assert_eq!(matching(" login ", texts), [1, 0]);
    }
}
