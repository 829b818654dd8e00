//! The file that a write is about: found through links, checked, and reached without them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::TerminalError;
use hermes_os::paths::Followed;

use crate::files::{Files, Kind, Meta, Staged};
use crate::guard::{PinnedGuard, Write};
use crate::ledger::Stamp;

const ANY_WRITE_BIT: u32 = 0o222;

/// A place for a file that may be written.
#[derive(Clone)]
pub(crate) struct Target {
    files: Arc<dyn Files>,
    /// As it was asked for.
    asked: PathBuf,
    /// Without links.
    path: PathBuf,
    is_link: bool,
    /// Free, or to be asked for.
    judgement: Write,
    /// What is in it is not shown.
    is_secret: bool,
}

/// A regular file that is there and may be replaced.
pub(crate) struct Existing {
    pub(crate) meta: Meta,
    /// Not there when the file is larger than what was asked for.
    pub(crate) content: Option<io::Result<Vec<u8>>>,
}

impl Target {
    /// Finds the file that a write to a path of a call changes. An error is written for the model.
    pub(crate) fn asked_for(
        files: &Arc<dyn Files>,
        path: &str,
        cwd: &Path,
    ) -> Result<Self, String> {
        let asked = files.absolute(path, cwd).and_then(|path| {
            let guard = files.guard()?;
            Ok((path, guard))
        });
        let (path, guard) = asked.map_err(|error| explain(Path::new(path), &error))?;
        Self::find(files, &path, &guard)
    }

    /// Finds the file that a write to `path` changes. An error is written for the model.
    pub(crate) fn find(
        files: &Arc<dyn Files>,
        path: &Path,
        guard: &PinnedGuard,
    ) -> Result<Self, String> {
        let shown = path.display();
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(format!("`{shown}` names a folder; add a file name"));
        }
        let followed = files.follow(path);
        let Followed { target, is_link } = followed.map_err(|error| explain(path, &error))?;
        let judgement = guard.judge_write(path).or(guard.judge_write(&target));
        if let Write::Refused(refusal) = judgement {
            return Err(refusal);
        }
        if target.file_name().is_none() {
            return Err(format!("`{shown}` is a folder; add a file name"));
        }
        Ok(Self {
            files: Arc::clone(files),
            asked: path.to_owned(),
            is_secret: [path, &target]
                .iter()
                .any(|path| guard.refuse_read(path).is_some()),
            path: target,
            is_link,
            judgement,
        })
    }

    pub(crate) fn files(&self) -> &dyn Files {
        self.files.as_ref()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn asked(&self) -> &Path {
        &self.asked
    }

    /// Returns whether the path itself is a link, which a write follows but a removal must not.
    pub(crate) fn is_link(&self) -> bool {
        self.is_link
    }

    pub(crate) fn judgement(&self) -> &Write {
        &self.judgement
    }

    /// Returns whether what is in the file is not shown.
    pub(crate) fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Returns whether there is anything.
    pub(crate) fn exists(&self) -> bool {
        matches!(self.files.look(&self.path, 0), Ok(Some(_)))
    }

    /// Looks at what is there now, and reads it when it has at most so many bytes.
    pub(crate) fn existing(&self, content_bytes_max: u64) -> Result<Option<Existing>, String> {
        let entry = self.files.look(&self.path, content_bytes_max);
        let Some(entry) = entry.map_err(|error| self.explain(&error))? else {
            return Ok(None);
        };
        let (meta, shown) = (entry.meta, self.asked.display());
        match meta.kind {
            Kind::File => {}
            Kind::Folder => return Err(format!("`{shown}` is a folder; add a file name")),
            _ => {
                return Err(format!(
                    "`{shown}` is a device, pipe or socket, not a regular file"
                ));
            }
        }
        if meta.mode & ANY_WRITE_BIT == 0 {
            return Err(format!(
                "`{shown}` is read-only (mode {:03o}); if it is meant to change, run `chmod u+w` on it first",
                meta.mode & 0o777
            ));
        }
        if !entry.may_write {
            return Err(format!(
                "`{shown}` may not be written by this user: it belongs to user {}, with mode {:03o}",
                meta.user,
                meta.mode & 0o777
            ));
        }
        Ok(Some(Existing {
            meta,
            content: entry.content,
        }))
    }

    /// Replaces the content all at once, or creates the file with its folders. Returns the folders that it created.
    pub(crate) fn write(&self, content: &[u8], model: Option<&Meta>) -> io::Result<Vec<PathBuf>> {
        self.files.write(&self.path, content, model)
    }

    /// Writes content beside the file, and creates missing folders; returns those too.
    pub(crate) fn stage(
        &self,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<(Box<dyn Staged>, Vec<PathBuf>)> {
        self.files.stage(&self.path, content, model)
    }

    /// Returns what the file looks like now, if it is there.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let entry = self.files.look(&self.path, 0).ok()??;
        Some(entry.meta.stamp)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        self.files.remove(&self.path)
    }

    pub(crate) fn explain(&self, error: &io::Error) -> String {
        explain(&self.asked, error)
    }
}

fn explain(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    if is_lost(error) {
        return format!("whether `{shown}` was written is not known: {error}; read it");
    }
    let reason = match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space first".to_owned(),
        io::ErrorKind::QuotaExceeded => "the user's disk quota is used up".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "it is on a read-only file system".to_owned(),
        io::ErrorKind::PermissionDenied => "its permissions forbid it to this user".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is a file, not a folder".to_owned(),
        io::ErrorKind::InvalidFilename => "its name is too long or not allowed".to_owned(),
        _ => error.to_string(),
    };
    format!("`{shown}` was not written and is as it was before: {reason}")
}

/// Returns whether a command over there did not come back, so that it may have done its work.
fn is_lost(error: &io::Error) -> bool {
    let source = error.get_ref();
    let terminal = source.and_then(|source| source.downcast_ref::<TerminalError>());
    let is_cut = matches!(terminal, Some(TerminalError::Lost { .. }));
    is_cut || error.kind() == io::ErrorKind::TimedOut
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::files::here::Here;
    use crate::guard::Guard;

    #[test]
    fn a_full_disk_is_said_plainly() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            explain(Path::new("/x"), &full),
            "`/x` was not written and is as it was before: the disk is full; free some space first"
        );
    }

    #[test]
    fn a_lost_connection_leaves_it_open() {
        let detail = "the connection was cut".to_owned();
        let lost = io::Error::other(TerminalError::Lost { detail });
        let text = explain(Path::new("/x"), &lost);
        assert!(text.contains("is not known"), "{text}");
        let shell = "ssh".to_owned();
        let detail = "no route".to_owned();
        let not_started = io::Error::other(TerminalError::NotStarted { shell, detail });
        let text = explain(Path::new("/x"), &not_started);
        assert!(text.contains("as it was before"), "{text}");
    }

    #[test]
    fn a_file_that_this_user_may_not_write_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("theirs");
        std::fs::write(&path, "theirs").unwrap();
        // Others may write it, its owner may not.
        std::fs::set_permissions(&path, Permissions::from_mode(0o466)).unwrap();
        let may_write = std::fs::File::options().write(true).open(&path).is_ok();
        let files: Arc<dyn Files> = Arc::new(Here::new(None, Guard::default()));
        let target = Target::find(&files, &path, &Guard::default().pinned()).unwrap();
        // The superuser may write everything.
        assert_eq!(target.existing(100).is_ok(), may_write);
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_check_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("open")).unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        let files: Arc<dyn Files> = Arc::new(Here::new(None, Guard::default()));
        let path = root.join("open/a.txt");
        let target = Target::find(&files, &path, &Guard::default().pinned()).unwrap();
        std::fs::remove_dir(root.join("open")).unwrap();
        std::os::unix::fs::symlink("secret", root.join("open")).unwrap();
        assert!(target.write(b"x", None).is_err());
        assert!(!root.join("secret/a.txt").exists());
    }
}
