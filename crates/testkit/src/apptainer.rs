//! Stands in for the program `apptainer`, which Debian does not have: a script that takes its words and runs commands in
//! namespaces of this machine.

#![expect(clippy::expect_used, reason = "a failed helper is a failed test")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Puts the program into a folder, and returns its path.
pub fn install(folder: &Path) -> PathBuf {
    let program = folder.join("apptainer");
    std::fs::write(&program, include_str!("apptainer/apptainer.sh")).expect("write a program");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("make it a program");
    program
}
