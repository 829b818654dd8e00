//! What of the home is a guest's: somebody who may ask and is not its owner.
//!
//! One rule for everything that reaches files for them, which is [`GuestPlaces::private`]: file tools and `@` references ask it,
//! the fence shows commands no more than it leaves open, and replies hand over nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_config::Home;
use hermes_core::{PrivateFolder, SessionId};
use hermes_learning::notes::folder_name;

use crate::base::Base;
use crate::error::{Error, Result};

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

    /// Makes their folder: what is not there when a fence is put up stays outside of it.
    pub fn make(&self) -> Result<()> {
        let folder = self.folder();
        hermes_os::make_private_folder(&folder).map_err(|error| {
            let message = format!("`{}` cannot be made: {error}", folder.display());
            Error::failed(message).with_hint("see whether the disk is full or read-only")
        })
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
