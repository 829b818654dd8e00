//! Replaces a file all at once: whoever looks sees the old content or the new, also after a crash.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

/// What a new file gets, less what the user's umask takes away.
const NEW_FILE_MODE: u32 = 0o666;

const MODE_BITS: u32 = 0o7777;

/// Writes `content` to `target`, keeping the mode and owner of the file that was there (`existing`).
///
/// On an error the old file is untouched and nothing is left behind.
pub(crate) fn replace(
    target: &Path,
    content: &[u8],
    existing: Option<&Metadata>,
) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::Builder::new()
        .prefix(".hermes-write-")
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(folder)?;
    temporary.write_all(content)?;
    if let Some(existing) = existing {
        keep_owner_and_mode(temporary.as_file(), existing)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    // The file is in place; if its folder cannot be flushed, only a power cut could take it back.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn keep_owner_and_mode(file: &File, existing: &Metadata) -> io::Result<()> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (existing.uid(), existing.gid()) {
        // Only the superuser may give files away; without that right the file becomes ours.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
    }
    // After the owner: changing the owner clears the set-user-id bit.
    file.set_permissions(Permissions::from_mode(existing.mode() & MODE_BITS))
}

/// Creates the folders on the way to `folder`. Returns whether there were any to create.
pub(crate) fn create_folders(folder: &Path) -> io::Result<bool> {
    if folder.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(folder)?;
    Ok(true)
}
