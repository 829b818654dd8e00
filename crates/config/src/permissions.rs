//! Who may read the home: the owner, and nobody else.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use crate::{
    disk::{PRIVATE_FILE_MODE, WriteError},
    home::{Home, PRIVATE_DIRECTORY_MODE},
};

/// A file or folder that others can read or change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` has permissions {found:04o}; it should have {wanted:04o}", path.display())]
pub struct PermissionProblem {
    pub path: PathBuf,
    pub found: u32,
    pub wanted: u32,
}

/// Returns what in the home is open to others; a file that is missing is no problem.
pub fn check_permissions(home: &Home) -> Vec<PermissionProblem> {
    let config = home.config_yaml();
    let backup = crate::config_file::backup_path(&config);
    [
        (home.directory().to_path_buf(), PRIVATE_DIRECTORY_MODE),
        (home.dot_env(), PRIVATE_FILE_MODE),
        (config, PRIVATE_FILE_MODE),
        (backup, PRIVATE_FILE_MODE),
        (home.auth_json(), PRIVATE_FILE_MODE),
    ]
    .into_iter()
    .filter_map(|(path, wanted)| {
        let found = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        let is_open = found & !wanted != 0;
        is_open.then_some(PermissionProblem {
            path,
            found,
            wanted,
        })
    })
    .collect()
}

impl PermissionProblem {
    /// Gives the file or folder the permissions it should have.
    pub fn fix(&self) -> Result<(), WriteError> {
        let changed: io::Result<()> =
            fs::set_permissions(&self.path, Permissions::from_mode(self.wanted));
        changed.map_err(|source| WriteError {
            path: self.path.clone(),
            source,
        })
    }
}
