//! Which files of a project are copied.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hermes_core::CheckpointError;
use ignore::{DirEntry, WalkBuilder};
use rustix::fs::{Access, access};

/// Folders of version control, and of what a program made and can make again.
const FOLDERS_LEFT_OUT: &[&str] = &[
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".cache",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".terraform",
    ".tox",
    ".venv",
    ".worktrees",
    "__pycache__",
    "node_modules",
    "target",
    "venv",
];

/// Endings of files that programs make: caches and logs.
const ENDINGS_LEFT_OUT: &[&str] = &["log", "o", "pyc"];

/// What to look for, and what to leave out.
pub(super) struct Wanted<'a> {
    pub(super) project: &'a Path,
    /// A folder that is left out with everything in it.
    pub(super) besides: &'a Path,
    /// Files of the project that are taken whatever their name and size, when they are there.
    pub(super) always: Vec<PathBuf>,
    pub(super) file_bytes_max: u64,
    pub(super) files_max: usize,
}

impl Wanted<'_> {
    /// Returns the files and links to copy, relative to the project. What cannot be read is left out.
    pub(super) fn find(self) -> Result<BTreeSet<PathBuf>, CheckpointError> {
        let mut found = BTreeSet::new();
        for entry in self.walk().flatten() {
            if !self.is_wanted(&entry) {
                continue;
            }
            if let Ok(path) = entry.path().strip_prefix(self.project) {
                found.insert(path.to_owned());
            }
            if found.len() > self.files_max {
                return Err(CheckpointError::TooManyFiles {
                    project: self.project.to_owned(),
                    files_max: self.files_max,
                });
            }
        }
        let is_there = |path: &PathBuf| {
            let full = self.project.join(path);
            let data = full.symlink_metadata();
            !is_secret(path) && data.is_ok_and(|data| can_be_kept(&full, &data))
        };
        found.extend(self.always.iter().filter(|path| is_there(path)).cloned());
        Ok(found)
    }

    /// Goes through the project as git would: what `.gitignore` names is left out, also outside a repository.
    fn walk(&self) -> ignore::Walk {
        let besides = self.besides.to_owned();
        WalkBuilder::new(self.project)
            .hidden(false)
            .ignore(false)
            .git_global(false)
            .require_git(false)
            .filter_entry(move |entry| entry.depth() == 0 || !is_left_out(entry, &besides))
            .build()
    }

    fn is_wanted(&self, entry: &DirEntry) -> bool {
        entry
            .metadata()
            .is_ok_and(|data| data.len() <= self.file_bytes_max && can_be_kept(entry.path(), &data))
    }
}

fn is_left_out(entry: &DirEntry, besides: &Path) -> bool {
    let name = entry.file_name();
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    if is_folder {
        is_folder_left_out(name) || entry.path() == besides
    } else {
        // git accepts nothing of this name, in whatever case; in a worktree it is a file.
        name.eq_ignore_ascii_case(".git") || is_file_left_out(Path::new(name))
    }
}

fn is_folder_left_out(name: &OsStr) -> bool {
    FOLDERS_LEFT_OUT
        .iter()
        .any(|left_out| name.eq_ignore_ascii_case(left_out))
}

fn is_file_left_out(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    is_secret(path) || ending.is_some_and(|ending| ENDINGS_LEFT_OUT.contains(&ending))
}

/// `.env` and its kin hold keys, and keys are kept in one place only.
fn is_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name == b".env" || name.starts_with(b".env.")
}

fn can_be_kept(path: &Path, data: &Metadata) -> bool {
    match data.file_type() {
        kind if kind.is_symlink() => true,
        kind if kind.is_file() => access(path, Access::READ_OK).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_caches_and_logs_are_left_out() {
        for name in [".env", ".env.local", "a.pyc", "server.log", "main.o"] {
            assert!(is_file_left_out(Path::new(name)), "{name}");
        }
        for name in ["env", "a.env.md", "log", "main.rs", ".envrc"] {
            assert!(!is_file_left_out(Path::new(name)), "{name}");
        }
        assert!(is_folder_left_out(OsStr::new(".GIT")));
    }
}
