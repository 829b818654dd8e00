//! Changes of notes that wait for a person (`memory.write_approval`): `pending/memory/<number>.json` of the home, one file each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::{Author, SessionId, Timestamp, TurnId};
use hermes_os::{Access, Durability, FileLock};
use serde::{Deserialize, Serialize};

use super::entries::{self, Planned};
use super::{Changed, NoteFile, Notes, NotesError, Operation, Provenance, basis_of, files};
use crate::blocking::blocking;

/// Who is asked more often than this is asked nothing any more.
const PENDING_MAX: usize = 200;

/// Holds the highest number that was given out.
const LAST_NUMBER: &str = ".last-number";

/// What one process at a time holds while it looks at those that wait, whosever they are: their numbers are given once.
const LOCK: &str = ".lock";

/// A change that somebody wants to make, and nobody has agreed to yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingNote {
    #[serde(default)]
    pub number: u64,
    pub at: Timestamp,
    pub author: Author,
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    /// Whose notes; the owner's when nobody is named.
    pub person: Option<String>,
    /// `memory` or `user`.
    pub file: String,
    pub operations: Vec<Operation>,
    pub make_room: bool,
    /// What it would do, in a line.
    pub summary: String,
    /// Tells what it would take away and add from everything else: that is what somebody agrees to.
    #[serde(default)]
    pub basis: Option<String>,
}

impl Notes {
    /// The changes of these notes that wait, the oldest first.
    pub fn pending(&self) -> Vec<PendingNote> {
        let mut all = self.all_pending();
        all.retain(|one| one.person == self.settings.person);
        all
    }

    /// Makes a change that waited: somebody agreed to it. If it would do something else by now, it is not made.
    pub async fn approve(&self, number: u64) -> Result<Changed, NotesError> {
        let _lock = self.lock_pending().await?;
        let notes = self.clone();
        let pending = blocking(move || notes.found(number)).await?;
        let file = NoteFile::named(&pending.file).ok_or(NotesError::NotPending(number))?;
        let by = Provenance {
            author: pending.author,
            session: pending.session,
            turn: pending.turn,
        };
        let limits = self.limits(file, pending.make_room)?;
        let plan = |now: &[String]| {
            let planned = entries::plan(now, &pending.operations, limits)?;
            let would_do = basis(now, &planned);
            let is_agreed = pending.basis.is_none() || would_do == pending.basis;
            if would_do.is_some() && !is_agreed {
                return Err(NotesError::Outdated(number));
            }
            Ok(planned)
        };
        let changed = self.change(file, &by, None, None, plan).await?;
        let notes = self.clone();
        blocking(move || notes.forget(number)).await?;
        Ok(changed)
    }

    /// Drops a change that waited.
    pub async fn reject(&self, number: u64) -> Result<PendingNote, NotesError> {
        let _lock = self.lock_pending().await?;
        let notes = self.clone();
        blocking(move || {
            let pending = notes.found(number)?;
            notes.forget(number)?;
            Ok(pending)
        })
        .await
    }

    /// Writes a change down that somebody is to agree to. What could not be made is refused at once, and what waits already is not
    /// written twice.
    pub(super) async fn stage(
        &self,
        file: NoteFile,
        operations: &[Operation],
        make_room: bool,
        by: &Provenance,
    ) -> Result<PendingNote, NotesError> {
        let limits = self.limits(file, make_room)?;
        let _lock = self.lock_pending().await?;
        let (notes, operations, by) = (self.clone(), operations.to_vec(), by.clone());
        blocking(move || {
            let now = notes.entries(file)?;
            let planned = entries::plan(&now, &operations, limits)?;
            notes.put(PendingNote {
                number: 0,
                at: notes.clock.now(),
                author: by.author,
                session: by.session,
                turn: by.turn,
                person: notes.settings.person.clone(),
                file: file.as_str().to_owned(),
                operations,
                make_room,
                basis: basis(&now, &planned),
                summary: planned.summary,
            })
        })
        .await
    }

    /// Gives a change the next number and writes it down, unless it waits already.
    fn put(&self, new: PendingNote) -> Result<PendingNote, NotesError> {
        let is_same = |one: &PendingNote| {
            one.person == new.person
                && one.file == new.file
                && one.operations == new.operations
                && one.basis == new.basis
        };
        let all = self.all_pending();
        if let Some(same) = all.iter().find(|one| is_same(one)) {
            return Ok(same.clone());
        }
        if all.len() >= PENDING_MAX {
            return Err(NotesError::TooManyWait(PENDING_MAX));
        }
        let number = self.next_number(&all)?;
        let pending = PendingNote { number, ..new };
        let text = serde_json::to_string_pretty(&pending).unwrap_or_default();
        write(&self.pending_file(pending.number), &text)?;
        Ok(pending)
    }

    /// Lets one process at a time look at those that wait.
    async fn lock_pending(&self) -> Result<FileLock, NotesError> {
        let folder = self.pending_folder();
        fs::create_dir_all(&folder).map_err(|error| files::disk("make", &folder, &error))?;
        let path = folder.join(LOCK);
        let locked = files::lock_file(&path).await;
        locked.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => NotesError::Locked(folder),
            _ => files::disk("lock", &path, &error),
        })
    }

    /// A number that no change ever had: whoever read one and agrees to it later means that one.
    fn next_number(&self, waiting: &[PendingNote]) -> Result<u64, NotesError> {
        let path = self.pending_folder().join(LAST_NUMBER);
        let last = fs::read_to_string(&path).unwrap_or_default();
        let last: u64 = last.trim().parse().unwrap_or(0);
        let waiting = waiting.last().map_or(0, |one| one.number);
        let number = last.max(waiting) + 1;
        write(&path, &format!("{number}\n"))?;
        Ok(number)
    }

    fn found(&self, number: u64) -> Result<PendingNote, NotesError> {
        let mut all = self.pending().into_iter();
        all.find(|one| one.number == number)
            .ok_or(NotesError::NotPending(number))
    }

    /// Those of everybody: numbers are given once.
    fn all_pending(&self) -> Vec<PendingNote> {
        let entries = self.pending_folder().read_dir().into_iter().flatten();
        let read = |entry: fs::DirEntry| {
            let path = entry.path();
            let number: u64 = path.file_stem()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            let pending: PendingNote = serde_json::from_str(&text).ok()?;
            Some(PendingNote { number, ..pending })
        };
        let mut all: Vec<PendingNote> = entries.flatten().filter_map(read).collect();
        all.sort_by_key(|one| one.number);
        all
    }

    fn forget(&self, number: u64) -> Result<(), NotesError> {
        let path = self.pending_file(number);
        fs::remove_file(&path).map_err(|error| NotesError::Disk {
            action: "remove",
            path,
            detail: error.to_string(),
        })
    }

    /// Beside the notes, where proposals for skills wait too.
    fn pending_folder(&self) -> PathBuf {
        let folder = &self.settings.folder;
        let home = folder.parent().unwrap_or(folder);
        home.join("pending").join("memory")
    }

    fn pending_file(&self, number: u64) -> PathBuf {
        self.pending_folder().join(format!("{number}.json"))
    }
}

fn write(path: &Path, text: &str) -> Result<(), NotesError> {
    hermes_os::replace(path, text.as_bytes(), Access::Private, Durability::Synced)
        .map_err(|error| files::disk("write", path, &error))
}

/// Tells what a change takes away and adds from every other; `None` where it does neither. What stands beside it may change
/// meanwhile.
fn basis(now: &[String], planned: &Planned) -> Option<String> {
    let missing = |from: &[String], of: &[String]| {
        let missing = of.iter().filter(|entry| !from.contains(entry));
        missing.cloned().collect::<Vec<_>>()
    };
    let gone = missing(&planned.entries, now);
    let new = missing(now, &planned.entries);
    let is_nothing = gone.is_empty() && new.is_empty();
    (!is_nothing).then(|| basis_of(&entries::join(&gone), &entries::join(&new)))
}
