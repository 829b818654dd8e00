//! The port to checkpoints: copies of a project, kept before a turn changes it.

use std::path::{Path, PathBuf};

use crate::id::SessionId;
use crate::tool::BoxFuture;

/// Keeps copies of projects so that what a turn did to their files can be taken back.
///
/// The agent calls it before the first call of a turn that may change a project. It must not change anything of the
/// user's: neither their files nor their repository. Work goes on when it fails.
pub trait Checkpoints: Send + Sync {
    /// Returns the folder that is copied before `path` changes; `cwd` is where the session works. `None` for places too
    /// wide to copy, such as a home folder. Called on a thread that may wait for the disk.
    fn project(&self, path: &Path, cwd: &Path) -> Option<PathBuf>;

    /// Keeps the project as it is now. When nothing changed since its last copy, that one serves.
    ///
    /// Dropping the future stops it; half a copy is never listed.
    fn keep<'a>(
        &'a self,
        project: &'a Path,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), CheckpointError>>;
}

/// What is about to happen to a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub session: SessionId,
    /// For people, in a line: `patch src/lib.rs`.
    pub reason: String,
    /// Files that are about to change: copied even when their kind usually is not.
    pub paths: Vec<PathBuf>,
}

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("git cannot be started ({detail})")]
    NoGit { detail: String },
    #[error("`{}` has more than {files_max} files", project.display())]
    TooManyFiles { project: PathBuf, files_max: usize },
    #[error("another Hermes is tidying the checkpoints")]
    Busy,
    #[error("there is no checkpoint `{name}` of `{}`", project.display())]
    NotFound { name: String, project: PathBuf },
    #[error("`{}` is not in `{}`", path.display(), project.display())]
    Outside { path: PathBuf, project: PathBuf },
    #[error("{what}: {detail}")]
    Failed { what: String, detail: String },
}

impl CheckpointError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoGit { .. } => "install git, or set `checkpoints.enabled` to false",
            Self::TooManyFiles { .. } => {
                "work in a smaller folder, or let .gitignore name what need not be kept"
            }
            Self::Busy => "try again in a moment",
            Self::NotFound { .. } => "`hermes checkpoints list` shows what there is",
            Self::Outside { .. } => "name a file of this project",
            Self::Failed { .. } => {
                "your files are as they were; `hermes checkpoints prune` tidies the store"
            }
        }
    }
}
