//! Replaces a file all at once: whoever looks sees the old content or the new, also after a crash.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use rustix::fs::Mode;

use crate::files::Meta;
use crate::folder::Folder;

/// What a new file gets, less what the user's umask takes away.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// What the copy of a file has until it gets the mode of the file.
const PRIVATE_MODE: Mode = Mode::from_raw_mode(0o600);

/// Names tried for a new file. Only writes at the same moment, and crashes, leave any taken.
const NAMES_MAX: usize = 1000;

/// Writes `content` beside its place, where nobody looks yet, with the mode and owner of `model`.
///
/// On an error nothing is left behind.
pub(crate) fn stage(
    folder: Folder,
    content: &[u8],
    model: Option<&Meta>,
) -> io::Result<StagedFile> {
    let (name, mut file) = create(&folder, model)?;
    let staged = StagedFile { folder, name };
    file.write_all(content)?;
    if let Some(model) = model {
        keep_owner_and_mode(&file, model)?;
    }
    file.sync_all()?;
    Ok(staged)
}

/// Content that is on the disk but not yet in its place. Dropped, it is gone.
pub(crate) struct StagedFile {
    folder: Folder,
    name: OsString,
}

impl StagedFile {
    /// Puts the content into its place.
    pub(crate) fn put(self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, name)?;
        // The file is in place; if its folder cannot be flushed, only a power cut could take it back.
        let _ = self.folder.sync();
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // Gone already when it was put into its place.
        let _ = self.folder.remove(&self.name);
    }
}

/// Creates a file for the content. What is to replace another file may be a secret, so that nobody else reads it before
/// it has its mode.
fn create(folder: &Folder, model: Option<&Meta>) -> io::Result<(OsString, File)> {
    let mode = match model {
        Some(_) => PRIVATE_MODE,
        None => NEW_FILE_MODE,
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

fn keep_owner_and_mode(file: &File, model: &Meta) -> io::Result<()> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (model.user, model.group) {
        // Only the superuser may give files away; without that right the file becomes ours.
        let _ = fchown(file, Some(model.user), Some(model.group));
    }
    // After the owner: changing the owner clears the set-user-id bit.
    file.set_permissions(Permissions::from_mode(model.mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replaces_a_file_is_private_until_it_has_its_mode() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().canonicalize().unwrap()).unwrap();
        let (_, file) = create(&folder, None).unwrap();
        file.set_permissions(Permissions::from_mode(0o640)).unwrap();
        let model = Meta::of(&file.metadata().unwrap());
        let (_, copy) = create(&folder, Some(&model)).unwrap();
        assert_eq!(copy.metadata().unwrap().mode() & 0o777, 0o600);
        let staged = stage(folder, b"new", Some(&model)).unwrap();
        staged.put(OsStr::new("a")).unwrap();
        let put = place.path().join("a").metadata().unwrap();
        assert_eq!(put.mode() & 0o777, 0o640);
    }
}
