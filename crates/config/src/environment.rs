//! The process environment, read once and passed down as a value.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use hermes_core::Secret;

use crate::{
    disk::ReadError, dotenv::DotEnv, home::Home, mask::names_a_secret, settings::managed_directory,
    typed::truth,
};

/// A snapshot of the environment, with `.env` files laid over it. `Debug` prints the names only.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Reads the environment of this process. Call it once, in `main`.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one reader of the environment"
    )]
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
        }
    }

    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            variables: variables.collect(),
        }
    }

    /// Returns a variable's text; `None` when it is unset or not Unicode.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str()
    }

    /// Returns a variable that holds a secret; a blank one counts as unset.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        let value = self.get(name)?.trim();
        (!value.is_empty()).then(|| Secret::new(value))
    }

    /// Returns the values of all variables whose names say that they are secrets.
    pub fn secrets(&self) -> Vec<Secret> {
        let names = self.variables.keys().filter_map(|name| name.to_str());
        let secret = names.filter(|name| names_a_secret(name));
        secret.filter_map(|name| self.secret(name)).collect()
    }

    /// Returns a variable that holds a path, which need not be Unicode; an empty one counts as unset.
    pub fn path(&self, name: &str) -> Option<&Path> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then(|| Path::new(value))
    }

    /// Tells whether a switch like `HERMES_YOLO_MODE` is on.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.get(name).map_or("", str::trim);
        value == "1" || truth(value) == Some(true)
    }

    /// Returns the user's home folder.
    pub fn user_home(&self) -> Option<PathBuf> {
        self.path("HOME").map(Path::to_path_buf)
    }

    /// Returns every variable, for the one who builds a child's environment.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Lays a `.env` file over the snapshot; its values win.
    pub fn overlay(&mut self, file: &DotEnv) {
        for (name, value) in file.pairs() {
            self.variables.insert(name.into(), value.into());
        }
    }
}

/// Lays the `.env` files over the environment of the process: the home's wins, and the administrator's over that.
pub fn load_environment(process: Environment, home: &Home) -> Result<Environment, ReadError> {
    let mut environment = process;
    let managed = managed_directory(&environment).join(".env");
    environment.overlay(&DotEnv::open(&home.dot_env())?);
    environment.overlay(&DotEnv::open(&managed)?);
    Ok(environment)
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_secret_counts_as_unset() {
        let environment = Environment::from_pairs([("A_API_KEY", "  "), ("B_API_KEY", " sk-1\n")]);
        assert_eq!(environment.secret("A_API_KEY"), None);
        assert_eq!(environment.secret("B_API_KEY"), Some(Secret::new("sk-1")));
    }

    #[test]
    fn debug_shows_no_values() {
        let environment = Environment::from_pairs([("TOKEN", "sk-secret")]);
        assert_eq!(format!("{environment:?}"), r#"{"TOKEN"}"#);
    }
}
