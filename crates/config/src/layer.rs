//! One layer of settings: a tree of values and what it was read from.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    aliases,
    disk::{self, ReadError},
    environment::Environment,
    key::Key,
    origin::{Origin, Source},
    yaml::{self, Content, Node, Position},
};

/// Settings that cannot be loaded. No file is changed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("`{}` is not valid YAML, line {}, column {}: {message}", path.display(), at.line, at.column)]
    Syntax {
        path: PathBuf,
        at: Position,
        message: String,
    },
    #[error("`{}` holds {found} where settings written as `name: value` are expected", path.display())]
    NotSettings { path: PathBuf, found: &'static str },
}

impl LoadError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(error) => error.hint(),
            Self::Syntax { .. } | Self::NotSettings { .. } => {
                "mend it with `hermes config edit`; nothing was changed"
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) root: Node,
}

/// What a variable does to its setting.
enum Effect {
    /// The setting takes the variable's text.
    Text,
    /// When the variable is on, the setting takes this text.
    Becomes(&'static str),
    /// When the variable is on, so is the setting.
    TurnsOn,
}

/// A variable, the setting it stands for, and how.
type Variable = (&'static str, &'static str, Effect);

/// The built-in settings, with what they are for.
pub(crate) const DEFAULTS: &str = include_str!("defaults.yaml");

/// The variables that are settings.
const VARIABLES: &[Variable] = &[
    ("HERMES_INFERENCE_MODEL", "model.default", Effect::Text),
    ("HERMES_INFERENCE_PROVIDER", "model.provider", Effect::Text),
    ("HERMES_TIMEZONE", "timezone", Effect::Text),
    ("HERMES_YOLO_MODE", "approvals.mode", Effect::Becomes("off")),
    ("HERMES_ACCEPT_HOOKS", "hooks_auto_accept", Effect::TurnsOn),
    (
        "HERMES_REDACT_SECRETS",
        "security.redact_secrets",
        Effect::Text,
    ),
    ("TERMINAL_ENV", "terminal.backend", Effect::Text),
    ("TERMINAL_CWD", "terminal.cwd", Effect::Text),
    ("TERMINAL_TIMEOUT", "terminal.timeout", Effect::Text),
    (
        "TERMINAL_CONTAINER_CPU",
        "terminal.container_cpu",
        Effect::Text,
    ),
    (
        "TERMINAL_CONTAINER_DISK",
        "terminal.container_disk",
        Effect::Text,
    ),
    (
        "TERMINAL_CONTAINER_MEMORY",
        "terminal.container_memory",
        Effect::Text,
    ),
    (
        "TERMINAL_CONTAINER_PERSISTENT",
        "terminal.container_persistent",
        Effect::Text,
    ),
    (
        "TERMINAL_DAYTONA_IMAGE",
        "terminal.daytona_image",
        Effect::Text,
    ),
    (
        "TERMINAL_DOCKER_IMAGE",
        "terminal.docker_image",
        Effect::Text,
    ),
    // Those of Hermes Agent; ours, which follow, go before them.
    (
        "HERMES_DOCKER_RUN_TMP_SIZE",
        "terminal.docker_tmpfs.run",
        Effect::Text,
    ),
    (
        "HERMES_DOCKER_TMP_TMP_SIZE",
        "terminal.docker_tmpfs.tmp",
        Effect::Text,
    ),
    (
        "HERMES_DOCKER_VAR_TMP_TMP_SIZE",
        "terminal.docker_tmpfs.var_tmp",
        Effect::Text,
    ),
    (
        "TERMINAL_DOCKER_TMPFS_RUN",
        "terminal.docker_tmpfs.run",
        Effect::Text,
    ),
    (
        "TERMINAL_DOCKER_TMPFS_TMP",
        "terminal.docker_tmpfs.tmp",
        Effect::Text,
    ),
    (
        "TERMINAL_DOCKER_TMPFS_VAR_TMP",
        "terminal.docker_tmpfs.var_tmp",
        Effect::Text,
    ),
    ("TERMINAL_MODAL_IMAGE", "terminal.modal_image", Effect::Text),
    ("TERMINAL_MODAL_MODE", "terminal.modal_mode", Effect::Text),
    (
        "TERMINAL_SINGULARITY_IMAGE",
        "terminal.singularity_image",
        Effect::Text,
    ),
    ("TERMINAL_SSH_HOST", "terminal.ssh_host", Effect::Text),
    ("TERMINAL_SSH_KEY", "terminal.ssh_key", Effect::Text),
    ("TERMINAL_SSH_PORT", "terminal.ssh_port", Effect::Text),
    ("TERMINAL_SSH_USER", "terminal.ssh_user", Effect::Text),
];

impl Layer {
    /// Returns the built-in values.
    pub(crate) fn defaults() -> Self {
        let root = yaml::parse(DEFAULTS).ok().flatten();
        Self {
            source: Source::Defaults,
            root: root.expect("the built-in settings are valid YAML: a test reads them"),
        }
    }

    /// Reads a settings file; `None` when there is none.
    pub(crate) fn read(
        path: &Path,
        source: impl Fn(PathBuf) -> Source,
    ) -> Result<Option<Self>, LoadError> {
        let Some(text) = disk::read_text(path)? else {
            return Ok(None);
        };
        let mut root = parse_settings(path, text.trim_start_matches('\u{feff}'))?
            .unwrap_or_else(Node::empty_map);
        aliases::normalise(&mut root);
        Ok(Some(Self {
            source: source(path.to_path_buf()),
            root,
        }))
    }

    /// Returns one layer for each variable that is set.
    pub(crate) fn of_environment(environment: &Environment) -> Vec<Self> {
        VARIABLES
            .iter()
            .filter_map(|variable| Self::of_variable(variable, environment))
            .collect()
    }

    fn of_variable((name, key, effect): &Variable, environment: &Environment) -> Option<Self> {
        let value = match effect {
            Effect::Text => Value::from(
                environment
                    .get(name)
                    .map(str::trim)
                    .filter(|text| !text.is_empty())?,
            ),
            Effect::Becomes(text) => environment.is_on(name).then(|| Value::from(*text))?,
            Effect::TurnsOn => environment.is_on(name).then_some(Value::Bool(true))?,
        };
        Some(Self::of_values(
            Source::Variable(name),
            [(key.parse().ok()?, value)],
        ))
    }

    pub(crate) fn of_values(
        source: Source,
        values: impl IntoIterator<Item = (Key, Value)>,
    ) -> Self {
        let mut root = Node::empty_map();
        for (key, value) in values {
            root.put(key.segments(), Node::synthetic(&value));
        }
        Self { source, root }
    }

    pub(crate) fn origin(&self, at: Position) -> Origin {
        Origin {
            position: self.source.file().map(|_| at),
            source: self.source.clone(),
        }
    }
}

/// Parses a settings file, which holds a mapping or nothing.
pub(crate) fn parse_settings(path: &Path, text: &str) -> Result<Option<Node>, LoadError> {
    let root = yaml::parse(text).map_err(|error| LoadError::Syntax {
        path: path.to_path_buf(),
        at: error.at,
        message: error.message,
    })?;
    let found = match root.as_ref().map(|root| &root.content) {
        None | Some(Content::Map(_) | Content::Scalar(Value::Null)) => return Ok(root),
        Some(Content::List(_)) => "a list",
        Some(Content::Scalar(_)) => "a single value",
    };
    Err(LoadError::NotSettings {
        path: path.to_path_buf(),
        found,
    })
}
