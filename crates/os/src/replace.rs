//! Replaces a file all at once: whoever looks sees the old content or the new, also after a crash.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::Mode;

use crate::folder::Folder;

/// What a new file gets, less what the user's umask takes away.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// What the copy of a file has until it gets the mode of the file.
const PRIVATE_MODE: Mode = Mode::from_raw_mode(0o600);

/// Names tried for a new file. Only writes at the same moment, and crashes, leave any taken.
const NAMES_MAX: usize = 1000;

/// What a folder of ours has.
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// Who may read and write the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone.
    Private,
    /// Whoever the user's umask lets.
    Usual,
    /// Exactly this mode.
    Mode(u32),
    /// As another file.
    Like(Attributes),
}

/// What a file has besides its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions only.
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

/// What a power cut may take back. A crash of the program takes back nothing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: waits for the disk.
    Synced,
    /// The change, or all of the file: what can be made again.
    Unsynced,
}

/// Replaces a file all at once. Its folder must be there; a link at its place is replaced, not followed.
///
/// On an error nothing is left behind, and what was there is unchanged.
pub fn replace(
    path: &Path,
    content: &[u8],
    access: Access,
    durability: Durability,
) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = Folder::open(&folder.canonicalize()?)?;
    stage(folder, content, access, durability)?.put(name)
}

/// Makes a folder that only its owner may enter, and what is missing on the way to it. One that is there is closed to
/// others.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER_MODE)
        .create(path)?;
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(PRIVATE_FOLDER_MODE))?;
    }
    Ok(())
}

/// Writes `content` beside its place, where nobody looks yet.
///
/// On an error nothing is left behind.
pub fn stage(
    folder: Folder,
    content: &[u8],
    access: Access,
    durability: Durability,
) -> io::Result<StagedFile> {
    let (name, mut file) = create(&folder, access)?;
    let staged = StagedFile {
        folder,
        name,
        durability,
    };
    file.write_all(content)?;
    match access {
        Access::Private | Access::Usual => {}
        Access::Mode(mode) => file.set_permissions(Permissions::from_mode(mode))?,
        Access::Like(attributes) => keep_owner_and_mode(&file, attributes)?,
    }
    if durability == Durability::Synced {
        file.sync_all()?;
    }
    Ok(staged)
}

/// Content that is written but not yet in its place. Dropped, it is gone.
#[derive(Debug)]
pub struct StagedFile {
    folder: Folder,
    name: OsString,
    durability: Durability,
}

impl StagedFile {
    /// Puts the content into its place.
    pub fn put(self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, name)?;
        if self.durability == Durability::Synced {
            // The file is in place; if its folder cannot be flushed, only a power cut could take it back.
            let _ = self.folder.sync();
        }
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // Gone already when it was put into its place.
        let _ = self.folder.remove(&self.name);
    }
}

/// Creates a file for the content. What is to get a mode of its own may be a secret, so that nobody else reads it before it
/// has that.
fn create(folder: &Folder, access: Access) -> io::Result<(OsString, File)> {
    let mode = match access {
        Access::Usual => NEW_FILE_MODE,
        Access::Private | Access::Mode(_) | Access::Like(_) => PRIVATE_MODE,
    };
    let process = std::process::id();
    for number in 0..NAMES_MAX {
        let name = OsString::from(format!(".hermes-write-{process}-{number}"));
        match folder.create_file(&name, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((name, created?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn keep_owner_and_mode(file: &File, attributes: Attributes) -> io::Result<()> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (attributes.user, attributes.group) {
        // Only the superuser may give files away; without that right the file becomes ours.
        let _ = fchown(file, Some(attributes.user), Some(attributes.group));
    }
    // After the owner: changing the owner clears the set-user-id bit.
    file.set_permissions(Permissions::from_mode(attributes.mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn what_replaces_a_file_is_private_until_it_has_its_mode() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().canonicalize().unwrap()).unwrap();
        let model = folder
            .create_file(OsStr::new("model"), PRIVATE_MODE)
            .unwrap();
        let model = model.metadata().unwrap();
        let access = Access::Like(Attributes {
            mode: 0o640,
            user: model.uid(),
            group: model.gid(),
        });
        let (_, copy) = create(&folder, access).unwrap();
        assert_eq!(copy.metadata().unwrap().mode() & 0o777, 0o600);
        let staged = stage(folder, b"new", access, Durability::Synced).unwrap();
        staged.put(OsStr::new("a")).unwrap();
        assert_eq!(mode_of(&place.path().join("a")), 0o640);
    }

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        for (content, access, mode) in [
            ("one", Access::Private, 0o600),
            ("two", Access::Mode(0o755), 0o755),
            ("three", Access::Private, 0o600),
        ] {
            replace(&path, content.as_bytes(), access, Durability::Unsynced).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(mode_of(&path), mode);
        }
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_replacement_that_fails_leaves_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("folder");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"x", Access::Usual, Durability::Synced).is_err());
        assert!(path.is_dir());
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
        let missing = place.path().join("missing/a");
        assert!(replace(&missing, b"x", Access::Usual, Durability::Synced).is_err());
    }

    #[test]
    fn a_folder_of_ours_is_closed_to_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        make_private_folder(&path).unwrap();
        assert_eq!(mode_of(&path), 0o700);
    }
}
