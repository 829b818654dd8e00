//! A fence as a list of what is open, for a kernel that knows no exceptions: what lies inside an open folder is open.
//!
//! So a secret is hidden by opening everything beside it, at each level from the root down. What appears at such a level
//! later is not open; the levels are looked at before each command, and the list is made again when one has changed. Names
//! of files can be listed everywhere, also those of secrets.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hermes_core::{FenceArea, Pass};

use super::places::DEVICES;

/// Devices that commands use. Disks and memory are not among them: they hold every secret.
const USED_DEVICES: &[&str] = &[
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "kvm", "dri", "kfd",
];

/// How the names of more of them begin.
const USED_DEVICE_PREFIXES: &[&str] = &["nvidia"];

/// Entries of a folder that are opened one by one. More would cost every command.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// What is open, and how.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Names are shown.
    pub(super) list: Vec<PathBuf>,
    /// Read, and run.
    pub(super) read: Vec<PathBuf>,
    /// Read and written, but nothing is made there.
    pub(super) devices: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    /// Folders whose entries were opened one by one.
    pub(super) levels: Vec<Level>,
}

/// A folder as it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    path: PathBuf,
    stamp: Option<(u64, i64, i64)>,
}

impl Level {
    fn of(path: &Path) -> Self {
        let stamp = fs::metadata(path).ok();
        Self {
            path: path.to_owned(),
            stamp: stamp.map(|data| (data.ino(), data.mtime(), data.mtime_nsec())),
        }
    }

    pub(super) fn has_changed(&self) -> bool {
        Self::of(&self.path) != *self
    }
}

impl Grants {
    /// `own` is written whatever is hidden.
    pub(super) fn new(area: &FenceArea, own: &[PathBuf], pass: &Pass) -> Self {
        let mut grants = Self {
            devices: devices(),
            ..Self::default()
        };
        match &area.readable {
            Some(readable) => grants.open_around(area, readable),
            None => {
                grants.list.push("/".into());
                grants.open_around(area, &["/".into()]);
            }
        }
        grants.read.extend(area.shown.iter().cloned());
        grants.read.extend(pass.reads.iter().cloned());
        let hidden = |path: &&PathBuf| !area.hidden.iter().any(|hidden| path.starts_with(hidden));
        grants
            .write
            .extend(area.writable.iter().filter(hidden).cloned());
        grants.write.extend(own.iter().cloned());
        grants.write.extend(pass.writes.iter().cloned());
        grants
    }

    /// Opens these, but for what is hidden in them.
    fn open_around(&mut self, area: &FenceArea, open: &[PathBuf]) {
        let is_held = |hidden: &&PathBuf| {
            // Inside a folder that may be written, nothing can be kept out.
            let around = |open: &PathBuf| hidden.starts_with(open);
            !area.writable.iter().any(around)
        };
        let mut hidden: HashSet<&Path> = area
            .hidden
            .iter()
            .filter(is_held)
            .map(PathBuf::as_path)
            .collect();
        hidden.insert(Path::new(DEVICES));
        let levels: HashSet<&Path> = hidden
            .iter()
            .flat_map(|path| path.ancestors().skip(1))
            .collect();
        for path in open.iter().filter(|path| !hidden.contains(path.as_path())) {
            if levels.contains(path.as_path()) {
                self.open_level(path, &levels, &hidden);
            } else {
                self.read.push(path.clone());
            }
        }
    }

    fn open_level(&mut self, folder: &Path, levels: &HashSet<&Path>, hidden: &HashSet<&Path>) {
        self.levels.push(Level::of(folder));
        let entries = folder.read_dir().into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX) {
            let path = entry.path();
            // A link opens where it leads to, which is decided there.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link || hidden.contains(path.as_path()) {
                continue;
            }
            if levels.contains(path.as_path()) {
                self.open_level(&path, levels, hidden);
            } else {
                self.read.push(path);
            }
        }
    }
}

fn devices() -> Vec<PathBuf> {
    let devices = Path::new(DEVICES);
    let mut used: Vec<PathBuf> = USED_DEVICES.iter().map(|name| devices.join(name)).collect();
    let entries = devices.read_dir().into_iter().flatten().flatten();
    let is_used = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut prefixes = USED_DEVICE_PREFIXES.iter();
        prefixes.any(|prefix| name.starts_with(prefix))
    };
    used.extend(entries.map(|entry| entry.path()).filter(is_used));
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_a_secret_is_open_and_links_are_not() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["home/keys", "home/notes", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("keys", root.join("home/link")).unwrap();
        let area = FenceArea {
            hidden: vec![root.join("home/keys"), root.join("home/not-there")],
            ..FenceArea::default()
        };
        let grants = Grants::new(&area, &[], &Pass::default());
        let reads = |name: &str| grants.read.contains(&root.join(name));
        assert!(reads("home/notes") && reads("other"));
        assert!(!reads("home/keys") && !reads("home/link") && !reads("home"));
        assert!(!grants.levels.iter().any(Level::has_changed));
        fs::write(root.join("home/new"), "").unwrap();
        assert!(grants.levels.iter().any(Level::has_changed));
    }

    #[test]
    fn what_is_hidden_in_a_listed_folder_stays_closed() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["etc/ssl", "usr/lib"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("etc/shadow"), "").unwrap();
        let area = FenceArea {
            hidden: vec![root.join("etc/shadow")],
            readable: Some(vec![root.join("etc"), root.join("usr")]),
            ..FenceArea::default()
        };
        let grants = Grants::new(&area, &[], &Pass::default());
        assert_eq!(grants.read, [root.join("etc/ssl"), root.join("usr")]);
    }

    #[test]
    fn disks_are_closed() {
        let devices = devices();
        assert!(devices.contains(&"/dev/null".into()));
        assert!(!devices.contains(&"/dev/mem".into()) && !devices.contains(&DEVICES.into()));
    }
}
