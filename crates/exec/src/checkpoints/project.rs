//! Which folder is copied before a path in it changes.

use std::path::{Path, PathBuf};

/// What marks the top of a project that is under version control. These win: all of it is one project.
const VERSIONED: &[&str] = &[".git", ".hg", ".jj"];

/// What marks the top of other projects.
const MARKED: &[&str] = &[
    "Cargo.toml",
    "Gemfile",
    "Makefile",
    "go.mod",
    "package.json",
    "pom.xml",
    "pyproject.toml",
];

/// Returns the project that holds `path`: the nearest folder above it under version control, else the nearest with the
/// mark of a project, else the session's folder when the path is in it, else the path's own folder.
pub(super) fn of(path: &Path, cwd: &Path, is_too_wide: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let (path, cwd) = (real(path), real(cwd));
    let above: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !is_too_wide(folder))
        .filter(|folder| folder.is_dir())
        .collect();
    let with = |marks: &[&str]| {
        let is_marked = |folder: &&&Path| marks.iter().any(|mark| folder.join(mark).exists());
        above.iter().find(is_marked).copied()
    };
    let own = || {
        let first = above.first().copied();
        // `/etc`, `/tmp` and the like are not projects.
        first.filter(|folder| folder.components().count() > 2)
    };
    let project = with(VERSIONED)
        .or_else(|| with(MARKED))
        .or_else(|| above.contains(&cwd.as_path()).then_some(cwd.as_path()))
        .or_else(own);
    project.map(Path::to_owned)
}

/// Returns a path without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(std::fs::canonicalize(folder).ok()?.join(rest))
    });
    let mut resolved = resolved.unwrap_or_else(|| path.to_owned());
    // Joining nothing leaves a slash at the end.
    if resolved.as_os_str().as_encoded_bytes().ends_with(b"/") {
        resolved = resolved.components().collect();
    }
    resolved
}

/// Returns where a path is in the project, without following a link that the path itself is.
pub(super) fn inside(project: &Path, path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let full = real(path.parent()?).join(name);
    let inside = full.strip_prefix(project).ok()?;
    (!inside.as_os_str().is_empty()).then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        for path in paths {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        (folder, root)
    }

    #[test]
    fn a_repository_is_one_project_whatever_is_in_it() {
        let (_folder, root) = tree(&[
            "repo/.git/HEAD",
            "repo/part/Cargo.toml",
            "repo/part/src/a.rs",
        ]);
        let project = |path: &str| of(&root.join(path), &root, |_| false).unwrap();
        assert_eq!(project("repo/part/src/a.rs"), root.join("repo"));
        assert_eq!(project("repo/new/folder/b.rs"), root.join("repo"));
        assert_eq!(project("repo"), root.join("repo"));
    }

    #[test]
    fn without_a_repository_a_mark_counts_then_the_folder_of_the_session() {
        let (_folder, root) = tree(&[
            "work/app/package.json",
            "work/notes/a.md",
            "other/deep/b.md",
        ]);
        let cwd = root.join("work");
        let project = |path: &str| of(&root.join(path), &cwd, |_| false).unwrap();
        assert_eq!(project("work/app/src/x.js"), root.join("work/app"));
        assert_eq!(project("work/notes/a.md"), cwd);
        assert_eq!(project("other/deep/b.md"), root.join("other/deep"));
    }

    #[test]
    fn a_folder_that_is_too_wide_is_no_project_and_hides_what_is_above() {
        let (_folder, root) = tree(&["home/.git/HEAD", "home/.bashrc", "home/app/Makefile"]);
        let home = root.join("home");
        let project = |path: &str| of(&home.join(path), &home, |folder| home.starts_with(folder));
        assert_eq!(project(".bashrc"), None);
        assert_eq!(project("app/x.c"), Some(home.join("app")));
    }

    #[test]
    fn links_lead_to_one_project_and_are_files_themselves() {
        let (_folder, root) = tree(&["app/Makefile", "app/a.c"]);
        std::os::unix::fs::symlink(root.join("app"), root.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("app/outside")).unwrap();
        let app = root.join("app");
        assert_eq!(
            of(&root.join("link/a.c"), &root, |_| false),
            Some(app.clone())
        );
        assert_eq!(inside(&app, &root.join("link/a.c")), Some("a.c".into()));
        assert_eq!(inside(&app, &app.join("outside")), Some("outside".into()));
        assert_eq!(inside(&app, &app.join("../b")), None);
        assert_eq!(inside(&app, Path::new("/etc/passwd")), None);
    }
}
