//! The store's lock: shared by all who read and add, held alone by whoever throws away.

use std::fs::{File, TryLockError};
use std::time::Duration;

use hermes_core::CheckpointError;
use tokio::time::{Instant, sleep};

use super::git::private_folder;
use super::{CheckpointStore, failed};

/// Tidying takes seconds at most; a turn that waits longer goes on without a copy.
const WAIT_MAX: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Given back when dropped, also by a process that is killed.
pub(super) struct Lock {
    _file: File,
}

impl CheckpointStore {
    pub(super) async fn lock_shared(&self) -> Result<Lock, CheckpointError> {
        self.lock(File::try_lock_shared).await
    }

    pub(super) async fn lock_alone(&self) -> Result<Lock, CheckpointError> {
        self.lock(File::try_lock).await
    }

    /// Polls, since a wait in the kernel could not be given up.
    async fn lock(
        &self,
        attempt: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Lock, CheckpointError> {
        let path = self.folder().join("lock");
        let what = format!("cannot lock `{}`", path.display());
        private_folder(&self.folder()).map_err(failed(&what))?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed(&what))?;
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            match attempt(&file) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(what)(error)),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err(CheckpointError::Busy);
                }
                Err(TryLockError::WouldBlock) => sleep(POLL_INTERVAL).await,
            }
        }
    }
}
