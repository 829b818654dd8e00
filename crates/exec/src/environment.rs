//! What child processes see of our environment: named variables only, and never a secret.

use std::ffi::{OsStr, OsString};

/// What shells and tools need to find their programs, speak the user's language and know where they are.
const ALLOWED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "SHELL", "TMPDIR", "PWD",
];

const ALLOWED_PREFIXES: &[&str] = &["LC_"];

/// Words that make a variable a secret when they are one of the words of its name.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "AUTH",
];

/// Families in which every variable is treated as a secret.
const SECRET_PREFIXES: &[&str] = &[
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "OPENAI_",
    "ANTHROPIC_",
    "MODAL_",
];

/// Chooses the variables a child process gets: the usual ones and those the user named in `passthrough`.
///
/// A name that looks like a secret is never passed, not even when it was asked for.
pub fn child_environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    passthrough: &[String],
) -> Vec<(OsString, OsString)> {
    all.filter(|(name, _)| is_passed(name, passthrough))
        .collect()
}

fn is_passed(name: &OsStr, passthrough: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let is_wanted = ALLOWED.contains(&name)
        || ALLOWED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || passthrough.iter().any(|wanted| wanted == name);
    is_wanted && !looks_secret(name)
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || name.contains("PASSWORD")
        || name.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// The same rule as patterns of a shell's `case`, for variables that the user's start files set.
pub(crate) fn secret_name_patterns() -> String {
    let prefixes = SECRET_PREFIXES.iter().map(|prefix| format!("{prefix}*"));
    let words = SECRET_WORDS
        .iter()
        .map(|word| format!("{word}|{word}_*|*_{word}|*_{word}_*"));
    let all: Vec<String> = prefixes
        .chain(words)
        .chain(["*PASSWORD*".to_owned()])
        .collect();
    all.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(names: &[&str], passthrough: &[&str]) -> Vec<String> {
        let all = names.iter().map(|name| (name.into(), "value".into()));
        let passthrough: Vec<String> = passthrough.iter().map(ToString::to_string).collect();
        child_environment(all, &passthrough)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn only_the_usual_variables_are_passed() {
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "EDITOR",
            "HERMES_HOME",
            "LD_PRELOAD",
        ];
        assert_eq!(passed(&names, &[]), ["PATH", "HOME", "LC_ALL"]);
    }

    #[test]
    fn named_variables_are_passed_too() {
        let names = ["PATH", "CARGO_HOME", "SSH_AUTH_SOCK_DIR"];
        assert_eq!(passed(&names, &["CARGO_HOME"]), ["PATH", "CARGO_HOME"]);
    }

    #[test]
    fn a_secret_is_not_passed_even_when_asked_for() {
        let secrets = [
            "OPENROUTER_API_KEY",
            "GH_TOKEN",
            "Gh_Token",
            "SLACK_SIGNING_SECRET",
            "PGPASSWORD",
            "SUDO_PASSWORD",
            "AWS_PROFILE",
            "LC_API_KEY",
        ];
        assert!(passed(&secrets, &secrets).is_empty());
    }

    #[test]
    fn an_innocent_name_that_contains_a_secret_word_is_passed() {
        let names = ["KEYBOARD_LAYOUT", "AUTHOR", "MONKEY"];
        assert_eq!(passed(&names, &names), names);
    }
}
