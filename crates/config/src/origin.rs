//! Where a value comes from, and what is wrong with one.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::yaml::Position;

/// What a layer of settings was read from. Later layers win; the managed one cannot be overridden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Defaults,
    User(PathBuf),
    Project(PathBuf),
    Variable(&'static str),
    Flags,
    Managed(PathBuf),
}

/// The place of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub source: Source,
    /// Line and column, for a value from a file.
    pub position: Option<Position>,
}

/// Something in the settings that has no effect, or not the wanted one; worth a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub origin: Origin,
    pub hint: Option<String>,
}

impl Source {
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User(path) | Self::Project(path) | Self::Managed(path) => Some(path),
            Self::Defaults | Self::Variable(_) | Self::Flags => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("built-in default"),
            Self::Variable(name) => write!(f, "environment variable `{name}`"),
            Self::Flags => f.write_str("command line"),
            Self::User(path) | Self::Project(path) | Self::Managed(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{}:{position}", self.source),
            None => self.source.fmt(f),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
