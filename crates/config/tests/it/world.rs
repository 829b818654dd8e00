//! A home, a managed folder and a project, all in one temporary folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hermes_config::{
    ChangeError, Changed, Environment, Home, LoadError, Settings, Sources, UserConfig,
};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct World {
    folder: TempDir,
    variables: Vec<(String, String)>,
    pub(crate) flags: Vec<(hermes_config::Key, Value)>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let variables = vec![
            ("HOME".to_owned(), path("user")),
            ("HERMES_HOME".to_owned(), path("home")),
            ("HERMES_MANAGED_DIR".to_owned(), path("managed")),
        ];
        for name in [
            "home",
            "managed",
            "project/.git",
            "project/.hermes",
            "project/src",
        ] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            variables,
            flags: Vec::new(),
        }
    }

    pub(crate) fn with_config(text: &str) -> Self {
        let world = Self::new();
        world.write("home/config.yaml", text);
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::from_pairs(self.variables.clone())
    }

    pub(crate) fn home(&self) -> Home {
        Home::resolve(&self.environment(), None).unwrap()
    }

    pub(crate) fn load(&self) -> Result<Settings, LoadError> {
        self.load_from(&self.path("project/src"), UserConfig::Read)
    }

    pub(crate) fn load_from(
        &self,
        directory: &Path,
        user_config: UserConfig,
    ) -> Result<Settings, LoadError> {
        Settings::load(&Sources {
            home: &self.home(),
            environment: &self.environment(),
            working_directory: Some(directory),
            flags: self.flags.clone(),
            user_config,
        })
    }

    pub(crate) fn settings(&self) -> Settings {
        self.load().unwrap()
    }

    pub(crate) fn set(&self, key: &str, text: &str) -> Result<Changed, ChangeError> {
        hermes_config::set(&self.home(), &self.load()?, key, text)
    }

    pub(crate) fn unset(&self, key: &str) -> Result<Option<Changed>, ChangeError> {
        hermes_config::unset(&self.home(), &self.load()?, key)
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let prefix = format!("{}/", self.folder.path().display());
        let settings = self.settings();
        let problems = settings.problems().iter();
        problems
            .map(|problem| problem.to_string().replace(&prefix, ""))
            .collect()
    }
}
