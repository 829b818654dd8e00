//! What there is here to be sent: the files of skills, and the credential files the user named.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::credential::CredentialFile;
use super::name::{Name, SKILLS};
use super::{FILE_BYTES_MAX, FILES_MAX};

/// What a look at the home found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) files: BTreeMap<Name, LocalFile>,
    /// Those that are too big.
    pub(super) left_out: Vec<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalFile {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// What changes when a file does, and costs no reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    pub(super) bytes: u64,
    pub(super) executable: bool,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            bytes: metadata.size(),
            executable: metadata.mode() & 0o100 != 0,
        }
    }
}

/// Looks at the home. What cannot be read is not there.
pub(super) fn scan(home: &Path, credentials: &[CredentialFile]) -> Found {
    let mut found = Found::default();
    for file in credentials {
        // Looked at each time: a link may lead elsewhere by now.
        if let Ok(path) = file.find(home) {
            found.add(file.name().clone(), path);
        }
    }
    let is_credential = |name: &Name| credentials.iter().any(|file| file.name() == name);
    let mut folders = vec![SKILLS.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = home.join(&folder).read_dir().into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry
                .file_name()
                .to_str()
                .map(|name| format!("{folder}/{name}"));
            let Some(name) = name.and_then(|name| Name::new(&name)) else {
                continue;
            };
            // A link may lead out of the home, and is not followed.
            match entry.file_type() {
                _ if !name.is_skill() || is_credential(&name) => {}
                Ok(kind) if kind.is_dir() => folders.push(name.as_str().to_owned()),
                Ok(kind) if kind.is_file() => found.add(name, entry.path()),
                _ => {}
            }
        }
    }
    found
}

impl Found {
    fn add(&mut self, name: Name, path: PathBuf) {
        let Some(metadata) = path.metadata().ok().filter(Metadata::is_file) else {
            return;
        };
        let stamp = Stamp::of(&metadata);
        if stamp.bytes > FILE_BYTES_MAX || self.files.len() >= FILES_MAX {
            self.left_out.push(name);
            return;
        }
        self.files.insert(name, LocalFile { path, stamp });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_hidden_files_and_big_ones_stay_here() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir_all(home.join("skills/a/.git")).unwrap();
        std::fs::write(home.join("skills/a/run.sh"), "x").unwrap();
        std::fs::write(home.join("skills/a/.git/config"), "x").unwrap();
        std::fs::write(home.join("skills/a/token"), "x").unwrap();
        std::fs::write(home.join("outside"), "x").unwrap();
        std::os::unix::fs::symlink(home.join("outside"), home.join("skills/a/link")).unwrap();
        std::os::unix::fs::symlink("/etc", home.join("skills/etc")).unwrap();
        let big = std::fs::File::create(home.join("skills/big")).unwrap();
        big.set_len(FILE_BYTES_MAX + 1).unwrap();
        let credentials = ["skills/a/token", "missing"];
        let credentials = credentials.map(|path| CredentialFile::new(path).unwrap());
        let found = scan(home, &credentials);
        let names: Vec<&str> = found.files.keys().map(Name::as_str).collect();
        assert_eq!(names, ["skills/a/run.sh", "skills/a/token"]);
        assert_eq!(found.left_out, [Name::new("skills/big").unwrap()]);
    }
}
