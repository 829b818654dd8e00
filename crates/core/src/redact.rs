//! Takes secrets out of text before it leaves: logs, errors, chats.

/// Beginnings that no ordinary word has, with the shortest length that is a token and not talk about one.
const CERTAIN_PREFIXES: &[(&str, usize)] = &[
    ("sk-proj-", 20),
    ("sk-svcacct-", 20),
    ("sk-admin-", 20),
    ("sk-or-", 20),
    ("sk-ant-", 20),
    ("sk_live_", 20),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
    ("nvapi-", 20),
];
/// Beginnings that names in code have too (`gsk_render_node_get_bounds`): what follows must have a digit.
const LIKELY_PREFIXES: &[(&str, usize)] = &[
    ("sk-", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("AIza", 30),
    ("AKIA", 20),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("ghu_", 20),
    ("ghr_", 20),
    ("npm_", 30),
    ("pplx-", 20),
    ("tvly-", 20),
    ("eyJ", 40),
];

const MARK: &str = "***";

/// Replaces what looks like a secret by `***`. Leaves ordinary text exactly as it is.
pub fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut secret_next = false;
    for piece in pieces(text) {
        match piece {
            Piece::Between(between) => clean.push_str(between),
            Piece::Word(word) => {
                let is_said = secret_next && word.len() >= 8 && !is_variable(word);
                let is_secret = is_token(word) || is_said;
                clean.push_str(if is_secret { MARK } else { word });
                secret_next = word.eq_ignore_ascii_case("bearer") || names_a_secret(word);
            }
        }
    }
    clean
}

/// The shortest run of letters and digits in a random key.
const RANDOM_RUN_MIN: usize = 16;

/// Returns whether a text holds what has the shape of a key, also inside a longer word. Stricter than [`redact`]: it
/// refuses things, and names of pages begin like keys too (`xai-grok-3-release-notes`).
pub fn holds_token(text: &str) -> bool {
    pieces(text).any(|piece| match piece {
        Piece::Word(word) => key_shape(word).is_some(),
        Piece::Between(_) => false,
    })
}

/// Returns where in a word something begins that has the shape of a key, if so. As strict as [`holds_token`].
pub(crate) fn key_shape(word: &str) -> Option<usize> {
    starts(word).find(|start| {
        let word = &word[*start..];
        let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
        let begins_as = |prefixes: &[(&str, usize)]| {
            prefixes.iter().any(|(prefix, _)| word.starts_with(prefix))
        };
        is_token(word)
            && (begins_as(CERTAIN_PREFIXES) || runs.any(|run| run.len() >= RANDOM_RUN_MIN))
    })
}

/// Where a word begins, and where it goes on after each of its marks.
fn starts(word: &str) -> impl Iterator<Item = usize> {
    let after_marks = word.match_indices(['-', '_', '.']);
    std::iter::once(0).chain(after_marks.map(|(at, mark)| at + mark.len()))
}

pub(crate) enum Piece<'a> {
    Word(&'a str),
    Between(&'a str),
}

/// Splits into runs of token characters and everything else.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let word = in_word(first);
        let end = rest.find(|c| in_word(c) != word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(if word {
            Piece::Word(piece)
        } else {
            Piece::Between(piece)
        })
    })
}

fn is_token(word: &str) -> bool {
    let begins_as = |prefixes: &[(&str, usize)]| {
        prefixes
            .iter()
            .any(|(prefix, length_min)| word.len() >= *length_min && word.starts_with(prefix))
    };
    let has_digit = || word.bytes().any(|byte| byte.is_ascii_digit());
    begins_as(CERTAIN_PREFIXES) || (begins_as(LIKELY_PREFIXES) && has_digit())
}

fn names_a_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    [
        "api_key",
        "apikey",
        "api-key",
        "x-api-key",
        "x-goog-api-key",
        "access_token",
        "client_secret",
        "password",
    ]
    .iter()
    .any(|name| word == *name || word.ends_with("_api_key"))
}

/// The name of a variable that holds a key, as in lists of them: `OPENROUTER_API_KEY, ANTHROPIC_API_KEY`.
fn is_variable(word: &str) -> bool {
    let in_name = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    word.ends_with("_API_KEY") && word.bytes().all(in_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_behind_one_another_are_not_keys() {
        let hint = "set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY";
        assert_eq!(redact(hint), hint);
        assert_eq!(redact("OPENAI_API_KEY=mine_api_key"), "OPENAI_API_KEY=***");
    }

    #[test]
    fn known_token_shapes_are_hidden() {
        let check = |text: &str, expected: &str| assert_eq!(redact(text), expected);
        check("key sk-proj-abc123def456ghi789jkl, ok", "key ***, ok");
        check(
            "Authorization: Bearer abcdef12345678",
            "Authorization: Bearer ***",
        );
        check(
            r#"{"api_key": "0123456789abcdef"}"#,
            r#"{"api_key": "***"}"#,
        );
        check("OPENROUTER_API_KEY=abcdefgh12345", "OPENROUTER_API_KEY=***");
    }

    #[test]
    fn a_key_of_letters_only_is_hidden_where_its_beginning_leaves_no_doubt() {
        for prefix in [
            "sk-proj-",
            "sk-or-v",
            "sk-ant-",
            "github_pat_",
            "xoxb-",
            "nvapi-",
        ] {
            let text = format!("Incorrect API key provided: {prefix}abcdefghijklmnopqrstuv.");
            assert_eq!(redact(&text), "Incorrect API key provided: ***");
        }
    }

    #[test]
    fn keys_are_found_inside_words_and_names_are_not_taken_for_keys() {
        for text in [
            "https://x.example/a.sk-ant-abcdefghijklmnop",
            "x_ghp_abcdefghijklmnopqrst0123456789",
            "nvapi-abcdefghijklmnopqrst",
        ] {
            assert!(holds_token(text), "{text}");
        }
        for text in ["xai-grok-3-release-notes-2025", "task-list", "sk-", ""] {
            assert!(!holds_token(text), "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_untouched() {
        for text in [
            "the task-list is done",
            "sk-short",
            "naïve — größe\n\ttabs",
            "api_key: yes",
            "desk-lamp-1",
            "sk-learn-style-pipelines-for-everyone",
            "gsk_render_node_get_bounds and hf_tokenizer_from_pretrained",
            "sk-proj-name",
            "see github_pat_ and xoxb- in the manual",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
