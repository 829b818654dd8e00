//! What can go wrong with skills.

use std::io;
use std::path::{Path, PathBuf};

use hermes_core::StoreError;

use super::document::Invalid;

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// What was asked for cannot be had.
    #[error("{problem}")]
    Asked {
        problem: String,
        hint: Option<String>,
    },
    #[error("the text of `{name}` is no skill: {why}")]
    Invalid { name: String, why: Invalid },
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the change is not made, for it cannot be written down: {0}")]
    Log(#[from] StoreError),
    /// Something from elsewhere did not come.
    #[error("{0}")]
    Fetch(String),
}

impl SkillError {
    pub fn asked(problem: impl Into<String>) -> Self {
        Self::Asked {
            problem: problem.into(),
            hint: None,
        }
    }

    /// Says what to do next.
    pub fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Asked { problem, .. } => Self::Asked {
                problem,
                hint: Some(text.into()),
            },
            other => other,
        }
    }

    /// What to do next.
    pub fn what_next(&self) -> Option<String> {
        match self {
            Self::Asked { hint, .. } => hint.clone(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("the disk is full; nothing was changed".to_owned())
            }
            Self::File { path, source, .. } if is_broken(source) => mending(path),
            _ => None,
        }
    }

    /// Everything it says, for a model.
    pub fn told(&self) -> String {
        match self.what_next() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}

/// Whether a file was there and could be read, and is not what it should be.
fn is_broken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Other | io::ErrorKind::InvalidData
    )
}

/// What to do about a broken file of ours, and what that costs.
fn mending(path: &Path) -> Option<String> {
    let costs = match path.file_name()?.to_str()? {
        "lock.json" => {
            "skills that were installed stay, and count as yours until each is archived and installed again"
        }
        ".usage.json" => "counts begin anew, and skills that the agent wrote count as yours",
        "taps.json" => "`hermes skills tap add PLACE` adds your places again",
        _ => return None,
    };
    Some(format!("mend the file, or move it aside: {costs}"))
}

/// Says what was being done when the machine refused.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &std::path::Path) -> Result<T, SkillError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &std::path::Path) -> Result<T, SkillError> {
        self.map_err(|source| SkillError::File {
            doing,
            path: path.to_owned(),
            source,
        })
    }
}
