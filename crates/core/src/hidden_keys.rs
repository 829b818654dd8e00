//! Hides keys in what tools return, before a model sees it.
//!
//! Unlike [`redact`](crate::redact::redact), which may take a word too many out of a log, this must leave source code
//! alone: a model edits what it reads. So only three things are hidden: Hermes' own keys by their value, what has the
//! unmistakable shape of a key, and random values that are assigned to a name such as `API_KEY`.

use std::borrow::Cow;

use crate::redact::{Piece, key_shape, pieces};
use crate::secret::Secret;

/// Stands for a key. A model that writes it back would destroy the key, so calls that hold it are refused.
pub const LABEL: &str = "[key-hidden-by-hermes]";

/// A shorter value is no key, and may be an ordinary word.
const OWN_CHARS_MIN: usize = 12;

/// A value without a digit is taken for a word when it is shorter.
const WORD_CHARS_MIN: usize = 24;

/// The shortest run of letters and digits in a random value.
const RANDOM_RUN_MIN: usize = 16;

/// The shortest body of a private key, and the longest.
const BODY_BYTES_MIN: usize = 32;
pub const BODY_BYTES_MAX: usize = 16 * 1024;

/// What may stand between a name and the value it is given: `KEY="…`, `"key": "…`.
const ASSIGNMENT_BYTES_MAX: usize = 6;

/// The frame of what is encoded in PEM.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// How the names of keys end.
const NAME_ENDINGS: &[&str] = &[
    "api_key",
    "api_secret",
    "api_token",
    "apikey",
    "access_key",
    "access_token",
    "auth_token",
    "bot_token",
    "client_secret",
    "password",
    "refresh_token",
    "secret_key",
    "secret_access_key",
];

/// Knows which keys are Hermes' own.
#[derive(Debug, Clone, Default)]
pub struct HiddenKeys {
    own: Vec<Secret>,
}

impl HiddenKeys {
    /// Hides these keys by their value, and others by their shape.
    pub fn own(keys: impl IntoIterator<Item = Secret>) -> Self {
        let keys = keys.into_iter();
        let mut own: Vec<Secret> = keys.filter(|key| is_key(key.expose())).collect();
        // A key that is part of another must not break it up.
        own.sort_by_key(|key| std::cmp::Reverse(key.expose().len()));
        Self { own }
    }

    /// Returns whether one of these keys is in a text, whatever became of its case and of the marks in it and between its
    /// letters. Others are not looked for.
    pub fn are_in(&self, text: &str) -> bool {
        let (letters, lower) = (bare(text), text.to_ascii_lowercase());
        self.own.iter().any(|key| {
            let bare = bare(key.expose());
            if bare.len() >= OWN_CHARS_MIN {
                letters.contains(&bare)
            } else {
                // So few letters are in other texts too.
                lower.contains(&key.expose().to_ascii_lowercase())
            }
        })
    }

    /// Returns the text with a label in the place of each key.
    pub fn hide(&self, mut text: String) -> String {
        for key in &self.own {
            if text.contains(key.expose()) {
                text = text.replace(key.expose(), LABEL);
            }
        }
        match hide_private_keys(&text) {
            Cow::Borrowed(_) => {}
            Cow::Owned(hidden) => text = hidden,
        }
        hide_words(&text).unwrap_or(text)
    }
}

/// Returns the letters and digits of a text, in lower case.
fn bare(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns whether a value is a key, whatever it is called. Paths, addresses and short words (`not-required`, for a server
/// that wants some key) are none.
fn is_key(value: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_' | '.');
    let is_word = value.chars().all(is_letter) && value.len() < WORD_CHARS_MIN;
    let is_place = value.starts_with(['/', '~', '.']) || value.contains("://");
    value.len() >= OWN_CHARS_MIN && !is_word && !is_place && !value.contains(char::is_whitespace)
}

/// Hides words that are keys; `None` when there are none.
fn hide_words(text: &str) -> Option<String> {
    let mut hidden: Option<String> = None;
    let mut at = 0;
    let (mut name, mut gap) = ("", "");
    for piece in pieces(text) {
        let (piece, key) = match piece {
            Piece::Between(between) => {
                gap = between;
                (between, None)
            }
            Piece::Word(word) => {
                let is_value = is_assignment(gap) && is_random(word) && is_name(name);
                name = word;
                (word, if is_value { Some(0) } else { key_shape(word) })
            }
        };
        let until_now = || text[..at].to_owned();
        if let Some(start) = key {
            let hidden = hidden.get_or_insert_with(until_now);
            hidden.push_str(&piece[..start]);
            hidden.push_str(LABEL);
        } else if let Some(hidden) = &mut hidden {
            hidden.push_str(piece);
        }
        at += piece.len();
    }
    hidden
}

fn is_name(word: &str) -> bool {
    let word = word.to_ascii_lowercase().replace('-', "_");
    NAME_ENDINGS.iter().any(|ending| word.ends_with(ending))
}

fn is_assignment(gap: &str) -> bool {
    let is_sign = |c: char| matches!(c, ' ' | '\t' | '"' | '\'' | ':' | '=');
    gap.len() <= ASSIGNMENT_BYTES_MAX && gap.contains([':', '=']) && gap.chars().all(is_sign)
}

/// Names in code have no long runs with both letters and digits; random values have.
fn is_random(word: &str) -> bool {
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    runs.any(|run| {
        run.len() >= RANDOM_RUN_MIN
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// Returns where a private key in PEM begins that has not come to its end, or what may become one.
pub fn open_private_key(text: &str) -> Option<usize> {
    let begin = text.rfind(BEGIN)?;
    let label = &text[begin + BEGIN.len()..];
    let is_open = match label.split_once(DASHES) {
        Some((label, body)) => label.ends_with("PRIVATE KEY") && !body.contains(END),
        // The rest of the label may be on its way.
        None => !label.contains(|c: char| !c.is_ascii_uppercase() && !matches!(c, ' ' | '-')),
    };
    is_open.then_some(begin)
}

/// Says which lines belong to a private key, where text is shown line by line and [`HiddenKeys::hide`] sees one at a time.
#[derive(Debug, Default)]
pub struct PrivateKeyLines {
    /// The bytes since the key began; `None` outside of keys.
    inside: Option<usize>,
}

impl PrivateKeyLines {
    /// Returns whether a text can be passed over, because no key is in it and it is in no key.
    pub fn ignores(&self, text: &str) -> bool {
        self.inside.is_none() && !text.contains(BEGIN)
    }

    /// Returns whether a line is part of the body of a key. Must be asked for every line.
    pub fn hides(&mut self, line: &str) -> bool {
        if let Some(bytes) = self.inside {
            let is_body = !line.contains(END)
                && bytes < BODY_BYTES_MAX
                && line.chars().all(is_body_part)
                && line.matches(' ').count() <= 2;
            self.inside = is_body.then_some(bytes + line.len());
            return is_body;
        }
        let label = line.split_once(BEGIN).map(|(_, label)| label);
        if label.is_some_and(|label| label.contains("PRIVATE KEY-----")) {
            self.inside = Some(0);
        }
        false
    }
}

/// Hides the bodies of private keys in PEM.
fn hide_private_keys(text: &str) -> Cow<'_, str> {
    let mut hidden = Cow::Borrowed(text);
    let mut from = 0;
    while let Some(found) = hidden[from..].find(BEGIN) {
        from += found + BEGIN.len();
        let Some((label, rest)) = hidden[from..].split_once(DASHES) else {
            break;
        };
        let start = from + label.len() + DASHES.len();
        let body = rest.find(END).map_or(rest, |end| &rest[..end]);
        if label.ends_with("PRIVATE KEY") && is_body(body) {
            let end = start + body.len();
            let label = format!("\n{LABEL}\n");
            hidden.to_mut().replace_range(start..end, &label);
        }
    }
    hidden
}

/// Returns whether a text is encoded, perhaps with numbers of lines, quotes and headers, and no code.
fn is_body(text: &str) -> bool {
    let spaces = text.matches(' ').count();
    (BODY_BYTES_MIN..=BODY_BYTES_MAX).contains(&text.len())
        && text.chars().all(is_body_part)
        // Prose has a space for every word.
        && spaces * 20 <= text.len()
}

fn is_body_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=|,:\\\"'- \t\r\n".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        HiddenKeys::default().hide(text.to_owned())
    }

    #[test]
    fn what_has_the_shape_of_a_key_is_hidden() {
        for (text, expected) in [
            ("key sk-proj-abc123def456ghi789jkl, ok", "key [], ok"),
            (
                "5|  api_key: sk-test-0123456789abcdef0123",
                "5|  api_key: []",
            ),
            (
                "url?x=x_ghp_abcdefghijklmnopqrst0123456789&y=1",
                "url?x=x_[]&y=1",
            ),
            (
                "SECRET_KEY=abcdef0123456789abcdef\nB=2",
                "SECRET_KEY=[]\nB=2",
            ),
            (
                "\"client_secret\": \"0a1b2c3d4e5f6a7b8c9d\"",
                "\"client_secret\": \"[]\"",
            ),
        ] {
            assert_eq!(hidden(text), expected.replace("[]", LABEL), "{text}");
        }
    }

    #[test]
    fn source_code_and_talk_are_left_alone() {
        for text in [
            "let password = read_password_from_terminal2()?;",
            "api_key = settings2.openai_api_key_of_this_profile",
            "next_page_token: 0a1b2c3d4e5f6a7b8c9d0a1b",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "if line.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") { return Err(Found::Key { line }); }",
            "The password\n\n0a1b2c3d4e5f6a7b8c9d0a1b is not one",
            "xai-grok-3-release-notes-2025 and task-list",
        ] {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn our_own_keys_are_hidden_whatever_their_shape() {
        let keys = [
            "weirdshape+9f",
            "short",
            "not-required",
            "/home/me/key-file",
        ];
        let keys = HiddenKeys::own(keys.map(Secret::new));
        let text = "weirdshape+9f, short, not-required, /home/me/key-file".to_owned();
        assert_eq!(
            keys.hide(text),
            format!("{LABEL}, short, not-required, /home/me/key-file")
        );
    }

    #[test]
    fn our_own_keys_are_found_in_any_case_and_with_any_marks() {
        let keys = HiddenKeys::own(["weird-shape+9f-of-a-key", "#!a1$%&b2()/c3"].map(Secret::new));
        for text in [
            "x weird-shape+9f-of-a-key y",
            "WEIRD.SHAPE.9F.OF.A.KEY",
            "w/e/i/r/d/shape9fofakey",
            "#!A1$%&b2()/c3",
        ] {
            assert!(keys.are_in(text), "{text}");
        }
        assert!(!keys.are_in("a1b2c3 weird shape"));
    }

    #[test]
    fn of_a_private_key_only_the_frame_is_shown() {
        let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAA\n2|AAAEbm9uZQAAAAAAAAAB";
        for end in ["\n3|-----END OPENSSH PRIVATE KEY-----\nrest", ""] {
            let text = format!("1|-----BEGIN OPENSSH PRIVATE KEY-----\n{body}{end}");
            let shown = hidden(&text);
            assert!(
                !shown.contains("b3Blbn") && shown.contains(LABEL),
                "{shown}"
            );
            assert!(shown.starts_with("1|-----BEGIN"), "{shown}");
            assert!(end.is_empty() || shown.ends_with("rest"), "{shown}");
        }
    }

    #[test]
    fn lines_of_a_private_key_are_told_from_others() {
        let mut keys = PrivateKeyLines::default();
        let lines = [
            ("before", false),
            ("1|-----BEGIN RSA PRIVATE KEY-----", false),
            ("Proc-Type: 4,ENCRYPTED", true),
            ("", true),
            ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAA", true),
            ("QUJD", true),
            ("-----END RSA PRIVATE KEY-----", false),
            ("QUJD", false),
            ("-----BEGIN PRIVATE KEY-----", false),
            ("this is talk about a key, and no key.", false),
            ("QUJD", false),
            ("-----BEGIN CERTIFICATE-----", false),
            ("QUJD", false),
        ];
        for (line, expected) in lines {
            assert_eq!(keys.hides(line), expected, "{line}");
        }
    }

    #[test]
    fn a_certificate_is_no_private_key() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUY29tZSBvbiBub3cgaXQgaXM\n-----END CERTIFICATE-----\n";
        assert_eq!(hidden(certificate), certificate);
        let key = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            "A1b2".repeat(20)
        );
        let shown = hidden(&format!("{key}{certificate}{key}"));
        assert!(shown.contains(certificate), "{shown}");
        assert_eq!(shown.matches(LABEL).count(), 2);
    }
}
