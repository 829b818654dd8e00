//! Skills: texts in files that tell how something is done, found in folders, told to models, and changed with consent.
//!
//! `document` reads and writes one text, `folders` and `library` find them, `told` puts them into words. [`Skills`] is what
//! all changes go through: it holds the lock between processes, writes every change down before it is made, and turns
//! changes of what a person wrote into proposals. `tools` has what models call; `guard` and `hub` are for skills from
//! elsewhere, `curator` looks after those nobody uses, `shipped` are our own.
//!
//! Everything is read anew each time it is asked for, so that a skill that was just written is there at once.

mod bundles;
mod change;
mod curator;
mod document;
mod error;
mod folders;
pub mod guard;
mod history;
pub mod hub;
mod library;
mod names;
mod outcome;
mod proposals;
mod publish;
mod shipped;
mod told;
pub mod tools;
mod usage;
mod yaml;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Author, Clock, LearningLog, SessionId};
use hermes_os::FileLock;
use hermes_os::lock::Sharing;

pub use bundles::Bundle;
pub use change::{Edit, Made, file_digest};
pub use curator::{Alike, Curated, Curating, CuratorSettings};
pub use document::{Invalid, Needs, Setting, Variable};
pub use error::SkillError;
pub use history::diff;
pub use library::{Library, Lookup, Skill, Sources};
pub use outcome::{TurnSkills, misled, slash_names};
pub use proposals::Proposal;
pub use publish::Package;
pub use told::{Inline, InlineShell, Preloaded, Told};
pub use usage::{Happened, Record, State, Usage};

use crate::blocking::blocking;
use error::Doing as _;

/// Another process takes milliseconds to change a skill.
const LOCK_TIME_MAX: Duration = Duration::from_secs(10);

/// The skills of a home, and all that changes them.
#[derive(Clone)]
pub struct Skills {
    pub sources: Sources,
    /// What one process at a time holds while it changes something.
    pub lock: PathBuf,
    /// Where changes wait for a person's consent.
    pub proposals: PathBuf,
    /// `skills.write_approval`: every change of the agent's waits for consent.
    pub wants_approval: bool,
    /// Where changes are written down. Without one nothing can be changed.
    pub log: Option<Arc<dyn LearningLog>>,
    pub clock: Arc<dyn Clock>,
}

/// Who changes something, and where they came to it.
#[derive(Debug, Clone)]
pub struct By {
    pub author: Author,
    pub session: Option<SessionId>,
}

impl By {
    pub const PERSON: Self = Self {
        author: Author::Person,
        session: None,
    };
}

impl Skills {
    /// Reads all skills, off the async threads.
    pub async fn library(&self) -> Library {
        let sources = self.sources.clone();
        blocking(move || sources.library()).await
    }

    pub fn usage(&self) -> Usage {
        Usage::read(&self.sources.home)
    }

    /// Counts something that happened to skills. Counting never stands in the way: what cannot be counted is not.
    pub async fn count(&self, names: &[String], what: Happened) {
        if names.is_empty() {
            return;
        }
        if let Err(error) = self.try_count(names, what).await {
            tracing::warn!("the use of skills was not counted: {error}");
        }
    }

    /// Keeps a skill from being changed or archived by the agent; or lets the agent have it as it is now, also when a person
    /// has edited it. Returns its name.
    pub async fn pin(&self, name: &str, is_pinned: bool) -> Result<String, SkillError> {
        let name = self.library().await.named(name)?.name.clone();
        let _lock = self.hold().await?;
        let given_back = if is_pinned {
            None
        } else {
            Some(change::digests(self.library().await.named(&name)?))
        };
        self.update_usage(|usage, _| {
            let record = usage.entry(&name);
            record.pinned = is_pinned;
            if let Some(given_back) = given_back {
                record.edited_by_person = false;
                record.given_back = given_back;
            }
        })?;
        Ok(name)
    }

    async fn try_count(&self, names: &[String], what: Happened) -> Result<(), SkillError> {
        let _lock = self.hold().await?;
        self.update_usage(|usage, now| {
            for name in names {
                usage.happened(name, what, now);
            }
        })
    }

    /// Changes `.usage.json`. The lock is held.
    fn update_usage(
        &self,
        update: impl FnOnce(&mut Usage, hermes_core::Timestamp),
    ) -> Result<(), SkillError> {
        let home = &self.sources.home;
        let file = usage::path(home);
        let mut usage = Usage::try_read(home).doing("understand", &file)?;
        update(&mut usage, self.clock.now());
        usage.save(home).doing("write", &file)
    }

    /// Lets one process at a time change skills.
    async fn hold(&self) -> Result<FileLock, SkillError> {
        if let Some(folder) = self.lock.parent() {
            std::fs::create_dir_all(folder).doing("make the folder", folder)?;
        }
        let locked = hermes_os::lock::lock(&self.lock, Sharing::Alone, LOCK_TIME_MAX).await;
        locked.map_err(|source| match source.kind() {
            std::io::ErrorKind::TimedOut => {
                SkillError::asked("another Hermes is changing skills").hint("try again in a moment")
            }
            _ => SkillError::File {
                doing: "take the lock",
                path: self.lock.clone(),
                source,
            },
        })
    }

    fn log(&self) -> Result<&Arc<dyn LearningLog>, SkillError> {
        let log = self.log.as_ref();
        log.ok_or_else(|| SkillError::asked("skills cannot be changed here"))
    }
}
