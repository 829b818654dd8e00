//! Makes a copy of a project as it is now.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hermes_core::{Change, CheckpointError};

use super::files::Wanted;
use super::git::Git;
use super::record::{Checkpoint, Note, reference};
use super::{CheckpointStore, failed, project};

impl CheckpointStore {
    /// Keeps the project as it is now. When nothing changed since its last copy, returns that one.
    pub async fn keep(
        &self,
        project: &Path,
        change: &Change,
    ) -> Result<Checkpoint, CheckpointError> {
        let inside = |path: &PathBuf| project::inside(project, path);
        let always = change.paths.iter().filter_map(inside).collect();
        let kept = {
            let _lock = self.lock_shared().await?;
            let tree = self.tree_now(project, always).await?;
            self.record(project, tree, change).await?
        };
        // A list that is one too long for a while is better than a turn that fails.
        if kept.list_is_too_long {
            let _ = self.shorten_list(project).await;
        }
        Ok(kept.checkpoint)
    }

    /// Writes the project's files into the store and returns the tree of them. The caller holds the lock.
    pub(super) async fn tree_now(
        &self,
        project: &Path,
        always: Vec<PathBuf>,
    ) -> Result<String, CheckpointError> {
        self.create().await?;
        let index = self.index_of(project);
        let git = self.git_in(project, index.path());
        let listed = git.run(&["ls-files", "-z"], &[]);
        let (files, known) = tokio::try_join!(self.files(project, always), listed)?;
        update(&git, &files, &known).await?;
        let tree = git.line(&["write-tree"], &[]).await?;
        index.publish()?;
        Ok(tree)
    }

    async fn files(
        &self,
        project: &Path,
        always: Vec<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, CheckpointError> {
        let (store, project) = (self.clone(), project.to_owned());
        let find = move || {
            let limits = store.settings.limits;
            Wanted {
                project: &project,
                besides: &store.settings.home,
                always,
                file_bytes_max: limits.file_bytes_max,
                files_max: limits.files_max,
            }
            .find()
        };
        let found = tokio::task::spawn_blocking(find).await;
        found.map_err(failed("cannot look through the project"))?
    }

    /// Puts a tree into the list, unless it is that of the newest checkpoint.
    async fn record(
        &self,
        project: &Path,
        tree: String,
        change: &Change,
    ) -> Result<Kept, CheckpointError> {
        let list = self.list(project).await?;
        let count = list.len() + 1;
        if let Some(newest) = list.into_iter().next()
            && newest.tree == tree
        {
            return Ok(Kept {
                checkpoint: newest,
                list_is_too_long: false,
            });
        }
        let now = self.clock.now();
        let note = Note {
            at: now,
            reason: change.reason.clone(),
            session: Some(change.session.to_string()),
            project: project.to_str().map(PathBuf::from),
        };
        let text = serde_json::to_vec(&note).map_err(failed("cannot write the note"))?;
        let git = self.git().at(now);
        let id = git.line(&["commit-tree", &tree, "-F", "-"], &text).await?;
        let reference = reference(project, now, &id);
        git.run(&["update-ref", &reference, &id], &[]).await?;
        Ok(Kept {
            checkpoint: Checkpoint {
                id,
                at: note.at,
                reason: note.reason,
                session: note.session,
                project: note.project,
                tree,
                reference,
            },
            list_is_too_long: count > self.settings.limits.per_project_max,
        })
    }
}

struct Kept {
    checkpoint: Checkpoint,
    list_is_too_long: bool,
}

/// Brings an index from the known files to exactly these; git reads those whose size or time changed.
async fn update(git: &Git, files: &BTreeSet<PathBuf>, known: &[u8]) -> Result<(), CheckpointError> {
    let gone = lines(paths(known).filter(|path| !files.contains(*path)));
    if !gone.is_empty() {
        let args = ["update-index", "-z", "--force-remove", "--stdin"];
        git.run(&args, &gone).await?;
    }
    // A file may vanish between our look and git's.
    let args = [
        "update-index",
        "-z",
        "--add",
        "--remove",
        "--replace",
        "--stdin",
    ];
    git.run(&args, &lines(files.iter().map(PathBuf::as_path)))
        .await?;
    Ok(())
}

/// Paths as git reads them with `-z`.
fn lines<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<u8> {
    let mut lines = Vec::new();
    for path in paths {
        lines.extend_from_slice(path.as_os_str().as_bytes());
        lines.push(0);
    }
    lines
}

/// Paths as git prints them with `-z`.
pub(super) fn paths(listed: &[u8]) -> impl Iterator<Item = &Path> {
    let names = listed.split(|byte| *byte == 0);
    names
        .filter(|name| !name.is_empty())
        .map(|name| Path::new(OsStr::from_bytes(name)))
}
