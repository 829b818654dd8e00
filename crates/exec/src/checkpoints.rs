//! Checkpoints: copies of projects in a git store of our own, outside the project.
//!
//! git is the system's, and only a store of contents: it sees our store as its repository and the project as a folder of
//! files, so the user's own repository is a folder like any other that is left out. Start at [`CheckpointStore`].
//! `project` decides what is copied together, `files` which files that means, `index` and `snapshot` make the copy, `restore` brings
//! one back, `record` is the list of them and `tidy` keeps it short. `git` starts the program.
//!
//! A checkpoint is a commit without parents under a reference of its own. So one can be dropped without touching
//! another, and sessions that keep the same project at once do not meet. What must not happen beside anything else is
//! throwing objects away: that takes the store's lock alone, everything else shares it. The kernel gives the lock back
//! when a process dies.

mod files;
mod git;
mod index;
mod lock;
mod project;
mod record;
mod restore;
mod snapshot;
mod tidy;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{BoxFuture, Change, CheckpointError, Checkpoints, Clock, Random};

pub use record::Checkpoint;
pub use restore::Restored;
pub use tidy::Tidied;

/// Where checkpoints are kept, and how many.
#[derive(Clone)]
pub struct CheckpointSettings {
    /// The home of Hermes: holds the store, and is never part of a copy.
    pub home: PathBuf,
    /// The user's home, which is too wide to be a project.
    pub user_home: Option<PathBuf>,
    /// What git gets of our environment; see [`crate::child_environment`].
    pub environment: Vec<(OsString, OsString)>,
    pub limits: CheckpointLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// `checkpoints.max_snapshots`, of one project.
    pub per_project_max: usize,
    /// `checkpoints.max_total_size_mb`
    pub total_bytes_max: u64,
    /// `checkpoints.max_file_size_mb`: larger files are left out.
    pub file_bytes_max: u64,
    /// `checkpoints.retention_days`
    pub age_max: Duration,
    /// Larger projects are not kept: walking them would hold a turn up.
    pub files_max: usize,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self {
            per_project_max: 20,
            total_bytes_max: 500 * 1024 * 1024,
            file_bytes_max: 10 * 1024 * 1024,
            age_max: Duration::from_secs(7 * 24 * 60 * 60),
            files_max: 50_000,
        }
    }
}

/// The checkpoints of one home. Makes its folder when it first keeps something.
#[derive(Clone)]
pub struct CheckpointStore {
    settings: Arc<CheckpointSettings>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
}

impl CheckpointStore {
    pub fn new(mut settings: CheckpointSettings, clock: Arc<dyn Clock>) -> Self {
        // Projects are compared with these by their real names.
        settings.home = project::real(&settings.home);
        settings.user_home = settings.user_home.as_deref().map(project::real);
        Self {
            settings: Arc::new(settings),
            clock,
            random: Arc::new(Random::from_system()),
        }
    }

    /// Returns the folder that is copied before `path` changes.
    pub fn project(&self, path: &Path, cwd: &Path) -> Option<PathBuf> {
        project::of(path, cwd, |folder| self.is_too_wide(folder))
    }

    /// The user's home and everything above it, and our own.
    fn is_too_wide(&self, folder: &Path) -> bool {
        let user_home = self.settings.user_home.as_deref();
        folder.parent().is_none()
            || folder == self.settings.home
            || user_home.is_some_and(|home| home.starts_with(folder))
    }

    fn folder(&self) -> PathBuf {
        self.settings.home.join("checkpoints")
    }

    /// The repository. Not `store`, which other programs of this name keep in the same folder in another form.
    fn repository(&self) -> PathBuf {
        self.folder().join("kept.git")
    }

    fn indexes(&self) -> PathBuf {
        self.folder().join("indexes")
    }
}

impl Checkpoints for CheckpointStore {
    fn project(&self, path: &Path, cwd: &Path) -> Option<PathBuf> {
        self.project(path, cwd)
    }

    fn keep<'a>(
        &'a self,
        project: &'a Path,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(async move { self.keep(project, change).await.map(drop) })
    }
}

/// Says what went wrong, for the `map_err` of something that touches files.
fn failed<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> CheckpointError {
    let what = what.into();
    move |error| CheckpointError::Failed {
        what,
        detail: error.to_string(),
    }
}
