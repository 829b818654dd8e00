//! The files below a folder, for suggestions.

use std::collections::VecDeque;
use std::path::Path;

/// Enough for any project a person knows by name; more would only be slow.
const FILES_MAX: usize = 20_000;
/// Folders that hold what machines made.
const SKIPPED: &[&str] = &[
    "target",
    "node_modules",
    "__pycache__",
    "venv",
    "dist",
    "build",
];

/// Lists files and folders, the nearest first. Hidden ones and what machines made are left out.
pub(crate) fn list(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([String::new()]);
    while let Some(folder) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            continue;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name.starts_with('.') || is_folder && SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{folder}{name}{}", if is_folder { "/" } else { "" });
            if is_folder {
                folders.push_back(path.clone());
            }
            found.push(path);
            if found.len() == FILES_MAX {
                return found;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_files_come_first_and_made_ones_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a/deep.rs", "b.rs", ".git/x", "target/y"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(list(folder.path()), ["a/", "b.rs", "a/deep.rs"]);
    }
}
