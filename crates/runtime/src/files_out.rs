//! Which files may leave this machine: those that commands may read, and none of the system's.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_config::Home;
use hermes_core::Fencing;
use hermes_tools::ToolFence;

use crate::base::Base;
use crate::guests::GuestPlaces;
use crate::{Result, terminals};

/// Folders of the system. What is in them is nobody's answer.
const OF_THE_SYSTEM: [&str; 9] = [
    "/etc", "/proc", "/sys", "/dev", "/boot", "/var/log", "/var/lib", "/var/run", "/run",
];

/// Judges files that a reply hands over.
pub struct FilesOut {
    /// None where commands run elsewhere: then only what Hermes itself keeps here can be meant.
    fencing: Option<Arc<dyn Fencing>>,
    cwd: PathBuf,
    kept: [PathBuf; 3],
    home: Home,
}

impl FilesOut {
    pub fn chosen(base: &Base) -> Result<Self> {
        let fencing = match terminals::tool_fence(base)? {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => Some(fencing),
            ToolFence::Off => None,
        };
        let home = &base.home;
        Ok(Self {
            fencing,
            cwd: base.cwd.clone(),
            kept: [home.cache(), home.media(), home.results()],
            home: home.clone(),
        })
    }

    /// Where files go that a guest sends: they are theirs alone.
    pub fn folder(&self, guest: &str) -> PathBuf {
        GuestPlaces::named(&self.home, guest).folder()
    }

    /// Returns the file itself, or why it stays here. A guest is handed what is theirs, and what was made where commands may
    /// write.
    pub fn check(&self, path: &Path, guest: Option<&str>) -> std::result::Result<PathBuf, String> {
        let path = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        })?;
        if !path.is_file() {
            return Err("it is no file".to_owned());
        }
        let is_kept = |folder: &PathBuf| {
            let folder = folder.canonicalize();
            folder.is_ok_and(|folder| path.starts_with(folder))
        };
        let is_theirs = match guest {
            Some(guest) => is_kept(&self.folder(guest)),
            None => self.kept.iter().any(is_kept),
        };
        if is_theirs {
            return Ok(path);
        }
        let area = match &self.fencing {
            Some(fencing) => fencing.area(&self.cwd),
            None => return Err("commands run on another machine, and it is on this one".to_owned()),
        };
        let is_of_the_system = OF_THE_SYSTEM.iter().any(|folder| path.starts_with(folder));
        if is_of_the_system || !area.may_read(&path) {
            return Err("it is in a place that nothing is sent from".to_owned());
        }
        if guest.is_some() && !area.may_write(&path) {
            return Err("only the owner of this Hermes may have it".to_owned());
        }
        Ok(path)
    }
}
