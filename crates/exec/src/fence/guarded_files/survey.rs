//! Finds the guarded names below the top of a project: what agents are told in its folders, skills, and repositories inside.
//!
//! Every command is followed by such a look, so folders are remembered: one whose entries have not changed is not read again.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hermes_core::fence::is_guarded_anywhere;

/// Folders that are looked at. In larger projects the deepest are not.
const FOLDERS_MAX: usize = 1000;

const DEPTH_MAX: usize = 8;

/// Entries of one folder that are looked at.
const ENTRIES_MAX: usize = 5000;

/// A folder that has changed more lately than this may change again without its time telling.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Folders of what was downloaded or built, which nobody reads for instructions.
const SKIPPED: &[&str] = &[
    ".git",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "site-packages",
    "__pycache__",
    ".tox",
    ".cache",
];

/// What of a repository makes git run something.
const IN_REPOSITORY: &[&str] = &[
    "",
    "hooks",
    "config",
    "config.worktree",
    "info/attributes",
    "commondir",
];

/// What was found in each folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Survey {
    folders: HashMap<PathBuf, Arc<Folder>>,
}

#[derive(Debug)]
struct Folder {
    stamp: Stamp,
    is_settled: bool,
    inner: Vec<PathBuf>,
    guarded: Vec<PathBuf>,
    is_repository: bool,
}

/// Tells one state of a folder from the next; the last of its times cannot be forged.
type Stamp = (u64, i64, i64, i64, i64);

impl Survey {
    /// Looks at a project, and remembers it. Returns the guarded paths below its top.
    pub(super) fn of(root: &Path, before: &Self) -> (Self, Vec<PathBuf>) {
        let (mut survey, mut guarded) = (Self::default(), Vec::new());
        let mut open = vec![(root.to_owned(), 0)];
        let mut at = 0;
        while let Some((path, depth)) = open.get(at).cloned() {
            at += 1;
            let Some(folder) = folder(&path, before.folders.get(&path)) else {
                continue;
            };
            if depth > 0 {
                guarded.extend(folder.guarded.iter().cloned());
                if folder.is_repository {
                    let git = path.join(".git");
                    guarded.extend(IN_REPOSITORY.iter().map(|name| git.join(name)));
                }
            }
            if depth < DEPTH_MAX {
                let room = FOLDERS_MAX.saturating_sub(open.len());
                let inner = folder.inner.iter().take(room).cloned();
                open.extend(inner.map(|path| (path, depth + 1)));
            }
            survey.folders.insert(path, folder);
        }
        guarded.extend(modules(&root.join(".git/modules")));
        (survey, guarded)
    }
}

fn folder(path: &Path, before: Option<&Arc<Folder>>) -> Option<Arc<Folder>> {
    let data = path.symlink_metadata().ok().filter(|data| data.is_dir())?;
    let stamp = (
        data.ino(),
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec(),
    );
    if let Some(before) = before.filter(|before| before.is_settled && before.stamp == stamp) {
        return Some(Arc::clone(before));
    }
    let changed = Duration::new(
        data.ctime().try_into().unwrap_or(0),
        data.ctime_nsec().try_into().unwrap_or(0),
    );
    let age = SystemTime::UNIX_EPOCH
        .checked_add(changed)
        .and_then(|changed| changed.elapsed().ok());
    let mut folder = Folder {
        stamp,
        is_settled: age.is_some_and(|age| age > SETTLED_AFTER),
        inner: Vec::new(),
        guarded: Vec::new(),
        is_repository: false,
    };
    let entries = path.read_dir().ok()?.flatten().take(ENTRIES_MAX);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        folder.is_repository |= name == ".git";
        if is_guarded_anywhere(&name) {
            folder.guarded.push(entry.path());
        } else if !SKIPPED.contains(&&*name) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folder.inner.push(entry.path());
        }
    }
    folder.inner.sort();
    Some(Arc::new(folder))
}

/// What makes git run something in the submodules of a repository.
fn modules(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        if path.join("HEAD").symlink_metadata().is_ok() {
            let names = IN_REPOSITORY.iter().filter(|name| !name.is_empty());
            found.extend(names.map(|name| path.join(name)));
            open.push((path.join("modules"), depth + 1));
            continue;
        }
        let entries = path.read_dir().into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        if depth < DEPTH_MAX && found.len() < ENTRIES_MAX {
            open.extend(inner.map(|entry| (entry.path(), depth + 1)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_the_top_are_found_and_a_change_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for name in [
            "sub/AGENTS.md",
            "skills/k/SKILL.md",
            "inner/.git/config",
            "node_modules/x/AGENTS.md",
            ".git/modules/m/HEAD",
            "src/main.rs",
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        let (survey, found) = Survey::of(root, &Survey::default());
        let has = |found: &[PathBuf], name: &str| found.contains(&root.join(name));
        for name in [
            "sub/AGENTS.md",
            "skills/k/SKILL.md",
            "inner/.git/config",
            ".git/modules/m/config",
        ] {
            assert!(has(&found, name), "{name} in {found:?}");
        }
        assert!(!has(&found, "node_modules/x/AGENTS.md"));
        std::fs::write(root.join("src/CLAUDE.md"), "").unwrap();
        let (_, found) = Survey::of(root, &survey);
        assert!(has(&found, "src/CLAUDE.md"));
    }
}
