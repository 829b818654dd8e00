//! The names of settings: which there are, in which sections, and what they are found by.

use serde_json::Value;

use crate::help::help;
use crate::settings::Settings;

impl Settings {
    /// Every name, those of sections too.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect_names(&self.masked(), "", &mut names);
        names
    }

    /// The names at the top: sections, and settings that stand alone.
    pub fn sections_and_others(&self) -> (Vec<String>, Vec<String>) {
        let all = self.masked();
        let names = all.as_object().map(|fields| fields.keys().cloned());
        let names = names.into_iter().flatten();
        names.partition(|name| self.is_section(name))
    }

    /// The settings in a section, or the setting itself; those that hold a single value, a list, or nothing yet.
    pub fn names_below(&self, name: &str) -> Vec<String> {
        let value = self.get(name).cloned().unwrap_or_default();
        let mut below = Vec::new();
        collect_names(&value, name, &mut below);
        below.retain(|name| !self.is_section(name));
        if below.is_empty() {
            vec![name.to_owned()]
        } else {
            below
        }
    }

    /// The settings whose name or explanation has all of the words.
    pub fn names_with(&self, words: &str) -> Vec<String> {
        let words = words.to_lowercase();
        let mut names = self.names();
        names.retain(|name| !self.is_section(name) && fits(name, &words));
        names
    }

    fn is_section(&self, name: &str) -> bool {
        let value = self.get(name).and_then(Value::as_object);
        value.is_some_and(|fields| !fields.is_empty())
    }
}

fn fits(name: &str, words: &str) -> bool {
    let text = format!("{name} {}", help(name).unwrap_or_default()).to_lowercase();
    words.split_whitespace().all(|word| text.contains(word))
}

fn collect_names(value: &Value, path: &str, names: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        collect_names(value, &path, names);
        names.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_their_explanation_too() {
        let found = Settings::defaults().names_with("requests in one turn");
        assert!(found.contains(&"agent.max_turns".to_owned()));
    }

    #[test]
    fn a_section_has_its_settings_below_it_and_a_setting_only_itself() {
        let settings = Settings::defaults();
        assert_eq!(settings.names_below("goals"), ["goals.max_turns"]);
        assert_eq!(settings.names_below("timezone"), ["timezone"]);
        let (sections, others) = settings.sections_and_others();
        assert!(sections.contains(&"goals".to_owned()));
        assert!(others.contains(&"timezone".to_owned()));
    }
}
