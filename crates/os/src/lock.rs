//! Locks between processes: on a file of their own, given back when they are dropped or the process ends in whatever way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between two looks at a lock that another process holds. A wait in the kernel could not be given up.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Only its owner needs to open it.
const FILE_MODE: u32 = 0o600;

/// With whom a lock is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody.
    Alone,
    /// All who ask for the same.
    Shared,
}

/// A lock that is held.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// The file that is locked, for those who write into it who has it.
    pub fn file(&self) -> &File {
        &self.0
    }
}

/// Takes a lock, or returns `None` while somebody else has it. Makes the file if need be; its folder must be there.
pub fn try_lock(path: &Path, sharing: Sharing) -> io::Result<Option<FileLock>> {
    attempt(open(path)?, sharing).map(Result::ok)
}

/// Takes a lock as soon as it is free. After `wait_max` the error is [`io::ErrorKind::TimedOut`].
pub async fn lock(path: &Path, sharing: Sharing, wait_max: Duration) -> io::Result<FileLock> {
    let deadline = Instant::now() + wait_max;
    let mut file = open(path)?;
    loop {
        file = match attempt(file, sharing)? {
            Ok(lock) => return Ok(lock),
            Err(_) if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            Err(file) => file,
        };
        sleep(LOOK_INTERVAL).await;
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)
}

/// Gives the file back when somebody else has the lock.
fn attempt(file: File, sharing: Sharing) -> io::Result<Result<FileLock, File>> {
    let locked = match sharing {
        Sharing::Alone => file.try_lock(),
        Sharing::Shared => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => Ok(Ok(FileLock(file))),
        Err(TryLockError::WouldBlock) => Ok(Err(file)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_or_shared_by_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = |sharing| try_lock(&path, sharing).unwrap();
        let one = held(Sharing::Shared).unwrap();
        let other = held(Sharing::Shared).unwrap();
        assert!(held(Sharing::Alone).is_none());
        drop((one, other));
        let alone = held(Sharing::Alone).unwrap();
        assert!(held(Sharing::Shared).is_none());
        drop(alone);
        assert!(held(Sharing::Shared).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_it_when_it_is_free_or_gives_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let wait_max = Duration::from_secs(1);
        let first = lock(&path, Sharing::Alone, wait_max).await.unwrap();
        let late = lock(&path, Sharing::Alone, wait_max).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let (next, ()) = tokio::join!(lock(&path, Sharing::Alone, wait_max), async {
            sleep(wait_max / 2).await;
            drop(first);
        });
        next.unwrap();
    }
}
