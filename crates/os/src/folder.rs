//! A folder held open, so that whoever swaps a folder for a link after we looked leads us nowhere.
//!
//! Paths are checked by name and then walked without following links: what was checked is what is opened.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// What a new folder gets, less what the user's umask takes away.
const NEW_FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// To look at things and through folders, without the right to read them where the system has that.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::NONBLOCK;

#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
}

impl Folder {
    /// Opens a folder by an absolute path that has no links in it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut fd = open_at(CWD, OsStr::new("/"))?;
        for name in names(path) {
            fd = open_at(fd.as_fd(), name)?;
        }
        Ok(Self { fd })
    }

    /// Opens a folder, and creates what is missing of it. Returns also what was created, outermost first.
    pub fn open_or_create(path: &Path) -> io::Result<(Self, Vec<PathBuf>)> {
        let mut fd = open_at(CWD, OsStr::new("/"))?;
        let mut walked = PathBuf::from("/");
        let mut created = Vec::new();
        for name in names(path) {
            walked.push(name);
            let next = match open_at(fd.as_fd(), name) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&fd, name, NEW_FOLDER_MODE) {
                        Ok(()) => created.push(walked.clone()),
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    open_at(fd.as_fd(), name)
                }
                next => next,
            };
            fd = next?;
        }
        Ok((Self { fd }, created))
    }

    /// Opens a file of the folder for reading; not a link, and without waiting should it be a pipe.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Creates a file for writing that must not exist yet.
    pub fn create_file(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, name, flags, mode)?.into())
    }

    /// Returns what is known of an entry, or `None` if there is none. Does not follow a link.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        let flags = LOOK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd).metadata().map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether the permissions of an entry let this user write it.
    pub fn may_write(&self, name: &OsStr) -> bool {
        rustix::fs::accessat(&self.fd, name, Access::WRITE_OK, AtFlags::empty()).is_ok()
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Makes what happened to names in the folder survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, ".", flags, Mode::empty())?;
        Ok(rustix::fs::fsync(fd)?)
    }
}

fn open_at(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        std::fs::write(root.join("real/a.txt"), "a").unwrap();
        std::os::unix::fs::symlink("a.txt", root.join("real/link")).unwrap();
        assert!(Folder::open(&root.join("alias")).is_err());
        assert!(Folder::open_or_create(&root.join("alias/new")).is_err());
        let real = Folder::open(&root.join("real")).unwrap();
        assert!(real.open_file(OsStr::new("a.txt")).is_ok());
        assert!(real.open_file(OsStr::new("link")).is_err());
    }

    #[test]
    fn missing_folders_are_created_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (made, created) = Folder::open_or_create(&root.join("a/b")).unwrap();
        assert_eq!(created, [root.join("a"), root.join("a/b")]);
        assert!(made.look(OsStr::new("x")).unwrap().is_none());
        assert!(root.join("a/b").is_dir());
    }
}
