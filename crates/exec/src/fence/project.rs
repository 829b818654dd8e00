//! Which folder a session works on, and where git keeps what belongs to it.

use std::fs;
use std::path::{Path, PathBuf};

use super::places::resolved;

/// Longer pointers are no pointers.
const POINTER_BYTES_MAX: u64 = 4096;

/// Returns the top of the repository that a folder is in, unless that is a home or holds one; then the folder itself.
pub(super) fn project_of(cwd: &Path, homes: &[PathBuf]) -> PathBuf {
    let is_home = |folder: &Path| {
        folder == Path::new("/") || homes.iter().any(|home| home.starts_with(folder))
    };
    let mut folders = cwd.ancestors().take_while(|folder| !is_home(folder));
    let top = folders.find(|folder| folder.join(".git").symlink_metadata().is_ok());
    top.unwrap_or(cwd).to_owned()
}

/// Returns the folders outside of a project in which git keeps what a commit in it changes: a worktree's repository, a
/// submodule's in the repository around it.
///
/// A file in the project names them, which a command could have written; so they must name the project in turn.
pub(super) fn git_folders(project: &Path) -> Vec<PathBuf> {
    git_folder(project)
        .filter(|folder| !folder.starts_with(project))
        .into_iter()
        .collect()
}

fn git_folder(project: &Path) -> Option<PathBuf> {
    let pointer = project.join(".git");
    let named = pointed(&pointer, "gitdir: ")?;
    let folder = project.join(named).canonicalize().ok()?;
    if let Some(back) = pointed(&folder.join("gitdir"), "") {
        let back = resolved(&folder.join(back));
        let common = folder.join(pointed(&folder.join("commondir"), "")?);
        let common = common.canonicalize().ok()?;
        let is_worktree =
            back == resolved(&pointer) && folder.starts_with(common.join("worktrees"));
        return is_worktree.then_some(common);
    }
    let is_module = |around: &Path| folder.starts_with(around.join(".git/modules"));
    let around = project.ancestors().skip(1).any(is_module);
    around.then_some(folder)
}

/// Reads a file that holds nothing but a path.
fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let data = file.symlink_metadata().ok()?;
    if !data.is_file() || data.len() > POINTER_BYTES_MAX {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let path = text.trim_end_matches(['\n', '\r']).strip_prefix(prefix)?;
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_top_of_a_repository_is_the_project_but_never_a_home() {
        let place = Place::new();
        place.write(".git/HEAD", "");
        place.write("repo/.git/HEAD", "");
        place.write("repo/src/main.rs", "");
        place.write("plain/a/b", "");
        let homes = [place.path("")];
        let of = |name: &str| project_of(&place.path(name), &homes);
        assert_eq!(of("repo/src"), place.path("repo"));
        assert_eq!(of("plain/a"), place.path("plain/a"));
        assert_eq!(of(""), place.path(""));
    }

    #[test]
    fn a_worktree_brings_its_repository_and_a_made_up_one_does_not() {
        let place = Place::new();
        let worktree = place.path("repo/.git/worktrees/tree");
        place.write("tree/.git", &format!("gitdir: {}\n", worktree.display()));
        place.write("repo/.git/worktrees/tree/commondir", "../..\n");
        let back = place.path("tree/.git");
        place.write(
            "repo/.git/worktrees/tree/gitdir",
            &format!("{}\n", back.display()),
        );
        assert_eq!(git_folders(&place.path("tree")), [place.path("repo/.git")]);

        place.write("liar/.git", &format!("gitdir: {}\n", worktree.display()));
        place.write(
            "thief/.git",
            &format!("gitdir: {}\n", place.path("repo").display()),
        );
        assert!(git_folders(&place.path("liar")).is_empty());
        assert!(git_folders(&place.path("thief")).is_empty());
        assert!(git_folders(&place.path("repo")).is_empty());
    }

    #[test]
    fn a_submodule_brings_its_part_of_the_repository_around_it() {
        let place = Place::new();
        place.write("repo/.git/modules/part/HEAD", "");
        place.write("repo/part/.git", "gitdir: ../.git/modules/part\n");
        let module = place.path("repo/.git/modules/part");
        assert_eq!(git_folders(&place.path("repo/part")), [module]);
    }
}
