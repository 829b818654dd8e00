//! Reading and writing small text files so that neither a crash nor a full disk leaves half of one behind.

use std::{
    fs::{self, File, FileType},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};

use hermes_os::{Access, Durability};

/// Largest settings file we read; far above any real one, and small enough not to hurt.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Permissions of files that may hold secrets.
pub(crate) const PRIVATE_FILE_MODE: u32 = 0o600;

/// A settings file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("`{}` is {found} where a file is expected", path.display())]
    NotAFile { path: PathBuf, found: &'static str },
    #[error("`{}` is not UTF-8 text (first bad byte at offset {offset})", path.display())]
    NotText { path: PathBuf, offset: usize },
    #[error("`{}` is larger than {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge { path: PathBuf },
    #[error("cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl ReadError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAFile { .. } => "move it aside",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::TooLarge { .. } => "this is hardly a settings file; move it aside",
            Self::Io { .. } => "check the permissions with `hermes doctor`",
        }
    }
}

/// A file that cannot be written; what was there before is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`, which is unchanged: {source}", path.display())]
pub struct WriteError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl WriteError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space and try again"
            }
            _ => "check that you own the directory and may write to it: `hermes doctor`",
        }
    }
}

/// Reads a text file; `None` when there is none.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ReadError> {
    match read_bytes(path) {
        Ok(bytes) if bytes.len() as u64 > FILE_BYTES_MAX => Err(ReadError::TooLarge {
            path: path.to_path_buf(),
        }),
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| ReadError::NotText {
                path: path.to_path_buf(),
                offset: error.utf8_error().valid_up_to(),
            }),
        Err(ReadError::Io { source, .. }) if is_absent(&source) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads one byte more than a file may have, so that the caller can tell.
fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let io_error = |source| ReadError::Io {
        path: path.to_path_buf(),
        source,
    };
    // Asked before opening, because that alone would wait for a pipe's other end.
    let file_type = fs::metadata(path).map_err(io_error)?.file_type();
    if !file_type.is_file() {
        return Err(ReadError::NotAFile {
            path: path.to_path_buf(),
            found: name_of(file_type),
        });
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(io_error)?;
    Ok(bytes)
}

fn name_of(file_type: FileType) -> &'static str {
    match file_type {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Replaces a file in one step: a reader sees the old text or the new, also after a crash.
///
/// Keeps the permissions of an existing file and follows a symbolic link to the file it names.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), WriteError> {
    replace(path, text).map_err(|source| WriteError {
        path: path.to_path_buf(),
        source,
    })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if is_absent(&error) => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let mode = match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(_) => PRIVATE_FILE_MODE,
    };
    let access = Access::Mode(mode);
    hermes_os::replace(&target, text.as_bytes(), access, Durability::Synced)
}
