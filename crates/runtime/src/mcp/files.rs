//! The files behind the settings, and whether they have changed. Looked at when somebody asks: an idle process does
//! nothing.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_config::Home;

/// What the servers' settings are made of: their sections, and the values that these name.
pub(super) struct SettingsFiles(Vec<(PathBuf, Option<Stamp>)>);

/// Tells one state of a file from another. An editor may write it in place, or put another in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
    inode: u64,
}

impl SettingsFiles {
    pub(super) fn of(home: &Home) -> Self {
        let seen = |path: PathBuf| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        };
        Self([home.config_yaml(), home.dot_env()].map(seen).into())
    }

    /// Returns whether one of them is another than when we last looked.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut have_changed = false;
        for (path, seen) in &mut self.0 {
            let stamp = Stamp::of(path);
            have_changed |= std::mem::replace(seen, stamp) != stamp;
        }
        have_changed
    }
}

impl Stamp {
    /// `None` for a file that is not there.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            modified: found.modified().ok()?,
            bytes: found.len(),
            inode: found.ino(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_once_however_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let mut files = SettingsFiles(vec![(path.clone(), None)]);
        assert!(!files.have_changed(), "still not there");
        fs::write(&path, "a: 1").unwrap();
        assert!(files.have_changed() && !files.have_changed());
        fs::write(&path, "a: 10").unwrap();
        assert!(files.have_changed() && !files.have_changed());
        let other = folder.path().join("other");
        fs::write(&other, "a: 20").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(files.have_changed() && !files.have_changed());
        fs::remove_file(&path).unwrap();
        assert!(files.have_changed() && !files.have_changed());
    }
}
