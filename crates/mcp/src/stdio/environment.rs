//! What a server sees of our environment: named variables only. Keys reach it only through its own `env`.

use std::collections::BTreeMap;

use hermes_core::Secret;

const ALLOWED: &[&str] = &[
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR",
];

const ALLOWED_PREFIX: &str = "XDG_";

/// Chooses the variables of a child process: the usual ones of ours, then the configured ones.
pub(crate) fn child_environment(
    ours: &[(String, String)],
    configured: &BTreeMap<String, Secret>,
) -> BTreeMap<String, Secret> {
    let is_allowed = |name: &str| ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX);
    let mut environment: BTreeMap<String, Secret> = ours
        .iter()
        .filter(|(name, _)| is_allowed(name))
        .map(|(name, value)| (name.clone(), Secret::new(value.as_str())))
        .collect();
    environment.extend(configured.clone());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_pass_and_configured_ones_win() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let ours = [
            pair("PATH", "/bin"),
            pair("XDG_RUNTIME_DIR", "/run"),
            pair("OPENAI_API_KEY", "secret"),
            pair("HOME", "/home/me"),
        ];
        let configured = BTreeMap::from([
            ("HOME".to_owned(), Secret::new("/srv")),
            ("TOKEN".to_owned(), Secret::new("t")),
        ]);
        let environment = child_environment(&ours, &configured);
        let names: Vec<&str> = environment.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "PATH", "TOKEN", "XDG_RUNTIME_DIR"]);
        assert_eq!(environment["HOME"].expose(), "/srv");
    }
}
