//! Why a job on the database did not work, before it is known which file and action to name.

use std::path::Path;

use hermes_core::StoreError;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// The change would break a rule of the step log. Nothing was written.
    Refused(String),
    /// The file holds something that no version of this program writes.
    Unreadable(String),
    /// Already in the caller's words.
    Told(StoreError),
}

impl Failure {
    pub(crate) fn not_found(name: &str) -> Self {
        Self::Told(StoreError::NotFound { name: name.into() })
    }

    /// Puts the failure into the caller's words.
    pub(crate) fn at(self, action: &'static str, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Told(error) => error,
            Self::Unreadable(detail) => StoreError::Damaged { path, detail },
            Self::Refused(detail) => StoreError::Refused { detail },
            Self::Sqlite(error) if is_disk_full(&error) => StoreError::DiskFull { path },
            Self::Sqlite(error) if is_damage(&error) => StoreError::Damaged {
                path,
                detail: error.to_string(),
            },
            Self::Sqlite(error) => StoreError::Io {
                action,
                path,
                detail: error.to_string(),
            },
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }
}

impl Failure {
    /// Returns whether a reader met what it must not mend: a journal that waits to be undone, an index to be built.
    pub(crate) fn needs_writer(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen)
        )
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn is_disk_full(error: &rusqlite::Error) -> bool {
    // The file of shared memory beside the database cannot grow on a full disk, which has a code of its own.
    let extended = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull) || extended == Some(SQLITE_IOERR_SHMSIZE)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(
        error,
        E::FromSqlConversionFailure(..)
            | E::InvalidColumnType(..)
            | E::IntegralValueOutOfRange(..)
            | E::Utf8Error(..)
    )
}
