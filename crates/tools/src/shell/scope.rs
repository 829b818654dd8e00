//! What names mean while a line is read: variables, functions and aliases it has set itself.

use std::collections::HashMap;

use super::UNKNOWN;

/// Names of one kind that are followed. A line with more is too complex.
const NAMES_MAX: usize = 256;

/// The longest value that is followed: commands are shorter.
const VALUE_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Default, Clone)]
pub(crate) struct Scope {
    /// A loop variable has several values.
    variables: HashMap<String, Vec<String>>,
    aliases: HashMap<String, String>,
    functions: HashMap<String, String>,
    /// Functions that are being called: their own calls of themselves add nothing.
    calling: Vec<String>,
    /// There were more names than are followed.
    is_full: bool,
}

impl Scope {
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Every function and what it does.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&str, &str)> {
        let functions = self.functions.iter();
        functions.map(|(name, body)| (name.as_str(), body.as_str()))
    }

    pub(super) fn variable(&self, name: &str) -> Option<&[String]> {
        self.variables.get(name).map(Vec::as_slice)
    }

    pub(super) fn set(&mut self, name: &str, mut values: Vec<String>) {
        if values.iter().map(String::len).sum::<usize>() > VALUE_BYTES_MAX {
            values = vec![UNKNOWN.to_owned()];
        }
        self.is_full |= !insert(&mut self.variables, name, values);
    }

    /// Takes note of `name=value`, and returns whether the word is one.
    pub(super) fn assign(&mut self, word: &str) -> bool {
        let Some((name, value)) = assignment(word) else {
            return false;
        };
        let value = match name.strip_suffix('+') {
            Some(name) => {
                let before = self.variable(name).and_then(|values| values.first());
                format!("{}{value}", before.map_or("", String::as_str))
            }
            None => value.to_owned(),
        };
        self.set(name.trim_end_matches('+'), vec![value]);
        true
    }

    /// Sets what `$0`, `$1`, … and `$@` mean.
    pub(crate) fn set_arguments(&mut self, zeroth: &str, arguments: &[String]) {
        const ARGUMENTS_MAX: usize = 9;
        self.set("0", vec![zeroth.to_owned()]);
        for number in 1..=ARGUMENTS_MAX {
            let value = arguments.get(number - 1).cloned().unwrap_or_default();
            self.set(&number.to_string(), vec![value]);
        }
        for name in ["@", "*"] {
            self.set(name, arguments.to_vec());
        }
    }

    /// Returns what an alias stands for, and forgets it: inside itself it means the program.
    pub(super) fn take_alias(&mut self, name: &str) -> Option<String> {
        self.aliases.remove(name)
    }

    /// Takes note of what `alias name=text` says.
    pub(super) fn set_alias(&mut self, word: &str) {
        if let Some((name, text)) = word.split_once('=') {
            self.is_full |= !insert(&mut self.aliases, name, text.to_owned());
        }
    }

    pub(super) fn set_function(&mut self, name: &str, body: String) {
        self.is_full |= !insert(&mut self.functions, name, body);
    }

    /// Returns what a function does, unless it is being called already.
    pub(super) fn function(&self, name: &str) -> Option<String> {
        let is_being_called = self.calling.iter().any(|other| other == name);
        let body = self.functions.get(name).filter(|_| !is_being_called);
        body.cloned()
    }

    /// Returns the names as the body of a function sees them.
    pub(super) fn inside(&self, function: &str, arguments: &[String]) -> Self {
        let mut inside = self.clone();
        inside.calling.push(function.to_owned());
        inside.set_arguments(function, arguments);
        inside
    }
}

/// Returns whether there was room.
fn insert<T>(names: &mut HashMap<String, T>, name: &str, value: T) -> bool {
    let has_room = names.len() < NAMES_MAX || names.contains_key(name);
    if has_room {
        names.insert(name.to_owned(), value);
    }
    has_room
}

/// Splits `name=value`; the name of `name+=value` keeps its `+`.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let bare = name.strip_suffix('+').unwrap_or(name);
    let is_name = !bare.is_empty()
        && !bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}
