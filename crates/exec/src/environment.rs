//! What child processes see of our environment: named variables only, and never a secret.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

/// What shells and tools need to find their programs, speak the user's language and know where they are.
const ALLOWED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "SHELL", "TMPDIR", "PWD",
];

/// What another machine has of its own.
const OF_THIS_MACHINE: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "PWD"];

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
    is_wanted && !is_secret_name(name)
}

/// Chooses the variables that go along to another machine: those the user named, without secrets and without what describes
/// this machine.
pub fn named_variables<'a>(
    all: impl Iterator<Item = (&'a str, &'a str)>,
    passthrough: &[String],
) -> Vec<(String, String)> {
    let is_named = |name: &str| passthrough.iter().any(|wanted| wanted == name);
    let is_passed = |name: &str| {
        is_named(name)
            && is_shell_name(name)
            && !OF_THIS_MACHINE.contains(&name)
            && !is_secret_name(name)
    };
    all.filter(|(name, _)| is_passed(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// In it a shell is told which variables it does not leave for the command after it.
pub(crate) const GRANTED: &str = "__hermes_granted";

/// Variables that a person let commands have by name, although they look like keys. They are looked up for every command, so
/// that what is taken back is gone at once, and shells keep none of them.
#[derive(Clone, Default)]
pub struct Granted(Option<Arc<LookUp>>);

/// Finds the variables that are granted now, with their values.
type LookUp = dyn Fn() -> Vec<(String, String)> + Send + Sync;

impl Granted {
    pub fn new(look_up: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look_up)))
    }

    /// Those there are now.
    pub fn look_up(&self) -> Vec<(String, String)> {
        let mut variables = self.0.as_ref().map_or_else(Vec::new, |look_up| look_up());
        variables.retain(|(name, _)| is_shell_name(name));
        variables
    }

    /// The same with the names of them for the shell.
    pub(crate) fn now(&self) -> Vec<(String, String)> {
        let mut variables = self.look_up();
        if !variables.is_empty() {
            let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(" ");
            variables.push((GRANTED.to_owned(), names));
        }
        variables
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Granted" } else { "None" })
    }
}

/// Returns whether a shell can set it.
fn is_shell_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_word)
}

/// Returns whether a variable of this name is never passed on, whoever asks for it: the key of a provider, or another one.
pub fn is_secret_name(name: &str) -> bool {
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
    fn only_named_variables_go_to_another_machine_and_never_a_secret() {
        let all = [
            ("PATH", "/bin"),
            ("LANG", "de"),
            ("GREETING", "it's"),
            ("OPENAI_API_KEY", "k"),
            ("BASH_FUNC_x%%", "() { :; }"),
        ];
        let named = all.map(|(name, _)| name.to_owned());
        let passed = named_variables(all.into_iter(), &named);
        let names: Vec<&str> = passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LANG", "GREETING"]);
        assert!(named_variables(all.into_iter(), &[]).is_empty());
    }

    #[test]
    fn an_innocent_name_that_contains_a_secret_word_is_passed() {
        let names = ["KEYBOARD_LAYOUT", "AUTHOR", "MONKEY"];
        assert_eq!(passed(&names, &names), names);
    }
}
