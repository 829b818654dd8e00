//! What a new shell finds after the user's start files: read once per folder, and given to every new shell there.
//!
//! Start files can take a quarter of a second (pyenv, nvm). They are read again when one of them has changed.

use std::collections::VecDeque;
use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::Pass;
use tokio::sync::OnceCell;

/// Folders whose profile is remembered. Each takes some ten kilobytes; conversations work in few at a time.
const PROFILES_MAX: usize = 32;

/// What decides what start files do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileKey {
    /// Where the shell begins.
    pub(crate) folder: PathBuf,
    /// What it may reach beyond the fence. Shells that may more never take up what was left by those that may less.
    pub(crate) pass: Pass,
    /// The start files as they are.
    pub(crate) files: Vec<Option<Stamp>>,
}

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// What start files left, as the next shell reads it; nothing when they left nothing whole.
type Profile = Option<Arc<[u8]>>;

/// The profiles that were read, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Profiles(Mutex<VecDeque<(ProfileKey, Arc<OnceCell<Profile>>)>>);

impl Profiles {
    /// Returns a profile. The first to ask reads it, and others wait; if the first gives up, the next one reads.
    pub(crate) async fn get<F>(&self, key: ProfileKey, read: impl FnOnce() -> F) -> Profile
    where
        F: Future<Output = Option<Vec<u8>>>,
    {
        let cell = self.cell(key);
        let profile = cell.get_or_init(|| async { read().await.map(Arc::from) });
        profile.await.clone()
    }

    fn cell(&self, key: ProfileKey) -> Arc<OnceCell<Profile>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = known.iter().find(|(known, _)| *known == key) {
            return Arc::clone(cell);
        }
        // The same folder with start files that have changed since.
        known.retain(|(known, _)| known.folder != key.folder || known.pass != key.pass);
        if known.len() == PROFILES_MAX {
            known.pop_front();
        }
        let cell = Arc::new(OnceCell::new());
        known.push_back((key, Arc::clone(&cell)));
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn folders_that_are_remembered_stay_few() {
        let profiles = Profiles::default();
        for number in 0..PROFILES_MAX + 5 {
            let key = ProfileKey {
                folder: number.to_string().into(),
                pass: Pass::default(),
                files: Vec::new(),
            };
            let profile = profiles.get(key, async || Some(vec![1])).await;
            assert_eq!(profile.as_deref(), Some([1].as_slice()));
        }
        assert_eq!(profiles.0.lock().unwrap().len(), PROFILES_MAX);
    }
}
