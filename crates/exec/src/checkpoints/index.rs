//! What git knows of a project's files, so that only those that changed are read again.

use std::path::{Path, PathBuf};

use hermes_core::CheckpointError;
use sha2::{Digest as _, Sha256};

use super::{CheckpointStore, failed};

/// The name of a project in the store: it must not depend on what its path may contain.
pub(super) fn key(project: &Path) -> String {
    let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An index of one user: a copy of the project's own, which replaces that when it is done.
///
/// git never writes into an index but replaces it, so a hard link is a copy, and one that keeps the time by which git
/// tells files that may have changed unnoticed. Nobody waits for anybody, and a lock that a killed git left behind is on
/// a file that is used no more.
pub(super) struct Index {
    path: PathBuf,
    shared: PathBuf,
}

impl CheckpointStore {
    /// An index that knows what the project's own does.
    pub(super) fn index_of(&self, project: &Path) -> Index {
        let index = self.empty_index(project);
        // Without a link there is no copy, and git reads every file anew.
        let _ = std::fs::hard_link(&index.shared, &index.path);
        index
    }

    pub(super) fn empty_index(&self, project: &Path) -> Index {
        let (key, unique) = (key(project), self.random.next_u64());
        Index {
            path: self.indexes().join(format!("{key}.{unique:016x}")),
            shared: self.indexes().join(key),
        }
    }
}

impl Index {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it the project's own.
    pub(super) fn publish(self) -> Result<(), CheckpointError> {
        std::fs::rename(&self.path, &self.shared).map_err(failed("cannot keep the index"))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // Nothing is there after `publish`; after a failure, it is not worth keeping.
        let _ = std::fs::remove_file(&self.path);
        let mut lock = self.path.clone().into_os_string();
        lock.push(".lock");
        let _ = std::fs::remove_file(PathBuf::from(lock));
    }
}
