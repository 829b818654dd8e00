//! Shows what changed since a checkpoint, and brings it back.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hermes_core::{Change, CheckpointError, SessionId};

use super::record::Checkpoint;
use super::snapshot::paths;
use super::{CheckpointStore, project};

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Files that were written anew, relative to the project.
    pub written: Vec<PathBuf>,
    /// Files that were not there at the checkpoint, and are gone now.
    pub removed: Vec<PathBuf>,
    /// The state before: restoring it undoes this.
    pub undo: Checkpoint,
}

/// A file that differs between two trees.
struct Difference {
    path: PathBuf,
    /// As git writes it for its index: mode and id. The mode is 0 for a file that is not there.
    mode_before: String,
    mode_after: String,
    id_after: String,
}

impl CheckpointStore {
    /// Returns what changed since a checkpoint, as a summary and a unified diff. Empty when nothing did.
    pub async fn diff(
        &self,
        project: &Path,
        checkpoint: &Checkpoint,
    ) -> Result<String, CheckpointError> {
        let _lock = self.lock_shared().await?;
        // A folder of the checkpoint may be a link by now, which leads who knows where.
        let inside = |path: PathBuf| project::inside(project, &project.join(path));
        let kept = self.files_of(checkpoint).await?.into_iter();
        let now = self
            .tree_now(project, kept.filter_map(inside).collect())
            .await?;
        let args = [
            "diff-tree",
            "-r",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--stat=100",
            "--patch",
            &checkpoint.tree,
            &now,
        ];
        let output = self.git().run(&args, &[]).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Brings a project, or one file or folder of it, back to a checkpoint. Keeps the present state first.
    ///
    /// All or nothing: when a file is in the way that no checkpoint could hold, nothing is changed.
    pub async fn restore(
        &self,
        project: &Path,
        checkpoint: &Checkpoint,
        only: Option<&Path>,
        session: &SessionId,
    ) -> Result<Restored, CheckpointError> {
        let only = only.map(|path| contained(project, path)).transpose()?;
        let always = self.files_of(checkpoint).await?;
        let change = Change {
            session: session.clone(),
            reason: format!("rollback to {}", checkpoint.short_id()),
            paths: always.into_iter().map(|path| project.join(path)).collect(),
        };
        let undo = self.keep(project, &change).await?;
        let _lock = self.lock_shared().await?;
        let differences = self
            .differences(&undo.tree, &checkpoint.tree, only.as_deref())
            .await?;
        if let (Some(path), true) = (&only, differences.is_empty()) {
            self.must_be_in(checkpoint, project, path).await?;
        }
        self.write(project, &undo.tree, &differences).await?;
        let (removed, written) = differences
            .into_iter()
            .partition::<Vec<_>, _>(|difference| difference.is_removal());
        let path = |difference: Difference| difference.path;
        Ok(Restored {
            written: written.into_iter().map(path).collect(),
            removed: removed.into_iter().map(path).collect(),
            undo,
        })
    }

    /// Lets git bring the files there, which it refuses as a whole when one of them changed just now.
    async fn write(
        &self,
        project: &Path,
        before: &str,
        differences: &[Difference],
    ) -> Result<(), CheckpointError> {
        let after = self.tree_with(project, before, differences).await?;
        let modes = modes_of(project, differences);
        let index = self.index_of(project);
        let git = self.git_in(project, index.path());
        git.run(&["read-tree", "-m", "-u", before, &after], &[])
            .await?;
        for (path, mode) in modes {
            // The content is back, which is what was asked for.
            let _ = std::fs::set_permissions(path, mode);
        }
        index.publish()
    }

    /// Returns the tree that has the differences and is otherwise that of before.
    async fn tree_with(
        &self,
        project: &Path,
        before: &str,
        differences: &[Difference],
    ) -> Result<String, CheckpointError> {
        let index = self.empty_index(project);
        let git = self.git_in(project, index.path());
        git.run(&["read-tree", before], &[]).await?;
        let mut input = Vec::new();
        for difference in differences {
            input.extend_from_slice(
                format!("{} {}\t", difference.mode_after, difference.id_after).as_bytes(),
            );
            input.extend_from_slice(difference.path.as_os_str().as_bytes());
            input.push(0);
        }
        // What goes must go first: a file may stand where a folder was.
        git.run(&["update-index", "-z", "--replace", "--index-info"], &input)
            .await?;
        git.line(&["write-tree"], &[]).await
    }

    async fn differences(
        &self,
        before: &str,
        after: &str,
        only: Option<&Path>,
    ) -> Result<Vec<Difference>, CheckpointError> {
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            before,
            after,
        ];
        let output = self.git().run(&args, &[]).await?;
        let mut differences = read(&output);
        if let Some(only) = only {
            differences.retain(|difference| difference.path.starts_with(only));
        }
        differences.sort_by_key(|difference| !difference.is_removal());
        Ok(differences)
    }

    async fn files_of(&self, checkpoint: &Checkpoint) -> Result<Vec<PathBuf>, CheckpointError> {
        let args = ["ls-tree", "-r", "-z", "--name-only", &checkpoint.tree];
        let output = self.git().run(&args, &[]).await?;
        Ok(paths(&output).map(Path::to_owned).collect())
    }

    async fn must_be_in(
        &self,
        checkpoint: &Checkpoint,
        project: &Path,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let files = self.files_of(checkpoint).await?;
        if files.iter().any(|file| file.starts_with(path)) {
            Ok(())
        } else {
            Err(CheckpointError::Failed {
                what: format!(
                    "checkpoint {} has no `{}`",
                    checkpoint.short_id(),
                    path.display()
                ),
                detail: format!("files are named as seen from `{}`", project.display()),
            })
        }
    }
}

impl Difference {
    fn is_removal(&self) -> bool {
        self.mode_after == "000000"
    }
}

fn contained(project: &Path, path: &Path) -> Result<PathBuf, CheckpointError> {
    project::inside(project, path).ok_or_else(|| CheckpointError::Outside {
        path: path.to_owned(),
        project: project.to_owned(),
    })
}

/// Reads what `diff-tree --raw -z` prints: `:before after id id status`, NUL, path, NUL.
fn read(output: &[u8]) -> Vec<Difference> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut differences = Vec::new();
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let about = String::from_utf8_lossy(about);
        let mut words = about.trim_start_matches(':').split(' ');
        if let (Some(before), Some(after), Some(_), Some(id)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            differences.push(Difference {
                path: OsStr::from_bytes(path).into(),
                mode_before: before.to_owned(),
                mode_after: after.to_owned(),
                id_after: id.to_owned(),
            });
        }
    }
    differences
}

/// The permissions of files whose content changes: git knows only whether they can be executed.
fn modes_of(project: &Path, differences: &[Difference]) -> Vec<(PathBuf, Permissions)> {
    let kept = differences.iter().filter(|difference| {
        difference.mode_before == difference.mode_after && difference.mode_after.starts_with("100")
    });
    kept.filter_map(|difference| {
        let path = project.join(&difference.path);
        let mode = path.symlink_metadata().ok()?.permissions().mode() & 0o7777;
        Some((path, Permissions::from_mode(mode)))
    })
    .collect()
}
