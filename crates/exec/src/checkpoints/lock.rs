//! The store's lock: shared by all who read and add, held alone by whoever throws away.

use std::io;
use std::time::Duration;

use hermes_core::CheckpointError;
use hermes_os::lock::Sharing;
use hermes_os::{FileLock, make_private_folder};

use super::{CheckpointStore, failed};

/// Tidying takes seconds at most; a turn that waits longer goes on without a copy.
const WAIT_MAX: Duration = Duration::from_secs(10);

impl CheckpointStore {
    pub(super) async fn lock_shared(&self) -> Result<FileLock, CheckpointError> {
        self.lock(Sharing::Shared).await
    }

    pub(super) async fn lock_alone(&self) -> Result<FileLock, CheckpointError> {
        self.lock(Sharing::Alone).await
    }

    async fn lock(&self, sharing: Sharing) -> Result<FileLock, CheckpointError> {
        let path = self.folder().join("lock");
        let what = format!("cannot lock `{}`", path.display());
        make_private_folder(&self.folder()).map_err(failed(&what))?;
        let locked = hermes_os::lock::lock(&path, sharing, WAIT_MAX).await;
        locked.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => CheckpointError::Busy,
            _ => failed(what)(error),
        })
    }
}
