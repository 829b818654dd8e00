//! The file that a write is about: found through links, checked, and reached without them.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::atomic::Staged;
use crate::folder::Folder;
use crate::guard::Guard;
use crate::ledger::Stamp;
use crate::{atomic, paths};

const ANY_WRITE_BIT: u32 = 0o222;

/// A place for a file that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As it was asked for.
    asked: PathBuf,
    /// Without links.
    path: PathBuf,
}

/// A regular file that is there and may be replaced.
#[derive(Debug)]
pub(crate) struct Existing {
    folder: Folder,
    pub(crate) metadata: Metadata,
}

impl Existing {
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::of(&self.metadata)
    }
}

impl Target {
    /// Finds the file that a write to `path` changes. An error is written for the model.
    pub(crate) fn find(path: &Path, guard: &Guard) -> Result<Self, String> {
        let shown = path.display();
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(format!("`{shown}` names a folder; add a file name"));
        }
        let target = paths::target_of(path).map_err(|error| explain(path, &error))?;
        let refusal = guard.refuse_write(path);
        if let Some(refusal) = refusal.or_else(|| guard.refuse_write(&target)) {
            return Err(refusal);
        }
        if target.file_name().is_none() {
            return Err(format!("`{shown}` is a folder; add a file name"));
        }
        Ok(Self {
            asked: path.to_owned(),
            path: target,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn asked(&self) -> &Path {
        &self.asked
    }

    /// Returns whether the path itself is a link, which a write follows but a removal must not.
    pub(crate) fn is_link(&self) -> bool {
        self.asked.is_symlink()
    }

    fn folder_path(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Looks at what is there now.
    pub(crate) fn existing(&self) -> Result<Option<Existing>, String> {
        let folder = match Folder::open(self.folder_path()) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.explain(&error)),
        };
        let metadata = folder.look(self.name());
        let Some(metadata) = metadata.map_err(|error| self.explain(&error))? else {
            return Ok(None);
        };
        let shown = self.asked.display();
        if metadata.is_dir() {
            return Err(format!("`{shown}` is a folder; add a file name"));
        }
        if !metadata.is_file() {
            return Err(format!(
                "`{shown}` is a device, pipe or socket, not a regular file"
            ));
        }
        if metadata.mode() & ANY_WRITE_BIT == 0 {
            return Err(format!(
                "`{shown}` is read-only (mode {:03o}); if it is meant to change, run `chmod u+w` on it first",
                metadata.mode() & 0o777
            ));
        }
        Ok(Some(Existing { folder, metadata }))
    }

    pub(crate) fn read(&self, existing: &Existing) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = existing.folder.open_file(self.name())?;
        // What grows while it is read is not read for ever.
        file.take(existing.metadata.len().saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces the content all at once, or creates the file with its folders. Returns the folders that it created.
    pub(crate) fn write(
        &self,
        content: &[u8],
        existing: Option<&Metadata>,
    ) -> io::Result<Vec<PathBuf>> {
        let (folder, created) = self.open_folder()?;
        atomic::replace(&folder, self.name(), content, existing)?;
        Ok(created)
    }

    /// Opens the folder of the file, and creates what is missing of it; returns what was created.
    pub(crate) fn open_folder(&self) -> io::Result<(Folder, Vec<PathBuf>)> {
        Folder::open_or_create(self.folder_path())
    }

    /// Puts content into place that was staged in the folder of the file.
    pub(crate) fn put(&self, staged: Staged<'_>) -> io::Result<()> {
        staged.put(self.name())
    }

    /// Returns what the file looks like now, if it is there.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let folder = Folder::open(self.folder_path()).ok()?;
        let metadata = folder.look(self.name()).ok()??;
        Some(Stamp::of(&metadata))
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        let folder = Folder::open(self.folder_path())?;
        folder.remove(self.name())?;
        // As for a replaced file: only a power cut could bring it back.
        let _ = folder.sync();
        Ok(())
    }

    pub(crate) fn explain(&self, error: &io::Error) -> String {
        explain(&self.asked, error)
    }
}

fn explain(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_plainly() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            explain(Path::new("/x"), &full),
            "`/x` was not written and is as it was before: the disk is full; free some space first"
        );
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_check_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("open")).unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        let target = Target::find(&root.join("open/a.txt"), &Guard::default()).unwrap();
        std::fs::remove_dir(root.join("open")).unwrap();
        std::os::unix::fs::symlink("secret", root.join("open")).unwrap();
        assert!(target.write(b"x", None).is_err());
        assert!(!root.join("secret/a.txt").exists());
    }
}
