//! The folders that sessions work in, as servers are told them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::Url;
#[expect(deprecated, reason = "servers of today's era ask for roots")]
use rmcp::model::{ListRootsResult, Root};

/// A server that is told more folders than this learns nothing from the list; the oldest go first.
const FOLDERS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Roots(Mutex<Vec<PathBuf>>);

impl Roots {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        Self(Mutex::new(folders))
    }

    /// Adds a folder. Returns whether it is new.
    pub(super) fn add(&self, folder: &Path) -> bool {
        let mut folders = self.lock();
        if folders.iter().any(|known| known == folder) {
            return false;
        }
        if folders.len() == FOLDERS_MAX {
            folders.remove(0);
        }
        folders.push(folder.to_owned());
        true
    }

    #[expect(deprecated, reason = "servers of today's era ask for roots")]
    pub(super) fn list(&self) -> ListRootsResult {
        let root = |folder: &PathBuf| {
            // Only an absolute path has an address.
            let root = Root::new(Url::from_file_path(folder).ok()?.to_string());
            Some(match folder.file_name() {
                Some(name) => root.with_name(name.to_string_lossy()),
                None => root,
            })
        };
        ListRootsResult::new(self.lock().iter().filter_map(root).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_become_addresses_and_the_oldest_go_first() {
        let roots = Roots::new(vec!["/home/me/my work".into()]);
        assert!(!roots.add(Path::new("/home/me/my work")));
        let listed = || json!(roots.list())["roots"].clone();
        assert_eq!(
            listed(),
            json!([{ "uri": "file:///home/me/my%20work", "name": "my work" }])
        );
        for number in 0..FOLDERS_MAX {
            assert!(roots.add(Path::new(&format!("/{number}"))));
        }
        assert_eq!(listed().as_array().unwrap().len(), FOLDERS_MAX);
        assert_eq!(listed()[0]["uri"], "file:///0");
    }
}
