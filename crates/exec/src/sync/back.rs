//! Puts files that came back into their places below the home.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_os::lock::Sharing;
use hermes_os::{Access, Durability, FileLock};

use super::name::{COPY, Name};
use super::pack::{Arrived, hash};
use super::plan::{Landing, Ledger, landing};

/// Another Hermes takes seconds at most to put files into their places.
const LOCK_TIME_MAX: Duration = Duration::from_secs(10);

/// Copies of one file that are kept beside it.
const COPIES_MAX: u32 = 99;

/// What came of files that came back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Landed {
    pub(super) replaced: Vec<Name>,
    /// Files that were changed here too, and where the other version is.
    pub(super) beside: Vec<(Name, PathBuf)>,
    /// With why.
    pub(super) failed: Vec<(Name, String)>,
}

/// Lets one Hermes at a time change the skills of a home. Given back when dropped, also by a process that is killed.
pub(super) async fn lock(home: &Path) -> io::Result<FileLock> {
    let folder = home.join("locks");
    fs::create_dir_all(&folder)?;
    let path = folder.join("files-there");
    let locked = hermes_os::lock::lock(&path, Sharing::Alone, LOCK_TIME_MAX).await;
    locked.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => io::Error::other("another Hermes changes the skills"),
        _ => error,
    })
}

/// Writes files below the home, each one whole or not at all.
pub(super) fn land(home: &Path, arrived: Vec<Arrived>, ledger: &Ledger) -> Landed {
    let mut landed = Landed::default();
    for file in arrived {
        match land_one(home, &file, ledger) {
            Ok(None) => {}
            Ok(Some(path)) if path == home.join(file.name.as_str()) => {
                landed.replaced.push(file.name);
            }
            Ok(Some(path)) => landed.beside.push((file.name, path)),
            Err(error) => landed.failed.push((file.name, error.to_string())),
        }
    }
    landed
}

/// Returns where the file was written, if it was.
fn land_one(home: &Path, file: &Arrived, ledger: &Ledger) -> io::Result<Option<PathBuf>> {
    let path = home.join(file.name.as_str());
    let folder = real_folder(home, &file.name)?;
    let here = match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => Some(hash(&fs::read(&path)?)),
        Ok(_) => {
            return Err(io::Error::other(
                "something that is no file is in its place",
            ));
        }
        Err(_) => None,
    };
    let sent = ledger.get(&file.name).map(|sent| &sent.hash);
    let path = match landing(sent, here.as_ref(), &hash(&file.content)) {
        Landing::Nothing => return Ok(None),
        Landing::Replace => path,
        Landing::Beside => free_copy(&path)?,
    };
    fs::create_dir_all(&folder)?;
    write(&path, file)?;
    Ok(Some(path))
}

/// Returns the folder of a file. A link on the way could lead out of the home.
fn real_folder(home: &Path, name: &Name) -> io::Result<PathBuf> {
    let mut folder = home.to_owned();
    let mut parts: Vec<&str> = name.as_str().split('/').collect();
    parts.pop();
    for (depth, part) in parts.into_iter().enumerate() {
        folder.push(part);
        let is_real = match fs::symlink_metadata(&folder) {
            Ok(found) => found.is_dir() || (depth == 0 && folder.is_dir()),
            Err(_) => true,
        };
        if !is_real {
            let folder = folder.display();
            return Err(io::Error::other(format!("`{folder}` is no folder")));
        }
    }
    Ok(folder)
}

fn free_copy(path: &Path) -> io::Result<PathBuf> {
    let copy = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(COPY);
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (1..=COPIES_MAX).map(copy).find(|copy| !copy.exists());
    free.ok_or_else(|| io::Error::other(format!("there are {COPIES_MAX} copies of it already")))
}

fn write(path: &Path, file: &Arrived) -> io::Result<()> {
    let mode = match (fs::metadata(path), file.executable) {
        (Ok(found), true) => found.permissions().mode() | 0o100,
        (Ok(found), false) => found.permissions().mode(),
        (Err(_), true) => 0o755,
        (Err(_), false) => 0o644,
    };
    let access = Access::Mode(mode & 0o777);
    hermes_os::replace(path, &file.content, access, Durability::Synced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::plan::Sent;
    use crate::sync::scan::Stamp;

    fn arrived(name: &str, content: &str) -> Arrived {
        Arrived {
            name: Name::new(name).unwrap(),
            content: content.into(),
            executable: true,
        }
    }

    fn sent(name: &str, content: &str) -> (Name, Sent) {
        let sent = Sent {
            stamp: Stamp::default(),
            hash: hash(content.as_bytes()),
        };
        (Name::new(name).unwrap(), sent)
    }

    #[test]
    fn changed_and_new_files_take_their_place_and_a_conflict_is_kept_beside() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let read = |name: &str| fs::read_to_string(home.join(name)).unwrap();
        fs::create_dir_all(home.join("skills/a")).unwrap();
        for name in ["changed", "both", "same"] {
            fs::write(home.join("skills/a").join(name), "old").unwrap();
        }
        let ledger = Ledger::from([
            sent("skills/a/changed", "old"),
            sent("skills/a/both", "older"),
            sent("skills/a/same", "older"),
        ]);
        let files = || {
            vec![
                arrived("skills/a/changed", "new"),
                arrived("skills/a/both", "theirs"),
                arrived("skills/a/same", "old"),
                arrived("skills/b/made", "made"),
            ]
        };
        let landed = land(home, files(), &ledger);
        let names: Vec<&str> = landed.replaced.iter().map(Name::as_str).collect();
        assert_eq!(names, ["skills/a/changed", "skills/b/made"]);
        assert_eq!(landed.failed, []);
        assert_eq!(
            (read("skills/a/changed"), read("skills/b/made")),
            ("new".into(), "made".into())
        );
        assert_eq!(read("skills/a/both"), "old");
        assert_eq!(read("skills/a/both.remote-copy"), "theirs");
        // Another time, the first copy is not lost.
        land(
            home,
            vec![arrived("skills/a/both", "theirs again")],
            &ledger,
        );
        assert_eq!(read("skills/a/both.remote-copy"), "theirs");
        assert_eq!(read("skills/a/both.remote-copy-2"), "theirs again");
        let mode = home
            .join("skills/b/made")
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (home, outside) = (folder.path().join("home"), folder.path().join("outside"));
        fs::create_dir_all(home.join("skills")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "mine").unwrap();
        std::os::unix::fs::symlink(&outside, home.join("skills/link")).unwrap();
        std::os::unix::fs::symlink(outside.join("file"), home.join("skills/file")).unwrap();
        let files = vec![
            arrived("skills/link/evil", "x"),
            arrived("skills/file", "x"),
        ];
        let landed = land(&home, files, &Ledger::new());
        assert_eq!((landed.failed.len(), landed.replaced.len()), (2, 0));
        assert!(!outside.join("evil").exists());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "mine");
    }

    #[tokio::test]
    async fn one_hermes_at_a_time_changes_the_skills() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).await.unwrap();
        let mut second = Box::pin(lock(folder.path()));
        let waits = tokio::time::timeout(Duration::from_millis(40), &mut second).await;
        assert!(waits.is_err());
        drop(first);
        assert!(second.await.is_ok());
    }
}
