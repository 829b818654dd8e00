//! Whether the list of settings without an effect is true: what is on it is read nowhere, and what is not on it is.

use std::path::Path;

use hermes_config::{Settings, UNUSED};
use serde_json::Value;

/// Sources that only know of settings: they define, check and describe them, or hold tests.
const KNOW_ONLY: [&str; 3] = ["crates/config/", "crates/testkit/", "tests.rs"];

/// What the settings read themselves, to know what to read.
const OF_THE_SETTINGS: &str = "security.trusted_projects";

#[test]
fn a_setting_without_an_effect_is_read_nowhere() {
    let sources = sources();
    // A name without a section may be that of anything.
    let read: Vec<_> = UNUSED
        .iter()
        .filter(|name| name.contains('.') && sources.contains(&format!("(\"{name}\")")))
        .collect();
    assert!(read.is_empty(), "they have an effect now: {read:?}");
}

#[test]
fn a_setting_that_is_not_on_the_list_is_read_somewhere() {
    let sources = sources();
    let is_within = |name: &str, section: &str| match name.strip_prefix(section) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => false,
    };
    let is_unused = |name: &str| UNUSED.iter().any(|section| is_within(name, section));
    // A section may be read whole, or its settings by a name that is put together.
    let is_read = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        name == OF_THE_SETTINGS
            || sources.contains(name)
            || sources.contains(&format!("\"{last}\""))
    };
    let names = names(&Settings::defaults().masked(), "");
    let idle: Vec<_> = names
        .iter()
        .filter(|name| !is_unused(name) && !is_read(name))
        .collect();
    assert!(names.len() > 100, "{names:?}");
    assert!(idle.is_empty(), "nothing reads them: {idle:?}");
}

#[test]
fn every_setting_on_the_list_is_known() {
    let settings = Settings::defaults();
    let unknown: Vec<_> = UNUSED
        .iter()
        .filter(|name| settings.get(name).is_none())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

fn names(value: &Value, path: &str) -> Vec<String> {
    let Value::Object(fields) = value else {
        return vec![path.to_owned()];
    };
    if fields.is_empty() {
        return vec![path.to_owned()];
    }
    let below = fields.iter().flat_map(|(name, value)| match path {
        "" => names(value, name),
        path => names(value, &format!("{path}.{name}")),
    });
    below.collect()
}

/// Everything that may read a setting, without its tests.
fn sources() -> String {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut folders = vec![root.join("crates")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if !path.is_dir() && is_source(&path) {
                text.push_str(&without_tests(&path));
            }
        }
    }
    text
}

fn is_source(path: &Path) -> bool {
    let shown = path.to_string_lossy();
    shown.ends_with(".rs") && !KNOW_ONLY.iter().any(|part| shown.contains(part))
}

fn without_tests(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source");
    let code = text.split("#[cfg(test)]\nmod tests").next();
    code.unwrap_or_default().to_owned()
}
