//! The home folder: where everything Hermes keeps is found, and how it is first made.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    disk::{PRIVATE_FILE_MODE, WriteError},
    environment::Environment,
    profile::{self, is_profile_name},
};

/// Permissions of the home and every folder in it: the owner's business only.
pub(crate) const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

/// Folders that exist in every home.
const DIRECTORIES: [&str; 6] = ["sessions", "logs", "memories", "skills", "cron", "hooks"];

/// What holds keys in a home.
const KEY_FILES: &[&str] = &[".env", "auth.json", "mcp-tokens"];

/// Settings in a home, with what was approved for good, and the scripts and hooks that run by themselves.
const SETTINGS_FILES: &[&str] = &["config.yaml", "hooks", "scripts"];

/// What in a home only Hermes itself changes: conversations, jobs, what undoes changes, what shells begin with, and whose
/// skills are and what they were given.
const OWN_FILES: &[&str] = &[
    "checkpoints",
    "cron",
    "gateway.lock",
    "gateway.sock",
    "gateway_restart.json",
    "hermes.db",
    "hermes.db-shm",
    "hermes.db-wal",
    "locks",
    "processes",
    "shells",
    "skill-grants.json",
    "skills/.hub",
    "skills/.usage.json",
];

/// Who the agent is until its owner says otherwise.
pub const DEFAULT_SOUL: &str = "\
You are Hermes, an agent that works for one person and remembers what matters to them.

Be direct and warm. Do the work rather than describing it, check what you did before you call it done,
and say plainly when you are unsure or when something went wrong. Ask only when the answer changes what
you would do. Keep replies as short as the question allows.
";

const NAME_RULE: &str = "use a name of up to 64 lowercase letters, digits, `_` and `-`";

/// A resolved home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The folder that holds the profiles; the home itself unless a profile is in use.
    root: PathBuf,
    directory: PathBuf,
    profile: Option<String>,
}

/// Why no home folder could be found or made.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("cannot tell where your home folder is: neither `HERMES_HOME` nor `HOME` is set")]
    Unknown,
    #[error("there is no profile `{name}` in `{}` ({})", root.join(profile::PROFILES).display(), list(existing))]
    NoSuchProfile {
        name: String,
        root: PathBuf,
        existing: Vec<String>,
        chosen_by: ChosenBy,
    },
    #[error("`{name}` cannot be the name of a profile")]
    BadProfileName { name: String },
    #[error("there is already a profile `{name}`")]
    ProfileExists { name: String },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`{}` exists but is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("cannot create `{}`: {source}", path.display())]
    Create { path: PathBuf, source: io::Error },
}

/// What named the profile, so that the hint can say how to name another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    Flag,
    Variable,
    StickyFile,
}

impl HomeError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown => "set `HERMES_HOME` to the folder Hermes should use".to_owned(),
            Self::NoSuchProfile {
                name,
                root,
                existing,
                chosen_by,
            } => ways_to_a_profile(name, root, existing, *chosen_by).join(", or "),
            Self::BadProfileName { .. } => {
                format!("{NAME_RULE}, and no word that means something else")
            }
            Self::ProfileExists { name } => format!("use it with `hermes -p {name}`"),
            Self::Write(error) => error.hint().to_owned(),
            Self::NotADirectory { .. } => {
                "move the file aside, or set `HERMES_HOME` to another folder".to_owned()
            }
            Self::Create { path, source } => {
                let way = match source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        "free some space there".to_owned()
                    }
                    io::ErrorKind::ReadOnlyFilesystem => "mount its disk for writing".to_owned(),
                    _ => format!("make it yours to write: `ls -ld '{}'`", path.display()),
                };
                format!("{way}, or set `HERMES_HOME` to another folder")
            }
        }
    }
}

fn ways_to_a_profile(
    name: &str,
    root: &Path,
    existing: &[String],
    chosen_by: ChosenBy,
) -> Vec<String> {
    let mut ways = Vec::new();
    if !existing.is_empty() {
        ways.push("name one that exists".to_owned());
    }
    ways.push(if is_profile_name(name) {
        let folder = root.join(profile::PROFILES).join(name);
        format!("create the folder `{}`", folder.display())
    } else {
        NAME_RULE.to_owned()
    });
    match chosen_by {
        ChosenBy::Flag => {}
        ChosenBy::Variable => ways.push("unset `HERMES_HOME`".to_owned()),
        ChosenBy::StickyFile => {
            let file = root.join(profile::STICKY_FILE);
            ways.push(format!("remove `{}`", file.display()));
        }
    }
    ways
}

fn list(profiles: &[String]) -> String {
    if profiles.is_empty() {
        "there are none yet".to_owned()
    } else {
        format!("there are: {}", profiles.join(", "))
    }
}

impl Home {
    /// Finds the home folder: of the profile named by the flag, by `HERMES_HOME`, or by the sticky choice.
    ///
    /// The home of a named profile must exist; it is never made by accident.
    pub fn resolve(environment: &Environment, profile: Option<&str>) -> Result<Self, HomeError> {
        let home = Self::of_variable(environment)?;
        match profile {
            Some(profile::DEFAULT) => Ok(Self::of_root(home.root)),
            Some(name) => Self::of_profile(home.root, name, ChosenBy::Flag),
            None => match &home.profile {
                Some(name) => Self::of_profile(home.root.clone(), name, ChosenBy::Variable),
                None => Self::of_sticky_choice(home, environment),
            },
        }
    }

    fn of_variable(environment: &Environment) -> Result<Self, HomeError> {
        let user_home = environment.user_home();
        let directory = match (environment.path("HERMES_HOME"), user_home) {
            (Some(path), user_home) => match (path.strip_prefix("~"), user_home) {
                (Ok(below), Some(user_home)) => user_home.join(below),
                _ => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
            },
            (None, Some(user_home)) => user_home.join(".hermes"),
            (None, None) => return Err(HomeError::Unknown),
        };
        let profile = profile::name_of_home(&directory).map(str::to_owned);
        let root = match profile {
            Some(_) => directory
                .ancestors()
                .nth(2)
                .unwrap_or(&directory)
                .to_path_buf(),
            None => directory.clone(),
        };
        Ok(Self {
            root,
            directory,
            profile,
        })
    }

    fn of_sticky_choice(home: Self, environment: &Environment) -> Result<Self, HomeError> {
        if environment.path("HERMES_S6_SUPERVISED_CHILD").is_some() {
            return Ok(home);
        }
        match profile::sticky_choice(&home.root) {
            Some(name) => Self::of_profile(home.root, &name, ChosenBy::StickyFile),
            None => Ok(home),
        }
    }

    fn of_root(root: PathBuf) -> Self {
        Self {
            directory: root.clone(),
            root,
            profile: None,
        }
    }

    fn of_profile(root: PathBuf, name: &str, chosen_by: ChosenBy) -> Result<Self, HomeError> {
        let directory = root.join(profile::PROFILES).join(name);
        if !is_profile_name(name) || !directory.is_dir() {
            return Err(HomeError::NoSuchProfile {
                name: name.to_owned(),
                existing: profile::list(&root),
                root,
                chosen_by,
            });
        }
        Ok(Self {
            root,
            directory,
            profile: Some(name.to_owned()),
        })
    }

    /// Makes the folders and the default `SOUL.md` where they are missing, and changes nothing that is there.
    pub fn create(&self) -> Result<(), HomeError> {
        create_directory(&self.directory, Parents::Create)?;
        for name in DIRECTORIES {
            create_directory(&self.directory.join(name), Parents::Expect)?;
        }
        let soul = self.soul_md();
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_FILE_MODE)
            .open(&soul)
            .and_then(|mut file| file.write_all(DEFAULT_SOUL.as_bytes()));
        match created {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(HomeError::Create { path: soul, source })
            }
            _ => Ok(()),
        }
    }

    /// Makes the home of a new profile.
    pub fn create_profile(&self, name: &str) -> Result<Self, HomeError> {
        let directory = self.root.join(profile::PROFILES).join(name);
        if !profile::is_free_name(name) {
            return Err(HomeError::BadProfileName {
                name: name.to_owned(),
            });
        }
        if directory.exists() {
            return Err(HomeError::ProfileExists {
                name: name.to_owned(),
            });
        }
        let home = Self {
            root: self.root.clone(),
            directory,
            profile: Some(name.to_owned()),
        };
        home.create()?;
        Ok(home)
    }

    /// Makes an existing profile, or `default`, the choice of every start that names no other.
    pub fn use_profile(&self, name: &str) -> Result<(), HomeError> {
        if name != profile::DEFAULT {
            Self::of_profile(self.root.clone(), name, ChosenBy::Flag)?;
        }
        Ok(profile::stick(&self.root, name)?)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the folder that holds the profiles.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the name of the profile in use; `None` for the default one.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// Returns the names of the existing profiles, in order.
    pub fn profiles(&self) -> Vec<String> {
        profile::list(&self.root)
    }

    /// Returns the files and folders that hold keys, of every profile: no tool shows them to a model.
    pub fn key_files(&self) -> Vec<PathBuf> {
        self.in_every_home(KEY_FILES)
    }

    /// Returns the files and folders that only Hermes itself changes, of every profile.
    pub fn own_files(&self) -> Vec<PathBuf> {
        self.in_every_home(OWN_FILES)
    }

    /// Returns the files with settings, of every profile: tools change them only when a person agrees.
    pub fn settings_files(&self) -> Vec<PathBuf> {
        self.in_every_home(SETTINGS_FILES)
    }

    fn in_every_home(&self, names: &[&str]) -> Vec<PathBuf> {
        let profiles = profile::list(&self.root);
        let profiles = profiles
            .iter()
            .map(|name| self.root.join(profile::PROFILES).join(name));
        let homes = profiles.chain([self.root.clone()]);
        homes
            .flat_map(|home| names.iter().map(move |name| home.join(name)))
            .collect()
    }

    pub fn config_yaml(&self) -> PathBuf {
        self.directory.join("config.yaml")
    }

    pub fn dot_env(&self) -> PathBuf {
        self.directory.join(".env")
    }

    /// Returns the file of stored keys.
    pub fn auth_json(&self) -> PathBuf {
        self.directory.join("auth.json")
    }

    pub fn soul_md(&self) -> PathBuf {
        self.directory.join("SOUL.md")
    }

    pub fn database(&self) -> PathBuf {
        self.directory.join("hermes.db")
    }

    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// Returns the folder of the tokens of MCP servers; who keeps one makes it.
    pub fn mcp_tokens(&self) -> PathBuf {
        self.directory.join("mcp-tokens")
    }

    /// Returns the folder of what can be found out again; who keeps something there makes it.
    pub fn cache(&self) -> PathBuf {
        self.directory.join("cache")
    }

    /// Returns the folder of lock files; who takes a lock makes it.
    pub fn locks(&self) -> PathBuf {
        self.directory.join("locks")
    }

    /// Returns the folder of tool results too long for a prompt; who spills one makes it.
    pub fn results(&self) -> PathBuf {
        self.directory.join("results")
    }

    /// Returns the file of what was typed in conversations.
    pub fn input_history(&self) -> PathBuf {
        self.directory.join("history.jsonl")
    }

    /// Returns the folder of pictures, sound and other bytes that tools return; who keeps one makes it.
    pub fn media(&self) -> PathBuf {
        self.directory.join("cache").join("media")
    }

    /// Returns the folder of web pages too long for a prompt; who keeps one makes it.
    pub fn web_pages(&self) -> PathBuf {
        self.directory.join("cache").join("web")
    }

    /// Returns the folder of what the shells of sessions were left with; who runs commands makes it.
    pub fn shells(&self) -> PathBuf {
        self.directory.join("shells")
    }

    /// Returns the folder of background processes and their output; who starts one makes it.
    pub fn processes(&self) -> PathBuf {
        self.directory.join("processes")
    }

    pub fn skills(&self) -> PathBuf {
        self.directory.join("skills")
    }

    pub fn memories(&self) -> PathBuf {
        self.directory.join("memories")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parents {
    Create,
    Expect,
}

fn create_directory(path: &Path, parents: Parents) -> Result<(), HomeError> {
    let create = |recursive| {
        DirBuilder::new()
            .recursive(recursive)
            .mode(PRIVATE_DIRECTORY_MODE)
            .create(path)
    };
    let created = match create(false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && parents == Parents::Create => {
            create(true)
        }
        created => created,
    };
    match created {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            _ => Err(HomeError::NotADirectory {
                path: path.to_path_buf(),
            }),
        },
        Err(source) => Err(HomeError::Create {
            path: path.to_path_buf(),
            source,
        }),
    }
}
