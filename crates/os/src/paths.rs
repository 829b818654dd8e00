//! Where a path leads.

use std::io;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as Linux follows.
const LINKS_MAX: usize = 40;

/// Makes a path absolute: `~` is the home, everything else relative is below `cwd`. Removes `.` and `..` by their names
/// only, which is enough to compare paths but not to open them.
pub fn absolute(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    without_dots(&joined(path, cwd, home))
}

/// Makes a path absolute and leaves the rest to the system.
pub fn joined(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => cwd.join(path),
    }
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub target: PathBuf,
    /// The path itself is a link, which a write follows but a removal must not.
    pub is_link: bool,
}

/// Finds the file that a write to `path` would change: follows links, also dangling ones, and folders that are links.
///
/// The file and the last folders on the way to it need not exist.
pub fn follow(path: &Path) -> io::Result<Followed> {
    let mut path = path.to_owned();
    for links in 0..LINKS_MAX {
        match path.read_link() {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => {
                return Ok(Followed {
                    target: canonical_beyond_existing(&path)?,
                    is_link: links > 0,
                });
            }
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Canonicalises the part of a path that exists, and appends the rest.
fn canonical_beyond_existing(path: &Path) -> io::Result<PathBuf> {
    let mut existing = path;
    let mut missing = PathBuf::new();
    loop {
        match existing.canonicalize() {
            Ok(canonical) => return Ok(without_dots(&canonical.join(missing))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(last)) = (existing.parent(), last_component(existing))
                else {
                    return Err(error);
                };
                missing = Path::new(last.as_os_str()).join(missing);
                existing = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

fn last_component(path: &Path) -> Option<Component<'_>> {
    path.components().next_back()
}

/// Removes `.` and `..` by their names only.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            component => clean.push(component),
        }
    }
    clean
}

/// Finds a file by its path below a folder. A path or a link that leads out of the folder leads nowhere.
pub fn within(folder: &Path, name: &str) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let path = folder.join(name).canonicalize().ok()?;
    (path.starts_with(&folder) && path.is_file()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        let (cwd, home) = (Path::new("/srv/project"), Some(Path::new("/home/me")));
        for (path, expected) in [
            ("src/main.rs", "/srv/project/src/main.rs"),
            ("./a/../b", "/srv/project/b"),
            ("../../../../etc/hosts", "/etc/hosts"),
            ("/abs//x/", "/abs/x"),
            ("~", "/home/me"),
            ("~/notes", "/home/me/notes"),
            ("~//notes", "/home/me/notes"),
            ("~other/x", "/srv/project/~other/x"),
            ("", "/srv/project"),
        ] {
            assert_eq!(absolute(path, cwd, home), Path::new(expected), "{path}");
        }
        assert_eq!(absolute("~/x", cwd, None), Path::new("/srv/project/~/x"));
    }

    #[test]
    fn the_target_is_found_through_links_and_missing_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        std::os::unix::fs::symlink("alias/new.txt", root.join("dangling")).unwrap();
        for (path, expected) in [
            ("real/a.txt", "real/a.txt"),
            ("alias/a.txt", "real/a.txt"),
            ("dangling", "real/new.txt"),
            ("alias/x/y/z.txt", "real/x/y/z.txt"),
            ("missing/../a.txt", "a.txt"),
        ] {
            assert_eq!(
                follow(&root.join(path)).unwrap().target,
                root.join(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("b")).unwrap();
        assert!(follow(&folder.path().join("a")).is_err());
    }
}
