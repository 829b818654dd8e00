//! The token files of a server: only their owner's, replaced in one step, recognised when they change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use hermes_os::lock::Sharing;
use hermes_os::{Access, Durability, FileLock, make_private_folder};

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// Replaces a file in one step: a reader sees the old text or the new, also after a crash.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    make_private_folder(path.parent().unwrap_or(Path::new(".")))?;
    hermes_os::replace(path, text.as_bytes(), Access::Private, Durability::Synced)
}

/// Takes the lock of a file, which is made if need be.
pub(super) async fn lock(path: &Path, wait_max: Duration) -> io::Result<FileLock> {
    make_private_folder(path.parent().unwrap_or(Path::new(".")))?;
    hermes_os::lock::lock(path, Sharing::Alone, wait_max).await
}
