//! Private files: written in one step, locked between processes, recognised when they change.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Names to try for a temporary file before something else must be wrong.
const TEMPORARY_NAMES_MAX: usize = 16;
/// Between two looks at a lock that another process holds.
const LOCK_LOOK: Duration = Duration::from_millis(20);

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

/// Makes a folder that only its owner may enter. One that is there is closed to others.
pub(super) fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(path)?;
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// Replaces a file in one step: a reader sees the old text or the new, also after a crash.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_folder(folder)?;
    let (temporary, mut file) = create_temporary(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    // Only makes the new name survive a power cut, and not every file system can.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn create_temporary(path: &Path) -> io::Result<(std::path::PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for attempt in 0..TEMPORARY_NAMES_MAX {
        let temporary = path.with_file_name(format!(".{name}.{}-{attempt}", std::process::id()));
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&temporary);
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((temporary, created?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Holds a lock until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct FileLock(#[expect(dead_code, reason = "closing the file unlocks it")] File);

/// Takes the lock of a file, which is made if need be.
pub(super) async fn lock(path: &Path, wait_max: Duration) -> io::Result<FileLock> {
    if let Some(folder) = path.parent() {
        make_private_folder(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(path)?;
    let deadline = Instant::now() + wait_max;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_LOOK).await,
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
