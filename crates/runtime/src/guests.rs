//! What is a guest's, who may ask and is not the owner of the home: which of its folders, and which of the machine's.
//!
//! Of the home it is [`GuestPlaces::private`] that decides, of everything else the fence, which for guests opens the system's own
//! folders and what the settings share. File tools and `@` references ask both, commands are held by both, and replies hand over
//! nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_config::Home;
use hermes_core::{PrivateFolder, SessionId};
use hermes_exec::GuestFolders;
use hermes_learning::notes::folder_name;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::skills;

/// Where the folders of guests are, in the cache of the home.
const PEOPLE: &str = "people";

/// The places of one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestPlaces {
    home: Home,
    name: String,
}

impl GuestPlaces {
    /// Those of whoever a conversation is for; none for the owner.
    pub fn of(base: &Base) -> Option<Self> {
        let person = base.person.as_deref()?;
        Some(Self::named(&base.home, person))
    }

    pub fn named(home: &Home, person: &str) -> Self {
        Self {
            home: home.clone(),
            name: folder_name(person),
        }
    }

    /// What they see of the home: skills, which everybody is told of, and a folder of their own.
    pub fn private(&self) -> PrivateFolder {
        PrivateFolder {
            folder: self.home.root().to_owned(),
            open: vec![self.home.skills(), self.folder()],
        }
    }

    /// Their own folder, for what they send and what is made for them.
    pub fn folder(&self) -> PathBuf {
        all_folders(&self.home).join(&self.name)
    }

    /// Where they work: in it, and in folders for temporary files, their commands write. Hermes itself writes nothing there, so
    /// that no link of theirs leads it astray.
    pub fn work(&self) -> PathBuf {
        self.folder().join("work")
    }

    /// What they reach of the machine besides the system's own.
    pub(crate) fn folders(&self, base: &Base) -> Result<GuestFolders> {
        Ok(GuestFolders {
            own: self.work(),
            shared: shared_folders(base)?,
        })
    }

    /// Makes their folders: what is not there when a fence is put up stays outside of it.
    pub fn make(&self) -> Result<()> {
        for folder in [self.folder(), self.work()] {
            hermes_os::make_private_folder(&folder).map_err(|error| {
                let message = format!("`{}` cannot be made: {error}", folder.display());
                Error::failed(message).with_hint("see whether the disk is full or read-only")
            })?;
        }
        Ok(())
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder().join("results")
    }

    pub(crate) fn web_pages(&self) -> PathBuf {
        self.folder().join("web")
    }

    pub(crate) fn shells(&self) -> PathBuf {
        self.folder().join("shells")
    }

    pub(crate) fn processes(&self) -> PathBuf {
        self.folder().join("processes")
    }

    /// Out of reach of their commands.
    pub(crate) fn process_records(&self) -> PathBuf {
        self.home.processes().join("of-guests").join(&self.name)
    }
}

/// Folders that guests may read: those of `gateway.guest_folders`, and of skills that are kept elsewhere.
pub(crate) fn shared_folders(base: &Base) -> Result<Vec<PathBuf>> {
    let named = base.settings.strings("gateway.guest_folders")?;
    let home = base.environment.user_home();
    let folder = |path: &String| match (path.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let mut shared: Vec<PathBuf> = named.iter().map(folder).collect();
    if let Some(relative) = shared.iter().find(|path| !path.is_absolute()) {
        let message = format!(
            "`gateway.guest_folders` names `{}`, and nobody knows where that is",
            relative.display()
        );
        return Err(Error::asked(message).with_hint("write it as /a/folder or ~/a/folder"));
    }
    shared.extend(skills::sources(base)?.external);
    Ok(shared)
}

fn all_folders(home: &Home) -> PathBuf {
    home.cache().join(PEOPLE)
}

/// Removes the long results of a conversation, whosever it was.
pub fn forget_results(home: &Home, session: &SessionId) {
    let of_guests = fs::read_dir(all_folders(home)).into_iter().flatten();
    let of_guests = of_guests
        .flatten()
        .map(|entry| entry.path().join("results"));
    for folder in of_guests.chain([home.results()]) {
        _ = fs::remove_dir_all(Path::new(&folder).join(session.as_str()));
    }
}
