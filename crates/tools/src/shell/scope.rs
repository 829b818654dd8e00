//! What names mean while a line is read: variables, functions and aliases it has set itself.

use std::collections::HashMap;
use std::rc::Rc;
use std::slice;

use super::{Budget, TooComplex, UNKNOWN};

/// The longest value that is followed: commands are shorter.
const VALUE_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// A loop variable has several values.
    variables: HashMap<String, Rc<[String]>>,
    aliases: HashMap<String, Rc<str>>,
    functions: HashMap<String, Rc<str>>,
    /// What `$0` is.
    zeroth: Option<Rc<str>>,
    /// What `$1`, `$2`, … are.
    arguments: Rc<[String]>,
    /// What `$@` is.
    all_arguments: Rc<[String]>,
    /// Functions that are being called: their own calls of themselves add nothing.
    calling: Vec<String>,
}

impl Scope {
    /// Returns a copy, in which other things may get these names.
    pub(crate) fn copied(&self, budget: &Budget) -> Result<Self, TooComplex> {
        let names = self.variables.len() + self.aliases.len() + self.functions.len();
        budget.spend(names)?;
        Ok(Self {
            variables: self.variables.clone(),
            aliases: self.aliases.clone(),
            functions: self.functions.clone(),
            zeroth: self.zeroth.clone(),
            arguments: self.arguments.clone(),
            all_arguments: self.all_arguments.clone(),
            calling: self.calling.clone(),
        })
    }

    /// Every function and what it does.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&str, &str)> {
        let functions = self.functions.iter();
        functions.map(|(name, body)| (name.as_str(), body.as_ref()))
    }

    pub(super) fn variable(&self, name: &str) -> Option<Rc<[String]>> {
        match name.as_bytes() {
            b"@" | b"*" => Some(self.all_arguments.clone()),
            b"0" => Some([self.zeroth.as_deref()?.to_owned()].into()),
            [digit @ b'1'..=b'9'] => {
                let argument = self.arguments.get(usize::from(digit - b'1'))?;
                Some(followed(slice::from_ref(argument)))
            }
            _ => self.variables.get(name).cloned(),
        }
    }

    pub(super) fn set(&mut self, name: &str, values: &[String]) {
        self.variables.insert(name.to_owned(), followed(values));
    }

    /// Takes note of `name=value`, and returns whether the word is one.
    pub(super) fn assign(&mut self, word: &str) -> bool {
        let Some((name, value)) = assignment(word) else {
            return false;
        };
        let value = match name.strip_suffix('+') {
            Some(name) => {
                let before = self.variable(name);
                let before = before.as_ref().and_then(|values| values.first());
                format!("{}{value}", before.map_or("", String::as_str))
            }
            None => value.to_owned(),
        };
        self.set(name.trim_end_matches('+'), &[value]);
        true
    }

    /// Sets what `$0`, `$1`, … and `$@` mean.
    pub(crate) fn set_arguments(&mut self, zeroth: &str, arguments: &[String]) {
        self.zeroth = Some(zeroth.into());
        self.arguments = arguments.into();
        self.all_arguments = followed(arguments);
    }

    /// Returns what an alias stands for, and forgets it: inside itself it means the program.
    pub(super) fn take_alias(&mut self, name: &str) -> Option<Rc<str>> {
        self.aliases.remove(name)
    }

    pub(super) fn set_alias(&mut self, name: &str, text: Rc<str>) {
        self.aliases.insert(name.to_owned(), text);
    }

    pub(super) fn set_function(&mut self, name: &str, body: Rc<str>) {
        self.functions.insert(name.to_owned(), body);
    }

    /// Returns what a function does, unless it is being called already.
    pub(super) fn function(&self, name: &str) -> Option<Rc<str>> {
        let is_being_called = self.calling.iter().any(|other| other == name);
        let body = self.functions.get(name).filter(|_| !is_being_called);
        body.cloned()
    }

    /// Makes the names what the body of a function sees.
    pub(super) fn enter(&mut self, function: &str, arguments: &[String]) {
        self.calling.push(function.to_owned());
        self.set_arguments(function, arguments);
    }
}

/// Returns values as they are followed: those that are too long become unknown.
fn followed(values: &[String]) -> Rc<[String]> {
    if values.iter().map(String::len).sum::<usize>() > VALUE_BYTES_MAX {
        [UNKNOWN.to_owned()].into()
    } else {
        values.into()
    }
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
