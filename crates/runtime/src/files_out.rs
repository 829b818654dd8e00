//! Which files may leave this machine: those that commands may read, and none of the system's.
//!
//! What is checked is what is sent. A file is opened by a path without links, judged by that path, and copied to a folder that no
//! command reaches, before anybody is told of it: by the time a platform takes it, its name may lead elsewhere.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hermes_config::Home;
use hermes_core::{FenceArea, Fencing, Random};
use hermes_exec::{FenceKind, FencePlaces, GuestFolders};
use hermes_os::folder::Folder;
use hermes_tools::ToolFence;

use crate::base::Base;
use crate::guests::{GuestPlaces, shared_folders};
use crate::{Result, terminals};

/// Folders of the system. What is in them is nobody's answer.
const OF_THE_SYSTEM: [&str; 9] = [
    "/etc", "/proc", "/sys", "/dev", "/boot", "/var/log", "/var/lib", "/var/run", "/run",
];

/// Where copies wait for their platform, in the cache of the home.
const OUTGOING: &str = "outgoing";

/// Judges files that a reply hands over, and keeps what is to be sent.
pub struct FilesOut {
    /// None where commands run elsewhere: then only what Hermes itself keeps here can be meant.
    fencing: Option<Arc<dyn Fencing>>,
    /// The same for guests, each with a folder of their own.
    for_guests: Option<FencePlaces>,
    shared: Vec<PathBuf>,
    cwd: PathBuf,
    kept: [PathBuf; 3],
    home: Home,
    random: Random,
}

impl FilesOut {
    pub fn chosen(base: &Base) -> Result<Self> {
        let fencing = match terminals::tool_fence(base)? {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => Some(fencing),
            ToolFence::Off => None,
        };
        let home = &base.home;
        let places = || terminals::fence_places(base, FenceKind::Project);
        let for_guests = fencing.is_some().then(places).transpose()?;
        Ok(Self {
            fencing,
            for_guests,
            shared: shared_folders(base)?,
            cwd: base.cwd.clone(),
            kept: [home.cache(), home.media(), home.results()],
            home: home.clone(),
            random: Random::from_system(),
        })
    }

    /// Where files go that a guest sends: they are theirs alone.
    pub fn folder(&self, guest: &str) -> PathBuf {
        GuestPlaces::named(&self.home, guest).folder()
    }

    /// Takes a file as it is now, to be sent whenever that is possible, or says why it stays here.
    pub fn take(
        &self,
        path: &Path,
        guest: Option<&str>,
        bytes_max: u64,
    ) -> std::result::Result<PathBuf, String> {
        let path = path.canonicalize().map_err(|error| in_words(&error))?;
        // The way there is walked without links: whoever puts one there meanwhile leads to an error.
        let file = open(&path).map_err(|error| in_words(&error))?;
        let about = file.metadata().map_err(|error| in_words(&error))?;
        if !about.is_file() {
            return Err("it is no file".to_owned());
        }
        self.judge(&path, guest)?;
        match about.len() {
            0 => Err("it is empty".to_owned()),
            bytes if bytes > bytes_max => Err(too_large(bytes, bytes_max)),
            _ => self.keep(&path, &file, bytes_max),
        }
    }

    /// What somebody's commands reach; none where they run elsewhere.
    fn area(&self, guest: Option<&str>) -> Option<FenceArea> {
        let Some(guest) = guest else {
            return Some(self.fencing.as_ref()?.area(&self.cwd));
        };
        let folders = GuestFolders {
            own: GuestPlaces::named(&self.home, guest).work(),
            shared: self.shared.clone(),
        };
        let places = FencePlaces {
            guest: Some(folders),
            ..self.for_guests.clone()?
        };
        Some(places.area(&self.cwd))
    }

    /// Whether a path without links may be sent: it is theirs, or their commands may read it.
    fn judge(&self, path: &Path, guest: Option<&str>) -> std::result::Result<(), String> {
        let is_kept = |folder: &PathBuf| {
            let folder = folder.canonicalize();
            folder.is_ok_and(|folder| path.starts_with(folder))
        };
        let is_theirs = match guest {
            Some(guest) => is_kept(&self.folder(guest)),
            None => self.kept.iter().any(is_kept),
        };
        if is_theirs {
            return Ok(());
        }
        let Some(area) = self.area(guest) else {
            return Err("commands run on another machine, and it is on this one".to_owned());
        };
        let is_of_the_system = OF_THE_SYSTEM.iter().any(|folder| path.starts_with(folder));
        if is_of_the_system || (guest.is_none() && !area.may_read(path)) {
            return Err("it is in a place that nothing is sent from".to_owned());
        }
        match area.may_read(path) {
            true => Ok(()),
            false => Err("only the owner of this Hermes may have it".to_owned()),
        }
    }

    /// Copies an open file to where no command reaches it. The copy is on the disk before anybody writes down where it is.
    fn keep(
        &self,
        path: &Path,
        file: &File,
        bytes_max: u64,
    ) -> std::result::Result<PathBuf, String> {
        let folder = self
            .outgoing()
            .join(format!("{:016x}", self.random.next_u64()));
        let copy = folder.join(path.file_name().unwrap_or_default());
        match copied(file, &folder, &copy, bytes_max) {
            Ok(bytes) if bytes <= bytes_max => Ok(copy),
            kept => {
                _ = fs::remove_dir_all(&folder);
                Err(match kept {
                    // It grew while it was read.
                    Ok(bytes) => too_large(bytes, bytes_max),
                    Err(error) => format!("it cannot be kept until it is sent: {error}"),
                })
            }
        }
    }

    fn outgoing(&self) -> PathBuf {
        self.home.cache().join(OUTGOING)
    }

    /// Deletes copies that were made before this, but for those that wait to be sent.
    pub fn forget(&self, before: SystemTime, waiting: &[PathBuf]) {
        for entry in fs::read_dir(self.outgoing())
            .into_iter()
            .flatten()
            .flatten()
        {
            let folder = entry.path();
            let made = entry.metadata().and_then(|about| about.modified());
            let is_waiting = waiting.iter().any(|path| path.starts_with(&folder));
            if made.is_ok_and(|made| made < before) && !is_waiting {
                _ = fs::remove_dir_all(folder);
            }
        }
    }
}

/// Opens a file by an absolute path, which has no links in it.
fn open(path: &Path) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is no file"));
    };
    Folder::open(folder)?.open_file(name)
}

/// Copies a file into a folder of its own. Returns how long it was: at most one byte more than it may be.
fn copied(file: &File, folder: &Path, copy: &Path, bytes_max: u64) -> io::Result<u64> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut out = File::create_new(copy)?;
    let bytes = io::copy(&mut file.take(bytes_max.saturating_add(1)), &mut out)?;
    out.sync_all()?;
    Folder::open(&folder.canonicalize()?)?.sync()?;
    Ok(bytes)
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is no file".to_owned(),
        _ => error.to_string(),
    }
}

fn too_large(bytes: u64, max: u64) -> String {
    let (has, takes) = (bytes.div_ceil(1 << 20), max >> 20);
    format!("it has {has} MB, and this platform takes {takes}")
}
