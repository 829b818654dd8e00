//! The sole right to append to a session, across processes: an operating-system lock on a file of its own, so that it
//! ends with the process, however that ends.
//!
//! The file holds the owner's process id for the message another process shows. It is removed when the claim is given
//! back; after `kill -9` it stays behind, unlocked and harmless.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use hermes_core::{SessionId, StoreError};
use hermes_os::FileLock;
use hermes_os::lock::Sharing;

/// Attempts at a file that its last owner removes between our opening and locking it. Each means that somebody else
/// made progress.
const ATTEMPTS_MAX: usize = 16;

/// A held lock.
#[derive(Debug)]
pub(crate) struct SessionLock {
    path: PathBuf,
    _lock: FileLock,
}

pub(crate) fn take(locks_dir: &Path, session: &SessionId) -> Result<SessionLock, StoreError> {
    if !is_file_name(session) {
        // No session was ever created under such a name, and it must not reach the file system.
        return Err(StoreError::NotFound {
            name: session.to_string(),
        });
    }
    let path = locks_dir.join(format!("{session}.lock"));
    match try_lock(locks_dir, &path) {
        Ok(Some(lock)) => Ok(SessionLock { path, _lock: lock }),
        Ok(None) => Err(StoreError::Busy {
            session: session.clone(),
            owner: owner(&path),
        }),
        Err(error) => Err(failure(error, path)),
    }
}

fn failure(error: io::Error, path: PathBuf) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull { path },
        _ => StoreError::Io {
            action: "lock a session of",
            path,
            detail: error.to_string(),
        },
    }
}

/// Returns whether an id can be part of a file name as it is.
pub(crate) fn is_file_name(session: &SessionId) -> bool {
    let id = session.as_str();
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Removed while still locked; see `is_current` for whoever has it open at this moment. If it cannot be removed
        // it stays, which does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the lock, or `None` when another process has it.
fn try_lock(locks_dir: &Path, path: &Path) -> io::Result<Option<FileLock>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(locks_dir)?;
    for _ in 0..ATTEMPTS_MAX {
        let Some(lock) = hermes_os::lock::try_lock(path, Sharing::Alone)? else {
            return Ok(None);
        };
        let mut file = lock.file();
        if is_current(file, path)? {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
            return Ok(Some(lock));
        }
    }
    Err(io::Error::other(
        "its lock file is being removed over and over",
    ))
}

/// Returns whether the path still leads to this file. Its last owner may have removed it after we opened it: then our
/// lock holds on to nothing, and a third process could lock a new file of the same name.
fn is_current(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads who holds a lock, if they have written it yet.
fn owner(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_one() {
        let failed = |kind: io::ErrorKind| failure(kind.into(), PathBuf::from("x.lock"));
        let full = StoreError::DiskFull {
            path: "x.lock".into(),
        };
        assert_eq!(failed(io::ErrorKind::StorageFull), full);
        assert_eq!(failed(io::ErrorKind::QuotaExceeded), full);
        assert!(matches!(
            failed(io::ErrorKind::PermissionDenied),
            StoreError::Io { .. }
        ));
    }

    #[test]
    fn only_plain_ids_become_file_names() {
        let check = |id: &str, expected| assert_eq!(is_file_name(&id.into()), expected, "{id:?}");
        check("20261115_210405_a1b2c3", true);
        check("a-B_9", true);
        check("", false);
        check("..", false);
        check("a/b", false);
        check("a\0", false);
        check("é", false);
    }
}
